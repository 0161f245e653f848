/* Shared by the files of the CPU device. */
#ifndef CPU_CPU_H
#define CPU_CPU_H

#include "device/backend.h"
#include "device/cpu/sets.h"
#include "device/implementation.h"

typedef struct cpu_products cpu_products; /* prepared matrix products: product.c */

typedef struct cpu_device {
    device base;
    const cpu_set *set;
    cpu_products *products;
} cpu_device;

static inline const cpu_device *cpu_of(const device *dev) {
    return (const cpu_device *)dev;
}

/* What runs a kernel. Its run is NULL if the CPU has no such kernel. */
const device_implementation *cpu_row_of(device_kernel kernel);

#endif

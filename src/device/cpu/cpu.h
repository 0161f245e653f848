/* Shared by the files of the CPU device. */
#ifndef CPU_CPU_H
#define CPU_CPU_H

#include "device/backend.h"
#include "device/cpu/sets.h"

typedef struct cpu_products cpu_products; /* prepared matrix products: product.c */

typedef struct cpu_device {
    device base;
    const cpu_set *set;
    cpu_products *products;
} cpu_device;

static inline const cpu_device *cpu_of(const device *dev) {
    return (const cpu_device *)dev;
}

/* The functions of a kernel. prepare (may be NULL) sets scratch_bytes and prepared. */
typedef struct cpu_row {
    sifr_status (*prepare)(device *dev, device_call *call, sifr_error *error);
    sifr_status (*run)(device *dev, const device_call *call, sifr_error *error);
} cpu_row;

/* The row of a kernel. Its run is NULL if the CPU has no such kernel. */
const cpu_row *cpu_row_of(device_kernel kernel);

#endif

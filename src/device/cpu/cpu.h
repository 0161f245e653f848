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

/* device_prepare and device_run of this device; operands are checked. */
sifr_status cpu_prepare(device *dev, device_call *call, sifr_error *error) SIFR_MUST_CHECK;
sifr_status cpu_run(device *dev, const device_call *call, sifr_error *error) SIFR_MUST_CHECK;

#endif

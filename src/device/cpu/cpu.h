/* Shared by the files of the CPU device. */
#ifndef CPU_CPU_H
#define CPU_CPU_H

#include "device/cpu/separate.h"
#include "device/cpu/sets.h"
#include "device/cpu/threads.h"
#include "device/device.h"

typedef struct cpu_products cpu_products; /* prepared matrix products: product.c */

struct device {
    cpu_team *team;
    const cpu_set *set;
    cpu_products *products;
    cpu_separate *separate; /* NULL: host memory is device memory */
};

/* The functions of a kernel. prepare (may be NULL) checks operands beyond dispatch.c's checks, and
 * sets scratch_bytes and prepared. */
typedef struct cpu_row {
    sifr_status (*prepare)(device *dev, device_call *call, sifr_error *error);
    sifr_status (*run)(device *dev, const device_call *call, sifr_error *error);
} cpu_row;

/* The row of a kernel. Its run is NULL if the CPU has no such kernel. */
const cpu_row *cpu_row_of(device_kernel kernel);

#endif

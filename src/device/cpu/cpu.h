/* The CPU device's own parts: what the files of this folder share. */
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
    cpu_separate *separate; /* NULL: the host's memory is the device's */
};

/* How a kernel is prepared and run. prepare checks operands beyond what dispatch.c does and sets
 * scratch_bytes and prepared; it may be NULL. */
typedef struct cpu_row {
    sifr_status (*prepare)(device *dev, device_call *call, sifr_error *error);
    sifr_status (*run)(device *dev, const device_call *call, sifr_error *error);
} cpu_row;

/* The row of a kernel; its run is NULL where the kernel is not built. */
const cpu_row *cpu_row_of(device_kernel kernel);

#endif

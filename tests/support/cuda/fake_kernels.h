/* The kernels for GPUs as a fake driver launches them: over the shim. */
#ifndef FAKE_KERNELS_H
#define FAKE_KERNELS_H

#include <stdbool.h>

#include "support/cuda/fake_driver.h"

/* All of kernel_list.h, for fake_driver_options. `order`: as shim_run takes it, until the next
 * call.
 */
const fake_kernel *fake_shim_kernels(int order, size_t *count);

/* Faults of a kernel, for tests of what tells them: it does nothing, or never ends. */
typedef enum fake_fault { FAKE_WRONG, FAKE_HANG, FAKE_FAULTS } fake_fault;

/* From now on the kernel of this name (without sifr_) has the fault, and no other has it; "": none.
 * False if there is no such kernel. */
bool fake_shim_plant(fake_fault fault, const char *name);

#endif

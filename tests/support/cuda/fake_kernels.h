/* The kernels for GPUs as a fake driver launches them: over the shim. */
#ifndef FAKE_KERNELS_H
#define FAKE_KERNELS_H

#include "support/cuda/fake_driver.h"

/* All of kernel_list.h, for fake_driver_options. `order`: as shim_run takes it, until the next
 * call.
 */
const fake_kernel *fake_shim_kernels(int order, size_t *count);

#endif

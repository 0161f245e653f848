/* The kernels by number, each as a function of one thread. */
#ifndef SUPPORT_CUDA_SHIM_KERNELS_H
#define SUPPORT_CUDA_SHIM_KERNELS_H

#include <stddef.h>

#include "device/cuda/cuda_launch.h"

typedef void shim_kernel(const void *arguments);

extern shim_kernel *const shim_kernels[];
extern const unsigned *const shim_most_threads[]; /* of a block of each */

/* shim_run for a kernel that is not listed; `bytes` of arguments. */
void shim_run_kernel(shim_kernel *kernel, size_t bytes, const cuda_launch *launch, int order);

#endif

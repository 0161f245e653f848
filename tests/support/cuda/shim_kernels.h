/* The kernels by number, each as a function of one thread. */
#ifndef SUPPORT_CUDA_SHIM_KERNELS_H
#define SUPPORT_CUDA_SHIM_KERNELS_H

typedef void shim_kernel(const void *arguments);

extern shim_kernel *const shim_kernels[];

#endif

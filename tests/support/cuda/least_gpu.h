/* What every GPU has that there are kernels for (cmake/cuda.cmake). */
#ifndef SUPPORT_CUDA_LEAST_GPU_H
#define SUPPORT_CUDA_LEAST_GPU_H

/* Bytes of shared memory of a block that asks for them: those of 8.6, 8.9 and 12.0. */
enum { LEAST_GPU_SHARED = 99 << 10 };

#endif

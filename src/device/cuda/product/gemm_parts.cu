/* Adds up the chunks of a weight gradient that were computed beside each other. */
#include "device/cuda/kernel.h"

#include "device/cuda/product/gemm_arguments.h"

KERNEL(gemm_parts, gemm_parts_arguments, GEMM_PARTS_THREADS) {
    int64_t size = a.rows * a.columns;
    int64_t at = (int64_t)blockIdx.x * GEMM_PARTS_THREADS + threadIdx.x;
    if (at >= size) return;
    float *to = a.c + at / a.columns * a.c_stride + at % a.columns;
    float sum = a.accumulate ? *to + a.parts[at] : a.parts[at];
    for (int64_t part = 1; part < a.count; part++) sum += a.parts[part * size + at];
    *to = sum;
}

/* Sums of squares of blocks of DEVICE_BLOCK elements, in double: element i is added to sum i % 8,
 * and the eight are added as the CPU adds them (device/cpu/vector/kernels_flat.c). A thread has one
 * of the eight sums of a block. */
#include "base/dtype.h"
#include "device/cuda/kernel.h"
#include "device/cuda/vector/optimizer_arguments.h"

/* Elements that a thread loads before it adds them. */
enum { SQUARES_AHEAD = 16 };

DEVICE float element_of(const void *data, int64_t at, int type) {
    if (type == BASE_FP32) return ((const float *)data)[at];
    uint16_t half = ((const uint16_t *)data)[at];
    return type == BASE_BF16 ? base_bf16_to_float(half) : base_half_to_float(half);
}

DEVICE void add_squares(const squares_arguments &a, int type) {
    int64_t thread = (int64_t)blockIdx.x * SQUARE_THREADS + threadIdx.x;
    int64_t block = thread / SQUARE_LANES, lane = thread % SQUARE_LANES;
    int64_t first = block * DEVICE_BLOCK;
    int64_t end = first + DEVICE_BLOCK < a.count ? first + DEVICE_BLOCK : a.count;
    double sum = 0.0;
    for (int64_t at = first + lane; at < end; at += SQUARES_AHEAD * SQUARE_LANES) {
        float x[SQUARES_AHEAD];
#pragma unroll
        for (int i = 0; i < SQUARES_AHEAD; i++)
            x[i] = at + i * SQUARE_LANES < end ? element_of(a.data, at + i * SQUARE_LANES, type)
                                               : 0.0f;
#pragma unroll
        for (int i = 0; i < SQUARES_AHEAD;
             i++) { /* the product is exact: one rounding, as of the sum alone */
            sum = fma((double)x[i], (double)x[i], sum);
        }
    }
#pragma unroll
    for (int step = SQUARE_LANES / 2; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0 && first < a.count) a.sums[block] = sum;
}

KERNEL(square_sums_fp32, squares_arguments, SQUARE_THREADS) {
    add_squares(a, BASE_FP32);
}

KERNEL(square_sums_bf16, squares_arguments, SQUARE_THREADS) {
    add_squares(a, BASE_BF16);
}

KERNEL(square_sums_fp16, squares_arguments, SQUARE_THREADS) {
    add_squares(a, BASE_FP16);
}

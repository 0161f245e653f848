/* Adds up parts of weight gradients in an order that their number alone fixes. */
#include "device/cuda/kernel.h"
#include "device/cuda/vector/parts_arguments.h"

KERNEL(add_parts, parts_arguments, PARTS_THREADS) {
    SHARED(float, slices, PARTS_THREADS);
    uint32_t column = threadIdx.x % PARTS_COLUMNS, slice = threadIdx.x / PARTS_COLUMNS;
    int64_t e = (int64_t)blockIdx.x * PARTS_COLUMNS + column;
    int64_t each = (a.count + PARTS_SLICES - 1) / PARTS_SLICES, first = slice * each;
    int64_t end = first + each < a.count ? first + each : a.count;
    float sum = 0.0f;
    if (e < a.elements)
        for (int64_t p = first; p < end; p++) sum += a.parts[p * a.length + e];
    slices[threadIdx.x] = sum;
    __syncthreads();
    if (slice > 0 || e >= a.elements) return;
    for (int s = 1; s < PARTS_SLICES; s++) sum += slices[s * PARTS_COLUMNS + column];
    float *to = a.to + e / a.columns * a.to_stride + e % a.columns;
    *to = a.add ? *to + sum : sum;
}

/* Sums of columns, for the gradient of a bias: of parts of 128 rows, then of the parts in order. */
#include "device/cuda/kernel.h"

#include "device/cuda/product/column_sums_arguments.h"

template <typename T> DEVICE void column_sums(const column_sums_arguments &a) {
    int64_t column = (int64_t)blockIdx.x * COLUMN_SUMS_THREADS + threadIdx.x;
    int64_t first = (int64_t)blockIdx.y * COLUMN_SUMS_ROWS, last = first + COLUMN_SUMS_ROWS;
    if (column >= a.columns) return;
    if (last > a.rows) last = a.rows;
    const typename T::stored *from = (const typename T::stored *)a.from + column;
    float sum = 0.0f;
#pragma unroll 8
    for (int64_t row = first; row < last; row++) sum += T::load(from[row * a.stride]);
    a.parts[blockIdx.y * a.columns + column] = sum;
}

KERNEL(column_sums_fp32, column_sums_arguments, COLUMN_SUMS_THREADS) {
    column_sums<fp32>(a);
}

KERNEL(column_sums_bf16, column_sums_arguments, COLUMN_SUMS_THREADS) {
    column_sums<bf16>(a);
}

KERNEL(column_sums_fp16, column_sums_arguments, COLUMN_SUMS_THREADS) {
    column_sums<fp16>(a);
}

KERNEL(column_totals, column_totals_arguments, COLUMN_SUMS_THREADS) {
    int64_t column = (int64_t)blockIdx.x * COLUMN_SUMS_THREADS + threadIdx.x;
    if (column >= a.columns) return;
    int64_t parts = a.parts_count;
    if (a.count != NULL) {
        int64_t there = *a.count - a.first;
        there = there < 0 ? 0 : (there + COLUMN_SUMS_ROWS - 1) / COLUMN_SUMS_ROWS;
        if (there < parts) parts = there;
    }
    bool begun = a.accumulate;
    float total = begun ? a.to[column] : 0.0f;
    for (int64_t chunk = 0; chunk < parts; chunk += a.chunk) {
        int64_t last = chunk + a.chunk < parts ? chunk + a.chunk : parts;
        float sum = a.parts[chunk * a.columns + column];
        for (int64_t part = chunk + 1; part < last; part++)
            sum += a.parts[part * a.columns + column];
        total = begun ? total + sum : sum;
        begun = true;
    }
    a.to[column] = total;
}

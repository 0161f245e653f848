/* From the losses of rows, and the squares and losses of ranks, to the decision of a step. */
#include "device/cuda/kernel.h"
#include "device/cuda/vector/folds_arguments.h"

/* Adds count values to one sum in order. All threads fetch, one adds: while it adds what lies in
 * one half of `buffer`, the others fill the other one. */
DEVICE double sum_in_order(const float *values, int64_t count, float *buffer) {
    double sum = 0.0;
    for (int64_t i = threadIdx.x; i < FOLD_ROWS && i < count; i += FOLD_THREADS)
        buffer[i] = values[i];
    __syncthreads();
    for (int64_t first = 0; first < count; first += FOLD_ROWS) {
        int half = (int)(first / FOLD_ROWS % 2), next = 1 - half;
        int64_t after = first + FOLD_ROWS;
        for (int64_t i = threadIdx.x; i < FOLD_ROWS && after + i < count; i += FOLD_THREADS)
            buffer[next * FOLD_ROWS + i] = values[after + i];
        if (threadIdx.x == 0) {
            int filled = count - first < FOLD_ROWS ? (int)(count - first) : FOLD_ROWS;
#pragma unroll 8
            for (int i = 0; i < filled; i++) sum += (double)buffer[half * FOLD_ROWS + i];
        }
        __syncthreads();
    }
    return sum;
}

KERNEL(fold_loss, fold_loss_arguments, FOLD_THREADS) {
    SHARED(float, buffer, 2 * FOLD_ROWS);
    double sum = sum_in_order(a.values, a.count, buffer);
    if (threadIdx.x == 0) *a.sum = sum;
}

/* Digits of a part's exact sum, and its losses behind them. */
DEVICE const int64_t *part_of(const device_decision &a, int32_t rank) {
    return (const int64_t *)a.parts + (int64_t)rank * (EXACT_WORDS + a.micro_batches);
}

/* A thread a word of the sum of squares; then one thread. The parts' sums are not settled: fewer
 * than 2^44 elements leave a word below 2^62. */
KERNEL(decide, device_decision, DECIDE_THREADS) {
    SHARED(base_exact_sum, sum, 1);
    if (threadIdx.x < EXACT_WORDS) {
        int64_t word = 0;
        for (int32_t rank = 0; rank < a.owners; rank++) word += part_of(a, rank)[threadIdx.x];
        ((int64_t *)sum)[threadIdx.x] = word;
    }
    __syncthreads();
    if (threadIdx.x > 0) return;
    base_exact_settle(sum);
    double losses = 0.0, scale = 1.0, squares = base_exact_round_settled(sum);
    int32_t neighbours = a.across_first ? a.owners : 1; /* whose micro batches take turns */
    for (int32_t first = 0; first < a.ranks; first += neighbours)
        for (int32_t i = 0; i < neighbours * a.micro_batches; i++)
            losses += ((const double *)(part_of(a, first + i % neighbours) +
                                        EXACT_WORDS))[i / neighbours];
    double norm = sqrt(squares) / a.loss_scale;
    bool updated = isfinite(squares) && isfinite(losses) && a.labelled > 0;
    if (a.clipping > 0.0) scale = 1.0 / fmax(1.0, (norm + 1e-6) / a.clipping);
    a.step->update_scale = (float)(scale / a.loss_scale);
    a.step->update = updated;
    a.outcome->loss_sum = losses;
    a.outcome->gradient_norm = norm;
    a.outcome->updated = updated;
}

/* From the losses of rows and the sums of squares of blocks to the decision of a step. */
#include "device/cuda/kernel.h"
#include "device/cuda/vector/folds_arguments.h"

/* Adds count values to one sum in order. All threads fetch, one adds: while it adds what lies in
 * one half of `room`, the others fill the other one. */
template <class value> DEVICE double sum_in_order(const value *values, int64_t count, value *room) {
    double sum = 0.0;
    for (int64_t i = threadIdx.x; i < FOLD_ROWS && i < count; i += FOLD_THREADS)
        room[i] = values[i];
    __syncthreads();
    for (int64_t first = 0; first < count; first += FOLD_ROWS) {
        int half = (int)(first / FOLD_ROWS % 2), next = 1 - half;
        int64_t after = first + FOLD_ROWS;
        for (int64_t i = threadIdx.x; i < FOLD_ROWS && after + i < count; i += FOLD_THREADS)
            room[next * FOLD_ROWS + i] = values[after + i];
        if (threadIdx.x == 0) {
            int filled = count - first < FOLD_ROWS ? (int)(count - first) : FOLD_ROWS;
#pragma unroll 8
            for (int i = 0; i < filled; i++) sum += (double)room[half * FOLD_ROWS + i];
        }
        __syncthreads();
    }
    return sum;
}

KERNEL(fold_loss, fold_loss_arguments, FOLD_THREADS) {
    SHARED(float, room, 2 * FOLD_ROWS);
    double sum = sum_in_order(a.values, a.count, room);
    if (threadIdx.x == 0) *a.sum = sum;
}

KERNEL(fold_parts, fold_parts_arguments, FOLD_THREADS) {
    SHARED(double, room, 2 * FOLD_ROWS);
    double sum = sum_in_order(a.parts, a.count, room);
    if (threadIdx.x == 0) *a.sum = sum;
}

/* Where the square of block `index` of a unit lies: ranks hold a unit's blocks one after the other.
 */
DEVICE int64_t place_of_block(const fold_squares_arguments &a, const fold_unit &u, int64_t index) {
    return index / u.blocks * a.own + u.first + index % u.blocks;
}

/* A warp a chunk: lane l adds blocks l, l + 32 ... of the chunk, then the lanes are added by
 * halves. Chunks begin where units begin, and what a number of ranks pads a unit with is zero and
 * at its end: so the sum is the same for any number of ranks. */
KERNEL(fold_squares, fold_squares_arguments, FOLD_THREADS) {
    int64_t warp = ((int64_t)blockIdx.x * FOLD_THREADS + threadIdx.x) / FOLD_LANES;
    int64_t lane = threadIdx.x % FOLD_LANES, part = a.unit[0].part + warp;
    int unit = 0;
    while (unit + 1 < a.units && a.unit[unit + 1].part <= part) unit++;
    const fold_unit u = a.unit[unit];
    int64_t blocks = u.blocks * a.ranks, first = (part - u.part) * FOLD_CHUNK;
    double sum = 0.0;
    for (int64_t i = first + lane; i < first + FOLD_CHUNK && i < blocks; i += FOLD_LANES)
        sum += a.squares[place_of_block(a, u, i)];
    for (int step = FOLD_LANES / 2; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0 && first < blocks) a.parts[part] = sum;
}

/* One thread. */
KERNEL(decide, device_decision, 1) {
    double losses = 0.0, scale = 1.0, squares = *a.squares;
    for (int32_t g = 0; g < a.ranks * a.micro_batches; g++) {
        int32_t rank = a.across_first ? g % a.ranks : g / a.micro_batches;
        int32_t micro_batch = a.across_first ? g / a.ranks : g % a.micro_batches;
        losses += a.losses[rank * a.micro_batches + micro_batch];
    }
    double norm = sqrt(squares) / a.loss_scale;
    bool updated = isfinite(squares) && isfinite(losses) && a.labelled > 0;
    if (a.clipping > 0.0) scale = 1.0 / fmax(1.0, (norm + 1e-6) / a.clipping);
    a.step->update_scale = (float)(scale / a.loss_scale);
    a.step->update = updated;
    a.outcome->loss_sum = losses;
    a.outcome->gradient_norm = norm;
    a.outcome->updated = updated;
}

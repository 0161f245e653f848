/* Products of fp32 matrices by fused multiply-adds in fp32: no tf32, so an element is one chain of
 * fmaf over rising k.
 *
 * A block of 64 threads owns 64 x 64 elements of c, a thread 8 x 8 of them. Both operands lie in
 * shared memory in rows of k; elements are copied one by one, so each order and each alignment is
 * the same to it. */
#include "device/cuda/kernel.h"

#include "device/cuda/product/gemm_arguments.h"
#include "device/cuda/product/gemm_common.h"

enum { SIDE = GEMM_SMALL, PITCH = SIDE + GEMM_PAD32 };

/* BY_K: rows in memory are k. In each step a thread loads one element: the next k of its column, or
 * its k of a row further on. */
template <bool BY_K> struct share {
    enum { WIDTH = BY_K ? (int)SIDE : (int)GEMM_STEP32, ROW_STEP = GEMM_THREADS32 / WIDTH };
};

template <bool BY_K>
DEVICE const float *own_element(const void *from, int64_t stride, int64_t row, int64_t column) {
    int thread = (int)threadIdx.x, width = share<BY_K>::WIDTH;
    return (const float *)from + (row + thread / width) * stride + column + thread % width;
}

/* Starts to load SIDE elements of each of GEMM_STEP32 values of k; `from` is the thread's first
 * element. `terms` values of k and `others` elements are there, the rest becomes zeros. */
template <bool BY_K>
DEVICE void load_operand(float *to, const float *from, int64_t stride, int terms, int others) {
    enum { WIDTH = share<BY_K>::WIDTH, ROW_STEP = share<BY_K>::ROW_STEP };
    int row = (int)threadIdx.x / WIDTH, column = (int)threadIdx.x % WIDTH;
#pragma unroll 4
    for (int step = 0; step < SIDE * GEMM_STEP32 / GEMM_THREADS32; step++) {
        int k = BY_K ? row : column, other = BY_K ? column : row;
        copy_async4(to + k * PITCH + other, from, k < terms && other < others);
        row += ROW_STEP;
        from += ROW_STEP * stride;
    }
}

/* Four elements, and the four that lie half a tile further. */
DEVICE void load_eight(float to[8], const float *from) {
    typedef wide_of<float, 4> four;
    four low = *(const four *)(const void *)from;
    four high = *(const four *)(const void *)(from + SIDE / 2);
#pragma unroll
    for (int i = 0; i < 4; i++) to[i] = low.at[i], to[i + 4] = high.at[i];
}

/* Element i, j of a thread lies in row down + i, or down + 32 + i - 4, and so for columns. */
DEVICE void write_sums(const gemm_arguments &a, const gemm_tile &tile, const float sums[8][8],
                       int down, int across, bool add) {
#pragma unroll
    for (int i = 0; i < 8; i++) {
        int64_t row = tile.m + down + i % 4 + i / 4 * (SIDE / 2);
        if (row >= tile.m_end) continue;
        float *to = (float *)a.c + tile.c_offset + gemm_row_of_c(a, row) * a.c_stride;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            int64_t column = tile.n + across + j % 4 + j / 4 * (SIDE / 2);
            if (column >= a.n) continue;
            float value = sums[i][j] * tile.factor;
            if (a.bias != NULL) value += ((const float *)a.bias)[column];
            to[column] = add ? to[column] + value : value;
        }
    }
}

DEVICE void clear(float sums[8][8]) {
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 8; j++) sums[i][j] = 0.0f;
}

DEVICE void multiply_step(float sums[8][8], const float *tile_a, const float *tile_b, int down,
                          int across) {
#pragma unroll
    for (int k = 0; k < GEMM_STEP32; k++) {
        float a[8], b[8];
        load_eight(a, tile_a + k * PITCH + down);
        load_eight(b, tile_b + k * PITCH + across);
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int j = 0; j < 8; j++) sums[i][j] = fmaf(a[i], b[j], sums[i][j]);
    }
}

template <bool A_BY_K, bool B_BY_K> DEVICE void gemm32(const gemm_arguments &a, float *shared) {
    const int STEP = GEMM_STEP32, STAGES = GEMM_STAGES32, TILE = STEP * PITCH;
    gemm_tile tile;
    if (!gemm_find_tile(a, SIDE, &tile)) return;
    const float *from_a = own_element<A_BY_K>(a.a, a.a_stride, A_BY_K ? tile.k_begin : tile.m,
                                              A_BY_K ? tile.m : tile.k_begin);
    const float *from_b = own_element<B_BY_K>(a.b, a.b_stride, B_BY_K ? tile.k_begin : tile.n,
                                              B_BY_K ? tile.n : tile.k_begin);
    int64_t next_a = A_BY_K ? STEP * a.a_stride : STEP, next_b = B_BY_K ? STEP * a.b_stride : STEP;
    int rows = gemm_at_most(tile.m_end - tile.m, SIDE), columns = gemm_at_most(a.n - tile.n, SIDE);
    int down = (int)threadIdx.x / 8 * 4, across = (int)threadIdx.x % 8 * 4;
    int steps = gemm_steps(tile, STEP);
    int chunk = gemm_chunk_steps(a, STEP), left = chunk;
    bool add = a.accumulate;
    float sums[8][8];
    clear(sums);
    /* Where there is no step, an empty group of copies is closed, so that the number of groups says
     * which steps are there. */
    auto load = [&](int step) {
        if (step < steps) {
            float *to = shared + step % STAGES * 2 * TILE;
            int terms = gemm_at_most(tile.k_end - tile.k_begin - (int64_t)step * STEP, STEP);
            load_operand<A_BY_K>(to, from_a + step * next_a, a.a_stride, terms, rows);
            load_operand<B_BY_K>(to + TILE, from_b + step * next_b, a.b_stride, terms, columns);
        }
        copy_commit();
    };
    load(0);
    for (int step = 0; step < steps; step++) {
        copy_wait<STAGES - 2>();
        __syncthreads(); /* the step is there, and nobody reads the one before it any more */
        load(step + STAGES - 1);
        const float *there = shared + step % STAGES * 2 * TILE;
        multiply_step(sums, there, there + TILE, down, across);
        if (--left > 0 && step + 1 < steps) continue;
        write_sums(a, tile, sums, down, across, add);
        clear(sums);
        add = true;
        left = chunk;
    }
}

#define GEMM32(name, a_by_k, b_by_k)                                                               \
    KERNEL(name, gemm_arguments, GEMM_THREADS32) {                                                 \
        SHARED_DYNAMIC(float, shared);                                                             \
        gemm32<a_by_k, b_by_k>(a, shared);                                                         \
    }

GEMM32(gemm_nt_fp32, false, false)
GEMM32(gemm_nn_fp32, false, true)
GEMM32(gemm_tn_fp32, true, true)

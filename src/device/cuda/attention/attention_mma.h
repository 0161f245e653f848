/* Tiles of 16-bit values in shared memory and the products of attention on them, by mma.sync
 * m16n8k16. A tile has rows of `WIDTH` values; heads of fewer values are filled up with zeros.
 *
 * All products take the same two forms, so probabilities never go through shared memory: a warp
 * has 16 rows of the operand that its block owns, makes 16 x COLUMNS scores with the rows of the
 * other operand, and multiplies these, as they lie in its registers, with those rows again. Lane l
 * has the elements of rows l / 4 and l / 4 + 8, columns 8 n + l % 4 * 2 and the next one. */
#ifndef CUDA_ATTENTION_MMA_H
#define CUDA_ATTENTION_MMA_H

#include "device/cuda/attention/attention_arguments.h"
#include "device/cuda/kernel.h"

/* Two values in 32 bits, and the product of a warp: sums += a b. A NaN stays one. */
struct pairs_bf16 {
    DEVICE_MEMBER uint32_t pair(float low, float high) {
#ifdef __CUDACC__
        uint32_t out;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
        return out;
#else
        return (uint32_t)base_bf16_from_float(high) << 16 | base_bf16_from_float(low);
#endif
    }
    DEVICE_MEMBER void multiply(float sums[4], const uint32_t a[4], const uint32_t b[2]) {
        mma_bf16(sums, a, b, sums);
    }
};

struct pairs_fp16 {
    DEVICE_MEMBER uint32_t pair(float low, float high) {
#ifdef __CUDACC__
        uint32_t out;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
        return out;
#else
        return (uint32_t)base_half_from_float(high) << 16 | base_half_from_float(low);
#endif
    }
    DEVICE_MEMBER void multiply(float sums[4], const uint32_t a[4], const uint32_t b[2]) {
        mma_fp16(sums, a, b, sums);
    }
};

/* Eight values of a row, 16 bytes, are moved at a time. Where they lie depends on the row, so that
 * the same eight of 8 rows are in different banks. */
template <int WIDTH> DEVICE uint16_t *tile_eight(uint16_t *tile, int row, int eight) {
    return tile + row * WIDTH + (eight ^ (row & 7)) * 8;
}

/* The rows of a head in a sequence. */
typedef struct head_rows {
    uint16_t *data;
    int64_t stride;
    int32_t length, width;
    bool aligned; /* eight values may be moved at once */
} head_rows;

DEVICE head_rows head_rows_of(const attention_arguments &a, const attention_operand &operand,
                              int32_t sequence, int32_t head) {
    int64_t first = (int64_t)sequence * a.length * operand.stride + (int64_t)head * a.head_dim;
    uint16_t *data = (uint16_t *)operand.data + first;
    bool aligned = ((uintptr_t)data & 15) == 0 && ((operand.stride | a.head_dim) & 7) == 0;
    return {data, operand.stride, a.length, a.head_dim, aligned};
}

DEVICE void tile_load_single(const head_rows &from, int32_t row, int first, uint16_t *to) {
    const uint16_t *values = from.data + row * from.stride + first;
    for (int i = 0; i < 8; i++)
        to[i] = row < from.length && first + i < from.width ? values[i] : (uint16_t)0;
}

/* Starts to bring rows [first, first + ROWS) into a tile, with zeros beyond what the head has. */
template <int WIDTH, int ROWS>
DEVICE void tile_load(const head_rows &from, int32_t first, uint16_t *tile) {
#pragma unroll 4
    for (int i = (int)threadIdx.x; i < ROWS * WIDTH / 8; i += ATTENTION_THREADS) {
        int row = i / (WIDTH / 8), eight = i % (WIDTH / 8);
        uint16_t *to = tile_eight<WIDTH>(tile, row, eight);
        if (from.aligned) {
            bool real = first + row < from.length && eight * 8 < from.width;
            int64_t at = real ? (first + row) * from.stride + eight * 8 : 0;
            copy_async(to, from.data + at, real ? 16 : 0);
        } else {
            tile_load_single(from, first + row, eight * 8, to);
        }
    }
}

/* Brings COLUMNS columns of a warp's 16 rows from tile row `row` on, which it has written, to rows
 * `first` and on of a head. */
template <int WIDTH, int COLUMNS>
DEVICE void tile_store(uint16_t *tile, int row, int column, const head_rows &to, int32_t first) {
    for (int i = (int)(threadIdx.x % 32); i < 16 * COLUMNS / 8; i += 32) {
        int r = i / (COLUMNS / 8), at = column + i % (COLUMNS / 8) * 8;
        if (first + r >= to.length) continue;
        const uint16_t *from = tile_eight<WIDTH>(tile, row + r, at / 8);
        uint16_t *out = to.data + (first + r) * to.stride + at;
        if (to.aligned && at < to.width)
            *(uint4 *)out = *(const uint4 *)from;
        else
            for (int k = 0; k < 8 && at + k < to.width; k++) out[k] = from[k];
    }
}

/* A warp's 16 x COLUMNS sums as 16-bit values into rows [row, row + 16) of a tile, then out. */
template <typename T, int WIDTH, int COLUMNS>
DEVICE void tile_write(const float sums[COLUMNS / 8][4], float low, float high, uint16_t *tile,
                       int row, int column, const head_rows &to, int32_t first) {
    int lane = (int)(threadIdx.x % 32), group = lane / 4, in = lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; n++) {
        int eight = column / 8 + n;
        *(uint32_t *)(tile_eight<WIDTH>(tile, row + group, eight) + in) =
            T::pair(sums[n][0] * low, sums[n][1] * low);
        *(uint32_t *)(tile_eight<WIDTH>(tile, row + group + 8, eight) + in) =
            T::pair(sums[n][2] * high, sums[n][3] * high);
    }
    __syncwarp();
    tile_store<WIDTH, COLUMNS>(tile, row, column, to, first);
}

/* 16 x 16 values of rows [row, row + 16), as the first operand of mma. */
template <int WIDTH> DEVICE void tile_fragment(uint16_t *tile, int row, int k, uint32_t out[4]) {
    int lane = (int)(threadIdx.x % 32);
    load_matrices(out, tile_eight<WIDTH>(tile, row + lane % 16, k * 2 + lane / 16));
}

/* scores = rows columns^T: 16 rows of one tile from `row` on, all COLUMNS rows of another. */
template <typename T, int WIDTH, int COLUMNS>
DEVICE void tile_scores(uint16_t *rows, int row, uint16_t *columns, float scores[COLUMNS / 8][4]) {
    int lane = (int)(threadIdx.x % 32);
    int column = lane % 8 + lane / 16 * 8, half = lane / 8 % 2;
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; n++)
        for (int i = 0; i < 4; i++) scores[n][i] = 0.0f;
#pragma unroll
    for (int k = 0; k < WIDTH / 16; k++) {
        uint32_t a[4];
        tile_fragment<WIDTH>(rows, row, k, a);
#pragma unroll
        for (int n = 0; n < COLUMNS / 16; n++) {
            uint32_t b[4];
            load_matrices(b, tile_eight<WIDTH>(columns, n * 16 + column, k * 2 + half));
            T::multiply(scores[2 * n], a, b);
            T::multiply(scores[2 * n + 1], a, b + 2);
        }
    }
}

/* sums += p columns, for SUMS columns of the result from column `first` on; p: 16 x COLUMNS. */
template <typename T, int WIDTH, int COLUMNS, int SUMS>
DEVICE void tile_add(const uint32_t p[COLUMNS / 16][4], uint16_t *columns, int first,
                     float sums[SUMS / 8][4]) {
    int lane = (int)(threadIdx.x % 32);
#pragma unroll
    for (int k = 0; k < COLUMNS / 16; k++) {
#pragma unroll
        for (int n = 0; n < SUMS / 16; n++) {
            uint32_t b[4];
            load_matrices_transposed(
                b, tile_eight<WIDTH>(columns, k * 16 + lane % 16, first / 8 + n * 2 + lane / 16));
            T::multiply(sums[2 * n], p[k], b);
            T::multiply(sums[2 * n + 1], p[k], b + 2);
        }
    }
}

/* Scores of two groups of 8 columns, as the first operand of mma. */
template <typename T>
DEVICE void tile_pairs(const float low[4], const float high[4], uint32_t out[4]) {
    out[0] = T::pair(low[0], low[1]);
    out[1] = T::pair(low[2], low[3]);
    out[2] = T::pair(high[0], high[1]);
    out[3] = T::pair(high[2], high[3]);
}

#endif

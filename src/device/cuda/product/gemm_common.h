/* What the products of 16-bit and of fp32 matrices share: which tile a block owns, and how it is
 * written. For .cu files. */
#ifndef CUDA_GEMM_COMMON_H
#define CUDA_GEMM_COMMON_H

#include "device/cuda/kernel.h"
#include "device/cuda/wide.h"

#include "device/cuda/product/gemm_arguments.h"

enum { GEMM_GROUP = 8 }; /* tiles of rows that are computed near each other in time */

typedef struct gemm_tile {
    int64_t m, n, m_end;    /* the first row and column, and the end of all rows */
    int64_t k_begin, k_end; /* of the part */
    int64_t c_offset;
    float factor;
} gemm_tile;

/* False: the block has nothing to do. Blocks that run at one time should read the same operands:
 * they go down a group of tiles, then to the right. */
DEVICE bool gemm_find_tile(const gemm_arguments &a, int side, gemm_tile *tile) {
    int64_t there = a.limit == GEMM_LIMIT_NONE ? 0 : *a.count - a.first;
    int64_t m = a.m, k = a.k;
    if (a.limit == GEMM_LIMIT_M && there < m) m = there;
    if (a.limit == GEMM_LIMIT_K && there < k) k = there < 0 ? 0 : there;
    int64_t down = (a.m + side - 1) / side, across = (a.n + side - 1) / side;
    int64_t group = blockIdx.x / (GEMM_GROUP * across), in = blockIdx.x % (GEMM_GROUP * across);
    int64_t height = down - group * GEMM_GROUP;
    if (height > GEMM_GROUP) height = GEMM_GROUP;
    tile->m = (group * GEMM_GROUP + in % height) * side;
    tile->n = in / height * side;
    tile->m_end = m;
    tile->k_begin = blockIdx.y * a.part;
    tile->k_end = tile->k_begin + a.part < k ? tile->k_begin + a.part : k;
    if (tile->k_end < tile->k_begin) tile->k_end = tile->k_begin;
    tile->c_offset = blockIdx.y * a.c_part;
    tile->factor = a.factor_pointer != NULL ? *a.factor_pointer * a.factor : a.factor;
    return tile->m < m && !(k == 0 && a.accumulate);
}

DEVICE int gemm_at_most(int64_t value, int most) {
    return value < most ? (int)value : most;
}

/* At least one: of zeros, if there are no terms. */
DEVICE int gemm_steps(const gemm_tile &tile, int step) {
    int64_t terms = tile.k_end - tile.k_begin;
    return terms > 0 ? (int)((terms + step - 1) / step) : 1;
}

DEVICE int gemm_chunk_steps(const gemm_arguments &a, int step) {
    return (int)((a.chunk + step - 1) / step);
}

DEVICE int64_t gemm_row_of_c(const gemm_arguments &a, int64_t row) {
    return a.c_rows != NULL ? a.c_rows[row] : row;
}

/* Writes one value or two neighbours. */
template <typename T>
DEVICE void gemm_write(typename T::stored *to, const float value[2], bool both, bool wide,
                       bool add) {
    typedef wide_of<typename T::stored, 2> two;
    if (both && wide) {
        two pair = add ? *(const two *)(const void *)to : two();
        pair.at[0] = T::store(add ? T::load(pair.at[0]) + value[0] : value[0]);
        pair.at[1] = T::store(add ? T::load(pair.at[1]) + value[1] : value[1]);
        *(two *)(void *)to = pair;
        return;
    }
    to[0] = T::store(add ? T::load(to[0]) + value[0] : value[0]);
    if (both) to[1] = T::store(add ? T::load(to[1]) + value[1] : value[1]);
}

/* `count` of 8 elements, then zeros. */
DEVICE void gemm_copy_elements(uint16_t *to, const uint16_t *from, int count) {
    wide_of<uint16_t, 8> piece;
#pragma unroll
    for (int i = 0; i < 8; i++) piece.at[i] = i < count ? from[i] : 0;
    *(wide_of<uint16_t, 8> *)(void *)to = piece;
}

#endif

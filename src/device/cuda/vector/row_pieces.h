/* Eight elements of a row: what a thread of a kernel on rows reads and writes at once. */
#ifndef CUDA_ROW_PIECES_H
#define CUDA_ROW_PIECES_H

#include "device/cuda/kernel.h"

enum { ROW_PIECE = 8 };

/* Eight elements that are aligned to 16 bytes. */
template <class type> DEVICE void read_wide(const float *from, float to[ROW_PIECE]) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const uint4 four = ((const uint4 *)(const void *)from)[half];
        to[4 * half] = base_float_from_bits(four.x);
        to[4 * half + 1] = base_float_from_bits(four.y);
        to[4 * half + 2] = base_float_from_bits(four.z);
        to[4 * half + 3] = base_float_from_bits(four.w);
    }
}

template <class type> DEVICE void read_wide(const uint16_t *from, float to[ROW_PIECE]) {
    const uint4 four = *(const uint4 *)(const void *)from;
    const uint32_t words[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        to[2 * i] = type::load((uint16_t)(words[i] & 0xffff));
        to[2 * i + 1] = type::load((uint16_t)(words[i] >> 16));
    }
}

template <class type> DEVICE void write_wide(float *to, const float from[ROW_PIECE]) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        uint4 four;
        four.x = base_float_to_bits(from[4 * half]);
        four.y = base_float_to_bits(from[4 * half + 1]);
        four.z = base_float_to_bits(from[4 * half + 2]);
        four.w = base_float_to_bits(from[4 * half + 3]);
        ((uint4 *)(void *)to)[half] = four;
    }
}

template <class type> DEVICE void write_wide(uint16_t *to, const float from[ROW_PIECE]) {
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        words[i] = type::store(from[2 * i]) | (uint32_t)type::store(from[2 * i + 1]) << 16;
    uint4 four;
    four.x = words[0], four.y = words[1], four.z = words[2], four.w = words[3];
    *(uint4 *)(void *)to = four;
}

/* Reads `count` elements and makes the others 0. With `wide` `from` is aligned to 16 bytes. */
template <class type>
DEVICE void read_piece(const typename type::stored *from, int count, bool wide,
                       float to[ROW_PIECE]) {
    if (wide && count == ROW_PIECE) {
        read_wide<type>(from, to);
        return;
    }
#pragma unroll
    for (int i = 0; i < ROW_PIECE; i++) to[i] = i < count ? type::load(from[i]) : 0.0f;
}

template <class type>
DEVICE void write_piece(typename type::stored *to, int count, bool wide,
                        const float from[ROW_PIECE]) {
    if (wide && count == ROW_PIECE) {
        write_wide<type>(to, from);
        return;
    }
#pragma unroll
    for (int i = 0; i < ROW_PIECE; i++)
        if (i < count) to[i] = type::store(from[i]);
}

/* Writes a gradient, or adds it to what is there. */
template <class type>
DEVICE void write_gradient(typename type::stored *to, int count, bool wide, bool add,
                           float from[ROW_PIECE]) {
    if (add) {
        float before[ROW_PIECE];
        read_piece<type>(to, count, wide, before);
#pragma unroll
        for (int i = 0; i < ROW_PIECE; i++) from[i] += before[i];
    }
    write_piece<type>(to, count, wide, from);
}

/* The elements of a piece that begins at `at` of `end`: 0 or less beyond it. */
DEVICE int piece_count(int64_t at, int64_t end) {
    return end - at < ROW_PIECE ? (int)(end - at) : ROW_PIECE;
}

/* A thread's place in a grid of one thread a piece. */
struct row_place {
    int64_t row;
    uint32_t piece;
};

/* Divides 64 bits once for the block's start, which is the same for all of its threads. */
DEVICE row_place place_of_thread(uint32_t pieces_a_row) {
    int64_t start = (int64_t)blockIdx.x * blockDim.x, row = start / pieces_a_row;
    uint64_t at = (uint64_t)(start - row * pieces_a_row) + threadIdx.x;
    uint32_t down;
    if (at < UINT32_MAX) /* but for rows of some 2^32 pieces */
        down = (uint32_t)at / pieces_a_row;
    else
        down = (uint32_t)(at / pieces_a_row);
    row_place place = {row + down, (uint32_t)(at - (uint64_t)down * pieces_a_row)};
    return place;
}

/* The sum over a warp, with the same bits in all its threads: each step adds the same pairs. */
template <class number> DEVICE number warp_sum(number value) {
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) value += __shfl_xor_sync(0xffffffffu, value, apart);
    return value;
}

#endif

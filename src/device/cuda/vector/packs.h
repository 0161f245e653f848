/* Packs of eight elements of a row, which a thread loads, computes in fp32 and stores. Accesses
 * have 16 bytes where the whole pack is there and its address allows it, else one element.
 *
 * Loading is apart from widening: a thread loads all its operands, then waits for memory once.
 * `type` (a base_dtype: FP32, BF16 or FP16) is a constant in most kernels, which leaves one way. */
#ifndef CUDA_PACKS_H
#define CUDA_PACKS_H

#include "base/dtype.h"
#include "device/cuda/kernel.h"
#include "device/cuda/vector/packs_arguments.h"

/* A pack as it lies in memory: four words of 16-bit elements, or eight of fp32. */
typedef struct pack_words {
    uint32_t of[PACK];
} pack_words;

DEVICE bool pack_whole(const void *address, int count) {
    return count == PACK && ((uintptr_t)address & 15) == 0;
}

DEVICE void load_four(const void *from, uint32_t *words) {
    uint4 four = *(const uint4 *)from;
    words[0] = four.x;
    words[1] = four.y;
    words[2] = four.z;
    words[3] = four.w;
}

DEVICE void store_four(void *to, const uint32_t *words) {
    uint4 four;
    four.x = words[0];
    four.y = words[1];
    four.z = words[2];
    four.w = words[3];
    *(uint4 *)to = four;
}

/* Elements at, at + 1 ...; those from `count` on are zero. */
DEVICE pack_words load_pack(const void *data, int64_t at, int type, int count) {
    pack_words words = {};
    if (type == BASE_FP32) {
        const uint32_t *from = (const uint32_t *)data + at;
        if (pack_whole(from, count)) {
            load_four(from, words.of);
            load_four(from + 4, words.of + 4);
        } else {
#pragma unroll
            for (int i = 0; i < PACK; i++)
                if (i < count) words.of[i] = from[i];
        }
    } else {
        const uint16_t *from = (const uint16_t *)data + at;
        if (pack_whole(from, count)) {
            load_four(from, words.of);
        } else {
#pragma unroll
            for (int i = 0; i < PACK; i++)
                if (i < count) words.of[i / 2] |= (uint32_t)from[i] << (i % 2 * 16);
        }
    }
    return words;
}

DEVICE void store_pack(void *data, int64_t at, int type, int count, const pack_words &words) {
    if (type == BASE_FP32) {
        uint32_t *to = (uint32_t *)data + at;
        if (pack_whole(to, count)) {
            store_four(to, words.of);
            store_four(to + 4, words.of + 4);
        } else {
#pragma unroll
            for (int i = 0; i < PACK; i++)
                if (i < count) to[i] = words.of[i];
        }
    } else {
        uint16_t *to = (uint16_t *)data + at;
        if (pack_whole(to, count)) {
            store_four(to, words.of);
        } else {
#pragma unroll
            for (int i = 0; i < PACK; i++)
                if (i < count) to[i] = (uint16_t)(words.of[i / 2] >> (i % 2 * 16));
        }
    }
}

DEVICE void widen_pack(const pack_words &words, int type, float out[PACK]) {
#pragma unroll
    for (int i = 0; i < PACK; i++) {
        uint16_t half = (uint16_t)(words.of[i / 2] >> (i % 2 * 16));
        out[i] = type == BASE_FP32   ? base_float_from_bits(words.of[i])
                 : type == BASE_BF16 ? base_bf16_to_float(half)
                                     : base_half_to_float(half);
    }
}

DEVICE pack_words narrow_pack(const float from[PACK], int type) {
    pack_words words = {};
#pragma unroll
    for (int i = 0; i < PACK; i++) {
        if (type == BASE_FP32)
            words.of[i] = base_float_to_bits(from[i]);
        else
            words.of[i / 2] |= (uint32_t)(type == BASE_BF16 ? base_bf16_from_float(from[i])
                                                            : base_half_from_float(from[i]))
                               << (i % 2 * 16);
    }
    return words;
}

/* Where a thread's pack lies in a matrix: `count` elements from column `first` of row `row` on;
 * none if count is 0. Rows are cut into packs one after the other. */
typedef struct pack_place {
    int64_t row, first;
    int count;
} pack_place;

DEVICE pack_place place_of_pack(int64_t index, int64_t rows, int64_t columns) {
    int64_t packs = (columns + PACK - 1) / PACK;
    pack_place place = {0, 0, 0};
    if (index >= rows * packs) return place;
    if (rows > 1) { /* a division of 64 bits takes longer than the rest of most kernels */
        place.row = index <= UINT32_MAX && packs <= UINT32_MAX ? (uint32_t)index / (uint32_t)packs
                                                               : index / packs;
    }
    place.first = (index - place.row * packs) * PACK;
    place.count = columns - place.first < PACK ? (int)(columns - place.first) : PACK;
    return place;
}

#endif

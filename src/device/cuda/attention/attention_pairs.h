/* What happens to the scores of a warp, 16 rows by COLUMNS columns as attention_mma.h lays them
 * out, between its products. Rows are queries and columns keys, or with KEYS the other way. */
#ifndef CUDA_ATTENTION_PAIRS_H
#define CUDA_ATTENTION_PAIRS_H

#include "device/cuda/attention/attention_mask.h"

/* The tile that a block owns, by its number. Blocks of one head follow each other, so that what
 * they read stays in the cache; those with the most to do come first. */
typedef struct attention_block {
    int32_t sequence, head, tile;
} attention_block;

DEVICE attention_block attention_block_of(const attention_arguments &a, int32_t heads, int32_t rows,
                                          bool last_first) {
    uint32_t tiles = (uint32_t)((a.length + rows - 1) / rows), head = blockIdx.x / tiles;
    uint32_t tile = blockIdx.x % tiles;
    return {(int32_t)(head / (uint32_t)heads), (int32_t)(head % (uint32_t)heads),
            (int32_t)(last_first ? tiles - 1 - tile : tile)};
}

/* The tiles of the other operand that hold anything seen, one after the other; those between them
 * that hold nothing by their segments are left out. */
typedef struct attention_tiles {
    int32_t sequence, columns, next, end;
    bool mixed;              /* not all rows and columns of the next one share a segment */
    attention_part segments; /* of the rows */
} attention_tiles;

DEVICE attention_part attention_tile_part(const attention_arguments &a, const attention_tiles &t) {
    return attention_part_at(a, t.next * t.columns, t.columns);
}

/* Moves on to the first tile from `tile` on. */
DEVICE void attention_seek(const attention_arguments &a, attention_tiles *t, int32_t tile) {
    t->next = tile;
    if (a.segments == NULL) return;
    for (; t->next < t->end; t->next++) {
        attention_part of = attention_segments_of(a, t->sequence, attention_tile_part(a, *t));
        if (of.last < t->segments.first || of.first > t->segments.last) continue;
        t->mixed = of.first != of.last || t->segments.first != t->segments.last;
        break;
    }
}

DEVICE attention_tiles attention_tiles_of(const attention_arguments &a, int32_t sequence,
                                          attention_part rows, attention_part seen,
                                          int32_t columns) {
    attention_tiles t = {sequence, columns, 0, seen.last / columns + 1, false, {0, 0}};
    if (a.segments != NULL) t.segments = attention_segments_of(a, sequence, rows);
    attention_seek(a, &t, seen.first / columns);
    return t;
}

/* The segment of a row of a sequence; any for rows behind the last one. */
DEVICE int32_t attention_segment(const attention_arguments &a, int32_t sequence, int32_t row) {
    if (a.segments == NULL || row >= a.length) return 0;
    return a.segments[((int64_t)sequence * a.length + row) * a.segment_stride];
}

/* Whether the next tile needs attention_hide() with these rows, which are queries, or with KEYS
 * keys. */
template <bool KEYS>
DEVICE bool attention_hides(const attention_arguments &a, const attention_tiles &t,
                            attention_part rows) {
    attention_part columns = attention_tile_part(a, t);
    bool whole = columns.last - columns.first + 1 == t.columns;
    return t.mixed || !whole ||
           !attention_sees_all(a, KEYS ? columns : rows, KEYS ? rows : columns);
}

/* A warp's place in a pair of tiles. */
typedef struct attention_place {
    int32_t row, column;     /* positions of its first ones */
    int32_t row_segments[2]; /* of this lane's rows */
    const int32_t *segments; /* of the columns */
    uint32_t head;           /* counted through all sequences */
    uint4 *random;           /* room for 32 */
} attention_place;

/* Replaces the scores of keys that their queries do not see, and those behind the last column. */
template <int COLUMNS, bool KEYS>
DEVICE void attention_hide(const attention_arguments &a, const attention_place &at,
                           float scores[COLUMNS / 8][4]) {
    int lane = (int)(threadIdx.x % 32);
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int c = n * 8 + lane % 4 * 2 + i % 2;
            int32_t row = at.row + lane / 4 + i / 2 * 8, column = at.column + c;
            bool seen = KEYS ? attention_near(a, column, row) : attention_near(a, row, column);
            if (a.segments != NULL) seen = seen && at.row_segments[i / 2] == at.segments[c];
            if (!seen || column >= a.length) scores[n][i] = ATTENTION_HIDDEN;
        }
}

template <int COLUMNS>
DEVICE void attention_cap_all(const attention_arguments &a, float scores[COLUMNS / 8][4]) {
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) scores[n][i] = attention_cap(a, scores[n][i]);
}

/* Factors of dropout of 16 columns, from group n of 8 on. Numbers come for 8 keys of a query at a
 * time, so the warp's lanes make them for each other. */
template <bool KEYS>
DEVICE void attention_factors(const attention_arguments &a, const attention_place &at, uint64_t key,
                              int n, float factors[2][4]) {
    int lane = (int)(threadIdx.x % 32), group = lane / 4, in = lane % 4;
    int32_t query = (KEYS ? at.column + n * 8 : at.row) + lane % 16;
    int32_t place = (KEYS ? at.row / 8 : at.column / 8 + n) + lane / 16;
    __syncwarp();
    base_random4 r = attention_random(key, at.head, query, place);
    at.random[lane] = {r.v[0], r.v[1], r.v[2], r.v[3]};
    __syncwarp();
    const uint32_t *words = (const uint32_t *)at.random;
#pragma unroll
    for (int j = 0; j < 2; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int of = KEYS ? i / 2 * 16 + j * 8 + in * 2 + i % 2 : j * 16 + i / 2 * 8 + group;
            uint32_t word = words[of * 4 + (KEYS ? group / 2 : in)];
            factors[j][i] = attention_dropped(a, word >> (KEYS ? group % 2 : i % 2) * 16);
        }
}

/* The same in all four lanes that share rows. */
DEVICE float attention_row_most(float value) {
    value = fmaxf(value, __shfl_xor_sync(~0u, value, 1));
    return fmaxf(value, __shfl_xor_sync(~0u, value, 2));
}

DEVICE float attention_row_sum(float value) {
    value += __shfl_xor_sync(~0u, value, 1);
    return value + __shfl_xor_sync(~0u, value, 2);
}

#endif

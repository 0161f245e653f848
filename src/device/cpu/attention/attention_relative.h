/* For kernels_attention*.c: scores by relative position (DeBERTa, He et al. 2021). To the product
 * of query i and key j come those of query i with row r of one table and of key j with row r of
 * another, where r follows from i - j and never falls as that grows. So a block of queries and a
 * block of keys read a band of rows of each table, and the products with the band are made for the
 * pair of blocks and picked from by r: nothing of length x length is ever held. Words are fp32. */
#ifndef CPU_ATTENTION_RELATIVE_H
#define CPU_ATTENTION_RELATIVE_H

#include "device/cpu/attention/attention_scores.h"

/* Rows of a band at most: a row for each distance, of which there is one less. */
enum { RELATIVE_BAND = KEY_BLOCK + QUERY_BLOCK };

typedef struct tile_relative {
    float *keys;          /* places x head_dim: the table that queries are multiplied with */
    float *queries;       /* head_dim x stride: the other one, across */
    float *by_query;      /* RELATIVE_BAND x QUERY_BLOCK: products of queries with a band of keys */
    float *by_key;        /* KEY_BLOCK x RELATIVE_BAND: products of keys with a band of queries */
    float *keys_across;   /* the rest: of the backward pass. head_dim x stride */
    float *query_rows;    /* places x padded head_dim */
    float *k_rows;        /* keys x padded head_dim */
    float *by_key_across; /* RELATIVE_BAND x KEY_BLOCK */
    int64_t stride;       /* of tables across: bands are read in whole vectors */
} tile_relative;

static inline int64_t relative_layout(int64_t places, int64_t keys, int64_t d, bool backward,
                                      float *scratch, tile_relative *at) {
    int64_t total = 0, padded = base_ceil_to(d, VECTOR);
    tile_relative none;
    if (places == 0) return 0;
    if (at == NULL) at = &none;
    at->stride = base_ceil_to(places, VECTOR) + VECTOR;
#define PLACE(member, count)                                                                       \
    (at->member = scratch == NULL ? NULL : scratch + total, total += base_ceil_to((count), 16))
    PLACE(keys, places * d);
    PLACE(queries, d * at->stride);
    PLACE(by_query, RELATIVE_BAND * QUERY_BLOCK);
    PLACE(by_key, KEY_BLOCK * RELATIVE_BAND);
    if (!backward) return total;
    PLACE(keys_across, d * at->stride);
    PLACE(query_rows, places * padded);
    PLACE(k_rows, keys * padded);
    PLACE(by_key_across, RELATIVE_BAND * KEY_BLOCK);
#undef PLACE
    return total;
}

/* `rows` rows of d values, transposed, zeros behind them up to the stride. */
TILE_INLINE void relative_transpose(const float *rows, int64_t places, int64_t d, int64_t stride,
                                    float *to) {
    transpose(rows, places, d, d, to, stride);
    for (int64_t c = 0; c < d; c++)
        memset(to + c * stride + places, 0, (size_t)(stride - places) * 4);
}

/* Brings the tables of a head into words. `rows` has room for a table. */
TILE_INLINE void relative_load(const cpu_attention *a, const tile_relative *at, bool backward) {
    int64_t d = a->head_dim, padded = base_ceil_to(d, VECTOR);
    if (a->position_queries != NULL) { /* keys is free until its own table comes */
        tile_pack(false, a->position_queries, a->dtype, a->position_query_stride, a->places,
                  a->places, d, at->keys);
        relative_transpose(at->keys, a->places, d, at->stride, at->queries);
    }
    if (a->position_keys != NULL)
        tile_pack(false, a->position_keys, a->dtype, a->position_key_stride, a->places, a->places,
                  d, at->keys);
    if (!backward) return;
    if (a->position_keys != NULL)
        relative_transpose(at->keys, a->places, d, at->stride, at->keys_across);
    if (a->position_queries == NULL) return;
    tile_pack_across(false, a->position_queries, a->dtype, a->position_query_stride, a->places,
                     a->places, d, padded, at->query_rows);
    tile_pack_across(false, a->k, a->dtype, a->k_stride, a->keys, a->keys, d, padded, at->k_rows);
}

/* The band of a pair of blocks: rows first ... first + count - 1 of the tables. Lanes behind the
 * last query have a row, too: a->rows_of reaches so far. */
typedef struct relative_band {
    int64_t first, count;
} relative_band;

/* rows_of the first lane for key k. */
VECTOR_INLINE const int32_t *relative_rows(const cpu_attention *a, int64_t position, int64_t k) {
    return a->rows_of + (position - k + a->keys - 1);
}

VECTOR_INLINE relative_band relative_find(const cpu_attention *a, int64_t position, int64_t k0,
                                          int64_t keys) {
    int64_t first = relative_rows(a, position, k0 + keys - 1)[0];
    return (relative_band){first, relative_rows(a, position, k0)[QUERY_BLOCK - 1] - first + 1};
}

/* Adds to the scores of keys k0 and on (rows of k) with a block of queries (across). */
TILE_INLINE void relative_scores(const cpu_attention *a, const tile_relative *at, const float *k,
                                 const float *q, int64_t position, int64_t k0, int64_t keys,
                                 float *scores) {
    int64_t d = a->head_dim;
    relative_band band = relative_find(a, position, k0, keys);
    if (a->position_keys != NULL) {
        tile_product(false, band.count, QUERY_BLOCK, d, at->keys + band.first * d, d, q,
                     QUERY_BLOCK, at->by_query, QUERY_BLOCK, TILE_SET, scores);
        for (int64_t j = 0; j < keys; j++) {
            const int32_t *rows = relative_rows(a, position, k0 + j);
            float *to = scores + j * QUERY_BLOCK;
            for (int64_t i = 0; i < QUERY_BLOCK; i++)
                to[i] += at->by_query[(rows[i] - band.first) * QUERY_BLOCK + i];
        }
    }
    if (a->position_queries == NULL) return;
    tile_product(false, keys, base_ceil_to(band.count, VECTOR), d, k, d, at->queries + band.first,
                 at->stride, at->by_key, RELATIVE_BAND, TILE_SET, scores);
    for (int64_t j = 0; j < keys; j++) {
        const int32_t *rows = relative_rows(a, position, k0 + j);
        const float *from = at->by_key + j * RELATIVE_BAND;
        float *to = scores + j * QUERY_BLOCK;
        for (int64_t i = 0; i < QUERY_BLOCK; i++) to[i] += from[rows[i] - band.first];
    }
}

/* What the backward pass of a pair of blocks reads and adds to. */
typedef struct relative_gradients {
    const float *ds;       /* keys x QUERY_BLOCK: the scores' gradients, times the scale */
    const float *q_across; /* queries x padded head_dim */
    float *dq;             /* head_dim x QUERY_BLOCK */
    float *dk;             /* keys x padded head_dim */
    int64_t queries;
} relative_gradients;

/* Gradients of the products of queries with the band, summed over keys; from these, those of the
 * queries and of the table. */
TILE_INLINE void relative_to_queries(const cpu_attention *a, const tile_relative *at,
                                     const relative_gradients *g, relative_band band,
                                     int64_t position, int64_t k0, int64_t keys) {
    int64_t d = a->head_dim;
    memset(at->by_query, 0, (size_t)(band.count * QUERY_BLOCK) * 4);
    for (int64_t j = 0; j < keys; j++) {
        const int32_t *rows = relative_rows(a, position, k0 + j);
        const float *from = g->ds + j * QUERY_BLOCK;
        for (int64_t i = 0; i < g->queries; i++)
            at->by_query[(rows[i] - band.first) * QUERY_BLOCK + i] += from[i];
    }
    tile_product(false, d, QUERY_BLOCK, band.count, at->keys_across + band.first, at->stride,
                 at->by_query, QUERY_BLOCK, g->dq, QUERY_BLOCK, TILE_ADD, g->dq);
    if (a->dposition_keys == NULL) return;
    int64_t padded = base_ceil_to(d, VECTOR);
    tile_product(false, band.count, padded, g->queries, at->by_query, QUERY_BLOCK, g->q_across,
                 padded, a->dposition_keys + band.first * a->dposition_stride, a->dposition_stride,
                 TILE_ADD, g->dq);
}

/* The same of keys. */
TILE_INLINE void relative_to_keys(const cpu_attention *a, const tile_relative *at,
                                  const relative_gradients *g, relative_band band, int64_t position,
                                  int64_t k0, int64_t keys) {
    int64_t padded = base_ceil_to(a->head_dim, VECTOR);
    memset(at->by_key, 0, (size_t)(keys * RELATIVE_BAND) * 4);
    for (int64_t j = 0; j < keys; j++) {
        const int32_t *rows = relative_rows(a, position, k0 + j);
        const float *from = g->ds + j * QUERY_BLOCK;
        float *to = at->by_key + j * RELATIVE_BAND;
        for (int64_t i = 0; i < g->queries; i++) to[rows[i] - band.first] += from[i];
    }
    tile_product(false, keys, padded, band.count, at->by_key, RELATIVE_BAND,
                 at->query_rows + band.first * padded, padded, g->dk + k0 * padded, padded,
                 TILE_ADD, g->dq);
    if (a->dposition_queries == NULL) return;
    transpose(at->by_key, keys, band.count, RELATIVE_BAND, at->by_key_across, KEY_BLOCK);
    tile_product(false, band.count, padded, keys, at->by_key_across, KEY_BLOCK,
                 at->k_rows + k0 * padded, padded,
                 a->dposition_queries + band.first * a->dposition_stride, a->dposition_stride,
                 TILE_ADD, g->dq);
}

TILE_INLINE void relative_backward(const cpu_attention *a, const tile_relative *at,
                                   const relative_gradients *g, int64_t position, int64_t k0,
                                   int64_t keys) {
    relative_band band = relative_find(a, position, k0, keys);
    if (a->position_keys != NULL) relative_to_queries(a, at, g, band, position, k0, keys);
    if (a->position_queries != NULL) relative_to_keys(a, at, g, band, position, k0, keys);
}

#endif

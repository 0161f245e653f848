/* Scores by relative position, on planes. The pairs of two tiles need rows of the tables beside
 * each other, a "band": a row of the table for queries and one for keys belong to each distance of
 * a query from a key. */
#ifndef CUDA_ATTENTION_BANDS_H
#define CUDA_ATTENTION_BANDS_H

#include "device/cuda/attention/attention_planes.h"

/* The row of a distance; beyond those of a sequence, the last one's. */
DEVICE int32_t band_row(const attention_arguments &a, int32_t distance) {
    int32_t most = a.length - 1;
    distance = distance < -most ? -most : distance > most ? most : distance;
    return a.rows_of[distance + most];
}

DEVICE bool has_table(const attention_operand &table) {
    return table.data != NULL;
}

template <typename T>
DEVICE plane_rows<T> table_rows(const attention_arguments &a, const attention_operand &table,
                                int32_t head) {
    typename T::stored *data = (typename T::stored *)table.data + (int64_t)head * a.head_dim;
    return {data, table.stride, a.places, a.head_dim};
}

/* In shared memory: the rows of both tables, and products of rows with them. Two tiles have less
 * than COUNT distances. */
template <typename S> struct bands {
    enum { COUNT = 2 * S::TILE, SQUARE = COUNT + 1 };
    float keys[COUNT * S::STRIDE], queries[COUNT * S::STRIDE]; /* x4, x5 */
    float by_query[S::TILE * SQUARE], by_key[S::TILE * SQUARE];
};

/* The first row for tiles from `query` and `key` on. */
template <typename S>
DEVICE int32_t band_first(const attention_arguments &a, int32_t query, int32_t key) {
    return band_row(a, query - (key + S::TILE - 1));
}

/* All threads have left the bands before. */
template <typename T, typename S>
DEVICE void band_load(const attention_arguments &a, int32_t head, int32_t first, bands<S> *b) {
    if (has_table(a.position_keys))
        plane_load<T, S, bands<S>::COUNT>(table_rows<T>(a, a.position_keys, head), first, b->keys);
    if (has_table(a.position_queries))
        plane_load<T, S, bands<S>::COUNT>(table_rows<T>(a, a.position_queries, head), first,
                                          b->queries);
}

template <typename S>
DEVICE void band_products(const attention_arguments &a, const attention_operand &table,
                          const float *rows, const float *band, float *to) {
    float products[S::EACH][2 * S::EACH];
    if (!has_table(table)) return;
    plane_multiply<S, S::TILE, bands<S>::COUNT>(a.head_dim, rows, band, products);
#pragma unroll
    for (int i = 0; i < S::EACH; i++)
#pragma unroll
        for (int j = 0; j < 2 * S::EACH; j++)
            to[(thread_y() + 16 * i) * bands<S>::SQUARE + thread_x() + 16 * j] = products[i][j];
}

/* Adds to the scores of two tiles, whose rows are queries, or with KEYS keys. Ends and begins
 * behind a barrier. */
template <typename S, bool KEYS>
DEVICE void band_scores(const attention_arguments &a, int32_t query0, int32_t key0,
                        const float *queries, const float *keys, bands<S> *b,
                        float scores[S::EACH][S::EACH]) {
    int32_t first = band_first<S>(a, query0, key0);
    band_products<S>(a, a.position_keys, queries, b->keys, b->by_query);
    band_products<S>(a, a.position_queries, keys, b->queries, b->by_key);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < S::EACH; i++)
#pragma unroll
        for (int j = 0; j < S::EACH; j++) {
            int y = thread_y() + 16 * i, x = thread_x() + 16 * j;
            int query = KEYS ? x : y, key = KEYS ? y : x;
            int32_t row = band_row(a, query0 + query - key0 - key) - first;
            if (has_table(a.position_keys))
                scores[i][j] += b->by_query[query * bands<S>::SQUARE + row];
            if (has_table(a.position_queries))
                scores[i][j] += b->by_key[key * bands<S>::SQUARE + row];
        }
    __syncthreads();
}

/* Adds to the gradients of the rows what they get through their table: the gradients `ds` of
 * scores, summed for each row of the band, times the band. Begins and ends behind a barrier. */
template <typename S, bool KEYS>
DEVICE void band_add(const attention_arguments &a, int32_t query0, int32_t key0, const float *ds,
                     bands<S> *b, float sums[S::EACH][S::SUMS]) {
    int32_t first = band_first<S>(a, query0, key0);
    float *to = KEYS ? b->by_key : b->by_query;
    if (!has_table(KEYS ? a.position_queries : a.position_keys)) return;
#pragma unroll
    for (int i = 0; i < S::EACH; i++)
        for (int j = 0; j < 2 * S::EACH; j++) {
            int y = thread_y() + 16 * i, row = thread_x() + 16 * j;
            float sum = 0.0f;
            for (int x = 0; x < S::TILE; x++) {
                int query = KEYS ? x : y, key = KEYS ? y : x;
                bool here = band_row(a, query0 + query - key0 - key) - first == row;
                if (here) sum += ds[y * S::SQUARE + x];
            }
            to[y * bands<S>::SQUARE + row] = sum;
        }
    __syncthreads();
    plane_add<S, bands<S>::COUNT>(a.head_dim, to, KEYS ? b->queries : b->keys, sums);
    __syncthreads();
}

#endif

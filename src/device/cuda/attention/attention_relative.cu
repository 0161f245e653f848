/* Attention with scores by relative position: forward and backward as of fp32 whatever the storage,
 * and the gradients of the tables. */
#include "device/cuda/attention/attention_plain.h"

/* A distance itself up to half the buckets; from there on as many buckets again have it by its
 * logarithm, up to most_distance - 1. A logarithm in double rounds to the fp32 one of the CPU,
 * whose result is rounded up. */
DEVICE int32_t bucket_of(const attention_arguments &a, int32_t distance) {
    int32_t middle = a.buckets / 2, size = distance < 0 ? -distance : distance;
    if (a.buckets == 0 || size <= middle) return distance;
    float whole = (float)log((double)((float)(a.most_distance - 1) / (float)middle));
    float part = (float)log((double)((float)size / (float)middle)) / whole * (float)(middle - 1);
    int32_t bucket = (int32_t)ceilf(part) + middle;
    return distance < 0 ? -bucket : bucket;
}

/* A thread a distance. */
KERNEL(attention_distances, attention_arguments, ATTENTION_THREADS) {
    int32_t i = (int32_t)(blockIdx.x * ATTENTION_THREADS + threadIdx.x), most = a.length - 1;
    if (i > 2 * most) return;
    int32_t row = bucket_of(a, i - most) + a.places / 2;
    row = row < 0 ? 0 : row;
    a.rows_of[i] = row < a.places ? row : a.places - 1;
}

/* square[r][i] = the sum of the gradients of scores whose distance has table row row0 + r: over the
 * keys of query i, or with KEYS over the queries of key i. */
template <typename S, bool KEYS>
DEVICE void table_sums(const attention_arguments &a, int32_t row0, int32_t query0, int32_t key0,
                       const float *ds, float *square) {
#pragma unroll
    for (int i = 0; i < S::EACH; i++)
        for (int j = 0; j < S::EACH; j++) {
            int r = thread_y() + 16 * i, x = thread_x() + 16 * j;
            float sum = 0.0f;
            for (int k = 0; k < S::TILE; k++) {
                int query = KEYS ? k : x, key = KEYS ? x : k;
                bool here = band_row(a, query0 + query - key0 - key) == row0 + r;
                if (here) sum += ds[query * S::SQUARE + key];
            }
            square[r * S::SQUARE + x] = sum;
        }
}

/* Whether two tiles have a distance of the rows from row0 on. */
template <typename S>
DEVICE bool table_has(const attention_arguments &a, int32_t row0, int32_t query, int32_t key) {
    return band_row(a, query - (key + S::TILE - 1)) < row0 + S::TILE &&
           band_row(a, query + S::TILE - 1 - key) >= row0;
}

/* What the pairs of two tiles add to the gradients of both tables. */
template <typename T, typename S>
DEVICE void table_tiles(const attention_arguments &a, int32_t sequence, int32_t head, int32_t row0,
                        int32_t query, int32_t key, bool drops, uint64_t random,
                        plain_backward_memory<S> *memory, bands<S> *band,
                        float sums[2][S::EACH][S::SUMS]) {
    __syncthreads(); /* all are done with the tiles before */
    plane_load<T, S, S::TILE>(plane_rows_of<T>(a, a.q, sequence, head), query, memory->own[0]);
    plane_load<T, S, S::TILE>(plane_rows_of<T>(a, a.dy, sequence, head), query, memory->own[1]);
    plane_load<T, S, S::TILE>(plane_rows_of<T>(a, a.k, sequence, head), key, memory->other[0]);
    plane_load<T, S, S::TILE>(plane_rows_of<T>(a, a.v, sequence, head), key, memory->other[1]);
    band_load<T, S>(a, head, band_first<S>(a, query, key), band);
    __syncthreads();
    plain_pairs<S, false, true>(a, sequence, head, query, key, drops, random, band, memory);
    __syncthreads();
    table_sums<S, false>(a, row0, query, key, memory->ds, band->by_query);
    table_sums<S, true>(a, row0, query, key, memory->ds, band->by_key);
    __syncthreads();
    plane_add<S, S::TILE>(a.head_dim, band->by_query, memory->own[0], sums[0]);
    plane_add<S, S::TILE>(a.head_dim, band->by_key, memory->other[0], sums[1]);
}

/* A block owns rows of both tables of a head, and goes over all pairs of all sequences in order. */
template <typename T, typename S> DEVICE void table_backward(const attention_arguments &a) {
    SHARED_DYNAMIC(plain_backward_memory<S>, memory);
    bands<S> *band = (bands<S> *)(memory + 1);
    int32_t tiles = (a.places + S::TILE - 1) / S::TILE, head = (int32_t)blockIdx.x / tiles;
    int32_t row0 = (int32_t)blockIdx.x % tiles * S::TILE;
    bool drops = attention_drops(a);
    uint64_t random = drops ? attention_random_key(a) : 0;
    float sums[2][S::EACH][S::SUMS], scale[S::EACH];
    plane_clear<S>(sums[0]);
    plane_clear<S>(sums[1]);
    for (int32_t sequence = 0; sequence < a.sequences; sequence++)
        for (int32_t query = 0; query < a.length; query += S::TILE) {
            attention_part part = attention_part_at(a, query, S::TILE);
            attention_tiles keys =
                attention_tiles_of(a, sequence, part, attention_keys_of(a, part), S::TILE);
            for (; keys.next < keys.end; attention_seek(a, &keys, keys.next + 1)) {
                int32_t key = keys.next * S::TILE;
                if (table_has<S>(a, row0, query, key))
                    table_tiles<T, S>(a, sequence, head, row0, query, key, drops, random, memory,
                                      band, sums);
            }
        }
#pragma unroll
    for (int i = 0; i < S::EACH; i++) scale[i] = a.scale;
    if (has_table(a.dposition_keys))
        plane_store<T, S>(table_rows<T>(a, a.dposition_keys, head), row0, scale, sums[0]);
    if (has_table(a.dposition_queries))
        plane_store<T, S>(table_rows<T>(a, a.dposition_queries, head), row0, scale, sums[1]);
}

typedef plane_shape<ATTENTION_RELATIVE_WIDTH, ATTENTION_RELATIVE_TILE> relative_shape;
static_assert(sizeof(bands<relative_shape>) ==
                  ATTENTION_BAND_BYTES(ATTENTION_RELATIVE_WIDTH, ATTENTION_RELATIVE_TILE),
              "");

#define RELATIVE(type)                                                                             \
    KERNEL(attention_relative_##type, attention_arguments, ATTENTION_FP32_THREADS) {               \
        plain_forward<type, relative_shape, true>(a);                                              \
    }                                                                                              \
    KERNEL(attention_relative_keys_##type, attention_arguments, ATTENTION_FP32_THREADS) {          \
        plain_backward<type, relative_shape, true, true>(a);                                       \
    }                                                                                              \
    KERNEL(attention_relative_queries_##type, attention_arguments, ATTENTION_FP32_THREADS) {       \
        plain_backward<type, relative_shape, false, true>(a);                                      \
    }                                                                                              \
    KERNEL(attention_relative_tables_##type, attention_arguments, ATTENTION_FP32_THREADS) {        \
        table_backward<type, relative_shape>(a);                                                   \
    }
RELATIVE(fp32)
RELATIVE(bf16)
RELATIVE(fp16)

/* Attention and its gradients without tensor cores, for any type: the same order of work as in
 * attention_forward.cu and attention_backward.cu. */
#ifndef CUDA_ATTENTION_PLAIN_H
#define CUDA_ATTENTION_PLAIN_H

#include "device/cuda/attention/attention_bands.h"

template <typename S> struct plain_rows { float most[S::EACH], sum[S::EACH]; };

/* From scores: probabilities relative to the largest so far, less what is dropped, to `square`. */
template <typename S>
DEVICE void plain_softmax(const attention_arguments &a, const attention_block &block, int32_t first,
                          int32_t first_key, bool drops, uint64_t random,
                          float scores[S::EACH][S::EACH], float *square, plain_rows<S> *rows,
                          float out[S::EACH][S::SUMS]) {
    float factor = attention_scale(a) * ATTENTION_LOG2_E;
    uint32_t head = (uint32_t)(block.sequence * a.heads + block.head);
#pragma unroll
    for (int i = 0; i < S::EACH; i++) {
        int32_t query = first + thread_y() + 16 * i;
        float most = rows->most[i];
#pragma unroll
        for (int j = 0; j < S::EACH; j++) {
            bool seen = pair_seen(a, block.sequence, query, first_key + thread_x() + 16 * j);
            scores[i][j] = seen ? attention_cap(a, scores[i][j]) : ATTENTION_HIDDEN;
            most = fmaxf(most, scores[i][j]);
        }
        most = plane_row_most(most);
        float alpha = attention_exp2((rows->most[i] - most) * factor), shift = most * factor;
        rows->most[i] = most, rows->sum[i] *= alpha;
#pragma unroll
        for (int j = 0; j < S::EACH; j++) {
            int x = thread_x() + 16 * j;
            float p = attention_exp2(fmaf(scores[i][j], factor, -shift));
            rows->sum[i] += p;
            if (drops) p *= pair_factor(a, random, head, query, first_key + x);
            square[(thread_y() + 16 * i) * S::SQUARE + x] = p;
        }
#pragma unroll
        for (int c = 0; c < S::SUMS; c++) out[i][c] *= alpha;
    }
}

template <typename T, typename S>
DEVICE void plain_finish(const attention_arguments &a, const attention_block &block, int32_t first,
                         const plain_rows<S> &rows, const float out[S::EACH][S::SUMS]) {
    float parts[S::EACH];
#pragma unroll
    for (int i = 0; i < S::EACH; i++) {
        float sum = plane_row_sum(rows.sum[i]);
        int32_t row = first + thread_y() + 16 * i;
        parts[i] = 1.0f / sum;
        if (a.log_sums == NULL || thread_x() != 0 || row >= a.length) continue;
        a.log_sums[block.head * a.log_sum_stride + (int64_t)block.sequence * a.length + row] =
            rows.most[i] * attention_scale(a) + logf(sum);
    }
    plane_store<T, S>(plane_rows_of<T>(a, a.y, block.sequence, block.head), first, parts, out);
}

template <typename S> struct plain_forward_memory {
    float queries[S::PLANE], keys[S::PLANE], values[S::PLANE], square[S::TILE * S::SQUARE];
};

template <typename T, typename S, bool RELATIVE>
DEVICE void plain_forward(const attention_arguments &a) {
    static_assert(sizeof(plain_forward_memory<S>) == ATTENTION_PLAIN_BYTES(S::WIDTH, S::TILE, 3, 1),
                  "");
    SHARED_DYNAMIC(plain_forward_memory<S>, memory);
    bands<S> *band = (bands<S> *)(memory + 1);
    attention_block block = attention_block_of(a, a.heads, S::TILE, true);
    attention_part part = attention_part_at(a, block.tile * S::TILE, S::TILE);
    attention_tiles tiles =
        attention_tiles_of(a, block.sequence, part, attention_keys_of(a, part), S::TILE);
    bool drops = attention_drops(a);
    uint64_t random = drops ? attention_random_key(a) : 0;
    float out[S::EACH][S::SUMS], scores[S::EACH][S::EACH];
    plain_rows<S> rows;
    plane_clear<S>(out);
#pragma unroll
    for (int i = 0; i < S::EACH; i++) rows.most[i] = ATTENTION_NOTHING, rows.sum[i] = 0.0f;
    plane_load<T, S, S::TILE>(plane_rows_of<T>(a, a.q, block.sequence, block.head), part.first,
                              memory->queries);
    for (; tiles.next < tiles.end; attention_seek(a, &tiles, tiles.next + 1)) {
        int32_t first = tiles.next * S::TILE, kv = block.head / a.group;
        __syncthreads(); /* all are done with the tile before */
        plane_load<T, S, S::TILE>(plane_rows_of<T>(a, a.k, block.sequence, kv), first,
                                  memory->keys);
        plane_load<T, S, S::TILE>(plane_rows_of<T>(a, a.v, block.sequence, kv), first,
                                  memory->values);
        if constexpr (RELATIVE)
            band_load<T, S>(a, block.head, band_first<S>(a, part.first, first), band);
        __syncthreads();
        plane_multiply<S, S::TILE, S::TILE>(a.head_dim, memory->queries, memory->keys, scores);
        if constexpr (RELATIVE)
            band_scores<S, false>(a, part.first, first, memory->queries, memory->keys, band,
                                  scores);
        plain_softmax<S>(a, block, part.first, first, drops, random, scores, memory->square, &rows,
                         out);
        __syncthreads();
        plane_add<S, S::TILE>(a.head_dim, memory->square, memory->values, out);
    }
    plain_finish<T, S>(a, block, part.first, rows, out);
}

/* own: k, v or q, dy; other: q, dy or k, v. */
template <typename S> struct plain_backward_memory {
    float own[2][S::PLANE], other[2][S::PLANE], p[S::TILE * S::SQUARE], ds[S::TILE * S::SQUARE];
};

/* P D and dS of the pairs of two tiles that are in the memory, to its squares. */
template <typename S, bool KEYS, bool RELATIVE>
DEVICE void plain_pairs(const attention_arguments &a, int32_t sequence, int32_t head, int32_t row0,
                        int32_t column0, bool drops, uint64_t random, bands<S> *band,
                        plain_backward_memory<S> *memory) {
    float scores[S::EACH][S::EACH], dp[S::EACH][S::EACH];
    plane_multiply<S, S::TILE, S::TILE>(a.head_dim, memory->own[0], memory->other[0], scores);
    plane_multiply<S, S::TILE, S::TILE>(a.head_dim, memory->own[1], memory->other[1], dp);
    const float *own = memory->own[0], *other = memory->other[0];
    if constexpr (RELATIVE)
        band_scores<S, KEYS>(a, KEYS ? column0 : row0, KEYS ? row0 : column0, KEYS ? other : own,
                             KEYS ? own : other, band, scores);
#pragma unroll
    for (int i = 0; i < S::EACH; i++)
#pragma unroll
        for (int j = 0; j < S::EACH; j++) {
            int y = thread_y() + 16 * i, x = thread_x() + 16 * j;
            pair_values pair =
                pair_gradient(a, sequence, head, KEYS ? column0 + x : row0 + y,
                              KEYS ? row0 + y : column0 + x, drops, random, scores[i][j], dp[i][j]);
            memory->p[y * S::SQUARE + x] = pair.p;
            memory->ds[y * S::SQUARE + x] = pair.ds;
        }
}

template <typename T, typename S, bool KEYS, bool RELATIVE>
DEVICE void plain_backward(const attention_arguments &a) {
    static_assert(
        sizeof(plain_backward_memory<S>) == ATTENTION_PLAIN_BYTES(S::WIDTH, S::TILE, 4, 2), "");
    SHARED_DYNAMIC(plain_backward_memory<S>, memory);
    bands<S> *band = (bands<S> *)(memory + 1);
    attention_block block =
        attention_block_of(a, KEYS ? a.heads / a.group : a.heads, S::TILE, !KEYS);
    attention_part part = attention_part_at(a, block.tile * S::TILE, S::TILE);
    attention_part seen = KEYS ? attention_queries_of(a, part) : attention_keys_of(a, part);
    bool drops = attention_drops(a);
    uint64_t random = drops ? attention_random_key(a) : 0;
    float sums[2][S::EACH][S::SUMS];
    plane_clear<S>(sums[0]);
    plane_clear<S>(sums[1]);
    plane_load<T, S, S::TILE>(plane_rows_of<T>(a, KEYS ? a.k : a.q, block.sequence, block.head),
                              part.first, memory->own[0]);
    plane_load<T, S, S::TILE>(plane_rows_of<T>(a, KEYS ? a.v : a.dy, block.sequence, block.head),
                              part.first, memory->own[1]);
    int32_t first_head = KEYS ? block.head * a.group : block.head;
    for (int32_t head = first_head; head < first_head + (KEYS ? a.group : 1); head++) {
        attention_tiles tiles = attention_tiles_of(a, block.sequence, part, seen, S::TILE);
        for (; tiles.next < tiles.end; attention_seek(a, &tiles, tiles.next + 1)) {
            int32_t first = tiles.next * S::TILE, of = KEYS ? head : head / a.group;
            int32_t query = KEYS ? first : part.first, key = KEYS ? part.first : first;
            __syncthreads(); /* all are done with the tile before */
            plane_load<T, S, S::TILE>(plane_rows_of<T>(a, KEYS ? a.q : a.k, block.sequence, of),
                                      first, memory->other[0]);
            plane_load<T, S, S::TILE>(plane_rows_of<T>(a, KEYS ? a.dy : a.v, block.sequence, of),
                                      first, memory->other[1]);
            if constexpr (RELATIVE) band_load<T, S>(a, head, band_first<S>(a, query, key), band);
            __syncthreads();
            plain_pairs<S, KEYS, RELATIVE>(a, block.sequence, head, part.first, first, drops,
                                           random, band, memory);
            __syncthreads();
            plane_add<S, S::TILE>(a.head_dim, memory->ds, memory->other[0], sums[0]);
            if constexpr (KEYS)
                plane_add<S, S::TILE>(a.head_dim, memory->p, memory->other[1], sums[1]);
            if constexpr (RELATIVE) band_add<S, KEYS>(a, query, key, memory->ds, band, sums[0]);
        }
    }
    float scale[S::EACH], one[S::EACH];
#pragma unroll
    for (int i = 0; i < S::EACH; i++) scale[i] = a.scale, one[i] = 1.0f;
    plane_store<T, S>(plane_rows_of<T>(a, KEYS ? a.dk : a.dq, block.sequence, block.head),
                      part.first, scale, sums[0]);
    if constexpr (KEYS)
        plane_store<T, S>(plane_rows_of<T>(a, a.dv, block.sequence, block.head), part.first, one,
                          sums[1]);
}

#endif

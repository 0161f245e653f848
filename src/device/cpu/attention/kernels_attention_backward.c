/* With S = q k^T * scale, P = exp(S - log_sum), and D the factors of dropout (all 1 without):
 *   dv = (P D)^T dy;  dP = (dy v^T) D;  dS = P (dP - rowsum(dy y)) * scale;  dq = dS k;  dk = dS^T
 * q (Dao 2023, algorithm 2; rowsum(dy y) stands for the sum of P dP over keys.) With a soft cap c,
 * S = c tanh(q k^T * scale / c), and dS is multiplied by 1 - (S / c)^2. */
#include "device/cpu/attention/attention_backward.h"

#include "device/cpu/attention/attention_relative.h"

#define LOG2_E 1.44269504f

typedef struct backward_places {
    float *k, *v;                /* keys x words of head_dim */
    float *k_transposed;         /* head_dim x words of keys */
    float *dk, *dv;              /* keys x padded head_dim */
    float *rows;                 /* scratch of one block */
    float *q, *dy;               /* words of head_dim x QUERY_BLOCK */
    float *q_across, *dy_across; /* words of queries x padded head_dim */
    float *scores, *dp;          /* KEY_BLOCK x QUERY_BLOCK */
    float *factors;              /* dropout */
    float *p, *ds;               /* KEY_BLOCK x words of queries */
    float *ds_across;            /* words of keys x QUERY_BLOCK */
    float *dq, *dq_rows;         /* head_dim x QUERY_BLOCK, and transposed */
    float *log_sums, *delta;     /* of the current queries */
    tile_relative relative;
} backward_places;

static int64_t backward_layout(bool pairs, int64_t keys, int64_t d, int64_t places, float *scratch,
                               backward_places *at) {
    int64_t total = 0, words = tile_words(pairs, d), padded = base_ceil_to(d, VECTOR);
    backward_places none;
    if (at == NULL) at = &none;
#define PLACE(member, count)                                                                       \
    (at->member = scratch == NULL ? NULL : scratch + total, total += base_ceil_to((count), 16))
    PLACE(k, keys * words);
    PLACE(v, keys * words);
    PLACE(k_transposed, d * tile_words(pairs, base_ceil_to(keys, 2)));
    PLACE(dk, keys * padded);
    PLACE(dv, keys * padded);
    PLACE(rows, base_max_i64(QUERY_BLOCK * words, KEY_BLOCK * d));
    PLACE(q, QUERY_BLOCK * words);
    PLACE(dy, QUERY_BLOCK * words);
    PLACE(q_across, QUERY_BLOCK * padded);
    PLACE(dy_across, QUERY_BLOCK * padded);
    PLACE(scores, KEY_BLOCK * QUERY_BLOCK);
    PLACE(dp, KEY_BLOCK * QUERY_BLOCK);
    PLACE(factors, KEY_BLOCK * QUERY_BLOCK);
    PLACE(p, KEY_BLOCK * QUERY_BLOCK);
    PLACE(ds, KEY_BLOCK * QUERY_BLOCK);
    PLACE(ds_across, KEY_BLOCK * QUERY_BLOCK);
    PLACE(dq, d * QUERY_BLOCK);
    PLACE(dq_rows, d * QUERY_BLOCK);
    PLACE(log_sums, QUERY_BLOCK);
    PLACE(delta, QUERY_BLOCK);
#undef PLACE
    return total + relative_layout(places, keys, d, true, scratch == NULL ? NULL : scratch + total,
                                   &at->relative);
}

int64_t KERNEL_NAME(cpu_attention_backward_floats)(base_dtype dtype, int64_t keys, int64_t head_dim,
                                                   int64_t places) {
    return backward_layout(tile_takes_pairs(dtype, places), keys, head_dim, places, NULL, NULL);
}

VECTOR_INLINE vector some_values(const void *from, base_dtype dtype, int64_t n) {
    if (dtype == BASE_FP32) return n >= VECTOR ? vector_load(from) : vector_load_part(from, n);
    return n >= VECTOR ? vector_load_narrow(dtype, from) : vector_load_narrow_part(dtype, from, n);
}

TILE_INLINE float row_product(const void *a, const void *b, base_dtype dtype, int64_t count) {
    vector sum = vector_set(0.0f);
    for (int64_t c = 0; c < count; c += VECTOR)
        sum = vector_fma(some_values(tile_row(a, dtype, c), dtype, count - c),
                         some_values(tile_row(b, dtype, c), dtype, count - c), sum);
    return vector_sum(sum);
}

/* Two rows of keys, from scores and dp: P D and dS along queries, dS across keys. */
TILE_INLINE void probability_rows(bool pairs, const backward_places *at, int64_t k, int64_t keys,
                                  const cpu_attention *a, bool capped) {
    int64_t words = tile_words(pairs, QUERY_BLOCK);
    bool dropout = a->dropout > 0;
    vector factor = vector_set(tile_scale(a) * LOG2_E), scales = vector_set(a->scale);
    vector to_base2 = vector_set(-LOG2_E), one = vector_set(1.0f), least = vector_set(-1.0f);
    vector uncap = vector_set(capped ? 1.0f / a->softcap : 0.0f);
    for (int64_t lane = 0; lane < QUERY_BLOCK; lane += VECTOR) {
        vector shift = vector_mul(vector_load(at->log_sums + lane), to_base2);
        vector delta = vector_load(at->delta + lane), ds[2] = {vector_set(0.0f), vector_set(0.0f)};
        for (int j = 0; j < 2 && k + j < keys; j++) {
            int64_t from = (k + j) * QUERY_BLOCK + lane;
            int64_t to = (k + j) * words + (pairs ? lane / 2 : lane);
            vector score = vector_load(at->scores + from);
            vector p = vector_exp2(vector_fma(score, factor, shift));
            vector dp = vector_load(at->dp + from), dropped = p;
            if (dropout) {
                vector factors = vector_load(at->factors + from);
                dp = vector_mul(dp, factors), dropped = vector_mul(p, factors);
            }
            tile_store_along(pairs, at->p + to, dropped);
            ds[j] = vector_mul(vector_mul(p, vector_sub(dp, delta)), scales);
            if (capped) { /* hidden scores are below -c */
                vector u = vector_max(vector_mul(score, uncap), least);
                ds[j] = vector_mul(ds[j], vector_sub(one, vector_mul(u, u)));
            }
            tile_store_along(pairs, at->ds + to, ds[j]);
        }
        if (pairs) {
            tile_store_across(true, at->ds_across + k / 2 * QUERY_BLOCK + lane, ds[0], ds[1]);
        } else {
            vector_store(at->ds_across + k * QUERY_BLOCK + lane, ds[0]);
            if (k + 1 < keys) vector_store(at->ds_across + (k + 1) * QUERY_BLOCK + lane, ds[1]);
        }
    }
}

TILE_INLINE void backward_pair(bool pairs, const cpu_attention *a, const backward_places *at,
                               const tile_segments *segments, int64_t head, int64_t position,
                               int64_t queries, int64_t k0, int64_t keys, bool *first) {
    int32_t of[KEY_BLOCK];
    tile_sharing sharing = tile_compare(a, segments, k0, keys, of);
    if (sharing == TILE_SHARES_NONE) return;
    int64_t d = a->head_dim, words = tile_words(pairs, d), padded = base_ceil_to(d, VECTOR);
    int64_t query_words = tile_words(pairs, QUERY_BLOCK);
    int64_t key_words = tile_words(pairs, base_ceil_to(a->keys, 2));
    tile_product(pairs, keys, QUERY_BLOCK, words, at->k + k0 * words, words, at->q, QUERY_BLOCK,
                 at->scores, QUERY_BLOCK, TILE_SET, at->delta);
    tile_product(pairs, keys, QUERY_BLOCK, words, at->v + k0 * words, words, at->dy, QUERY_BLOCK,
                 at->dp, QUERY_BLOCK, TILE_SET, at->delta);
    if (a->places > 0)
        relative_scores(a, &at->relative, at->k + k0 * words, at->q, position, k0, keys,
                        at->scores);
    if (a->alibi > 0) tile_bias(a, head, at->scores, keys, k0 - position);
    bool capped = a->softcap > 0;
    if (capped) tile_cap(at->scores, keys * QUERY_BLOCK, a->scale, a->softcap);
    tile_hide(a, at->scores, k0, keys, position, queries);
    if (sharing == TILE_SHARES_SOME) tile_hide_segments(segments, at->scores, of, keys);
    if (a->dropout > 0)
        tile_dropout(a, a->random_head + (uint32_t)head, position, k0, keys, at->factors);
    for (int64_t k = 0; k < keys && !capped; k += 2) probability_rows(pairs, at, k, keys, a, false);
    for (int64_t k = 0; k < keys && capped; k += 2) probability_rows(pairs, at, k, keys, a, true);
    int64_t used = tile_words(pairs, queries);
    tile_product(pairs, keys, padded, used, at->p, query_words, at->dy_across, padded,
                 at->dv + k0 * padded, padded, TILE_ADD, at->delta);
    tile_product(pairs, keys, padded, used, at->ds, query_words, at->q_across, padded,
                 at->dk + k0 * padded, padded, TILE_ADD, at->delta);
    tile_product(pairs, d, QUERY_BLOCK, tile_words(pairs, keys),
                 at->k_transposed + tile_words(pairs, k0), key_words, at->ds_across, QUERY_BLOCK,
                 at->dq, QUERY_BLOCK, *first ? TILE_SET : TILE_ADD, at->delta);
    *first = false;
    if (a->places == 0) return;
    relative_gradients g = {.ds = at->ds_across,
                            .q_across = at->q_across,
                            .dq = at->dq,
                            .dk = at->dk,
                            .queries = queries};
    relative_backward(a, &at->relative, &g, position, k0, keys);
}

TILE_INLINE void backward_block(bool pairs, const cpu_attention *a, const backward_places *at,
                                int64_t head, const tile_queries *of) {
    int64_t d = a->head_dim, words = tile_words(pairs, d), padded = base_ceil_to(d, VECTOR);
    int64_t q0 = of->row, queries = of->count, position = of->position;
    const void *q = tile_row(a->q, a->dtype, q0 * a->q_stride + head * d);
    const void *dy = tile_row(a->dy, a->dtype, q0 * a->dy_stride + head * d);
    const void *y = tile_row(a->y, a->dtype, q0 * a->y_stride + head * d);
    tile_pack(pairs, q, a->dtype, a->q_stride, queries, QUERY_BLOCK, d, at->rows);
    transpose(at->rows, QUERY_BLOCK, words, words, at->q, QUERY_BLOCK);
    tile_pack(pairs, dy, a->dtype, a->dy_stride, queries, QUERY_BLOCK, d, at->rows);
    transpose(at->rows, QUERY_BLOCK, words, words, at->dy, QUERY_BLOCK);
    tile_pack_across(pairs, q, a->dtype, a->q_stride, queries, QUERY_BLOCK, d, padded,
                     at->q_across);
    tile_pack_across(pairs, dy, a->dtype, a->dy_stride, queries, QUERY_BLOCK, d, padded,
                     at->dy_across);
    for (int64_t i = 0; i < QUERY_BLOCK; i++) {
        bool real = i < queries;
        at->log_sums[i] = real ? a->log_sums[head * a->log_sum_stride + q0 + i] : 0.0f;
        at->delta[i] = real ? row_product(tile_row(dy, a->dtype, i * a->dy_stride),
                                          tile_row(y, a->dtype, i * a->y_stride), a->dtype, d)
                            : 0.0f;
    }
    int64_t end = tile_end_key(a, position, queries);
    tile_segments segments = tile_load_segments(a, position, queries);
    bool first = true; /* a query sees itself, so there is a block */
    for (int64_t k0 = tile_first_key(a, of->begins); k0 < end; k0 += KEY_BLOCK)
        backward_pair(pairs, a, at, &segments, head, position, queries, k0,
                      base_min_i64(KEY_BLOCK, end - k0), &first);
    transpose(at->dq, d, QUERY_BLOCK, QUERY_BLOCK, at->dq_rows, d);
    for (int64_t i = 0; i < queries; i++) {
        int64_t row = (q0 + i) * a->dq_stride + head * d;
        tile_write_row(at->dq_rows + i * d, a->dtype, d,
                       (void *)(uintptr_t)tile_row(a->dq, a->dtype, row));
    }
}

TILE_INLINE void backward(bool pairs, const cpu_attention *a) {
    backward_places at = {0};
    int64_t d = a->head_dim, key_words = tile_words(pairs, base_ceil_to(a->keys, 2));
    int64_t padded = base_ceil_to(d, VECTOR);
    backward_layout(pairs, a->keys, d, a->places, a->scratch, &at);
    if (a->places > 0) relative_load(a, &at.relative, true);
    tile_pack(pairs, a->k, a->dtype, a->k_stride, a->keys, a->keys, d, at.k);
    tile_pack(pairs, a->v, a->dtype, a->v_stride, a->keys, a->keys, d, at.v);
    for (int64_t k = 0; k < a->keys; k += KEY_BLOCK) {
        int64_t keys = base_min_i64(KEY_BLOCK, a->keys - k);
        tile_pack_across(pairs, tile_row(a->k, a->dtype, k * a->k_stride), a->dtype, a->k_stride,
                         keys, keys, d, d, at.rows);
        transpose(at.rows, tile_words(pairs, keys), d, d, at.k_transposed + tile_words(pairs, k),
                  key_words);
    }
    memset(at.dk, 0, (size_t)(a->keys * padded) * 4);
    memset(at.dv, 0, (size_t)(a->keys * padded) * 4);
    for (int64_t head = 0; head < a->group; head++)
        for (int64_t row = 0; row < a->queries;) {
            tile_queries of = tile_queries_from(a, row);
            backward_block(pairs, a, &at, head, &of);
            row += of.count;
        }
    for (int64_t k = 0; k < a->keys; k++) {
        tile_write_row(at.dk + k * padded, a->dk_dtype, d,
                       (void *)(uintptr_t)tile_row(a->dk, a->dk_dtype, k * a->dk_stride));
        tile_write_row(at.dv + k * padded, a->dv_dtype, d,
                       (void *)(uintptr_t)tile_row(a->dv, a->dv_dtype, k * a->dv_stride));
    }
}

void KERNEL_NAME(cpu_attention_backward)(const cpu_attention *a) {
#if TILE_PAIRS
    if (tile_takes_pairs(a->dtype, a->places)) {
        backward(true, a);
        return;
    }
#endif
    backward(false, a);
}

#include "device/cpu/attention/kernels_attention.h"

#include <math.h>

#include "device/cpu/attention/attention_backward.h"
#include "device/cpu/attention/attention_relative.h"

#define LOG2_E 1.44269504f

typedef struct forward_places {
    float *k, *v;          /* keys x words of head_dim; head_dim x words of keys */
    float *rows, *q;       /* a block of queries, by row and across */
    float *scores;         /* KEY_BLOCK x QUERY_BLOCK */
    float *p;              /* likewise, as words across keys */
    float *factors;        /* dropout */
    float *out, *out_rows; /* head_dim x QUERY_BLOCK, and transposed */
    float *most, *sum, *alpha;
    tile_relative relative;
} forward_places;

static int64_t forward_layout(bool pairs, int64_t keys, int64_t d, int64_t places, float *scratch,
                              forward_places *at) {
    int64_t total = 0, words = tile_words(pairs, d);
    forward_places none;
    if (at == NULL) at = &none;
#define PLACE(member, count)                                                                       \
    (at->member = scratch == NULL ? NULL : scratch + total, total += base_ceil_to((count), 16))
    PLACE(k, keys * words);
    PLACE(v, d * tile_words(pairs, base_ceil_to(keys, 2)));
    PLACE(rows, base_max_i64(QUERY_BLOCK * words, KEY_BLOCK * d));
    PLACE(q, QUERY_BLOCK * words);
    PLACE(scores, KEY_BLOCK * QUERY_BLOCK);
    PLACE(p, KEY_BLOCK * QUERY_BLOCK);
    PLACE(factors, KEY_BLOCK * QUERY_BLOCK);
    PLACE(out, d * QUERY_BLOCK);
    PLACE(out_rows, d * QUERY_BLOCK);
    PLACE(most, QUERY_BLOCK);
    PLACE(sum, QUERY_BLOCK);
    PLACE(alpha, QUERY_BLOCK);
#undef PLACE
    return total + relative_layout(places, keys, d, false, scratch == NULL ? NULL : scratch + total,
                                   &at->relative);
}

static int64_t forward_floats(base_dtype dtype, int64_t keys, int64_t head_dim, int64_t places) {
    return forward_layout(tile_takes_pairs(dtype, places), keys, head_dim, places, NULL, NULL);
}

/* Turns the scores of a block into probabilities relative to the largest so far, as words across
 * keys. */
TILE_INLINE void softmax_block(bool pairs, const forward_places *at, int64_t keys, float scale,
                               bool dropout) {
    vector factor = vector_set(scale * LOG2_E);
    for (int64_t lane = 0; lane < QUERY_BLOCK; lane += VECTOR) {
        const float *scores = at->scores + lane;
        vector before = vector_load(at->most + lane), most[2] = {before, before};
        for (int64_t k = 0; k < keys; k++)
            most[k & 1] = vector_max(most[k & 1], vector_load(scores + k * QUERY_BLOCK));
        vector now = vector_max(most[0], most[1]), shift = vector_mul(now, factor);
        vector alpha = vector_exp2(vector_mul(vector_sub(before, now), factor));
        vector sum[2] = {vector_mul(vector_load(at->sum + lane), alpha), vector_set(0.0f)};
        vector minus = vector_sub(vector_set(0.0f), shift);
        for (int64_t k = 0; k < keys; k += 2) {
            vector p[2] = {vector_set(0.0f), vector_set(0.0f)};
            for (int j = 0; j < 2 && k + j < keys; j++) {
                p[j] = vector_exp2(
                    vector_fma(vector_load(scores + (k + j) * QUERY_BLOCK), factor, minus));
                sum[j] = vector_add(sum[j], p[j]);
                if (dropout)
                    p[j] =
                        vector_mul(p[j], vector_load(at->factors + (k + j) * QUERY_BLOCK + lane));
            }
            if (pairs) {
                tile_store_across(true, at->p + k / 2 * QUERY_BLOCK + lane, p[0], p[1]);
            } else {
                vector_store(at->p + k * QUERY_BLOCK + lane, p[0]);
                if (k + 1 < keys) vector_store(at->p + (k + 1) * QUERY_BLOCK + lane, p[1]);
            }
        }
        vector_store(at->most + lane, now);
        vector_store(at->sum + lane, vector_add(sum[0], sum[1]));
        vector_store(at->alpha + lane, alpha);
    }
}

TILE_INLINE void forward_block(bool pairs, const cpu_attention *a, const forward_places *at,
                               int64_t head, const tile_queries *of) {
    int64_t d = a->head_dim, words = tile_words(pairs, d);
    int64_t q0 = of->row, queries = of->count, position = of->position;
    tile_pack(pairs, tile_row(a->q, a->dtype, q0 * a->q_stride + head * d), a->dtype, a->q_stride,
              queries, QUERY_BLOCK, d, at->rows);
    transpose(at->rows, QUERY_BLOCK, words, words, at->q, QUERY_BLOCK);
    for (int64_t i = 0; i < QUERY_BLOCK; i++) at->most[i] = TILE_NOTHING, at->sum[i] = 0.0f;
    int64_t v_stride = tile_words(pairs, base_ceil_to(a->keys, 2));
    int64_t end = tile_end_key(a, position, queries);
    tile_segments segments = tile_load_segments(a, position, queries);
    bool first = true; /* a query sees itself, so there is a block */
    for (int64_t k0 = tile_first_key(a, of->begins); k0 < end; k0 += KEY_BLOCK) {
        int64_t keys = base_min_i64(KEY_BLOCK, end - k0);
        int32_t documents[KEY_BLOCK];
        tile_sharing sharing = tile_compare(a, &segments, k0, keys, documents);
        if (sharing == TILE_SHARES_NONE) continue;
        tile_product(pairs, keys, QUERY_BLOCK, words, at->k + k0 * words, words, at->q, QUERY_BLOCK,
                     at->scores, QUERY_BLOCK, TILE_SET, at->alpha);
        if (a->places > 0)
            relative_scores(a, &at->relative, at->k + k0 * words, at->q, position, k0, keys,
                            at->scores);
        if (a->alibi > 0) tile_bias(a, head, at->scores, keys, k0 - position);
        if (a->softcap > 0) tile_cap(at->scores, keys * QUERY_BLOCK, a->scale, a->softcap);
        tile_hide(a, at->scores, k0, keys, position, queries);
        if (sharing == TILE_SHARES_SOME) tile_hide_segments(&segments, at->scores, documents, keys);
        if (a->dropout > 0)
            tile_dropout(a, a->random_head + (uint32_t)head, position, k0, keys, at->factors);
        softmax_block(pairs, at, keys, tile_scale(a), a->dropout > 0);
        tile_product(pairs, d, QUERY_BLOCK, tile_words(pairs, keys), at->v + tile_words(pairs, k0),
                     v_stride, at->p, QUERY_BLOCK, at->out, QUERY_BLOCK,
                     first ? TILE_SET : TILE_SCALE, at->alpha);
        first = false;
    }
    for (int64_t lane = 0; lane < QUERY_BLOCK; lane += VECTOR) {
        float parts[VECTOR];
        for (int i = 0; i < VECTOR; i++) parts[i] = 1.0f / at->sum[lane + i];
        vector part = vector_load(parts);
        for (int64_t c = 0; c < d; c++) {
            float *out = at->out + c * QUERY_BLOCK + lane;
            vector_store(out, vector_mul(vector_load(out), part));
        }
    }
    transpose(at->out, d, QUERY_BLOCK, QUERY_BLOCK, at->out_rows, d);
    for (int64_t i = 0; i < queries; i++) {
        int64_t row = (q0 + i) * a->y_stride + head * d;
        tile_write_row(at->out_rows + i * d, a->dtype, d,
                       (void *)(uintptr_t)tile_row(a->y, a->dtype, row));
        if (a->log_sums != NULL)
            a->log_sums[head * a->log_sum_stride + q0 + i] =
                at->most[i] * tile_scale(a) + logf(at->sum[i]);
    }
}

TILE_INLINE void forward(bool pairs, const cpu_attention *a) {
    forward_places at = {0};
    int64_t d = a->head_dim, key_words = tile_words(pairs, base_ceil_to(a->keys, 2));
    forward_layout(pairs, a->keys, d, a->places, a->scratch, &at);
    if (a->places > 0) relative_load(a, &at.relative, false);
    tile_pack(pairs, a->k, a->dtype, a->k_stride, a->keys, a->keys, d, at.k);
    for (int64_t k = 0; k < a->keys; k += KEY_BLOCK) {
        int64_t keys = base_min_i64(KEY_BLOCK, a->keys - k);
        tile_pack_across(pairs, tile_row(a->v, a->dtype, k * a->v_stride), a->dtype, a->v_stride,
                         keys, keys, d, d, at.rows);
        transpose(at.rows, tile_words(pairs, keys), d, d, at.v + tile_words(pairs, k), key_words);
    }
    for (int64_t head = 0; head < a->group; head++)
        for (int64_t row = 0; row < a->queries;) {
            tile_queries of = tile_queries_from(a, row);
            forward_block(pairs, a, &at, head, &of);
            row += of.count;
        }
}

static void attention_forward(const cpu_attention *a) {
#if TILE_PAIRS
    if (tile_takes_pairs(a->dtype, a->places)) {
        forward(true, a);
        return;
    }
#endif
    forward(false, a);
}

VECTOR_INLINE vector load_values(const void *from, base_dtype dtype, int64_t at, int64_t n) {
    if (dtype == BASE_FP32)
        return n == VECTOR ? vector_load((const float *)from + at)
                           : vector_load_part((const float *)from + at, n);
    return n == VECTOR ? vector_load_narrow(dtype, (const uint16_t *)from + at)
                       : vector_load_narrow_part(dtype, (const uint16_t *)from + at, n);
}

/* Rows of a cache are far apart, and each head has a few lines of a row. Lines are prefetched,
 * values while keys are read. */
enum { RANGE_AHEAD = 16, RANGE_VECTORS = 4 };

static float range_cap(const cpu_attention_range *r) {
    float most = TILE_NOTHING;
    for (int64_t k = 0; k < r->keys; k += VECTOR) {
        float values[VECTOR] = {0};
        int64_t n = base_min_i64(VECTOR, r->keys - k);
        memcpy(values, r->scores + k, (size_t)n * sizeof *values);
        tile_cap(values, VECTOR, 1.0f, r->softcap);
        memcpy(r->scores + k, values, (size_t)n * sizeof *values);
        for (int64_t i = 0; i < n; i++) most = values[i] > most ? values[i] : most;
    }
    return most;
}

/* Computes the scores; returns the largest one. */
VECTOR_INLINE float range_scores(base_dtype dtype, const cpu_attention_range *r) {
    int64_t d = r->head_dim, size = base_dtype_bytes(dtype);
    const char *keys = r->k, *values = r->v;
    float most = TILE_NOTHING;
    for (int64_t k = 0; k < r->keys; k++) {
        int64_t ahead = base_min_i64(k + RANGE_AHEAD, r->keys - 1);
        vector_ask_for(keys + ahead * r->k_stride * size, d * size);
        vector_ask_for(values + k * r->v_stride * size, d * size);
        vector sum = vector_set(0.0f);
        for (int64_t c = 0; c < d; c += VECTOR) {
            int64_t n = base_min_i64(VECTOR, d - c);
            sum = vector_fma(load_values(r->q, dtype, c, n),
                             load_values(r->k, dtype, k * r->k_stride + c, n), sum);
        }
        r->scores[k] = vector_sum(sum) * r->scale + r->slope * (float)(r->from + k);
        most = r->scores[k] > most ? r->scores[k] : most;
    }
    return r->softcap > 0 ? range_cap(r) : most;
}

/* Weighted sums of values, for `count` vectors of a head at a time. Each element is summed in the
 * order of the keys. */
VECTOR_INLINE void range_values(base_dtype dtype, const cpu_attention_range *r, int64_t from,
                                int count) {
    vector sum[RANGE_VECTORS];
    int64_t d = r->head_dim;
    for (int j = 0; j < count; j++) sum[j] = vector_set(0.0f);
    for (int64_t k = 0; k < r->keys; k++) {
        vector weight = vector_set(r->scores[k]);
        for (int j = 0; j < count; j++) {
            int64_t c = from + j * VECTOR, n = count > 1 ? VECTOR : base_min_i64(VECTOR, d - c);
            sum[j] = vector_fma(load_values(r->v, dtype, k * r->v_stride + c, n), weight, sum[j]);
        }
    }
    for (int j = 0; j < count; j++) {
        int64_t c = from + j * VECTOR;
        vector_store_part(r->out + 2 + c, sum[j], base_min_i64(VECTOR, d - c));
    }
}

VECTOR_INLINE void range(base_dtype dtype, const cpu_attention_range *r) {
    float most = range_scores(dtype, r);
    vector shift = vector_set(most), factor = vector_set(LOG2_E), sums = vector_set(0.0f);
    for (int64_t k = 0; k < r->keys; k += VECTOR) {
        int64_t n = base_min_i64(VECTOR, r->keys - k);
        vector p = n == VECTOR ? vector_load(r->scores + k) : vector_load_part(r->scores + k, n);
        vector_store_part(r->scores + k, vector_exp2(vector_mul(vector_sub(p, shift), factor)), n);
        sums = vector_add(sums, vector_load_part(r->scores + k, n));
    }
    float total = vector_sum(sums);
    r->out[0] = most, r->out[1] = total;
    int64_t c = 0;
    for (; c + RANGE_VECTORS * VECTOR <= r->head_dim; c += RANGE_VECTORS * VECTOR)
        range_values(dtype, r, c, RANGE_VECTORS);
    for (; c < r->head_dim; c += VECTOR) range_values(dtype, r, c, 1);
}

static void attention_range(const cpu_attention_range *r) {
    if (r->dtype == BASE_FP32)
        range(BASE_FP32, r);
    else if (r->dtype == BASE_BF16)
        range(BASE_BF16, r);
    else
        range(BASE_FP16, r);
}

extern const cpu_attention_kernels KERNEL_NAME(cpu_attention_kernels);
const cpu_attention_kernels KERNEL_NAME(cpu_attention_kernels) = {
    .forward = attention_forward,
    .backward = KERNEL_NAME(cpu_attention_backward),
    .range = attention_range,
    .forward_floats = forward_floats,
    .backward_floats = KERNEL_NAME(cpu_attention_backward_floats),
};

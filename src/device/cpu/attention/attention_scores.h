/* For kernels_attention*.c: the soft cap and the mask, applied to a tile of scores between its
 * product and the softmax. Keys are rows of QUERY_BLOCK scores; lane i is the query at `position` +
 * i. */
#ifndef CPU_ATTENTION_SCORES_H
#define CPU_ATTENTION_SCORES_H

#include "device/alibi.h"
#include "device/cpu/attention/attention_tile.h"

/* A block of queries, whose rows and positions follow each other. `begins`: the position of its
 * first query, if all of the block were there. */
typedef struct tile_queries {
    int64_t row, count, position, begins;
} tile_queries;

static inline tile_queries tile_queries_from(const cpu_attention *a, int64_t row) {
    int64_t position = a->first + row + (row >= a->run ? a->apart : 0);
    int64_t begins = position - (position - a->origin) % QUERY_BLOCK;
    int64_t end = row < a->run ? a->run : a->queries;
    return (tile_queries){.row = row,
                          .count = base_min_i64(begins + QUERY_BLOCK - position, end - row),
                          .position = position,
                          .begins = begins};
}

/* The key at which the tiles of a block of queries begin: no earlier key is seen. It is a multiple
 * of 8, since dropout's random numbers come for 8 keys at a time. */
static inline int64_t tile_first_key(const cpu_attention *a, int64_t begins) {
    return base_max_i64(0, begins - a->window + 1) / 8 * 8;
}

/* The key after the last one that is seen. */
static inline int64_t tile_end_key(const cpu_attention *a, int64_t position, int64_t queries) {
    return base_min_i64(a->keys, position + queries - 1 + a->ahead);
}

static inline void tile_hide_lanes(float *scores, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i++) scores[i] = TILE_HIDDEN;
}

/* Replaces the scores of hidden keys: those too far ahead, and those that the window has passed. */
static inline void tile_hide(const cpu_attention *a, float *scores, int64_t k0, int64_t keys,
                             int64_t position, int64_t queries) {
    bool later = k0 + keys - 1 - position >= a->ahead;
    bool passed = position + queries - 1 - k0 >= a->window;
    if (!later && !passed) return;
    for (int64_t k = 0; k < keys; k++) {
        int64_t first = k0 + k - position; /* lane at the key's position */
        float *row = scores + k * QUERY_BLOCK;
        tile_hide_lanes(row, 0, base_min_i64(QUERY_BLOCK, first - a->ahead + 1));
        tile_hide_lanes(row, base_max_i64(0, first + a->window), QUERY_BLOCK);
    }
}

/* The segments of a block of queries. */
typedef struct tile_segments {
    int32_t of[QUERY_BLOCK], least, most;
} tile_segments;

static inline tile_segments tile_load_segments(const cpu_attention *a, int64_t position,
                                               int64_t queries) {
    tile_segments s = {0};
    if (a->segments == NULL) return s;
    s.least = s.most = a->segments[position * a->segment_stride];
    for (int64_t i = 0; i < QUERY_BLOCK; i++) { /* lanes after the last query repeat it */
        int64_t at = position + base_min_i64(i, queries - 1);
        s.of[i] = a->segments[at * a->segment_stride];
        if (s.of[i] < s.least) s.least = s.of[i];
        if (s.of[i] > s.most) s.most = s.of[i];
    }
    return s;
}

static inline bool tile_shares_any(const tile_segments *s, const int32_t *of, int64_t keys) {
    int any = 0;
    for (int64_t k = 0; k < keys; k++)
        for (int i = 0; i < QUERY_BLOCK; i++) any |= s->of[i] == of[k];
    return any != 0;
}

typedef enum tile_sharing { TILE_SHARES_NONE, TILE_SHARES_SOME, TILE_SHARES_ALL } tile_sharing;

/* Compares the segments of queries with those of keys from k0 on; copies the keys' segments to
 * `of`. Blocks of one segment each are compared by their least and largest segments alone. */
static inline tile_sharing tile_compare(const cpu_attention *a, const tile_segments *s, int64_t k0,
                                        int64_t keys, int32_t of[KEY_BLOCK]) {
    if (a->segments == NULL) return TILE_SHARES_ALL;
    int32_t least = a->segments[k0 * a->segment_stride], most = least;
    for (int64_t k = 0; k < keys; k++) {
        of[k] = a->segments[(k0 + k) * a->segment_stride];
        if (of[k] < least) least = of[k];
        if (of[k] > most) most = of[k];
    }
    if (most < s->least || least > s->most) return TILE_SHARES_NONE;
    if (least == most && s->least == s->most) return TILE_SHARES_ALL;
    return tile_shares_any(s, of, keys) ? TILE_SHARES_SOME : TILE_SHARES_NONE;
}

static inline void tile_hide_segments(const tile_segments *s, float *scores, const int32_t *of,
                                      int64_t keys) {
    for (int64_t k = 0; k < keys; k++)
        for (int i = 0; i < QUERY_BLOCK; i++) {
            float *score = scores + k * QUERY_BLOCK + i;
            *score = s->of[i] == of[k] ? *score : TILE_HIDDEN;
        }
}

/* Eigen's rational approximation, within 3 units in the last place; 1 beyond the bound. */
VECTOR_INLINE vector tile_tanh(vector x) {
    const float bound = 7.90531110763549805f;
    vector least = vector_set(-bound), zero = vector_set(0.0f);
    x = vector_max(least, vector_sub(zero, x)); /* a NaN stays a NaN */
    x = vector_max(least, vector_sub(zero, x));
    vector square = vector_mul(x, x);
    vector above = vector_set(-2.76076847742355e-16f);
    above = vector_fma(above, square, vector_set(2.00018790482477e-13f));
    above = vector_fma(above, square, vector_set(-8.60467152213735e-11f));
    above = vector_fma(above, square, vector_set(5.12229709037114e-08f));
    above = vector_fma(above, square, vector_set(1.48572235717979e-05f));
    above = vector_fma(above, square, vector_set(6.37261928875436e-04f));
    above = vector_fma(above, square, vector_set(4.89352455891786e-03f));
    vector below = vector_set(1.19825839466702e-06f);
    below = vector_fma(below, square, vector_set(1.18534705686654e-04f));
    below = vector_fma(below, square, vector_set(2.26843463243900e-03f));
    below = vector_fma(below, square, vector_set(4.89352518554385e-03f));
    return vector_div(vector_mul(x, above), below);
}

/* s = cap tanh(scale s / cap), for `count` (a multiple of VECTOR) products. */
TILE_INLINE void tile_cap(float *scores, int64_t count, float scale, float cap) {
    vector inner = vector_set(scale / cap), outer = vector_set(cap);
    for (int64_t i = 0; i < count; i += VECTOR)
        vector_store(scores + i,
                     vector_mul(outer, tile_tanh(vector_mul(vector_load(scores + i), inner))));
}

/* Adds a bias by distance; lane 0 of the first row is so many positions behind its key. */
static inline void tile_bias(const cpu_attention *a, int64_t head, float *scores, int64_t keys,
                             int64_t distance) {
    float slope = a->alibi * (float)device_alibi_slope(a->slopes, a->first_slope + head);
    for (int64_t k = 0; k < keys; k++)
        for (int64_t i = 0; i < QUERY_BLOCK; i++)
            scores[k * QUERY_BLOCK + i] += slope * (float)(distance + k - i);
}

/* The factor that the softmax applies to scores: 1 if the cap has already scaled them. */
static inline float tile_scale(const cpu_attention *a) {
    return a->softcap > 0 ? 1.0f : a->scale;
}

#endif

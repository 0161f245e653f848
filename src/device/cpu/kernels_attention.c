#include "device/cpu/attention.h"

#include "base/random.h"
#include "device/cpu/lanes.h"
#include "device/cpu/wide.h"

enum { BLOCK = ATTENTION_BLOCK };

/* c[m x n] (+)= a b: a(i, k) at a[i * a_row + k * a_column], b and c row-major; m a multiple of 4,
 * n of 16. WIDTH vectors of columns and four rows at a time stay in registers. */
#define DEFINE_MULTIPLY(WIDTH)                                                                     \
    static inline void multiply_##WIDTH(int64_t m, int64_t k, const float *a, int64_t a_row,       \
                                        int64_t a_column, const float *b, int64_t ldb, float *c,   \
                                        int64_t ldc, bool add) {                                   \
        for (int64_t i = 0; i < m; i += 4) {                                                       \
            wide sum[4][WIDTH];                                                                    \
            for (int r = 0; r < 4; r++) {                                                          \
                for (int w = 0; w < WIDTH; w++) {                                                  \
                    sum[r][w] = add ? wide_load(c + (i + r) * ldc + 16 * w) : wide_set(0);         \
                }                                                                                  \
            }                                                                                      \
            for (int64_t p = 0; p < k; p++) {                                                      \
                wide right[WIDTH];                                                                 \
                for (int w = 0; w < WIDTH; w++) right[w] = wide_load(b + p * ldb + 16 * w);        \
                for (int r = 0; r < 4; r++) {                                                      \
                    wide left = wide_set(a[(i + r) * a_row + p * a_column]);                       \
                    for (int w = 0; w < WIDTH; w++) {                                              \
                        sum[r][w] = wide_fma(left, right[w], sum[r][w]);                           \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
            for (int r = 0; r < 4; r++) {                                                          \
                for (int w = 0; w < WIDTH; w++) {                                                  \
                    wide_store(c + (i + r) * ldc + 16 * w, sum[r][w]);                             \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

DEFINE_MULTIPLY(1)
DEFINE_MULTIPLY(2)
DEFINE_MULTIPLY(4)

static void multiply(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row,
                     int64_t a_column, const float *b, int64_t ldb, float *c, int64_t ldc,
                     bool add) {
    for (int64_t j = 0; j < n;) {
        if (n - j >= 64) {
            multiply_4(m, k, a, a_row, a_column, b + j, ldb, c + j, ldc, add);
            j += 64;
        } else if (n - j >= 32) {
            multiply_2(m, k, a, a_row, a_column, b + j, ldb, c + j, ldc, add);
            j += 32;
        } else {
            multiply_1(m, k, a, a_row, a_column, b + j, ldb, c + j, ldc, add);
            j += 16;
        }
    }
}

static int64_t padded(int64_t head_dim) {
    return (head_dim + 15) / 16 * 16;
}

/* BLOCK rows x padded columns of one head, as fp32; what is outside is zero. */
static void load_block(float *to, const device_matrix *m, int64_t first_row, int64_t rows,
                       int64_t column, int64_t dim, float scale) {
    int64_t width = padded(dim);
    for (int64_t r = 0; r < BLOCK; r++) {
        float *row = to + r * width;
        int64_t have = r < rows ? dim : 0;
        lanes_load(row, m, first_row + r, column, have);
        for (int64_t i = 0; i < have; i++) row[i] *= scale;
        for (int64_t i = have; i < width; i++) row[i] = 0;
    }
}

/* to[padded x BLOCK] = from[BLOCK x padded] transposed */
static void transpose_block(float *restrict to, const float *restrict from, int64_t width) {
    for (int64_t i = 0; i < width; i++) {
        for (int64_t r = 0; r < BLOCK; r++) to[i * BLOCK + r] = from[r * width + i];
    }
}

static void store_transposed(const device_matrix *m, int64_t first_row, int64_t rows,
                             int64_t column, int64_t dim, const float *from, const float *scale) {
    float row[PIECE];
    for (int64_t r = 0; r < rows; r++) {
        float s = scale ? scale[r] : 1.0f;
        for (int64_t at = 0; at < dim; at += PIECE) {
            int64_t n = dim - at < PIECE ? dim - at : PIECE;
            for (int64_t i = 0; i < n; i++) row[i] = from[(at + i) * BLOCK + r] * s;
            lanes_store(m, first_row + r, column + at, n, row);
        }
    }
}

static uint64_t dropout_key(const device_call *c) {
    return base_random_key(c->step->seed, (uint64_t)c->step->step,
                           (uint64_t)(uint32_t)c->attributes.micro_batch << 32 |
                               (uint32_t)c->attributes.op);
}

/* values[key x query] *= 1/(1-p) or 0. The number belongs to (row of the query, head, key). */
static void drop(const device_call *c, float *values, int64_t query_row, int64_t head,
                 int64_t first_key) {
    float p = c->attributes.attention.dropout, keep = 1.0f / (1.0f - p);
    uint64_t key = dropout_key(c);
    for (int64_t q = 0; q < BLOCK; q++) {
        uint64_t high =
            (uint64_t)(query_row + q) * (uint64_t)c->attributes.attention.heads + (uint64_t)head;
        for (int64_t k = 0; k < BLOCK; k += 4) {
            base_random4 r = base_philox(key, (uint64_t)(first_key + k) / 4, high);
            for (int64_t i = 0; i < 4; i++) {
                float *at = &values[(k + i) * BLOCK + q];
                *at = base_uniform(r.v[i]) >= p ? *at * keep : 0.0f;
            }
        }
    }
}

/* scores[key x query] of keys after their query become -infinity. */
static void mask(float *scores, int64_t first_key, int64_t first_query) {
    for (int64_t k = 0; k < BLOCK; k++) {
        for (int64_t q = 0; q < BLOCK && first_query + q < first_key + k; q++) {
            scores[k * BLOCK + q] = -INFINITY;
        }
    }
}

/* One block of keys into the running maximum, sum and weighted values (online softmax). */
static void softmax_block(float *scores, float *maximum, float *sum, float *out, int64_t width) {
    float largest[BLOCK], correction[BLOCK];
    for (int q = 0; q < BLOCK; q++) largest[q] = maximum[q];
    for (int64_t k = 0; k < BLOCK; k++) {
        for (int q = 0; q < BLOCK; q++) {
            float s = scores[k * BLOCK + q];
            largest[q] = s > largest[q] ? s : largest[q];
        }
    }
    for (int q = 0; q < BLOCK; q++) {
        correction[q] = maximum[q] == largest[q] ? 1.0f : lanes_exp(maximum[q] - largest[q]);
        maximum[q] = largest[q];
        sum[q] *= correction[q];
    }
    for (int64_t k = 0; k < BLOCK; k++) {
        for (int q = 0; q < BLOCK; q++) {
            float p = lanes_exp(scores[k * BLOCK + q] - largest[q]);
            scores[k * BLOCK + q] = p;
            sum[q] += p;
        }
    }
    for (int64_t i = 0; i < width; i++) {
        for (int q = 0; q < BLOCK; q++) out[i * BLOCK + q] *= correction[q];
    }
}

/* scores = keys queries^T scaled, masked on the diagonal. */
static void scores_block(float *scores, const float *keys, const float *queries_t, int64_t width,
                         int64_t first_key, int64_t first_query) {
    multiply(BLOCK, BLOCK, width, keys, width, 1, queries_t, BLOCK, scores, BLOCK, false);
    if (first_key + BLOCK > first_query) mask(scores, first_key, first_query);
}

static void forward(const attention_tile *tile) {
    const device_call *c = tile->call;
    const device_attributes *a = &c->attributes;
    int64_t dim = a->attention.head_dim, width = padded(dim), length = a->attention.length;
    int64_t kv_head = tile->head / (a->attention.heads / a->attention.kv_heads);
    int64_t start = tile->sequence * length, first = tile->block * BLOCK;
    int64_t rows = length - first < BLOCK ? length - first : BLOCK;
    float *queries_t = tile->scratch, *block = queries_t + width * BLOCK;
    float *scores = block + width * BLOCK, *out = scores + BLOCK * BLOCK;
    float maximum[BLOCK], sum[BLOCK];

    load_block(block, &c->x[0], start + first, rows, tile->head * dim, dim, a->attention.scale);
    transpose_block(queries_t, block, width);
    memset(out, 0, (size_t)(width * BLOCK) * sizeof *out);
    for (int q = 0; q < BLOCK; q++) maximum[q] = -INFINITY, sum[q] = 0;
    for (int64_t key = 0; key <= first; key += BLOCK) {
        int64_t have = length - key < BLOCK ? length - key : BLOCK;
        load_block(block, &c->x[1], start + key, have, kv_head * dim, dim, 1.0f);
        scores_block(scores, block, queries_t, width, key, first);
        softmax_block(scores, maximum, sum, out, width);
        if (a->attention.dropout > 0) drop(c, scores, start + first, tile->head, key);
        load_block(block, &c->x[2], start + key, have, kv_head * dim, dim, 1.0f);
        multiply(width, BLOCK, BLOCK, block, 1, width, scores, BLOCK, out, BLOCK, true);
    }
    float *saved = (float *)c->saved[0].data + tile->head * c->saved[0].stride + start + first;
    for (int64_t q = 0; q < rows; q++) {
        if (c->saved[0].dtype != DEVICE_NONE) saved[q] = maximum[q] + logf(sum[q]);
        sum[q] = 1.0f / sum[q];
    }
    store_transposed(&c->y, start + first, rows, tile->head * dim, dim, out, sum);
}

/* What the backward pass keeps of one query head: blocks of BLOCK queries one after the other. */
typedef struct head_blocks {
    float *queries, *queries_t, *douts, *douts_t; /* each blocks x BLOCK x width */
    float *dqueries_t;
    float *logsum, *delta; /* blocks x BLOCK */
} head_blocks;

static float *carve(float **at, int64_t count) {
    float *block = *at;
    *at += count;
    return block;
}

static void load_head(head_blocks *h, const device_call *c, int64_t start, int64_t head) {
    const device_attributes *a = &c->attributes;
    int64_t dim = a->attention.head_dim, width = padded(dim), length = a->attention.length;
    for (int64_t first = 0; first < length; first += BLOCK) {
        int64_t rows = length - first < BLOCK ? length - first : BLOCK, at = first * width;
        const float *saved = (const float *)c->saved[0].data + head * c->saved[0].stride;
        load_block(h->queries + at, &c->x[0], start + first, rows, head * dim, dim,
                   a->attention.scale);
        transpose_block(h->queries_t + at, h->queries + at, width);
        load_block(h->douts + at, &c->y, start + first, rows, head * dim, dim, 1.0f);
        load_block(h->douts_t + at, &c->dy, start + first, rows, head * dim, dim, 1.0f);
        for (int64_t q = 0; q < BLOCK; q++) {
            const float *y = h->douts + at + q * width, *dy = h->douts_t + at + q * width;
            float sums[LANES] = {0};
            for (int64_t i = 0; i < width; i += LANES) {
                for (int l = 0; l < LANES; l++) sums[l] += y[i + l] * dy[i + l];
            }
            h->delta[first + q] = lanes_fold(sums);
            h->logsum[first + q] = q < rows ? saved[start + first + q] : INFINITY;
        }
        memcpy(h->douts + at, h->douts_t + at, (size_t)(BLOCK * width) * sizeof *h->douts);
        transpose_block(h->douts_t + at, h->douts + at, width);
    }
    memset(h->dqueries_t, 0,
           (size_t)((length + BLOCK - 1) / BLOCK * BLOCK * width) * sizeof(float));
}

/* Probabilities of a block, from scores and the log-sum-exp of each query. */
static void probabilities(float *scores, const float *logsum) {
    for (int64_t k = 0; k < BLOCK; k++) {
        for (int q = 0; q < BLOCK; q++) {
            scores[k * BLOCK + q] = lanes_exp(scores[k * BLOCK + q] - logsum[q]);
        }
    }
}

/* A kv head of a sequence: keys outside, queries inside, each query head of the group in turn, so
 * every sum has one order. */
static void backward(const attention_tile *tile) {
    const device_call *c = tile->call;
    const device_attributes *a = &c->attributes;
    int64_t dim = a->attention.head_dim, width = padded(dim), length = a->attention.length;
    int64_t group = a->attention.heads / a->attention.kv_heads;
    int64_t start = tile->sequence * length, blocks = (length + BLOCK - 1) / BLOCK;
    int64_t whole = blocks * BLOCK * width;
    bool dropped = a->attention.dropout > 0;
    float *at = tile->scratch;
    float *keys = carve(&at, BLOCK * width), *values = carve(&at, BLOCK * width);
    float *dkeys_all = carve(&at, whole), *dvalues_all = carve(&at, whole);
    float *p = carve(&at, BLOCK * BLOCK), *dp = carve(&at, BLOCK * BLOCK);
    float *masked = carve(&at, BLOCK * BLOCK);
    head_blocks h = {.queries = carve(&at, whole),
                     .queries_t = carve(&at, whole),
                     .douts = carve(&at, whole),
                     .douts_t = carve(&at, whole),
                     .dqueries_t = carve(&at, whole),
                     .logsum = carve(&at, blocks * BLOCK),
                     .delta = carve(&at, blocks * BLOCK)};
    memset(dkeys_all, 0, (size_t)(2 * whole) * sizeof *dkeys_all);
    for (int64_t g = 0; g < group; g++) {
        int64_t head = tile->head * group + g;
        load_head(&h, c, start, head);
        for (int64_t key = 0; key < length; key += BLOCK) {
            int64_t have = length - key < BLOCK ? length - key : BLOCK;
            float *dkeys = dkeys_all + key * width, *dvalues = dvalues_all + key * width;
            load_block(keys, &c->x[1], start + key, have, tile->head * dim, dim, 1.0f);
            load_block(values, &c->x[2], start + key, have, tile->head * dim, dim, 1.0f);
            for (int64_t query = key; query < length; query += BLOCK) {
                int64_t q = query * width;
                scores_block(p, keys, h.queries_t + q, width, key, query);
                probabilities(p, h.logsum + query);
                multiply(BLOCK, BLOCK, width, values, width, 1, h.douts_t + q, BLOCK, dp, BLOCK,
                         false);
                const float *weights = p;
                if (dropped) {
                    memcpy(masked, p, (size_t)(BLOCK * BLOCK) * sizeof *p);
                    drop(c, masked, start + query, head, key);
                    drop(c, dp, start + query, head, key);
                    weights = masked;
                }
                multiply(BLOCK, width, BLOCK, weights, BLOCK, 1, h.douts + q, width, dvalues, width,
                         true);
                const float *delta = h.delta + query;
                for (int64_t k = 0; k < BLOCK; k++) {
                    for (int i = 0; i < BLOCK; i++) {
                        p[k * BLOCK + i] *= dp[k * BLOCK + i] - delta[i];
                    }
                }
                multiply(BLOCK, width, BLOCK, p, BLOCK, 1, h.queries + q, width, dkeys, width,
                         true);
                multiply(width, BLOCK, BLOCK, keys, 1, width, p, BLOCK, h.dqueries_t + q, BLOCK,
                         true);
            }
        }
        float scale[BLOCK];
        for (int i = 0; i < BLOCK; i++) scale[i] = a->attention.scale;
        for (int64_t query = 0; query < length; query += BLOCK) {
            int64_t rows = length - query < BLOCK ? length - query : BLOCK;
            store_transposed(&c->dx[0], start + query, rows, head * dim, dim,
                             h.dqueries_t + query * width, scale);
        }
    }
    for (int64_t r = 0; r < length; r++) {
        lanes_store(&c->dx[1], start + r, tile->head * dim, dim, dkeys_all + r * width);
        lanes_store(&c->dx[2], start + r, tile->head * dim, dim, dvalues_all + r * width);
    }
}

/* New rows of one sequence against the cache, which holds them already. Two passes over fixed
 * blocks of keys: scores with their maximum, then the weighted sum. */
static void cached(const attention_tile *tile) {
    const device_call *c = tile->call;
    const device_attributes *a = &c->attributes;
    int64_t dim = a->attention.head_dim;
    int64_t kv_head = tile->head / (a->attention.heads / a->attention.kv_heads);
    const int32_t *positions = c->x[3].data;
    float *scores = tile->scratch, *row = scores + a->attention.length, *query = row + padded(dim);
    float *out = query + padded(dim);
    for (int64_t r = 0; r < c->x[0].rows; r++) {
        int64_t keys = positions[r] + 1;
        float maximum = -INFINITY, sum = 0;
        lanes_load(query, &c->x[0], r, tile->head * dim, dim);
        for (int64_t k = 0; k < keys; k++) {
            float sums[LANES] = {0};
            lanes_load(row, &c->w[0], k, kv_head * dim, dim);
            for (int64_t i = 0; i < dim; i++) row[i] *= query[i];
            lanes_add(sums, row, dim);
            scores[k] = lanes_fold(sums) * a->attention.scale;
            maximum = scores[k] > maximum ? scores[k] : maximum;
        }
        memset(out, 0, (size_t)dim * sizeof *out);
        for (int64_t k = 0; k < keys; k++) {
            float p = lanes_exp(scores[k] - maximum);
            sum += p;
            lanes_load(row, &c->w[1], k, kv_head * dim, dim);
            for (int64_t i = 0; i < dim; i++) out[i] += p * row[i];
        }
        for (int64_t i = 0; i < dim; i++) out[i] /= sum;
        lanes_store(&c->y, r, tile->head * dim, dim, out);
    }
}

const attention_kernels KERNEL(attention_kernels) = {.forward = forward,
                                                     .backward = backward,
                                                     .cached = cached};

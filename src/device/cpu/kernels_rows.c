/* Element-wise kernels, rotary embedding and table look-ups. */
#include "base/random.h"
#include "device/cpu/kernels_sets.h"

/* transformers' gelu_new: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
static inline float gelu_tanh(float x) {
    float u = 0.7978845608f * (x + 0.044715f * x * x * x);
    return 0.5f * x * (1.0f + lanes_tanh(u));
}

static inline float gelu_tanh_slope(float x) {
    float u = 0.7978845608f * (x + 0.044715f * x * x * x);
    float t = lanes_tanh(u);
    float du = 0.7978845608f * (1.0f + 3 * 0.044715f * x * x);
    return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * du;
}

static inline float gelu_erf(float x) {
    return 0.5f * x * (1.0f + erff(x * 0.70710678f));
}

static inline float gelu_erf_slope(float x) {
    return 0.5f * (1.0f + erff(x * 0.70710678f)) + x * 0.3989422804f * lanes_exp(-0.5f * x * x);
}

static void dropout(float *x, const device_call *c, int64_t row, int64_t first, int64_t n) {
    float p = c->attributes.dropout.probability, keep = 1.0f / (1.0f - p);
    if (!c->step->training) return;
    uint64_t key = base_random_key(c->step->seed, (uint64_t)c->step->step,
                                   (uint64_t)(uint32_t)c->attributes.micro_batch << 32 |
                                       (uint32_t)c->attributes.op);
    const device_matrix *m = c->kernel == DEVICE_DROPOUT ? &c->y : &c->dx[0];
    uint64_t element = (uint64_t)(row * m->columns + first);
    base_random4 r = base_philox(key, element / 4, 0);
    for (int64_t i = 0; i < n; i++, element++) {
        if (element % 4 == 0) r = base_philox(key, element / 4, 0);
        x[i] = base_uniform(r.v[element % 4]) >= p ? x[i] * keep : 0.0f;
    }
}

/* A piece of a row of one of the element-wise kernels. */
static void piece(const device_call *c, int64_t r, int64_t at, int64_t n) {
    float a[PIECE], b[PIECE], g[PIECE], h[PIECE];
    switch (c->kernel) {
    case DEVICE_GELU:
        lanes_load(a, &c->x[0], r, at, n);
        if (c->attributes.gelu.exact) {
            for (int64_t i = 0; i < n; i++) a[i] = gelu_erf(a[i]);
        } else {
            for (int64_t i = 0; i < n; i++) a[i] = gelu_tanh(a[i]);
        }
        lanes_store(&c->y, r, at, n, a);
        return;
    case DEVICE_GELU_BACKWARD:
        lanes_load(a, &c->x[0], r, at, n);
        lanes_load(g, &c->dy, r, at, n);
        if (c->attributes.gelu.exact) {
            for (int64_t i = 0; i < n; i++) a[i] = g[i] * gelu_erf_slope(a[i]);
        } else {
            for (int64_t i = 0; i < n; i++) a[i] = g[i] * gelu_tanh_slope(a[i]);
        }
        lanes_store(&c->dx[0], r, at, n, a);
        return;
    case DEVICE_SILU_GATE:
        lanes_load(a, &c->x[0], r, at, n);
        lanes_load(b, &c->x[1], r, at, n);
        for (int64_t i = 0; i < n; i++) a[i] = a[i] * lanes_sigmoid(a[i]) * b[i];
        lanes_store(&c->y, r, at, n, a);
        return;
    case DEVICE_SILU_GATE_BACKWARD:
        lanes_load(a, &c->x[0], r, at, n);
        lanes_load(b, &c->x[1], r, at, n);
        lanes_load(g, &c->dy, r, at, n);
        for (int64_t i = 0; i < n; i++) {
            float s = lanes_sigmoid(a[i]), silu = a[i] * s;
            h[i] = g[i] * silu;
            a[i] = g[i] * b[i] * (s + silu * (1.0f - s));
        }
        lanes_store(&c->dx[0], r, at, n, a);
        lanes_store(&c->dx[1], r, at, n, h);
        return;
    case DEVICE_ADD:
    case DEVICE_MULTIPLY:
        lanes_load(a, &c->x[0], r, at, n);
        lanes_load(b, &c->x[1], r, at, n);
        if (c->kernel == DEVICE_ADD) {
            for (int64_t i = 0; i < n; i++) a[i] += b[i];
        } else {
            for (int64_t i = 0; i < n; i++) a[i] *= b[i];
        }
        lanes_store(&c->y, r, at, n, a);
        return;
    case DEVICE_MULTIPLY_BACKWARD:
        lanes_load(a, &c->x[0], r, at, n);
        lanes_load(b, &c->x[1], r, at, n);
        lanes_load(g, &c->dy, r, at, n);
        for (int64_t i = 0; i < n; i++) b[i] *= g[i];
        for (int64_t i = 0; i < n; i++) a[i] *= g[i];
        lanes_store(&c->dx[0], r, at, n, b);
        lanes_store(&c->dx[1], r, at, n, a);
        return;
    case DEVICE_DROPOUT:
        lanes_load(a, &c->x[0], r, at, n);
        dropout(a, c, r, at, n);
        lanes_store(&c->y, r, at, n, a);
        return;
    case DEVICE_DROPOUT_BACKWARD:
        lanes_load(a, &c->dy, r, at, n);
        dropout(a, c, r, at, n);
        lanes_store(&c->dx[0], r, at, n, a);
        return;
    case DEVICE_ADD_INTO:
    case DEVICE_ACCUMULATE:
        lanes_load(a, &c->y, r, at, n);
        lanes_load(b, &c->x[0], r, at, n);
        for (int64_t i = 0; i < n; i++) a[i] += b[i];
        lanes_store(&c->y, r, at, n, a);
        return;
    case DEVICE_CLEAR: {
        int64_t size = device_dtype_bytes(c->y.dtype);
        memset((char *)c->y.data + (r * c->y.stride + at) * size, 0, (size_t)(n * size));
        return;
    }
    case DEVICE_CONVERT:
        lanes_load(a, &c->x[0], r, at, n);
        lanes_store(&c->y, r, at, n, a);
        return;
    default:
        return;
    }
}

static const device_matrix *shape_of(const device_call *c) {
    return c->y.dtype != DEVICE_NONE ? &c->y : &c->dx[0];
}

/* Rows of matrices; a vector (1 x n) is cut into elements instead. */
void KERNEL(elementwise)(const cpu_part *part) {
    const device_matrix *shape = shape_of(part->call);
    if (shape->rows == 1) {
        for (int64_t at = part->first; at < part->first + part->count; at += PIECE) {
            int64_t left = part->first + part->count - at;
            piece(part->call, 0, at, left < PIECE ? left : PIECE);
        }
        return;
    }
    for (int64_t r = part->first; r < part->first + part->count; r++) {
        for (int64_t at = 0; at < shape->columns; at += PIECE) {
            int64_t left = shape->columns - at;
            piece(part->call, r, at, left < PIECE ? left : PIECE);
        }
    }
}

void KERNEL(rope)(const cpu_part *part) {
    const device_call *c = part->call;
    bool backward = c->kernel == DEVICE_ROPE_BACKWARD;
    const device_matrix *from = backward ? &c->dy : &c->x[0];
    const device_matrix *to = backward ? &c->dx[0] : &c->y;
    const int32_t *positions = c->x[1].data;
    int64_t dim = c->attributes.rope.head_dim, half = dim / 2;
    float a[PIECE], b[PIECE], x[PIECE], y[PIECE];
    for (int64_t r = part->first; r < part->first + part->count; r++) {
        const float *table = (const float *)c->x[2].data + positions[r] * dim;
        for (int64_t h = 0; h < c->attributes.rope.heads; h++) {
            for (int64_t at = 0; at < half; at += PIECE) {
                int64_t n = half - at < PIECE ? half - at : PIECE;
                const float *cosine = table + at, *sine = table + half + at;
                float sign = backward ? -1.0f : 1.0f;
                lanes_load(a, from, r, h * dim + at, n);
                lanes_load(b, from, r, h * dim + half + at, n);
                for (int64_t i = 0; i < n; i++) {
                    x[i] = a[i] * cosine[i] - sign * (b[i] * sine[i]);
                    y[i] = b[i] * cosine[i] + sign * (a[i] * sine[i]);
                }
                lanes_store(to, r, h * dim + at, n, x);
                lanes_store(to, r, h * dim + half + at, n, y);
            }
        }
    }
}

void KERNEL(embedding)(const cpu_part *part) {
    const device_call *c = part->call;
    const int32_t *ids = c->x[0].data;
    int64_t size = device_dtype_bytes(c->y.dtype);
    for (int64_t r = part->first; r < part->first + part->count; r++) {
        memcpy((char *)c->y.data + r * c->y.stride * size,
               (const char *)c->w[0].data + ids[r] * c->w[0].stride * size,
               (size_t)(c->y.columns * size));
    }
}

/* Tokens one after the other, whoever computes a column. */
void KERNEL(embedding_backward)(const cpu_part *part) {
    const device_call *c = part->call;
    const int32_t *ids = c->x[0].data;
    float *dw = c->dw[0].data, g[PIECE];
    if (!c->accumulate_dw) {
        for (int64_t w = 0; w < c->dw[0].rows; w++) {
            memset(dw + w * c->dw[0].stride + part->first, 0, (size_t)part->count * sizeof *dw);
        }
    }
    for (int64_t r = 0; r < c->dy.rows; r++) {
        float *to = dw + ids[r] * c->dw[0].stride;
        for (int64_t at = part->first; at < part->first + part->count; at += PIECE) {
            int64_t left = part->first + part->count - at, n = left < PIECE ? left : PIECE;
            lanes_load(g, &c->dy, r, at, n);
            for (int64_t i = 0; i < n; i++) to[at + i] += g[i];
        }
    }
}

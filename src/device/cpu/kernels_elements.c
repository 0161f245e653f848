/* Element-wise kernels. Loops over whole pieces, which compilers turn into vector code; no loop's
 * body differs from its tail. */
#include "base/random.h"
#include "device/cpu/kernels_sets.h"

/* transformers' gelu_new: 0.5 x (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3); in the form
 * x s, s = 1 / (1 + e^(-2u)), which loses no digits where 1 + tanh(u) nears 0. */
static inline float gelu_tanh(float x) {
    float u = 0.7978845608f * (x + 0.044715f * x * x * x);
    return x * lanes_sigmoid(2.0f * u);
}

/* s + 2 x s (1 - s) u' */
static inline float gelu_tanh_slope(float x) {
    float u = 0.7978845608f * (x + 0.044715f * x * x * x);
    float du = 0.7978845608f * (1.0f + 3 * 0.044715f * x * x);
    float e = lanes_exp(-2.0f * fabsf(u)), s = 1.0f / (1.0f + e);
    float product = s * (e * s); /* s (1 - s), which is even in u */
    return (u < 0.0f ? e * s : s) + 2.0f * x * product * du;
}

/* 1 - erf(z) for z >= 0, relative error under 1.2e-7 beside rounding: the Chebyshev fit of Press
 * et al., Numerical Recipes, section 6.2 (erfcc). */
static inline float erfc_positive(float z) {
    float t = 1.0f / (1.0f + 0.5f * z), p = 0.17087277f;
    p = p * t - 0.82215223f;
    p = p * t + 1.48851587f;
    p = p * t - 1.13520398f;
    p = p * t + 0.27886807f;
    p = p * t - 0.18628806f;
    p = p * t + 0.09678418f;
    p = p * t + 0.37409196f;
    p = p * t + 1.00002368f;
    return t * lanes_exp(p * t - 1.26551223f - z * z);
}

/* The normal distribution's cumulative function. */
static inline float normal_cdf(float x) {
    float tail = 0.5f * erfc_positive(fabsf(x) * 0.70710678f);
    return x < 0.0f ? tail : 1.0f - tail;
}

static inline float gelu_erf(float x) {
    return x * normal_cdf(x);
}

static inline float gelu_erf_slope(float x) {
    return normal_cdf(x) + x * 0.3989422804f * lanes_exp(-0.5f * x * x);
}

enum { PHILOX = 16 };

/* base_philox for PHILOX counters that follow each other: the same numbers, side by side. */
static inline void philox(uint64_t key, uint64_t counter, uint32_t *out) {
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0[PHILOX], c1[PHILOX], c2[PHILOX], c3[PHILOX];
    for (uint32_t i = 0; i < PHILOX; i++) {
        uint64_t own = counter + i;
        c0[i] = (uint32_t)own, c1[i] = (uint32_t)(own >> 32), c2[i] = 0, c3[i] = 0;
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < PHILOX; i++) {
            uint64_t p0 = (uint64_t)0xD2511F53u * c0[i], p1 = (uint64_t)0xCD9E8D57u * c2[i];
            c0[i] = (uint32_t)(p1 >> 32) ^ c1[i] ^ k0;
            c2[i] = (uint32_t)(p0 >> 32) ^ c3[i] ^ k1;
            c1[i] = (uint32_t)p1, c3[i] = (uint32_t)p0;
        }
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < PHILOX; i++) {
        out[4 * i] = c0[i], out[4 * i + 1] = c1[i];
        out[4 * i + 2] = c2[i], out[4 * i + 3] = c3[i];
    }
}

static void dropout(float *x, const device_call *c, int64_t row, int64_t first, int64_t n) {
    float p = c->attributes.dropout.probability, keep = 1.0f / (1.0f - p);
    uint32_t bits[PIECE + 4 * PHILOX + 4];
    if (!c->step->training) return;
    uint64_t key = base_random_key(c->step->seed, (uint64_t)c->step->step,
                                   (uint64_t)(uint32_t)c->attributes.micro_batch << 32 |
                                       (uint32_t)c->attributes.op);
    const device_matrix *m = c->kernel == DEVICE_DROPOUT ? &c->y : &c->dx[0];
    uint64_t element = (uint64_t)(row * m->columns + first);
    const uint32_t *own = bits + element % 4;
    for (int64_t i = 0; i < n + (int64_t)(element % 4); i += 4 * PHILOX)
        philox(key, (element + (uint64_t)i) / 4, bits + i);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(int32_t)(own[i] >> 8) * 0x1p-24f >= p ? x[i] * keep : 0.0f;
}

/* What a kernel does to a piece: a and b are the first two inputs, g is dy. Results: y or dx0 in a,
 * dx1 in b. */
static void compute(const device_call *c, int64_t r, int64_t at, int64_t n, float *restrict a,
                    float *restrict b, const float *restrict g) {
    switch (c->kernel) {
    case DEVICE_GELU:
        if (c->attributes.gelu.exact) {
            for (int64_t i = 0; i < n; i++) a[i] = gelu_erf(a[i]);
        } else {
            for (int64_t i = 0; i < n; i++) a[i] = gelu_tanh(a[i]);
        }
        return;
    case DEVICE_GELU_BACKWARD:
        if (c->attributes.gelu.exact) {
            for (int64_t i = 0; i < n; i++) a[i] = g[i] * gelu_erf_slope(a[i]);
        } else {
            for (int64_t i = 0; i < n; i++) a[i] = g[i] * gelu_tanh_slope(a[i]);
        }
        return;
    case DEVICE_SILU_GATE:
        for (int64_t i = 0; i < n; i++) a[i] = a[i] * lanes_sigmoid(a[i]) * b[i];
        return;
    case DEVICE_SILU_GATE_BACKWARD:
        for (int64_t i = 0; i < n; i++) {
            float e = lanes_exp(-fabsf(a[i])), s = 1.0f / (1.0f + e), other = e * s;
            float sigmoid = a[i] < 0.0f ? other : s, silu = a[i] * sigmoid;
            a[i] = g[i] * b[i] * (sigmoid + a[i] * (s * other));
            b[i] = g[i] * silu;
        }
        return;
    case DEVICE_MULTIPLY:
        for (int64_t i = 0; i < n; i++) a[i] *= b[i];
        return;
    case DEVICE_MULTIPLY_BACKWARD:
        for (int64_t i = 0; i < n; i++) {
            float other = a[i];
            a[i] = g[i] * b[i];
            b[i] = g[i] * other;
        }
        return;
    case DEVICE_DROPOUT:
        dropout(a, c, r, at, n);
        return;
    case DEVICE_DROPOUT_BACKWARD:
        for (int64_t i = 0; i < n; i++) a[i] = g[i];
        dropout(a, c, r, at, n);
        return;
    case DEVICE_ADD:
        for (int64_t i = 0; i < n; i++) a[i] += b[i];
        return;
    case DEVICE_ADD_INTO:
    case DEVICE_ACCUMULATE: /* y first: the order of the sum */
        for (int64_t i = 0; i < n; i++) a[i] = b[i] + a[i];
        return;
    default: /* DEVICE_CONVERT */
        return;
    }
}

static void piece(const device_call *c, int64_t r, int64_t at, int64_t n) {
    float a[PIECE], b[PIECE], g[PIECE];
    if (c->kernel == DEVICE_CLEAR) {
        int64_t size = device_dtype_bytes(c->y.dtype);
        memset((char *)c->y.data + (r * c->y.stride + at) * size, 0, (size_t)(n * size));
        return;
    }
    bool adds = c->kernel == DEVICE_ADD_INTO || c->kernel == DEVICE_ACCUMULATE;
    if (c->x[0].dtype != DEVICE_NONE) lanes_load(a, &c->x[0], r, at, n);
    if (c->x[1].dtype != DEVICE_NONE || adds) lanes_load(b, adds ? &c->y : &c->x[1], r, at, n);
    if (c->dy.dtype != DEVICE_NONE) lanes_load(g, &c->dy, r, at, n);
    compute(c, r, at, n, a, b, g);
    if (c->y.dtype != DEVICE_NONE) {
        lanes_store(&c->y, r, at, n, a);
    } else {
        lanes_store_gradient(c, 0, r, at, n, a);
        lanes_store_gradient(c, 1, r, at, n, b);
    }
}

/* Rows of matrices; a vector (1 x n) is cut into elements instead. */
void KERNEL(elementwise)(const cpu_part *part) {
    const device_matrix *shape = cpu_elementwise_shape(part->call);
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

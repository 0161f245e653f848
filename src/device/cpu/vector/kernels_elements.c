/* Element-wise kernels. Loops run over whole pieces, which compilers vectorise; the body and the
 * tail of a loop are the same operations. */
#include "device/cpu/kernels_sets.h"
#include "device/cpu/vector/philox.h"

/* transformers' gelu_new: 0.5 x (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3), computed as x s,
 * s = 1 / (1 + e^(-2u)), which loses no digits as 1 + tanh(u) nears 0. */
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

/* 1 - erf(z) for z >= 0; relative error under 1.2e-7, besides rounding. The Chebyshev fit of Press
 * et al., Numerical Recipes, section 6.2 (erfcc). */
static inline float erfc_positive(float z) {
    float t = 1.0f / (1.0f + 0.5f * z), p = 0.17087277f;
    p = LANES_FMA(p, t, -0.82215223f);
    p = LANES_FMA(p, t, 1.48851587f);
    p = LANES_FMA(p, t, -1.13520398f);
    p = LANES_FMA(p, t, 0.27886807f);
    p = LANES_FMA(p, t, -0.18628806f);
    p = LANES_FMA(p, t, 0.09678418f);
    p = LANES_FMA(p, t, 0.37409196f);
    p = LANES_FMA(p, t, 1.00002368f);
    return t * lanes_exp(p * t - 1.26551223f - z * z);
}

/* The cumulative distribution function of the normal distribution. */
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

static void dropout(const float *from, float *to, const device_call *c, int64_t row, int64_t first,
                    int64_t n) {
    float p = c->attributes.dropout.probability, keep = 1.0f / (1.0f - p);
    uint32_t bits[PIECE + 4 * PHILOX + 4];
    if (!c->step->training) {
        LANES_EACH(i, n) to[i] = from[i];
        return;
    }
    uint64_t key = base_random_key(c->step->seed, (uint64_t)c->step->step,
                                   (uint64_t)(uint32_t)c->attributes.micro_batch << 32 |
                                       (uint32_t)c->attributes.op);
    const device_matrix *m = c->kernel == DEVICE_DROPOUT ? &c->y : &c->dx[0];
    uint64_t element = (uint64_t)(c->attributes.element + row * m->columns + first);
    const uint32_t *own = bits + element % 4;
    for (int64_t i = 0; i < n + (int64_t)(element % 4); i += 4 * PHILOX)
        philox(key, (element + (uint64_t)i) / 4, bits + i);
    LANES_EACH(i, n) to[i] = (float)(int32_t)(own[i] >> 8) * 0x1p-24f >= p ? from[i] * keep : 0.0f;
}

static inline float tanh_slope(float x) {
    float t = lanes_tanh(x);
    return 1.0f - t * t;
}

static inline float swish(float x, float slope) {
    return x * lanes_sigmoid(slope * x);
}

/* s + slope x s (1 - s) */
static inline float swish_slope(float x, float slope) {
    float z = slope * x, e = lanes_exp(-fabsf(z)), s = 1.0f / (1.0f + e), other = e * s;
    return (z < 0.0f ? other : s) + z * (s * other);
}

static void relu(const float *from, float *to, int64_t n, bool squared) {
    if (squared) {
        LANES_EACH(i, n) to[i] = from[i] > 0.0f ? from[i] * from[i] : 0.0f;
    } else {
        LANES_EACH(i, n) to[i] = from[i] > 0.0f ? from[i] : 0.0f;
    }
}

static void relu_backward(const float *from, const float *g, float *to, int64_t n, bool squared) {
    if (squared) {
        LANES_EACH(i, n) to[i] = from[i] > 0.0f ? 2.0f * from[i] * g[i] : 0.0f;
    } else {
        LANES_EACH(i, n) to[i] = from[i] > 0.0f ? g[i] : 0.0f;
    }
}

/* Multiplies like transformers: by a number, or by a tensor of the activations' type. */
static float scale_factor(const device_call *c, base_dtype dtype) {
    float factor = c->attributes.scale.factor;
    if (!c->attributes.scale.round_factor) return factor;
    if (dtype == BASE_BF16) return base_bf16_to_float(base_bf16_from_float(factor));
    if (dtype == BASE_FP16) return base_half_to_float(base_half_from_float(factor));
    return factor;
}

static void scale(const float *from, float *to, int64_t n, float factor) {
    LANES_EACH(i, n) to[i] = factor * from[i];
}

/* Applies a forward kernel to a piece of its inputs a and b. */
static void forward(const device_call *c, int64_t r, int64_t at, int64_t n, const float *a,
                    const float *b, float *y) {
    switch (c->kernel) {
    case DEVICE_GELU:
        if (c->attributes.gelu.exact) {
            LANES_EACH(i, n) y[i] = gelu_erf(a[i]);
        } else {
            LANES_EACH(i, n) y[i] = gelu_tanh(a[i]);
        }
        return;
    case DEVICE_SILU_GATE:
        LANES_EACH(i, n) y[i] = a[i] * lanes_sigmoid(a[i]) * b[i];
        return;
    case DEVICE_GELU_GATE:
        if (c->attributes.gelu.exact) {
            LANES_EACH(i, n) y[i] = gelu_erf(a[i]) * b[i];
        } else {
            LANES_EACH(i, n) y[i] = gelu_tanh(a[i]) * b[i];
        }
        return;
    case DEVICE_MULTIPLY:
        LANES_EACH(i, n) y[i] = a[i] * b[i];
        return;
    case DEVICE_DROPOUT:
        dropout(a, y, c, r, at, n);
        return;
    case DEVICE_TANH:
        LANES_EACH(i, n) y[i] = lanes_tanh(a[i]);
        return;
    case DEVICE_RELU:
        relu(a, y, n, c->attributes.relu.squared);
        return;
    case DEVICE_SWISH: {
        float slope = c->attributes.swish.slope;
        LANES_EACH(i, n) y[i] = swish(a[i], slope);
        return;
    }
    case DEVICE_SCALE:
        scale(a, y, n, scale_factor(c, c->y.dtype));
        return;
    case DEVICE_ADD:
        LANES_EACH(i, n) y[i] = a[i] + b[i];
        return;
    case DEVICE_ADD_INTO:
    case DEVICE_ACCUMULATE: /* b is y */
        LANES_EACH(i, n) y[i] = b[i] + a[i];
        return;
    default: /* DEVICE_CONVERT */
        LANES_EACH(i, n) y[i] = a[i];
        return;
    }
}

static void gelu_gate_backward(bool exact, int64_t n, const float *a, const float *b,
                               const float *g, float *u, float *v) {
    if (exact) {
        LANES_EACH(i, n) {
            float du = g[i] * b[i] * gelu_erf_slope(a[i]), dv = g[i] * gelu_erf(a[i]);
            u[i] = du;
            v[i] = dv;
        }
    } else {
        LANES_EACH(i, n) {
            float du = g[i] * b[i] * gelu_tanh_slope(a[i]), dv = g[i] * gelu_tanh(a[i]);
            u[i] = du;
            v[i] = dv;
        }
    }
}

/* Computes the gradients u (into a) and v (into b) from inputs a and b and dy. */
static void backward(const device_call *c, int64_t r, int64_t at, int64_t n, const float *a,
                     const float *b, const float *g, float *u, float *v) {
    switch (c->kernel) {
    case DEVICE_GELU_BACKWARD:
        if (c->attributes.gelu.exact) {
            LANES_EACH(i, n) u[i] = g[i] * gelu_erf_slope(a[i]);
        } else {
            LANES_EACH(i, n) u[i] = g[i] * gelu_tanh_slope(a[i]);
        }
        return;
    case DEVICE_SILU_GATE_BACKWARD:
        LANES_EACH(i, n) {
            float e = lanes_exp(-fabsf(a[i])), s = 1.0f / (1.0f + e), other = e * s;
            float sigmoid = a[i] < 0.0f ? other : s, scaled = g[i] * b[i], dv = g[i] * a[i];
            u[i] = scaled * (sigmoid + a[i] * (s * other));
            v[i] = dv * sigmoid;
        }
        return;
    case DEVICE_GELU_GATE_BACKWARD:
        gelu_gate_backward(c->attributes.gelu.exact, n, a, b, g, u, v);
        return;
    case DEVICE_MULTIPLY_BACKWARD:
        LANES_EACH(i, n) {
            float du = g[i] * b[i], dv = g[i] * a[i];
            u[i] = du;
            v[i] = dv;
        }
        return;
    case DEVICE_TANH_BACKWARD:
        LANES_EACH(i, n) u[i] = g[i] * tanh_slope(a[i]);
        return;
    case DEVICE_RELU_BACKWARD:
        relu_backward(a, g, u, n, c->attributes.relu.squared);
        return;
    case DEVICE_SWISH_BACKWARD: {
        float slope = c->attributes.swish.slope;
        LANES_EACH(i, n) u[i] = g[i] * swish_slope(a[i], slope);
        return;
    }
    case DEVICE_SCALE_BACKWARD:
        scale(g, u, n, scale_factor(c, c->dy.dtype));
        return;
    default: /* DEVICE_DROPOUT_BACKWARD */
        dropout(g, u, c, r, at, n);
        return;
    }
}

static void piece(const device_call *c, int64_t r, int64_t at, int64_t n) {
    float a[PIECE], b[PIECE], g[PIECE], u[PIECE], v[PIECE];
    const float *first = NULL, *second = NULL;
    bool adds = c->kernel == DEVICE_ADD_INTO || c->kernel == DEVICE_ACCUMULATE;
    const device_matrix *other = adds ? &c->y : &c->x[1];
    if (c->x[0].dtype != BASE_NONE) first = lanes_read(a, &c->x[0], r, at, n);
    if (other->dtype != BASE_NONE) second = lanes_read(b, other, r, at, n);
    if (c->y.dtype != BASE_NONE) {
        float *y = lanes_place(u, &c->y, r, at);
        forward(c, r, at, n, first, second, y);
        lanes_written(&c->y, r, at, n, y);
        return;
    }
    const float *dy = lanes_read(g, &c->dy, r, at, n);
    float *to0 = lanes_gradient_place(u, c, 0, r, at), *to1 = lanes_gradient_place(v, c, 1, r, at);
    backward(c, r, at, n, first, second, dy, to0, to1);
    lanes_gradient_written(c, 0, r, at, n, to0);
    if (c->dx[1].dtype != BASE_NONE) lanes_gradient_written(c, 1, r, at, n, to1);
}

static void clear(const device_matrix *m, int64_t row, int64_t first, int64_t count) {
    int64_t size = base_dtype_bytes(m->dtype);
    memset((char *)m->data + (row * m->stride + first) * size, 0, (size_t)(count * size));
}

/* Runs over rows of matrices; a vector (1 x n) is cut into elements instead. */
void KERNEL(elementwise)(const cpu_part *part) {
    const device_matrix *shape = cpu_elementwise_shape(part->call);
    if (part->call->kernel == DEVICE_CLEAR) {
        if (shape->rows == 1) clear(shape, 0, part->first, part->count);
        for (int64_t r = 0; r < part->count && shape->rows > 1; r++)
            clear(shape, part->first + r, 0, shape->columns);
        return;
    }
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

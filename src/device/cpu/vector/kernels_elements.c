/* Element-wise kernels. Loops run over whole pieces, which compilers vectorise; the body and the
 * tail of a loop are the same operations. */
#include "device/cpu/kernels_sets.h"
#include "device/cpu/vector/philox.h"

#define ACTIVATION static inline
#define ACTIVATION_FMA LANES_FMA
#define activation_exp lanes_exp
#define activation_sigmoid lanes_sigmoid
#define activation_tanh lanes_tanh
#include "device/activations.h"

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
    const device_dropout_attributes *d = &c->attributes.dropout;
    int64_t before = c->attributes.element; /* of the rows before this one */
    if (d->whole == 0)
        before += row * m->columns;
    else
        before = (before / m->columns + row) * d->whole + d->first;
    uint64_t element = (uint64_t)(before + first);
    const uint32_t *own = bits + element % 4;
    for (int64_t i = 0; i < n + (int64_t)(element % 4); i += 4 * PHILOX)
        philox(key, (element + (uint64_t)i) / 4, bits + i);
    LANES_EACH(i, n) to[i] = (float)(int32_t)(own[i] >> 8) * 0x1p-24f >= p ? from[i] * keep : 0.0f;
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

/* The number by which a weight multiplies. */
static float weight_factor(const device_call *c) {
    float buffer[1];
    return lanes_read(buffer, &c->w[0], 0, 0, 1)[0];
}

/* Applies a forward kernel to a piece of its inputs a and b. */
static void forward(const device_call *c, int64_t r, int64_t at, int64_t n, const float *a,
                    const float *b, float *y) {
    const device_attributes *attributes = &c->attributes;
    switch (c->kernel) {
#define FORM(name, number) LANES_EACH(i, n) y[i] = name##_of(a[i], number)
#define DEVICE_ACTIVATION(NAME, name, number)                                                      \
    case DEVICE_##NAME: {                                                                          \
        const float its = number;                                                                  \
        FORM(name, its);                                                                           \
        return;                                                                                    \
    }
#define DEVICE_ACTIVATION_FORMS(NAME, name, which, one, other)                                     \
    case DEVICE_##NAME:                                                                            \
        if (which) {                                                                               \
            FORM(other, 0.0f);                                                                     \
        } else {                                                                                   \
            FORM(one, 0.0f);                                                                       \
        }                                                                                          \
        return;
#include "device/kernels.def"
#undef FORM
    case DEVICE_SILU_GATE:
        LANES_EACH(i, n) y[i] = a[i] * lanes_sigmoid(a[i]) * b[i];
        return;
    case DEVICE_SIGMOID_GATE:
        LANES_EACH(i, n) y[i] = lanes_sigmoid(a[i]) * b[i];
        return;
    case DEVICE_GELU_GATE:
        if (attributes->gelu.exact) {
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
    case DEVICE_SCALE:
        scale(a, y, n, scale_factor(c, c->y.dtype));
        return;
    case DEVICE_SCALE_BY:
        scale(a, y, n, weight_factor(c));
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
    const device_attributes *attributes = &c->attributes;
    switch (c->kernel) {
#define FORM(name, number) LANES_EACH(i, n) u[i] = name##_gradient(a[i], g[i], number)
#define DEVICE_ACTIVATION(NAME, name, number)                                                      \
    case DEVICE_##NAME##_BACKWARD: {                                                               \
        const float its = number;                                                                  \
        FORM(name, its);                                                                           \
        return;                                                                                    \
    }
#define DEVICE_ACTIVATION_FORMS(NAME, name, which, one, other)                                     \
    case DEVICE_##NAME##_BACKWARD:                                                                 \
        if (which) {                                                                               \
            FORM(other, 0.0f);                                                                     \
        } else {                                                                                   \
            FORM(one, 0.0f);                                                                       \
        }                                                                                          \
        return;
#include "device/kernels.def"
#undef FORM
    case DEVICE_SILU_GATE_BACKWARD:
        LANES_EACH(i, n) {
            float e = lanes_exp(-fabsf(a[i])), s = 1.0f / (1.0f + e), other = e * s;
            float sigmoid = a[i] < 0.0f ? other : s, scaled = g[i] * b[i], dv = g[i] * a[i];
            u[i] = scaled * (sigmoid + a[i] * (s * other));
            v[i] = dv * sigmoid;
        }
        return;
    case DEVICE_SIGMOID_GATE_BACKWARD:
        LANES_EACH(i, n) {
            float e = lanes_exp(-fabsf(a[i])), s = 1.0f / (1.0f + e), other = e * s;
            float du = g[i] * b[i] * (s * other), dv = g[i] * (a[i] < 0.0f ? other : s);
            u[i] = du;
            v[i] = dv;
        }
        return;
    case DEVICE_GELU_GATE_BACKWARD:
        gelu_gate_backward(attributes->gelu.exact, n, a, b, g, u, v);
        return;
    case DEVICE_MULTIPLY_BACKWARD:
        LANES_EACH(i, n) {
            float du = g[i] * b[i], dv = g[i] * a[i];
            u[i] = du;
            v[i] = dv;
        }
        return;
    case DEVICE_SCALE_BACKWARD:
        scale(g, u, n, scale_factor(c, c->dy.dtype));
        return;
    case DEVICE_SCALE_BY_BACKWARD:
        scale(g, u, n, weight_factor(c));
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

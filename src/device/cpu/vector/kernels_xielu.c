/* xIELU and its gradients, a piece of a row at a time. */
#include "device/cpu/kernels_sets.h"

/* Element i of a piece is added to sum i mod SUMS. */
enum { SUMS = 4 * LANES };

typedef struct xielu_numbers {
    float positive, negative, beta, epsilon;
} xielu_numbers;

/* torch.nn.functional.softplus is x above 20. */
static float softplus(float x) {
    return x > 20.0f ? x : (float)log1p(exp((double)x));
}

static float in_type(float x, base_dtype type) {
    if (type == BASE_BF16) return base_bf16_to_float(base_bf16_from_float(x));
    return type == BASE_FP16 ? base_half_to_float(base_half_from_float(x)) : x;
}

static xielu_numbers numbers_of(const device_call *c) {
    float w[2], beta = in_type(c->attributes.xielu.beta, c->x[0].dtype);
    for (int i = 0; i < 2; i++) lanes_load(&w[i], &c->w[i], 0, 0, 1);
    return (xielu_numbers){softplus(w[0]), beta + softplus(w[1]), beta,
                           in_type(c->attributes.xielu.epsilon, c->x[0].dtype)};
}

/* e^min(x, epsilon) - 1 - x */
static inline float curve(float x, float epsilon) {
    return lanes_expm1(x < epsilon ? x : epsilon) - x;
}

static void apply(const xielu_numbers *by, float *restrict y, const float *restrict x, int64_t n) {
    const xielu_numbers a = *by;
    LANES_EACH(i, n) {
        float above = a.positive * x[i] * x[i], below = a.negative * curve(x[i], a.epsilon);
        y[i] = (x[i] > 0.0f ? above : below) + a.beta * x[i];
    }
}

static void slopes(const xielu_numbers *by, float *restrict dx, const float *restrict x,
                   const float *restrict dy, int64_t n) {
    const xielu_numbers a = *by;
    LANES_EACH(i, n) {
        float bent = x[i] < a.epsilon ? lanes_expm1(x[i]) : -1.0f;
        float slope = x[i] > 0.0f ? 2.0f * a.positive * x[i] : a.negative * bent;
        dx[i] = dy[i] * (slope + a.beta);
    }
}

static inline void add_terms(float *restrict above, float *restrict below, const float *restrict x,
                             const float *restrict dy, float epsilon, int64_t n) {
    for (int64_t at = 0; at < n; at += SUMS) {
        int64_t left = n - at < SUMS ? n - at : SUMS;
        LANES_EACH(l, left) {
            float value = x[at + l], times = dy[at + l];
            above[l] += value > 0.0f ? times * (value * value) : 0.0f;
            below[l] += value > 0.0f ? 0.0f : times * curve(value, epsilon);
        }
    }
}

static double fold(const float *sums) {
    float sixteen[LANES];
    for (int l = 0; l < LANES; l++)
        sixteen[l] = (sums[l] + sums[l + LANES]) + (sums[l + 2 * LANES] + sums[l + 3 * LANES]);
    return (double)lanes_fold(sixteen);
}

/* A row of a backward call, and its terms of the weights' gradients. */
static void back(const device_call *c, const xielu_numbers *by, int64_t r, double sums[2]) {
    float x[PIECE], dy[PIECE], dx[PIECE], above[SUMS] = {0}, below[SUMS] = {0};
    bool wanted = c->dx[0].dtype != BASE_NONE;
    for (int64_t at = 0; at < c->x[0].columns; at += PIECE) {
        int64_t n = c->x[0].columns - at < PIECE ? c->x[0].columns - at : PIECE;
        lanes_load(x, &c->x[0], r, at, n);
        lanes_load(dy, &c->dy, r, at, n);
        if (sums) add_terms(above, below, x, dy, by->epsilon, n);
        if (wanted) {
            slopes(by, dx, x, dy, n);
            lanes_store_gradient(c, 0, r, at, n, dx);
        }
    }
    if (sums) sums[0] += fold(above), sums[1] += fold(below);
}

void KERNEL(xielu)(const cpu_part *part) {
    const device_call *c = part->call;
    const xielu_numbers by = numbers_of(c);
    double sums[2] = {0, 0};
    float x[PIECE], y[PIECE];
    for (int64_t r = part->first; r < part->first + part->count; r++) {
        if (c->kernel == DEVICE_XIELU_BACKWARD) {
            back(c, &by, r, part->sums ? sums : NULL);
            continue;
        }
        for (int64_t at = 0; at < c->x[0].columns; at += PIECE) {
            int64_t n = c->x[0].columns - at < PIECE ? c->x[0].columns - at : PIECE;
            apply(&by, y, lanes_read(x, &c->x[0], r, at, n), n);
            lanes_store(&c->y, r, at, n, y);
        }
    }
    for (int i = 0; part->sums && i < 2; i++) part->sums[i] = (float)sums[i];
}

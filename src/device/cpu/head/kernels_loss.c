#include "device/cpu/head/kernels_loss.h"

#include "base/checked.h"
#include "device/cpu/lanes.h"
#include "device/cpu/simd.h"

#define LOG2_E 1.44269504f

static void loss_statistics(const float *logits, int64_t columns, float out[2]) {
    float largest = logits[0];
    int64_t whole = columns / VECTOR * VECTOR;
    if (whole > 0) {
        vector most[2] = {vector_load(logits), vector_load(logits)};
        for (int64_t c = 0; c < whole; c += VECTOR)
            most[c / VECTOR & 1] = vector_max(most[c / VECTOR & 1], vector_load(logits + c));
        float values[VECTOR];
        vector_store(values, vector_max(most[0], most[1]));
        for (int i = 0; i < VECTOR; i++) largest = values[i] > largest ? values[i] : largest;
    }
    for (int64_t c = whole; c < columns; c++) largest = logits[c] > largest ? logits[c] : largest;
    vector shift = vector_set(largest), factor = vector_set(LOG2_E), sum = vector_set(0.0f);
    for (int64_t c = 0; c < columns; c += VECTOR) {
        int64_t n = base_min_i64(VECTOR, columns - c);
        vector v = n == VECTOR ? vector_load(logits + c) : vector_load_part(logits + c, n);
        v = vector_exp2(vector_mul(vector_sub(v, shift), factor));
        if (n < VECTOR) {
            float values[VECTOR];
            vector_store(values, v);
            v = vector_load_part(values, n);
        }
        sum = vector_add(sum, v);
    }
    out[0] = largest;
    out[1] = vector_sum(sum);
}

VECTOR_INLINE vector probabilities(const float *logits, int64_t n, float log_sum) {
    vector v = n == VECTOR ? vector_load(logits) : vector_load_part(logits, n);
    return vector_exp2(vector_mul(vector_sub(v, vector_set(log_sum)), vector_set(LOG2_E)));
}

/* The gradient at the label, which the loop below would round twice. */
static float label_gradient(float logit, float log_sum, float scale) {
    float row[VECTOR];
    vector_store(row, probabilities(&logit, 1, log_sum));
    return (row[0] - 1.0f) * scale;
}

static void loss_gradient_fp32(const float *logits, int64_t columns, float log_sum, int64_t label,
                               float scale, float *to) {
    float own = label < 0 ? 0.0f : label_gradient(logits[label], log_sum, scale);
    for (int64_t c = 0; c < columns; c += VECTOR) {
        int64_t n = base_min_i64(VECTOR, columns - c);
        vector v = vector_mul(probabilities(logits + c, n, log_sum), vector_set(scale));
        if (n == VECTOR)
            vector_store(to + c, v);
        else
            vector_store_part(to + c, v, n);
    }
    if (label >= 0) to[label] = own;
}

static void loss_gradient_bf16(const float *logits, int64_t columns, float log_sum, int64_t label,
                               float scale, uint16_t *to) {
    float own = label < 0 ? 0.0f : label_gradient(logits[label], log_sum, scale);
    for (int64_t c = 0; c < columns; c += VECTOR) {
        int64_t n = base_min_i64(VECTOR, columns - c);
        vector v = vector_mul(probabilities(logits + c, n, log_sum), vector_set(scale));
        if (n == VECTOR)
            vector_store_bf16(to + c, v);
        else
            vector_store_bf16_part(to + c, v, n);
    }
    if (label >= 0) to[label] = vector_to_bf16(own);
}

static void loss_shape(float *logits, int64_t columns, const float *bias,
                       const cpu_logits_shape *shape) {
    float scale = shape->scale, cap = shape->softcap;
    if (bias) {
        LANES_EACH(i, columns) logits[i] = scale * (logits[i] + bias[i]);
    } else {
        LANES_EACH(i, columns) logits[i] = scale * logits[i];
    }
    if (cap > 0) {
        LANES_EACH(i, columns) logits[i] = cap * lanes_tanh(logits[i] / cap);
    }
}

static void store_bf16(uint16_t *to, const float *from, int64_t count) {
    for (int64_t i = 0; i < count; i++) to[i] = vector_to_bf16(from[i]);
}

static void loss_shaped_gradient(const float *logits, int64_t columns, float log_sum, int64_t label,
                                 float scale, const cpu_logits_shape *shape, float *sums,
                                 base_dtype dtype, void *to) {
    float g[PIECE], cap = shape->softcap, factor = shape->scale;
    for (int64_t at = 0; at < columns; at += PIECE) {
        int64_t n = base_min_i64(PIECE, columns - at), own = label - at;
        const float *from = logits + at;
        loss_gradient_fp32(from, n, log_sum, own >= 0 && own < n ? own : -1, scale, g);
        if (cap > 0) {
            LANES_EACH(i, n) {
                float t = from[i] / cap;
                g[i] *= factor * (1.0f - t * t);
            }
        } else {
            LANES_EACH(i, n) g[i] *= factor;
        }
        LANES_EACH(i, n) sums[at + i] += g[i];
        if (dtype == BASE_BF16)
            store_bf16((uint16_t *)to + at, g, n);
        else
            memcpy((float *)to + at, g, (size_t)n * sizeof *g);
    }
}

/* kernels_targets.c */
void KERNEL(targets_rows)(const cpu_targets *targets, int64_t first, int64_t count);
void KERNEL(targets_weights)(const cpu_targets *targets, int64_t column, int64_t at, int64_t n);

extern const cpu_loss_kernels KERNEL_NAME(cpu_loss_kernels);
const cpu_loss_kernels KERNEL_NAME(cpu_loss_kernels) = {
    .statistics = loss_statistics,
    .gradient_fp32 = loss_gradient_fp32,
    .gradient_bf16 = loss_gradient_bf16,
    .shape = loss_shape,
    .shaped_gradient = loss_shaped_gradient,
    .targets_rows = KERNEL(targets_rows),
    .targets_weights = KERNEL(targets_weights),
};

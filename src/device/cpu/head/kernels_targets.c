/* Heads with numbers as targets. They have few columns, so products run a column at a time. */
#include "base/checked.h"
#include "device/cpu/head/kernels_loss.h"
#include "device/cpu/lanes.h"

static float dot(const float *a, const float *b, int64_t n) {
    float sums[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) sums[l] = LANES_FMA(a[i + l], b[i + l], sums[l]);
    for (int l = 0; i + l < n; l++) sums[l] = LANES_FMA(a[i + l], b[i + l], sums[l]);
    return lanes_fold(sums);
}

/* Writes x w^T to `logits`, in pieces of the row. */
static void products(const device_call *c, int64_t row, float *logits) {
    float xs[PIECE], ws[PIECE];
    int64_t width = c->x[0].columns, columns = c->w[0].rows;
    for (int64_t at = 0; at < width; at += PIECE) {
        int64_t n = base_min_i64(PIECE, width - at);
        const float *x = lanes_read(xs, &c->x[0], row, at, n);
        for (int64_t j = 0; j < columns; j++) {
            float sum = dot(x, lanes_read(ws, &c->w[0], j, at, n), n);
            logits[j] = at == 0 ? sum : logits[j] + sum;
        }
    }
}

/* The loss of one logit; *slope is its derivative. */
static float square_error(float logit, float target, float *slope) {
    float error = logit - target;
    *slope = 2.0f * error;
    return error * error;
}

/* max(l, 0) - l t + log(1 + e^-|l|) */
static float binary_entropy(float logit, float target, float *slope) {
    float e = expf(-fabsf(logit)), s = 1.0f / (1.0f + e);
    *slope = (logit < 0.0f ? e * s : s) - target;
    return (fmaxf(logit, 0.0f) - logit * target) + log1pf(e);
}

/* The mean loss of a row. Replaces its logits by their gradients. */
static float row_loss(const cpu_targets *t, int64_t row, float *logits) {
    const device_call *c = t->call;
    const device_matrix *targets = &c->x[1];
    const float *target = (const float *)targets->data + row * targets->stride;
    int64_t columns = c->w[0].rows;
    float scale = t->backward ? c->step->gradient_scale / (float)columns : 0.0f, bias = 0.0f;
    double sum = 0;
    for (int64_t j = 0; j < columns; j++) {
        float slope;
        if (c->w[1].dtype != BASE_NONE) lanes_load(&bias, &c->w[1], 0, j, 1);
        sum += (double)(t->multilabel ? binary_entropy(logits[j] + bias, target[j], &slope)
                                      : square_error(logits[j] + bias, target[j], &slope));
        logits[j] = slope * scale;
    }
    return (float)(sum / (double)columns);
}

static void row_dx(const device_call *c, int64_t row, const float *gradients) {
    float ws[PIECE], sums[PIECE];
    int64_t width = c->x[0].columns;
    for (int64_t at = 0; at < width; at += PIECE) {
        int64_t n = base_min_i64(PIECE, width - at);
        for (int64_t i = 0; i < n; i++) sums[i] = 0;
        for (int64_t j = 0; j < c->w[0].rows; j++) {
            const float *w = lanes_read(ws, &c->w[0], j, at, n);
            LANES_EACH(i, n) sums[i] = LANES_FMA(gradients[j], w[i], sums[i]);
        }
        lanes_store_gradient(c, 0, row, at, n, sums);
    }
}

void KERNEL(targets_rows)(const cpu_targets *targets, int64_t first, int64_t count);
void KERNEL(targets_weights)(const cpu_targets *targets, int64_t column, int64_t at, int64_t n);

void KERNEL(targets_rows)(const cpu_targets *t, int64_t first, int64_t count) {
    const device_call *c = t->call;
    for (int64_t i = first; i < first + count; i++) {
        float *logits = t->gradients + i * c->w[0].rows;
        int64_t row = t->rows[i];
        products(c, row, logits);
        ((float *)c->y.data)[row * c->y.stride] = row_loss(t, row, logits);
        if (t->backward) row_dx(c, row, logits);
    }
}

void KERNEL(targets_weights)(const cpu_targets *t, int64_t column, int64_t at, int64_t n) {
    const device_call *c = t->call;
    float xs[PIECE], sums[PIECE] = {0}, bias = 0;
    for (int64_t r = 0; r < t->count; r++) {
        float g = t->gradients[r * c->w[0].rows + column];
        bias += g;
        if (c->dw[0].dtype == BASE_NONE) continue;
        const float *x = lanes_read(xs, &c->x[0], t->rows[r], at, n);
        LANES_EACH(i, n) sums[i] = LANES_FMA(g, x[i], sums[i]);
    }
    if (c->dw[0].dtype != BASE_NONE) {
        float *dw = (float *)c->dw[0].data + column * c->dw[0].stride + at;
        for (int64_t i = 0; i < n; i++) dw[i] = t->add ? dw[i] + sums[i] : sums[i];
    }
    if (c->dw[1].dtype == BASE_NONE || at > 0) return;
    float *db = (float *)c->dw[1].data + column;
    *db = t->add ? *db + bias : bias;
}

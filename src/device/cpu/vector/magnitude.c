#include "device/cpu/vector/magnitude.h"

#include <math.h>

#include "base/checked.h"
#include "base/half.h"
#include "device/magnitude_order.h"

enum {
    LANES = MAGNITUDE_LANES,
    CHUNK = MAGNITUDE_LANES * MAGNITUDE_RUN,
    NORMS = 16,
    COLUMNS = 64,
    ROWS = 16
};

static float value_at(const device_matrix *m, int64_t row, int64_t column) {
    int64_t at = row * m->stride + column;
    if (m->dtype == BASE_FP32) return ((const float *)m->data)[at];
    uint16_t narrow = ((const uint16_t *)m->data)[at];
    return m->dtype == BASE_BF16 ? base_bf16_to_float(narrow) : base_half_to_float(narrow);
}

static void put_at(const device_matrix *m, int64_t row, int64_t column, float value) {
    int64_t at = row * m->stride + column;
    if (m->dtype == BASE_FP32)
        ((float *)m->data)[at] = value;
    else
        ((uint16_t *)m->data)[at] =
            m->dtype == BASE_BF16 ? base_bf16_from_float(value) : base_half_from_float(value);
}

/* Elements first ... first + count - 1 of row `row` of w0, or of its transpose. */
static void read_weights(const device_call *c, int64_t row, int64_t first, int64_t count,
                         float *out) {
    bool transposed = c->attributes.magnitude.transposed;
    for (int64_t i = 0; i < count; i++)
        out[i] =
            transposed ? value_at(&c->w[0], first + i, row) : value_at(&c->w[0], row, first + i);
}

static double fold_lanes(double lanes[LANES]) {
    for (int apart = LANES / 2; apart > 0; apart /= 2)
        for (int l = 0; l < apart; l++) lanes[l] += lanes[l + apart];
    return lanes[0];
}

/* Norms of a few rows, or the squares of these, chunk by chunk, so that the chunk of x1 is read
 * once for all of them. */
static void find_norms(void *argument, int64_t tile, int thread) {
    const device_call *c = argument;
    const device_matrix *a = &c->x[1], *b = &c->x[2];
    int64_t first = tile * NORMS, rows = base_min_i64(NORMS, b->rows - first);
    double lanes[NORMS][LANES] = {{0}};
    float values[NORMS][CHUNK], factor[CHUNK];
    (void)thread;
    for (int64_t at = 0; at < a->columns; at += CHUNK) {
        int64_t count = base_min_i64(CHUNK, a->columns - at);
        for (int64_t r = 0; r < rows; r++) read_weights(c, first + r, at, count, values[r]);
        for (int64_t k = 0; k < a->rows; k++) {
            for (int64_t i = 0; i < count; i++) factor[i] = value_at(a, k, at + i);
            for (int64_t r = 0; r < rows; r++) {
                float share = c->attributes.magnitude.scale * value_at(b, first + r, k);
                for (int64_t i = 0; i < count; i++) values[r][i] += share * factor[i];
            }
        }
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < count; i++)
                lanes[r][i / MAGNITUDE_RUN] += (double)values[r][i] * (double)values[r][i];
    }
    bool squares = c->y.dtype == BASE_NONE;
    float *out = c->saved[0].data;
    for (int64_t r = 0; r < rows; r++) {
        double sum = fold_lanes(lanes[r]);
        out[first + r] = (float)(squares ? sum : sqrt(sum));
    }
}

/* 0 / 0 of a column that stands for none. */
static float divide(float value, float norm) {
    return value == 0 && norm == 0 ? 0 : value / norm;
}

static float ratio_at(const device_call *c, int64_t column) {
    return divide(value_at(&c->w[1], 0, column), ((const float *)c->saved[0].data)[column]);
}

static void scale_rows(void *argument, int64_t tile, int thread) {
    const device_call *c = argument;
    bool backward = c->kernel == DEVICE_MAGNITUDE_BACKWARD, biased = c->x[3].dtype != BASE_NONE;
    const device_matrix *from = backward ? &c->dy : &c->x[0], *to = backward ? &c->dx[0] : &c->y;
    int64_t first = tile * ROWS, end = base_min_i64(first + ROWS, from->rows);
    (void)thread;
    for (int64_t column = 0; column < from->columns; column++) {
        float ratio = ratio_at(c, column);
        float bias = biased && !backward ? value_at(&c->x[3], 0, column) : 0;
        bool adds = backward && c->accumulate[0];
        for (int64_t r = first; r < end; r++) {
            float other = adds ? value_at(to, r, column) : bias;
            put_at(to, r, column, value_at(from, r, column) * ratio + other);
        }
    }
}

static void sum_columns(void *argument, int64_t tile, int thread) {
    const device_call *c = argument;
    const device_matrix *x = &c->x[0], *dy = &c->dy, *dw = &c->dw[1];
    int64_t first = tile * COLUMNS, count = base_min_i64(COLUMNS, x->columns - first);
    float sums[COLUMNS] = {0};
    (void)thread;
    for (int64_t part = 0; part < x->rows; part += MAGNITUDE_PART) {
        int64_t end = base_min_i64(part + MAGNITUDE_PART, x->rows);
        float own[COLUMNS] = {0};
        for (int64_t r = part; r < end; r++)
            for (int64_t i = 0; i < count; i++)
                own[i] += value_at(dy, r, first + i) * value_at(x, r, first + i);
        for (int64_t i = 0; i < count; i++) sums[i] += own[i];
    }
    for (int64_t i = 0; i < count; i++) {
        float *to = (float *)dw->data + first + i;
        float sum = divide(sums[i], ((const float *)c->saved[0].data)[first + i]);
        *to = c->accumulate_dw ? *to + sum : sum;
    }
}

sifr_status cpu_run_magnitude(device *dev, const device_call *call, sifr_error *error) {
    void *argument = (void *)(uintptr_t)call;
    (void)error;
    const float *squares = call->x[4].dtype == BASE_NONE ? NULL : call->x[4].data;
    int64_t columns = call->saved[0].rows;
    for (int64_t o = 0; squares && o < columns; o++)
        ((float *)call->saved[0].data)[o] = sqrtf(squares[o]);
    if (!squares) host_parallel(dev->team, (columns + NORMS - 1) / NORMS, find_norms, argument);
    if (call->y.dtype == BASE_NONE) return SIFR_OK;
    host_parallel(dev->team, (call->y.rows + ROWS - 1) / ROWS, scale_rows, argument);
    return SIFR_OK;
}

sifr_status cpu_run_magnitude_backward(device *dev, const device_call *call, sifr_error *error) {
    void *argument = (void *)(uintptr_t)call;
    (void)error;
    if (call->dx[0].dtype != BASE_NONE)
        host_parallel(dev->team, (call->dy.rows + ROWS - 1) / ROWS, scale_rows, argument);
    if (call->dw[1].dtype != BASE_NONE)
        host_parallel(dev->team, (call->dy.columns + COLUMNS - 1) / COLUMNS, sum_columns, argument);
    return SIFR_OK;
}

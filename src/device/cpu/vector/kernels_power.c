/* PowerSGD's kernels (device/kernels/products.def). Sums over columns go by pieces of COLUMNS, sums
 * over rows by pieces of ROWS, each piece from zero: long sums in fp32 would lose digits. */
#include "base/random.h"
#include "device/cpu/kernels_sets.h"

enum { COLUMNS = 1024, ROWS = 256, TILE = 256 };

static float *row_of(const device_matrix *m, int64_t row) {
    return (float *)m->data + row * m->stride;
}

static float dot(const float *a, const float *b, int64_t count) {
    float sums[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int l = 0; l < LANES; l++) sums[l] += a[i + l] * b[i + l];
    for (int l = 0; i < count; i++, l++) sums[l] += a[i] * b[i];
    for (int l = 0; l < LANES; l++) sum += sums[l];
    return sum;
}

static double long_dot(const float *a, const float *b, int64_t count) {
    enum { DOUBLES = 8 };
    double sums[DOUBLES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + DOUBLES <= count; i += DOUBLES)
        for (int l = 0; l < DOUBLES; l++) sums[l] += (double)a[i + l] * (double)b[i + l];
    for (int l = 0; i < count; i++, l++) sums[l] += (double)a[i] * (double)b[i];
    for (int l = 0; l < DOUBLES; l++) sum += sums[l];
    return sum;
}

/* Rows first ... first + count - 1 of M. */
static void left(const device_call *c, int64_t first, int64_t count) {
    const device_matrix *m = &c->x[0];
    for (int64_t i = first; i < first + count; i++) {
        for (int64_t k = 0; k < c->y.rows; k++) row_of(&c->y, k)[i] = 0;
        for (int64_t j = 0; j < m->columns; j += COLUMNS) {
            int64_t piece = m->columns - j < COLUMNS ? m->columns - j : COLUMNS;
            for (int64_t k = 0; k < c->y.rows; k++)
                row_of(&c->y, k)[i] += dot(row_of(m, i) + j, row_of(&c->x[1], k) + j, piece);
        }
    }
}

/* sums += a x, a a number. */
static void add_times(float *restrict sums, const float *restrict x, float a, int64_t count) {
    for (int64_t j = 0; j < count; j++) sums[j] += a * x[j];
}

/* Columns first ... first + count - 1 of M, at most TILE of them. */
static void right(const device_call *c, int64_t first, int64_t count) {
    const device_matrix *m = &c->x[0];
    float sums[TILE];
    for (int64_t k = 0; k < c->y.rows; k++)
        memset(row_of(&c->y, k) + first, 0, (size_t)count * sizeof(float));
    for (int64_t i = 0; i < m->rows; i += ROWS) {
        int64_t end = m->rows - i < ROWS ? m->rows : i + ROWS;
        for (int64_t k = 0; k < c->y.rows; k++) {
            const float *p = row_of(&c->x[1], k);
            memset(sums, 0, sizeof sums);
            for (int64_t r = i; r < end; r++) add_times(sums, row_of(m, r) + first, p[r], count);
            add_times(row_of(&c->y, k) + first, sums, 1, count);
        }
    }
}

/* --- bases --- */

static void draw(const device_call *c, int64_t k) {
    const device_power_attributes *a = &c->attributes.power;
    float *to = row_of(&c->y, k);
    base_random4 key = base_philox(a->seed, (uint64_t)c->step->step,
                                   (uint64_t)(uint32_t)a->weight << 32 | (uint64_t)k);
    uint64_t own = (uint64_t)key.v[0] << 32 | key.v[1];
    for (int64_t i = 0; i < c->y.columns; i++) to[i] = (float)base_normal(own, (uint64_t)i);
}

/* Takes the rows before it out of row k. False: nothing of it is left. */
static bool project(const device_call *c, int64_t k) {
    const double least = 1e-6; /* of its norm: below are the rounding errors of fp32 */
    int64_t n = c->y.columns;
    float *row = row_of(&c->y, k);
    double before = sqrt(long_dot(row, row, n));
    if (before == 0) return false;
    for (int round = 0; round < 2; round++)
        for (int64_t j = 0; j < k; j++) {
            const float *other = row_of(&c->y, j);
            add_times(row, other, -(float)long_dot(row, other, n), n);
        }
    double after = sqrt(long_dot(row, row, n));
    if (after <= least * before) return false;
    double factor = 1 / (after + (double)c->attributes.power.epsilon);
    for (int64_t i = 0; i < n; i++) row[i] = (float)((double)row[i] * factor);
    return true;
}

static void base(const device_call *c) {
    const device_power_attributes *a = &c->attributes.power;
    for (int64_t k = 0; k < c->y.rows; k++) {
        if (a->draws && a->fresh) draw(c, k);
        if (project(c, k)) continue;
        if (a->draws) draw(c, k);
        if (a->draws && project(c, k)) continue;
        memset(row_of(&c->y, k), 0, (size_t)c->y.columns * sizeof(float));
    }
}

/* --- what the factors stand for --- */

/* Elements first ... first + count - 1 of the product, which lie in one of its rows. */
static void build_in_row(const device_call *c, int64_t first, int64_t count, float *restrict to) {
    int64_t columns = c->x[1].columns, row = first / columns, at = first - row * columns;
    memset(to, 0, (size_t)count * sizeof *to);
    for (int64_t k = 0; k < c->x[0].rows; k++)
        add_times(to, row_of(&c->x[1], k) + at, row_of(&c->x[0], k)[row], count);
}

static int64_t in_row(const device_call *c, int64_t first, int64_t end) {
    int64_t columns = c->x[1].columns, stop = (first / columns + 1) * columns;
    return (stop < end ? stop : end) - first;
}

static void build(const device_call *c, int64_t first, int64_t count) {
    int64_t begin = c->attributes.power.first;
    float *to = row_of(&c->y, 0);
    for (int64_t i = first, n; i < first + count; i += n) {
        n = in_row(c, begin + i, begin + first + count);
        build_in_row(c, begin + i, n, to + i);
    }
}

static void note_error(float *restrict error, const float *restrict m, const float *restrict g,
                       float share, float unscale, int64_t count) {
    for (int64_t i = 0; i < count; i++) error[i] = (m[i] - g[i] * share) * unscale;
}

static void keep(const device_call *c, int64_t first, int64_t count) {
    float product[PIECE], *m = row_of(&c->y, 0);
    float *error = c->saved[0].dtype == BASE_NONE ? NULL : row_of(&c->saved[0], 0);
    float share = 1.0f / (float)c->attributes.power.ranks, unscale = 1.0f / c->step->loss_scale;
    for (int64_t i = first, n; i < first + count; i += n) {
        n = in_row(c, i, first + count);
        if (n > PIECE) n = PIECE;
        build_in_row(c, i, n, product);
        if (error) note_error(error + i, m + i, product, share, unscale, n);
        memcpy(m + i, product, (size_t)n * sizeof *m);
    }
}

void KERNEL(power)(const cpu_part *part) {
    const device_call *c = part->call;
    switch (c->kernel) {
    case DEVICE_POWER_LEFT:
        left(c, part->first, part->count);
        return;
    case DEVICE_POWER_RIGHT:
        right(c, part->first, part->count);
        return;
    case DEVICE_POWER_BASE:
        base(c);
        return;
    case DEVICE_POWER_BUILD:
        build(c, part->first, part->count);
        return;
    case DEVICE_POWER_KEEP:
        keep(c, part->first, part->count);
        return;
    default: /* DEVICE_POWER_ADD */
        add_times(row_of(&c->y, 0) + part->first, row_of(&c->x[0], 0) + part->first,
                  c->step->loss_scale, part->count);
    }
}

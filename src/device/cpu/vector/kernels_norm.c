/* Layer norm and RMS norm, a row at a time. */
#include "device/cpu/kernels_sets.h"

static inline int64_t piece_of(int64_t columns, int64_t first) {
    return columns - first < PIECE ? columns - first : PIECE;
}

/* Sums go into this many partial ones, element i into number i mod SUMS: enough that additions do
 * not wait for each other. */
enum { SUMS = 4 * LANES };

static inline void sum_values(float *restrict sums, const float *restrict x, int64_t n) {
    int64_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (int l = 0; l < SUMS; l++) sums[l] += x[i + l];
    for (int l = 0; i + l < n; l++) sums[l] += x[i + l];
}

static inline void sum_squares(float *restrict sums, const float *restrict x, float mean,
                               int64_t n) {
    int64_t i = 0;
    for (; i + SUMS <= n; i += SUMS) {
        for (int l = 0; l < SUMS; l++) {
            float d = x[i + l] - mean;
            sums[l] = LANES_FMA(d, d, sums[l]);
        }
    }
    for (int l = 0; i + l < n; l++) {
        float d = x[i + l] - mean;
        sums[l] = LANES_FMA(d, d, sums[l]);
    }
}

static inline float fold_sums(const float *sums) {
    float sixteen[LANES];
    for (int l = 0; l < LANES; l++)
        sixteen[l] = (sums[l] + sums[l + LANES]) + (sums[l + 2 * LANES] + sums[l + 3 * LANES]);
    return lanes_fold(sixteen);
}

static float row_mean(const device_matrix *x, int64_t row) {
    float buffer[PIECE], sums[SUMS] = {0};
    for (int64_t at = 0; at < x->columns; at += PIECE) {
        int64_t n = piece_of(x->columns, at);
        sum_values(sums, lanes_read(buffer, x, row, at, n), n);
    }
    return fold_sums(sums) / (float)x->columns;
}

static float row_variance(const device_matrix *x, int64_t row, float mean) {
    float buffer[PIECE], sums[SUMS] = {0};
    for (int64_t at = 0; at < x->columns; at += PIECE) {
        int64_t n = piece_of(x->columns, at);
        sum_squares(sums, lanes_read(buffer, x, row, at, n), mean, n);
    }
    return fold_sums(sums) / (float)x->columns;
}

void KERNEL(norm)(const cpu_part *part) {
    const device_call *c = part->call;
    int64_t columns = c->x[0].columns;
    bool layer = c->kernel == DEVICE_LAYER_NORM, biased = c->w[1].dtype != BASE_NONE;
    float *saved = c->saved[0].data;
    float xs[PIECE], ws[PIECE], bs[PIECE], ys[PIECE];
    for (int64_t r = part->first; r < part->first + part->count; r++) {
        float mean = layer ? row_mean(&c->x[0], r) : 0.0f;
        float scale = 1.0f / sqrtf(row_variance(&c->x[0], r, mean) + c->attributes.norm.epsilon);
        for (int64_t at = 0; at < columns; at += PIECE) {
            int64_t n = piece_of(columns, at);
            const float *x = lanes_read(xs, &c->x[0], r, at, n);
            const float *w = lanes_read(ws, &c->w[0], 0, at, n);
            float *y = lanes_place(ys, &c->y, r, at);
            if (biased) {
                const float *b = lanes_read(bs, &c->w[1], 0, at, n);
                LANES_EACH(i, n) y[i] = LANES_FMA((x[i] - mean) * scale, w[i], b[i]);
            } else {
                LANES_EACH(i, n) y[i] = (x[i] - mean) * scale * w[i];
            }
            lanes_written(&c->y, r, at, n, y);
        }
        if (layer) {
            saved[2 * r] = mean;
            saved[2 * r + 1] = scale;
        } else {
            saved[r] = scale;
        }
    }
}

/* With normal = (x - mean) scale and g = w dy: dx = scale (g - mean(g) - normal mean(g normal));
 * RMS norm lacks the first mean. dw = sum dy normal, db = sum dy, into part->sums. */
void KERNEL(norm_backward)(const cpu_part *part) {
    const device_call *c = part->call;
    int64_t columns = c->x[0].columns;
    bool layer = c->kernel == DEVICE_LAYER_NORM_BACKWARD;
    const float *saved = c->saved[0].data;
    float xs[PIECE], ws[PIECE], dys[PIECE], g[PIECE], gn[PIECE], dxs[PIECE];
    for (int64_t r = part->first; r < part->first + part->count; r++) {
        float mean = layer ? saved[2 * r] : 0, scale = layer ? saved[2 * r + 1] : saved[r];
        float sum_g[SUMS] = {0}, sum_gn[SUMS] = {0};
        for (int64_t at = 0; at < columns; at += PIECE) {
            int64_t n = piece_of(columns, at);
            const float *x = lanes_read(xs, &c->x[0], r, at, n);
            const float *w = lanes_read(ws, &c->w[0], 0, at, n);
            const float *dy = lanes_read(dys, &c->dy, r, at, n);
            float *dw = part->sums + at, *db = part->sums + columns + at;
            LANES_EACH(i, n) {
                float normal = (x[i] - mean) * scale;
                dw[i] = LANES_FMA(dy[i], normal, dw[i]);
                g[i] = w[i] * dy[i];
                gn[i] = g[i] * normal;
            }
            if (layer) {
                LANES_EACH(i, n) db[i] += dy[i];
                sum_values(sum_g, g, n);
            }
            sum_values(sum_gn, gn, n);
        }
        if (c->dx[0].dtype == BASE_NONE) continue;
        float mean_g = layer ? fold_sums(sum_g) / (float)columns : 0;
        float mean_gn = fold_sums(sum_gn) / (float)columns;
        for (int64_t at = 0; at < columns; at += PIECE) {
            int64_t n = piece_of(columns, at);
            const float *x = lanes_read(xs, &c->x[0], r, at, n);
            const float *w = lanes_read(ws, &c->w[0], 0, at, n);
            const float *dy = lanes_read(dys, &c->dy, r, at, n);
            float *dx = lanes_gradient_place(dxs, c, 0, r, at);
            LANES_EACH(i, n) {
                float normal = (x[i] - mean) * scale;
                dx[i] = scale * (LANES_FMA(-normal, mean_gn, w[i] * dy[i]) - mean_g);
            }
            lanes_gradient_written(c, 0, r, at, n, dx);
        }
    }
}

/* Layer norm and RMS norm, one row, or one group of its columns, at a time. */
#include "device/cpu/kernels_sets.h"

static inline int64_t piece_of(int64_t columns, int64_t first) {
    return columns - first < PIECE ? columns - first : PIECE;
}

/* The number of partial sums. Element i is added to sum i mod SUMS. These are enough for additions
 * not to wait for each other. */
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

/* A group of columns of a row, normalised separately, and the row of its weights. */
typedef struct group {
    const device_matrix *x;
    int64_t row, first, columns, weights;
} group;

static group group_of(const device_call *c, int64_t first_row, int64_t g, int64_t groups,
                      int64_t columns) {
    int64_t own = c->w[0].rows > 1 ? g % groups : 0;
    return (group){&c->x[0], first_row + g / groups, g % groups * columns, columns, own};
}

static float group_mean(group of) {
    float buffer[PIECE], sums[SUMS] = {0};
    for (int64_t at = 0; at < of.columns; at += PIECE) {
        int64_t n = piece_of(of.columns, at);
        sum_values(sums, lanes_read(buffer, of.x, of.row, of.first + at, n), n);
    }
    return fold_sums(sums) / (float)of.columns;
}

static float group_variance(group of, float mean) {
    float buffer[PIECE], sums[SUMS] = {0};
    for (int64_t at = 0; at < of.columns; at += PIECE) {
        int64_t n = piece_of(of.columns, at);
        sum_squares(sums, lanes_read(buffer, of.x, of.row, of.first + at, n), mean, n);
    }
    return fold_sums(sums) / (float)of.columns;
}

/* The scale of a piece: the weight, 1 + weight, or 1 where there is none. */
static const float *read_scale(float *buffer, const device_call *c, int64_t row, int64_t at,
                               int64_t n) {
    if (c->w[0].dtype == BASE_NONE) {
        LANES_EACH(i, n) buffer[i] = 1.0f;
        return buffer;
    }
    const float *w = lanes_read(buffer, &c->w[0], row, at, n);
    if (!c->attributes.norm.plus_one) return w;
    LANES_EACH(i, n) buffer[i] = 1.0f + w[i];
    return buffer;
}

static void norm_group(const device_call *c, group of, float mean, float scale) {
    bool biased = c->w[1].dtype != BASE_NONE;
    float xs[PIECE], ws[PIECE], bs[PIECE], ys[PIECE];
    for (int64_t at = 0; at < of.columns; at += PIECE) {
        int64_t n = piece_of(of.columns, at), place = of.first + at;
        const float *x = lanes_read(xs, of.x, of.row, place, n);
        const float *w = read_scale(ws, c, of.weights, at, n);
        float *y = lanes_place(ys, &c->y, of.row, place);
        if (biased) {
            const float *b = lanes_read(bs, &c->w[1], of.weights, at, n);
            LANES_EACH(i, n) y[i] = LANES_FMA((x[i] - mean) * scale, w[i], b[i]);
        } else {
            LANES_EACH(i, n) y[i] = (x[i] - mean) * scale * w[i];
        }
        lanes_written(&c->y, of.row, place, n, y);
    }
}

void KERNEL(norm)(const cpu_part *part) {
    const device_call *c = part->call;
    int64_t columns = device_norm_columns(c), groups = c->x[0].columns / columns;
    bool layer = c->kernel == DEVICE_LAYER_NORM;
    float *saved = (float *)c->saved[0].data + part->first * groups * (layer ? 2 : 1);
    for (int64_t g = 0; g < part->count * groups; g++) {
        group of = group_of(c, part->first, g, groups, columns);
        float mean = layer ? group_mean(of) : 0.0f;
        float scale = 1.0f / sqrtf(group_variance(of, mean) + c->attributes.norm.epsilon);
        norm_group(c, of, mean, scale);
        if (layer) *saved++ = mean;
        *saved++ = scale;
    }
}

/* With normal = (x - mean) scale and g = w dy: dx = scale (g - mean(g) - normal mean(g normal));
 * RMS norm lacks the first mean. dw = sum dy normal, db = sum dy, into `sums`. */
static void norm_group_backward(const device_call *c, group of, float mean, float scale,
                                float *sums) {
    bool layer = c->kernel == DEVICE_LAYER_NORM_BACKWARD;
    float xs[PIECE], ws[PIECE], dys[PIECE], g[PIECE], gn[PIECE], dxs[PIECE];
    float sum_g[SUMS] = {0}, sum_gn[SUMS] = {0};
    for (int64_t at = 0; at < of.columns; at += PIECE) {
        int64_t n = piece_of(of.columns, at);
        const float *x = lanes_read(xs, of.x, of.row, of.first + at, n);
        const float *w = read_scale(ws, c, of.weights, at, n);
        const float *dy = lanes_read(dys, &c->dy, of.row, of.first + at, n);
        float *dw = sums + of.weights * of.columns + at, *db = dw + device_norm_weights(c);
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
    if (c->dx[0].dtype == BASE_NONE) return;
    float mean_g = layer ? fold_sums(sum_g) / (float)of.columns : 0;
    float mean_gn = fold_sums(sum_gn) / (float)of.columns;
    for (int64_t at = 0; at < of.columns; at += PIECE) {
        int64_t n = piece_of(of.columns, at), place = of.first + at;
        const float *x = lanes_read(xs, of.x, of.row, place, n);
        const float *w = read_scale(ws, c, of.weights, at, n);
        const float *dy = lanes_read(dys, &c->dy, of.row, place, n);
        float *dx = lanes_gradient_place(dxs, c, 0, of.row, place);
        LANES_EACH(i, n) {
            float normal = (x[i] - mean) * scale;
            dx[i] = scale * (LANES_FMA(-normal, mean_gn, w[i] * dy[i]) - mean_g);
        }
        lanes_gradient_written(c, 0, of.row, place, n, dx);
    }
}

void KERNEL(norm_backward)(const cpu_part *part) {
    const device_call *c = part->call;
    int64_t columns = device_norm_columns(c), groups = c->x[0].columns / columns;
    bool layer = c->kernel == DEVICE_LAYER_NORM_BACKWARD;
    const float *saved = (const float *)c->saved[0].data + part->first * groups * (layer ? 2 : 1);
    for (int64_t g = 0; g < part->count * groups; g++) {
        group of = group_of(c, part->first, g, groups, columns);
        float mean = layer ? *saved++ : 0.0f, scale = *saved++;
        norm_group_backward(c, of, mean, scale, part->sums);
    }
}

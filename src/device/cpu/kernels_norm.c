#include "device/cpu/kernels_sets.h"

static inline int64_t piece_of(int64_t columns, int64_t first) {
    return columns - first < PIECE ? columns - first : PIECE;
}

/* Layer norm where saved0 has two columns, RMS norm where it has one. */
void KERNEL(norm)(const cpu_part *part) {
    const device_call *c = part->call;
    int64_t columns = c->x[0].columns;
    bool layer = c->kernel == DEVICE_LAYER_NORM;
    float *saved = c->saved[0].data;
    float x[PIECE], w[PIECE], b[PIECE];
    for (int64_t r = part->first; r < part->first + part->count; r++) {
        float mean = 0;
        if (layer) {
            float sums[LANES] = {0};
            for (int64_t at = 0; at < columns; at += PIECE) {
                int64_t n = piece_of(columns, at);
                lanes_load(x, &c->x[0], r, at, n);
                lanes_add(sums, x, n);
            }
            mean = lanes_fold(sums) / (float)columns;
        }
        float sums[LANES] = {0};
        for (int64_t at = 0; at < columns; at += PIECE) {
            int64_t n = piece_of(columns, at);
            lanes_load(x, &c->x[0], r, at, n);
            for (int64_t i = 0; i < n; i++) x[i] = (x[i] - mean) * (x[i] - mean);
            lanes_add(sums, x, n);
        }
        float scale = 1.0f / sqrtf(lanes_fold(sums) / (float)columns + c->attributes.norm.epsilon);
        for (int64_t at = 0; at < columns; at += PIECE) {
            int64_t n = piece_of(columns, at);
            lanes_load(x, &c->x[0], r, at, n);
            lanes_load(w, &c->w[0], 0, at, n);
            if (c->w[1].dtype != DEVICE_NONE) {
                lanes_load(b, &c->w[1], 0, at, n);
                for (int64_t i = 0; i < n; i++) x[i] = (x[i] - mean) * scale * w[i] + b[i];
            } else {
                for (int64_t i = 0; i < n; i++) x[i] = (x[i] - mean) * scale * w[i];
            }
            lanes_store(&c->y, r, at, n, x);
        }
        if (layer) {
            saved[2 * r] = mean;
            saved[2 * r + 1] = scale;
        } else {
            saved[r] = scale;
        }
    }
}

/* With n = (x - mean) scale: dx = scale (w dy - mean(w dy) - n mean(w dy n)); RMS norm lacks the
 * first mean. dw = sum dy n, db = sum dy, into part->sums. */
void KERNEL(norm_backward)(const cpu_part *part) {
    const device_call *c = part->call;
    int64_t columns = c->x[0].columns;
    bool layer = c->kernel == DEVICE_LAYER_NORM_BACKWARD;
    const float *saved = c->saved[0].data;
    float x[PIECE], w[PIECE], dy[PIECE];
    for (int64_t r = part->first; r < part->first + part->count; r++) {
        float mean = layer ? saved[2 * r] : 0, scale = layer ? saved[2 * r + 1] : saved[r];
        float sum_g[LANES] = {0}, sum_gn[LANES] = {0};
        for (int64_t at = 0; at < columns; at += PIECE) {
            int64_t n = piece_of(columns, at);
            lanes_load(x, &c->x[0], r, at, n);
            lanes_load(w, &c->w[0], 0, at, n);
            lanes_load(dy, &c->dy, r, at, n);
            float *sums = part->sums + at;
            for (int64_t i = 0; i < n; i++) {
                float normal = (x[i] - mean) * scale;
                sums[i] += dy[i] * normal;
                w[i] = w[i] * dy[i];
                x[i] = w[i] * normal;
            }
            if (layer) {
                for (int64_t i = 0; i < n; i++) sums[columns + i] += dy[i];
                lanes_add(sum_g, w, n);
            }
            lanes_add(sum_gn, x, n);
        }
        float mean_g = layer ? lanes_fold(sum_g) / (float)columns : 0;
        float mean_gn = lanes_fold(sum_gn) / (float)columns;
        for (int64_t at = 0; at < columns; at += PIECE) {
            int64_t n = piece_of(columns, at);
            lanes_load(x, &c->x[0], r, at, n);
            lanes_load(w, &c->w[0], 0, at, n);
            lanes_load(dy, &c->dy, r, at, n);
            for (int64_t i = 0; i < n; i++) {
                float normal = (x[i] - mean) * scale;
                x[i] = scale * (w[i] * dy[i] - mean_g - normal * mean_gn);
            }
            lanes_store_gradient(c, 0, r, at, n, x);
        }
    }
}

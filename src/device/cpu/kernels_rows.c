/* Rotary embedding and table look-ups. */
#include "device/cpu/kernels_sets.h"

void KERNEL(rope)(const cpu_part *part) {
    const device_call *c = part->call;
    bool backward = c->kernel == DEVICE_ROPE_BACKWARD;
    const device_matrix *from = backward ? &c->dy : &c->x[0];
    const int32_t *positions = c->x[1].data;
    int64_t dim = c->attributes.rope.head_dim, half = dim / 2;
    float a[PIECE], b[PIECE], x[PIECE], y[PIECE];
    for (int64_t r = part->first; r < part->first + part->count; r++) {
        const float *table = (const float *)c->x[2].data + positions[r] * c->x[2].stride;
        for (int64_t h = 0; h < c->attributes.rope.heads; h++) {
            for (int64_t at = 0; at < half; at += PIECE) {
                int64_t n = half - at < PIECE ? half - at : PIECE;
                const float *cosine = table + at, *sine = table + half + at;
                float sign = backward ? -1.0f : 1.0f;
                lanes_load(a, from, r, h * dim + at, n);
                lanes_load(b, from, r, h * dim + half + at, n);
                for (int64_t i = 0; i < n; i++) {
                    x[i] = a[i] * cosine[i] - sign * (b[i] * sine[i]);
                    y[i] = b[i] * cosine[i] + sign * (a[i] * sine[i]);
                }
                if (backward) {
                    lanes_store_gradient(c, 0, r, h * dim + at, n, x);
                    lanes_store_gradient(c, 0, r, h * dim + half + at, n, y);
                } else {
                    lanes_store(&c->y, r, h * dim + at, n, x);
                    lanes_store(&c->y, r, h * dim + half + at, n, y);
                }
            }
        }
    }
}

void KERNEL(embedding)(const cpu_part *part) {
    const device_call *c = part->call;
    const int32_t *ids = c->x[0].data;
    int64_t size = device_dtype_bytes(c->y.dtype);
    for (int64_t r = part->first; r < part->first + part->count; r++) {
        memcpy((char *)c->y.data + r * c->y.stride * size,
               (const char *)c->w[0].data + ids[r] * c->w[0].stride * size,
               (size_t)(c->y.columns * size));
    }
}

/* Tokens one after the other, whoever computes a column. */
void KERNEL(embedding_backward)(const cpu_part *part) {
    const device_call *c = part->call;
    const int32_t *ids = c->x[0].data;
    float *dw = c->dw[0].data, g[PIECE];
    for (int64_t r = 0; r < c->dy.rows; r++) {
        float *to = dw + ids[r] * c->dw[0].stride;
        for (int64_t at = part->first; at < part->first + part->count; at += PIECE) {
            int64_t left = part->first + part->count - at, n = left < PIECE ? left : PIECE;
            lanes_load(g, &c->dy, r, at, n);
            for (int64_t i = 0; i < n; i++) to[at + i] += g[i];
        }
    }
}

/* Rotary embedding and table look-ups. */
#include "device/cpu/kernels_sets.h"

/* x, y = (a cos - b sin, b cos + a sin); results may take the operands' place. */
static inline void rotate(const float *a, const float *b, const float *cosine, const float *sine,
                          float sign, float *x, float *y, int64_t n) {
    LANES_EACH(i, n) {
        float s = sign * sine[i], first = a[i], second = b[i];
        x[i] = LANES_FMA(-second, s, first * cosine[i]);
        y[i] = LANES_FMA(first, s, second * cosine[i]);
    }
}

void KERNEL(rope)(const cpu_part *part) {
    const device_call *c = part->call;
    bool back = c->kernel == DEVICE_ROPE_BACKWARD;
    const device_matrix *from = back ? &c->dy : &c->x[0], *to = back ? &c->dx[0] : &c->y;
    const int32_t *positions = c->x[1].data;
    int64_t dim = c->attributes.rope.head_dim, half = dim / 2;
    float as[PIECE], bs[PIECE], xs[PIECE], ys[PIECE];
    for (int64_t r = part->first; r < part->first + part->count; r++) {
        const float *table = (const float *)c->x[2].data + positions[r] * c->x[2].stride;
        for (int64_t h = 0; h < c->attributes.rope.heads; h++) {
            for (int64_t at = 0; at < half; at += PIECE) {
                int64_t n = half - at < PIECE ? half - at : PIECE, low = h * dim + at;
                bool direct = !(back && c->accumulate[0]);
                const float *a = lanes_read(as, from, r, low, n);
                const float *b = lanes_read(bs, from, r, low + half, n);
                float *x = direct ? lanes_place(xs, to, r, low) : xs;
                float *y = direct ? lanes_place(ys, to, r, low + half) : ys;
                rotate(a, b, table + at, table + half + at, back ? -1.0f : 1.0f, x, y, n);
                if (back) {
                    lanes_gradient_written(c, 0, r, low, n, x);
                    lanes_gradient_written(c, 0, r, low + half, n, y);
                } else {
                    lanes_written(to, r, low, n, x);
                    lanes_written(to, r, low + half, n, y);
                }
            }
        }
    }
}

void KERNEL(embedding)(const cpu_part *part) {
    const device_call *c = part->call;
    const int32_t *ids = c->x[0].data;
    int64_t size = base_dtype_bytes(c->y.dtype);
    for (int64_t r = part->first; r < part->first + part->count; r++) {
        memcpy((char *)c->y.data + r * c->y.stride * size,
               (const char *)c->w[0].data + ids[r] * c->w[0].stride * size,
               (size_t)(c->y.columns * size));
    }
}

/* Tokens one after the other, whoever computes a column; an id that only pads is passed over. */
void KERNEL(embedding_backward)(const cpu_part *part) {
    const device_call *c = part->call;
    const int32_t *ids = c->x[0].data;
    float *dw = c->dw[0].data, buffer[PIECE];
    bool padded = c->attributes.embedding.padded;
    int32_t padding = c->attributes.embedding.padding;
    for (int64_t r = 0; r < c->dy.rows; r++) {
        if (padded && ids[r] == padding) continue;
        float *to = dw + ids[r] * c->dw[0].stride;
        for (int64_t at = part->first; at < part->first + part->count; at += PIECE) {
            int64_t left = part->first + part->count - at, n = left < PIECE ? left : PIECE;
            const float *g = lanes_read(buffer, &c->dy, r, at, n);
            LANES_EACH(i, n) to[at + i] += g[i];
        }
    }
}

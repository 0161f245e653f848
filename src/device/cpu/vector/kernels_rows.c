/* Rotary embedding, orders of columns, neighbours and table look-ups. */
#include "device/cpu/kernels_sets.h"

/* Inlined: the parts of a head are short, and calls take a fifth longer. */
#define ROTATE_INLINE static inline __attribute__((always_inline))

/* x, y = (a cos - b sin, b cos + a sin); results may overwrite operands. */
ROTATE_INLINE void rotate(const float *a, const float *b, const float *cosine, const float *sine,
                          float sign, float *x, float *y, int64_t n) {
    LANES_EACH(i, n) {
        float s = sign * sine[i], first = a[i], second = b[i];
        x[i] = LANES_FMA(-second, s, first * cosine[i]);
        y[i] = LANES_FMA(first, s, second * cosine[i]);
    }
}

/* A head's operands and results. */
typedef struct head_place {
    const device_call *call;
    const device_matrix *from, *to;
    int64_t row, first;
    bool back;
} head_place;

ROTATE_INLINE const float *read_rotated(const head_place *p, float *buffer, int64_t at, int64_t n) {
    return lanes_read(buffer, p->from, p->row, p->first + at, n);
}

/* Results are written in place, unless they are added. */
ROTATE_INLINE float *rotated_place(const head_place *p, float *buffer, int64_t at) {
    if (p->back && p->call->accumulate[0]) return buffer;
    return lanes_place(buffer, p->to, p->row, p->first + at);
}

ROTATE_INLINE void write_rotated(const head_place *p, int64_t at, int64_t n, float *from) {
    if (p->back)
        lanes_gradient_written(p->call, 0, p->row, p->first + at, n, from);
    else
        lanes_written(p->to, p->row, p->first + at, n, from);
}

/* Rotates element i with i + half. */
ROTATE_INLINE void rotate_halves(const head_place *p, const float *table, int64_t half) {
    float as[PIECE], bs[PIECE], xs[PIECE], ys[PIECE];
    for (int64_t at = 0; at < half; at += PIECE) {
        int64_t n = half - at < PIECE ? half - at : PIECE;
        const float *a = read_rotated(p, as, at, n), *b = read_rotated(p, bs, at + half, n);
        float *x = rotated_place(p, xs, at), *y = rotated_place(p, ys, at + half);
        rotate(a, b, table + at, table + half + at, p->back ? -1.0f : 1.0f, x, y, n);
        write_rotated(p, at, n, x);
        write_rotated(p, at + half, n, y);
    }
}

/* Rotates element 2 i with 2 i + 1. */
ROTATE_INLINE void rotate_pairs(const head_place *p, const float *table, int64_t half) {
    enum { PAIRS = PIECE / 2 };
    float both[PIECE], a[PAIRS], b[PAIRS], rotated[PIECE];
    for (int64_t at = 0; at < half; at += PAIRS) {
        int64_t n = half - at < PAIRS ? half - at : PAIRS;
        const float *from = read_rotated(p, both, 2 * at, 2 * n);
        for (int64_t i = 0; i < n; i++) a[i] = from[2 * i], b[i] = from[2 * i + 1];
        rotate(a, b, table + at, table + half + at, p->back ? -1.0f : 1.0f, a, b, n);
        float *to = rotated_place(p, rotated, 2 * at);
        for (int64_t i = 0; i < n; i++) to[2 * i] = a[i], to[2 * i + 1] = b[i];
        write_rotated(p, 2 * at, 2 * n, to);
    }
}

/* Leaves elements from `first` on unchanged. */
ROTATE_INLINE void pass_through(const head_place *p, int64_t first, int64_t end) {
    float values[PIECE];
    bool there = p->from->data == p->to->data && !(p->back && p->call->accumulate[0]);
    for (int64_t at = first; at < end && !there; at += PIECE) {
        int64_t n = end - at < PIECE ? end - at : PIECE;
        lanes_load(values, p->from, p->row, p->first + at, n);
        float *to = rotated_place(p, values, at);
        if (to != values) memcpy(to, values, (size_t)n * sizeof *to);
        write_rotated(p, at, n, to);
    }
}

void KERNEL(rope)(const cpu_part *part) {
    const device_call *c = part->call;
    bool back = c->kernel == DEVICE_ROPE_BACKWARD;
    head_place p = {
        .call = c, .from = back ? &c->dy : &c->x[0], .to = back ? &c->dx[0] : &c->y, .back = back};
    const int32_t *positions = c->x[1].data;
    int64_t dim = c->attributes.rope.head_dim, rotated = c->x[2].columns;
    for (int64_t r = part->first; r < part->first + part->count; r++) {
        const float *table = (const float *)c->x[2].data + positions[r] * c->x[2].stride;
        p.row = r;
        for (int64_t h = 0; h < c->attributes.rope.heads; h++) {
            p.first = h * dim;
            if (c->attributes.rope.interleaved)
                rotate_pairs(&p, table, rotated / 2);
            else
                rotate_halves(&p, table, rotated / 2);
            if (rotated < dim) pass_through(&p, rotated, dim);
        }
    }
}

/* Handles row r, in runs of `width` columns that are consecutive on both sides. */
static void split_qkv_row(const device_call *c, int64_t r, bool back) {
    int64_t groups = c->attributes.split_qkv.groups, parts = c->attributes.split_qkv.parts;
    int64_t width = (back ? c->dy.columns : c->y.columns) / (groups * parts);
    float values[PIECE];
    for (int64_t k = 0; k < groups * parts; k++) {
        int64_t to = k * width, from = (k % groups * parts + k / groups) * width;
        for (int64_t at = 0; at < width; at += PIECE) {
            int64_t n = width - at < PIECE ? width - at : PIECE;
            if (back) {
                lanes_load(values, &c->dy, r, to + at, n);
                lanes_store_gradient(c, 0, r, from + at, n, values);
            } else {
                lanes_load(values, &c->x[0], r, from + at, n);
                lanes_store(&c->y, r, to + at, n, values);
            }
        }
    }
}

void KERNEL(split_qkv)(const cpu_part *part) {
    bool back = part->call->kernel == DEVICE_SPLIT_QKV_BACKWARD;
    for (int64_t r = part->first; r < part->first + part->count; r++)
        split_qkv_row(part->call, r, back);
}

/* Of value `which`, whose columns of y begin at `first`. */
static void join_row(const device_call *c, int64_t r, int which, int64_t first, int64_t columns) {
    bool back = c->kernel == DEVICE_JOIN_BACKWARD;
    float values[PIECE];
    if (back && c->dx[which].dtype == BASE_NONE) return;
    for (int64_t at = 0; at < columns; at += PIECE) {
        int64_t n = columns - at < PIECE ? columns - at : PIECE;
        if (back) {
            lanes_load(values, &c->dy, r, first + at, n);
            lanes_store_gradient(c, which, r, at, n, values);
        } else {
            lanes_load(values, &c->x[which], r, at, n);
            lanes_store(&c->y, r, first + at, n, values);
        }
    }
}

void KERNEL(join)(const cpu_part *part) {
    const device_call *c = part->call;
    const int64_t *end = c->attributes.join.end;
    for (int64_t r = part->first; r < part->first + part->count; r++) {
        int64_t first = 0;
        for (int i = 0; i < DEVICE_MOST_JOINED && end[i] > 0; first = end[i++])
            join_row(c, r, i, first, end[i] - first);
    }
}

/* Whether the row at that distance from row r is in the same sequence and segment. */
static bool has_neighbour(const device_call *c, int64_t r, int64_t distance) {
    int64_t length = c->attributes.unfold.length, at = r % length + distance;
    const int32_t *segments = c->x[1].data;
    if (at < 0 || at >= length) return false;
    return c->x[1].dtype == BASE_NONE ||
           segments[r * c->x[1].stride] == segments[(r + distance) * c->x[1].stride];
}

static void gather_unfold(const device_call *c, int64_t r) {
    int64_t size = c->attributes.unfold.size, columns = c->x[0].columns, step = PIECE / size;
    float values[PIECE], row[PIECE];
    for (int64_t at = 0; at < columns; at += step) {
        int64_t n = columns - at < step ? columns - at : step;
        for (int64_t t = 0; t < size; t++) {
            bool there = has_neighbour(c, r, t - size / 2);
            if (there) lanes_load(row, &c->x[0], r + t - size / 2, at, n);
            for (int64_t i = 0; i < n; i++) values[i * size + t] = there ? row[i] : 0.0f;
        }
        lanes_store(&c->y, r, at * size, n * size, values);
    }
}

/* Row r is neighbour t of row r + size / 2 - t. */
static void sum_unfold(const device_call *c, int64_t r) {
    int64_t size = c->attributes.unfold.size, columns = c->dx[0].columns, step = PIECE / size;
    float values[PIECE], sums[PIECE];
    for (int64_t at = 0; at < columns; at += step) {
        int64_t n = columns - at < step ? columns - at : step;
        for (int64_t i = 0; i < n; i++) sums[i] = 0.0f;
        for (int64_t t = 0; t < size; t++) {
            if (!has_neighbour(c, r, size / 2 - t)) continue;
            lanes_load(values, &c->dy, r + size / 2 - t, at * size, n * size);
            for (int64_t i = 0; i < n; i++) sums[i] += values[i * size + t];
        }
        lanes_store_gradient(c, 0, r, at, n, sums);
    }
}

void KERNEL(unfold)(const cpu_part *part) {
    bool back = part->call->kernel == DEVICE_UNFOLD_BACKWARD;
    for (int64_t r = part->first; r < part->first + part->count; r++) {
        if (back)
            sum_unfold(part->call, r);
        else
            gather_unfold(part->call, r);
    }
}

static void row_gradient(const device_call *c, int64_t r) {
    float *dw = (float *)c->dw[0].data + r * c->dw[0].stride, buffer[PIECE];
    for (int64_t at = 0; at < c->dy.columns; at += PIECE) {
        int64_t n = c->dy.columns - at < PIECE ? c->dy.columns - at : PIECE;
        const float *g = lanes_read(buffer, &c->dy, r, at, n);
        if (c->accumulate_dw) {
            LANES_EACH(i, n) dw[at + i] += g[i];
        } else {
            memcpy(dw + at, g, (size_t)n * sizeof *g);
        }
    }
}

void KERNEL(rows)(const cpu_part *part) {
    const device_call *c = part->call;
    int64_t size = base_dtype_bytes(c->y.dtype);
    for (int64_t r = part->first; r < part->first + part->count; r++) {
        if (c->kernel == DEVICE_ROWS_BACKWARD)
            row_gradient(c, r);
        else
            memcpy((char *)c->y.data + r * c->y.stride * size,
                   (const char *)c->w[0].data + r * c->w[0].stride * size,
                   (size_t)(c->y.columns * size));
    }
}

/* The row of w0 that row `row` of the whole table is; -1: another rank's. */
static int64_t own_row(const device_words *words, int64_t row) {
    if (words->all == 0) return row;
    row -= words->first;
    return row >= 0 && row < words->count ? row : -1;
}

/* -0, of each type, is the sign alone. */
static void put_nothing(const device_matrix *y, int64_t r) {
    if (y->dtype == BASE_FP32) {
        float *to = (float *)y->data + r * y->stride;
        for (int64_t i = 0; i < y->columns; i++) to[i] = -0.0f;
    } else {
        uint16_t *to = (uint16_t *)y->data + r * y->stride;
        for (int64_t i = 0; i < y->columns; i++) to[i] = 0x8000;
    }
}

void KERNEL(embedding)(const cpu_part *part) {
    const device_call *c = part->call;
    const int32_t *ids = c->x[0].data;
    int64_t size = base_dtype_bytes(c->y.dtype), first = c->attributes.embedding.first;
    for (int64_t r = part->first; r < part->first + part->count; r++) {
        int64_t row = own_row(&c->attributes.embedding.words, first + ids[r]);
        if (row < 0)
            put_nothing(&c->y, r);
        else
            memcpy((char *)c->y.data + r * c->y.stride * size,
                   (const char *)c->w[0].data + row * c->w[0].stride * size,
                   (size_t)(c->y.columns * size));
    }
}

/* Tokens one after the other, whoever computes a column; a row that only pads is passed over. */
void KERNEL(embedding_backward)(const cpu_part *part) {
    const device_call *c = part->call;
    const int32_t *ids = c->x[0].data;
    float *dw = c->dw[0].data, buffer[PIECE];
    bool padded = c->attributes.embedding.padded;
    int64_t padding = c->attributes.embedding.padding, first = c->attributes.embedding.first;
    for (int64_t r = 0; r < c->dy.rows; r++) {
        int64_t row = first + ids[r];
        if (padded && row == padding) continue;
        row = own_row(&c->attributes.embedding.words, row);
        if (row < 0) continue;
        float *to = dw + row * c->dw[0].stride;
        for (int64_t at = part->first; at < part->first + part->count; at += PIECE) {
            int64_t left = part->first + part->count - at, n = left < PIECE ? left : PIECE;
            const float *g = lanes_read(buffer, &c->dy, r, at, n);
            LANES_EACH(i, n) to[at + i] += g[i];
        }
    }
}

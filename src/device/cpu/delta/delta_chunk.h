/* For kernels_delta*.c: a chunk of rows of a segment (Yang et al. 2024, "Gated Delta Networks",
 * section 3.3). With G_i the sum of g up to row i of the chunk, D_ij = e^(G_i - G_j) and S0 the
 * state before it,
 *   (I + A) U = R,  A_ij = beta_i D_ij k_i k_j (j < i),  R_i = beta_i (v_i - e^(G_i) S0^T k_i);
 *   y_i = e^(G_i) S0^T q_i + sum over j <= i of P_ij u_j,  P_ij = D_ij q_i k_j;
 *   S1 = e^(G_n) S0 + sum over i of e^(G_n - G_i) k_i u_i^T.
 * Sums of g are in double, for differences of two of them keep their digits whatever was forgotten
 * before. All else is fp32. */
#ifndef CPU_DELTA_CHUNK_H
#define CPU_DELTA_CHUNK_H

#include <math.h>

#include "device/cpu/attention/attention_tile.h"
#include "device/cpu/delta/kernels_delta.h"
#include "device/cpu/lanes.h"
#include "device/delta_order.h"

enum { CHUNK = DELTA_CHUNK, BAND = 16 }; /* triangles are cut into bands of rows */

/* Rows of operands of the chunk that is worked on next. */
typedef struct delta_ahead_rows {
    uintptr_t at; /* an address that is never read */
    int64_t step, lines;
} delta_ahead_rows;
typedef struct delta_ahead {
    delta_ahead_rows of[8];
    int count, which;
    int64_t rows, row, line;
} delta_ahead;

/* Matrices in scratch have rows of `wide` columns, zeros behind those of a head, or of CHUNK. */
typedef struct delta_work {
    const device_call *call;
    int64_t keys, values, wide_keys, wide_values; /* columns of a head */
    int64_t group, head;                          /* value heads of the key head; the first */
    int64_t key_head;
    int64_t row, rows;   /* the chunk's */
    bool fresh;          /* it begins a segment, so S0 = 0 */
    float *q, *k;        /* CHUNK x wide_keys, normalised */
    float *k_turned;     /* wide_keys x CHUNK */
    float *kk, *qk;      /* products of rows, CHUNK x CHUNK */
    float q_size[CHUNK]; /* what rows were multiplied with */
    float k_size[CHUNK];
    /* of one value head */
    double g[CHUNK], total[CHUNK]; /* g, and its sums */
    float decay[CHUNK];            /* e^(G_i) */
    float rest[CHUNK];             /* e^(G_n - G_i) */
    float beta[CHUNK];
    float *d, *a, *p;  /* D, -A and P up to the diagonal, zeros behind it in a band */
    float *kept;       /* CHUNK x wide_values: S0^T k_i */
    float *u, *u_rest; /* CHUNK x wide_values: U, and its rows times `rest` */
    float *out;        /* CHUNK x wide_values */
    float *alpha;      /* wide_values times one factor */
    float *states;     /* of each value head of the group: keys x wide_values */
    delta_ahead ahead;
} delta_work;

/* --- what comes next --- */

enum { LINE = 64, LINES_AT_ONCE = 12 }; /* bytes; a core waits for some 16 lines at a time */

/* The place of a matrix's rows, a part of each, as lines. */
static inline void delta_ahead_add(delta_ahead *a, const device_matrix *m, int64_t row,
                                   int64_t first, int64_t count) {
    int64_t size = base_dtype_bytes(m->dtype);
    uintptr_t at = (uintptr_t)m->data + (uintptr_t)((row * m->stride + first) * size);
    int64_t before = (int64_t)(at % LINE);
    a->of[a->count++] = (delta_ahead_rows){.at = at - (uintptr_t)before,
                                           .step = m->stride * size,
                                           .lines = (before + count * size + LINE - 1) / LINE};
}

/* Asks for some of these lines: rows of an operand lie so far apart that no processor fetches them
 * by itself, and a call would wait for each. */
static inline void delta_look_ahead(delta_ahead *a) {
    for (int i = 0; i < LINES_AT_ONCE && a->which < a->count; i++) {
        delta_ahead_rows *of = &a->of[a->which];
        __builtin_prefetch((const void *)(of->at + (uintptr_t)(a->line * LINE)), 0, 2);
        if (++a->line < of->lines) continue;
        a->line = 0;
        of->at += (uintptr_t)of->step;
        if (++a->row < a->rows) continue;
        a->row = 0;
        a->which++;
    }
}

static inline void delta_ahead_begin(delta_ahead *a, int64_t rows) {
    *a = (delta_ahead){.rows = rows};
}

/* --- products --- */

TILE_INLINE void delta_panel(delta_ahead *ahead, int vectors, int64_t rows, int64_t inner,
                             const float *a, int64_t a_stride, const float *b, int64_t b_stride,
                             float *c, int64_t c_stride, tile_mode mode, const float *alpha) {
    int64_t r = 0;
    for (; r + TILE_ROWS <= rows; r += TILE_ROWS) {
        if (ahead) delta_look_ahead(ahead);
        tile_small(false, TILE_ROWS, vectors, inner, a + r * a_stride, a_stride, b, b_stride,
                   c + r * c_stride, c_stride, mode, alpha);
    }
    tile_panel(false, vectors, rows - r, inner, a + r * a_stride, a_stride, b, b_stride,
               c + r * c_stride, c_stride, mode, alpha);
}

/* tile_product, which looks ahead meanwhile; `ahead`: may be NULL. */
TILE_INLINE void delta_product(delta_ahead *ahead, int64_t rows, int64_t columns, int64_t inner,
                               const float *a, int64_t a_stride, const float *b, int64_t b_stride,
                               float *c, int64_t c_stride, tile_mode mode, const float *alpha) {
    int64_t at = 0;
    for (; at + TILE_VECTORS * VECTOR <= columns; at += TILE_VECTORS * VECTOR)
        delta_panel(ahead, TILE_VECTORS, rows, inner, a, a_stride, b + at, b_stride, c + at,
                    c_stride, mode, alpha + at);
    tile_product(false, rows, columns - at, inner, a, a_stride, b + at, b_stride, c + at, c_stride,
                 mode, alpha + at);
}

/* Products are calls: inlined they would be most of the code. */
#define DELTA_CALL static __attribute__((noinline, unused))

DELTA_CALL void delta_set(delta_ahead *ahead, int64_t rows, int64_t columns, int64_t inner,
                          const float *a, int64_t a_stride, const float *b, int64_t b_stride,
                          float *c, int64_t c_stride) {
    delta_product(ahead, rows, columns, inner, a, a_stride, b, b_stride, c, c_stride, TILE_SET, c);
}

DELTA_CALL void delta_add(delta_ahead *ahead, int64_t rows, int64_t columns, int64_t inner,
                          const float *a, int64_t a_stride, const float *b, int64_t b_stride,
                          float *c, int64_t c_stride) {
    delta_product(ahead, rows, columns, inner, a, a_stride, b, b_stride, c, c_stride, TILE_ADD, c);
}

/* c = alpha c + a b, alpha of each column */
DELTA_CALL void delta_scale_add(delta_ahead *ahead, int64_t rows, int64_t columns, int64_t inner,
                                const float *a, int64_t a_stride, const float *b, int64_t b_stride,
                                float *c, int64_t c_stride, const float *alpha) {
    delta_product(ahead, rows, columns, inner, a, a_stride, b, b_stride, c, c_stride, TILE_SCALE,
                  alpha);
}

static inline int64_t delta_band_end(int64_t first, int64_t n) {
    return base_min_i64(first + BAND, n);
}

/* c = or += m b for n rows, m up to its diagonal. */
static inline void delta_add_lower(int64_t n, const float *m, const float *b, int64_t wide,
                                   float *c, bool add) {
    for (int64_t r = 0; r < n; r += BAND) {
        int64_t end = delta_band_end(r, n);
        (add ? delta_add : delta_set)(NULL, end - r, wide, end, m + r * CHUNK, CHUNK, b, wide,
                                      c + r * wide, wide);
    }
}

/* c = or += m b for n rows, m from its diagonal on. */
static inline void delta_add_upper(int64_t n, const float *m, const float *b, int64_t wide,
                                   float *c, bool add) {
    for (int64_t r = 0; r < n; r += BAND) {
        int64_t end = delta_band_end(r, n);
        (add ? delta_add : delta_set)(NULL, end - r, wide, n - r, m + r * CHUNK + r, CHUNK,
                                      b + r * wide, wide, c + r * wide, wide);
    }
}

/* m = x y, y turned (inner x CHUNK), up to the diagonal and to the end of its band. */
static inline void delta_pairs(int64_t n, int64_t inner, const float *x, int64_t x_stride,
                               const float *y, float *m) {
    for (int64_t r = 0; r < n; r += BAND)
        delta_set(NULL, delta_band_end(r, n) - r, r + BAND, inner, x + r * x_stride, x_stride, y,
                  CHUNK, m + r * CHUNK, CHUNK);
}

/* u = (I + A)^-1 u, a = -A. */
static inline void delta_solve(int64_t n, const float *a, int64_t wide, float *u) {
    for (int64_t r = 0; r < n; r += BAND) {
        int64_t end = delta_band_end(r, n);
        if (r > 0)
            delta_add(NULL, end - r, wide, r, a + r * CHUNK, CHUNK, u, wide, u + r * wide, wide);
        for (int64_t i = r + 1; i < end; i++)
            delta_add(NULL, 1, wide, i - r, a + i * CHUNK + r, CHUNK, u + r * wide, wide,
                      u + i * wide, wide);
    }
}

/* to[c][r] = from[r][c], zeros in columns [rows, wide). */
static inline void delta_turn(const float *from, int64_t rows, int64_t columns, int64_t stride,
                              float *to, int64_t wide) {
    transpose(from, rows, columns, stride, to, wide);
    for (int64_t c = 0; c < columns && rows < wide; c++)
        memset(to + c * wide + rows, 0, (size_t)(wide - rows) * sizeof *to);
}

/* Sum of x y over a multiple of VECTOR, which is a head with zeros behind it. */
VECTOR_INLINE float delta_dot(const float *x, const float *y, int64_t count) {
    vector sum = vector_set(0.0f);
    for (int64_t i = 0; i < count; i += VECTOR)
        sum = vector_fma(vector_load(x + i), vector_load(y + i), sum);
    return vector_sum(sum);
}

/* Columns of a row of an operand, and zeros up to `wide`. */
static inline void delta_load(const device_matrix *m, int64_t row, int64_t first, int64_t count,
                              int64_t wide, float *to) {
    lanes_load(to, m, row, first, count);
    if (count < wide) memset(to + count, 0, (size_t)(wide - count) * sizeof *to);
}

/* x / sqrt(|x|^2 + 1e-6) * scale; returns the factor. */
static inline float delta_normalise(float *x, int64_t wide, float scale) {
    float factor = scale / sqrtf(delta_dot(x, x, wide) + 1e-6f);
    LANES_EACH(i, wide) x[i] *= factor;
    return factor;
}

static inline float delta_query_scale(const delta_work *w) {
    return 1.0f / sqrtf((float)w->keys);
}

/* Keys of the chunk and products of them, and those of queries where they are wanted. */
static inline void delta_load_keys(delta_work *w, bool queries) {
    const device_call *c = w->call;
    int64_t at = w->key_head * w->keys, wide = w->wide_keys;
    for (int64_t i = 0; i < w->rows; i++) {
        if (queries) delta_load(&c->x[0], w->row + i, at, w->keys, wide, w->q + i * wide);
        delta_load(&c->x[1], w->row + i, at, w->keys, wide, w->k + i * wide);
        if (queries) w->q_size[i] = delta_normalise(w->q + i * wide, wide, delta_query_scale(w));
        w->k_size[i] = delta_normalise(w->k + i * wide, wide, 1.0f);
    }
    delta_turn(w->k, w->rows, w->keys, wide, w->k_turned, CHUNK);
    delta_pairs(w->rows, w->keys, w->k, wide, w->k_turned, w->kk);
    if (queries) delta_pairs(w->rows, w->keys, w->q, wide, w->k_turned, w->qk);
}

/* --- gates: few numbers, in double --- */

static inline double delta_value(const device_matrix *m, int64_t row, int64_t column) {
    float value;
    lanes_load(&value, m, row, column, 1);
    return value;
}

static inline double delta_sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

/* -exp(w0), and x3 + w1 of a row */
static inline double delta_rate(const device_call *c, int64_t head) {
    return -exp(delta_value(&c->w[0], 0, head));
}

static inline double delta_time(const device_call *c, int64_t row, int64_t head) {
    return delta_value(&c->x[3], row, head) + delta_value(&c->w[1], 0, head);
}

static inline double delta_softplus(double x) {
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static inline double delta_beta(const device_call *c, int64_t row, int64_t head) {
    return delta_sigmoid(delta_value(&c->x[4], row, head));
}

static inline void delta_load_gates(delta_work *w, int64_t head) {
    double rate = delta_rate(w->call, head), total = 0;
    for (int64_t i = 0; i < w->rows; i++) {
        w->g[i] = rate * delta_softplus(delta_time(w->call, w->row + i, head));
        w->total[i] = total += w->g[i];
        w->beta[i] = (float)delta_beta(w->call, w->row + i, head);
        w->decay[i] = (float)exp(total);
    }
    for (int64_t i = 0; i < w->rows; i++) w->rest[i] = (float)exp(total - w->total[i]);
}

/* --- one value head --- */

static inline void delta_make_pairs(const delta_work *w) {
    for (int64_t i = 0; i < w->rows; i++) {
        float *d = w->d + i * CHUNK, *a = w->a + i * CHUNK, *p = w->p + i * CHUNK;
        const float *kk = w->kk + i * CHUNK, *qk = w->qk + i * CHUNK;
        double total = w->total[i];
        float minus = -w->beta[i];
        for (int64_t j = 0; j <= i; j++) d[j] = (float)(total - w->total[j]);
        LANES_EACH(j, i + 1) {
            d[j] = lanes_exp(d[j]);
            a[j] = minus * d[j] * kk[j];
            p[j] = d[j] * qk[j];
        }
        a[i] = 0.0f;
        for (int64_t j = i + 1; j < (i / BAND + 1) * BAND; j++) a[j] = p[j] = 0.0f;
    }
}

/* Values to u, then U. */
static inline void delta_make_updates(delta_work *w, int64_t head, const float *state) {
    int64_t wide = w->wide_values;
    for (int64_t i = 0; i < w->rows; i++)
        delta_load(&w->call->x[2], w->row + i, head * w->values, w->values, wide, w->u + i * wide);
    if (!w->fresh)
        delta_set(&w->ahead, w->rows, wide, w->keys, w->k, w->wide_keys, state, wide, w->kept,
                  wide);
    for (int64_t i = 0; i < w->rows; i++) {
        float *u = w->u + i * wide, beta = w->beta[i], decay = w->decay[i];
        const float *kept = w->kept + i * wide;
        if (w->fresh) {
            LANES_EACH(c, wide) u[c] *= beta;
        } else {
            LANES_EACH(c, wide) u[c] = beta * LANES_FMA(-decay, kept[c], u[c]);
        }
    }
    delta_solve(w->rows, w->a, wide, w->u);
}

static inline void delta_fill_alpha(const delta_work *w) {
    float factor = w->decay[w->rows - 1];
    for (int64_t c = 0; c < w->wide_values; c++) w->alpha[c] = factor;
}

/* state = S1 */
static inline void delta_move_state(delta_work *w, float *state) {
    int64_t wide = w->wide_values;
    for (int64_t i = 0; i < w->rows; i++) {
        const float *u = w->u + i * wide;
        float *to = w->u_rest + i * wide, rest = w->rest[i];
        LANES_EACH(c, wide) to[c] = rest * u[c];
    }
    if (w->fresh) {
        delta_set(&w->ahead, w->keys, wide, w->rows, w->k_turned, CHUNK, w->u_rest, wide, state,
                  wide);
        return;
    }
    delta_fill_alpha(w);
    delta_scale_add(&w->ahead, w->keys, wide, w->rows, w->k_turned, CHUNK, w->u_rest, wide, state,
                    wide, w->alpha);
}

/* --- scratch and segments --- */

static inline int64_t delta_state_floats(const delta_work *w) {
    return w->keys * w->wide_values;
}

static inline delta_work delta_describe(const device_call *call) {
    const device_delta_attributes *a = &call->attributes.delta;
    const device_matrix *y = call->dy.dtype != BASE_NONE ? &call->dy : &call->y;
    delta_work w = {.call = call,
                    .keys = call->x[0].columns / a->key_heads,
                    .values = y->columns / a->value_heads,
                    .group = a->value_heads / a->key_heads};
    w.wide_keys = base_ceil_to(w.keys, 16);
    w.wide_values = base_ceil_to(w.values, 16);
    return w;
}

/* Takes places from `scratch`; NULL: counts. Returns the floats. */
static inline int64_t delta_layout(delta_work *w, float *scratch) {
    int64_t total = 0;
#define DELTA_PLACE(member, count)                                                                 \
    (w->member = scratch == NULL ? NULL : scratch + total, total += base_ceil_to((count), 16))
    DELTA_PLACE(q, CHUNK * w->wide_keys);
    DELTA_PLACE(k, CHUNK * w->wide_keys);
    DELTA_PLACE(k_turned, w->wide_keys * CHUNK);
    DELTA_PLACE(kk, CHUNK * CHUNK);
    DELTA_PLACE(qk, CHUNK * CHUNK);
    DELTA_PLACE(d, CHUNK * CHUNK);
    DELTA_PLACE(a, CHUNK * CHUNK);
    DELTA_PLACE(p, CHUNK * CHUNK);
    DELTA_PLACE(kept, CHUNK * w->wide_values);
    DELTA_PLACE(u, CHUNK * w->wide_values);
    DELTA_PLACE(u_rest, CHUNK * w->wide_values);
    DELTA_PLACE(out, CHUNK * w->wide_values);
    DELTA_PLACE(alpha, w->wide_values);
    DELTA_PLACE(states, w->group * delta_state_floats(w));
    return total;
}

/* The end of the segment that begins at `row`, at most `end`. */
static inline int64_t delta_segment_end(const device_call *c, int64_t row, int64_t end) {
    const int32_t *segments = c->x[5].data;
    int64_t at = row + 1;
    if (c->x[5].dtype == BASE_NONE) return end;
    while (at < end && segments[at * c->x[5].stride] == segments[row * c->x[5].stride]) at++;
    return at;
}

static inline void delta_place_chunk(delta_work *w, int64_t first, int64_t chunk, int64_t end) {
    w->row = first + chunk * CHUNK;
    w->rows = base_min_i64(CHUNK, end - w->row);
    w->fresh = chunk == 0;
}

/* Looks ahead to rows of the operands that all chunks read: keys and values, and queries. */
static inline void delta_ahead_inputs(delta_work *w, int64_t row, int64_t rows, bool queries) {
    const device_call *c = w->call;
    delta_ahead_begin(&w->ahead, rows);
    for (int i = queries ? 0 : 1; i < 2; i++)
        delta_ahead_add(&w->ahead, &c->x[i], row, w->key_head * w->keys, w->keys);
    delta_ahead_add(&w->ahead, &c->x[2], row, w->head * w->values, w->group * w->values);
}

void KERNEL_NAME(cpu_delta_backward)(const cpu_delta *d);
int64_t KERNEL_NAME(cpu_delta_backward_floats)(const device_call *call);

#endif

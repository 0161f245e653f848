#include "device/cpu/delta/delta_chunk.h"

static void put_rows(const delta_work *w, int64_t head) {
    for (int64_t i = 0; i < w->rows; i++)
        lanes_store(&w->call->y, w->row + i, head * w->values, w->values,
                    w->out + i * w->wide_values);
}

/* A value head of the chunk; `last`: nobody reads its state. */
static void forward_head(delta_work *w, int64_t head, float *state, bool last) {
    int64_t wide = w->wide_values;
    delta_load_gates(w, head);
    delta_make_pairs(w);
    delta_make_updates(w, head, state);
    if (!w->fresh) {
        delta_set(&w->ahead, w->rows, wide, w->keys, w->q, w->wide_keys, state, wide, w->out, wide);
        for (int64_t i = 0; i < w->rows; i++) {
            float *out = w->out + i * wide, decay = w->decay[i];
            LANES_EACH(c, wide) out[c] *= decay;
        }
    }
    delta_add_lower(w->rows, w->p, w->u, wide, w->out, !w->fresh);
    put_rows(w, head);
    if (!last) delta_move_state(w, state);
}

/* The chunk behind this one, if the segment has one. */
static void look_ahead(delta_work *w, int64_t end) {
    int64_t row = w->row + CHUNK;
    delta_ahead_begin(&w->ahead, 0);
    if (row >= end) return;
    delta_ahead_inputs(w, row, base_min_i64(CHUNK, end - row), true);
    delta_ahead_add(&w->ahead, &w->call->y, row, w->head * w->values, w->group * w->values);
}

static void forward_segment(delta_work *w, int64_t first, int64_t end) {
    int64_t chunks = (end - first + CHUNK - 1) / CHUNK;
    for (int64_t n = 0; n < chunks; n++) {
        delta_place_chunk(w, first, n, end);
        delta_load_keys(w, true);
        look_ahead(w, end);
        for (int64_t h = 0; h < w->group; h++)
            forward_head(w, w->head + h, w->states + h * delta_state_floats(w), n + 1 == chunks);
    }
}

static void delta_forward(const cpu_delta *d) {
    delta_work w = delta_describe(d->call);
    int64_t length = d->call->attributes.delta.length;
    w.key_head = d->head, w.head = d->head * w.group;
    delta_layout(&w, d->scratch);
    int64_t end = (d->sequence + 1) * length, next;
    for (int64_t row = d->sequence * length; row < end; row = next) {
        next = delta_segment_end(d->call, row, end);
        forward_segment(&w, row, next);
    }
}

/* --- generation --- */

/* Rows of a state that are added before their sum is: it keeps digits, and reads sums less often.
 */
enum { STEP_ROWS = 8 };

/* sum += rows^T k, the rows' own sum first */
VECTOR_INLINE void add_rows(const float *rows, int64_t stride, const float *k, int count, int64_t n,
                            float *sum) {
    LANES_EACH(c, n) {
        float part = k[0] * rows[c];
        for (int j = 1; j < count; j++) part = LANES_FMA(k[j], rows[j * stride + c], part);
        sum[c] += part;
    }
}

/* rows = (1 + less) rows + k u^T, and out += rows^T q likewise. Of a decay near 1, `less` has more
 * digits. */
VECTOR_INLINE void move_rows(float *rows, int64_t stride, const float *k, const float *q,
                             const float *u, float less, int count, int64_t n, float *out) {
    LANES_EACH(c, n) {
        float part = 0.0f;
        for (int j = 0; j < count; j++) {
            float value = rows[j * stride + c];
            value = LANES_FMA(k[j], u[c], LANES_FMA(less, value, value));
            rows[j * stride + c] = value;
            part = LANES_FMA(q[j], value, part);
        }
        out[c] += part;
    }
}

/* u = beta (v - (1 + less) S^T k) */
static void make_update(const delta_work *w, const float *state, int64_t stride, float less,
                        float beta) {
    float *u = w->u, *sum = w->kept;
    int64_t n = w->values, i = 0;
    memset(sum, 0, (size_t)n * sizeof *sum);
    for (; i + STEP_ROWS <= w->keys; i += STEP_ROWS)
        add_rows(state + i * stride, stride, w->k + i, STEP_ROWS, n, sum);
    for (; i < w->keys; i++) add_rows(state + i * stride, stride, w->k + i, 1, n, sum);
    LANES_EACH(c, n) u[c] = beta * (u[c] - LANES_FMA(less, sum[c], sum[c]));
}

/* S = (1 + less) S + k u^T, out = S^T q */
static void move_state(const delta_work *w, float *state, int64_t stride, float less) {
    int64_t n = w->values, i = 0;
    memset(w->out, 0, (size_t)n * sizeof *w->out);
    for (; i + STEP_ROWS <= w->keys; i += STEP_ROWS)
        move_rows(state + i * stride, stride, w->k + i, w->q + i, w->u, less, STEP_ROWS, n, w->out);
    for (; i < w->keys; i++)
        move_rows(state + i * stride, stride, w->k + i, w->q + i, w->u, less, 1, n, w->out);
}

static void step_row(const delta_work *w, int64_t row, int64_t head, float *state) {
    const device_call *c = w->call;
    int64_t at = head / w->group * w->keys, stride = c->saved[0].stride;
    const int32_t *positions = c->x[5].data;
    double g = delta_rate(c, head) * delta_softplus(delta_time(c, row, head));
    float less = (float)expm1(g), beta = (float)delta_beta(c, row, head);
    for (int64_t i = 0; i < w->keys && positions[row * c->x[5].stride] == 0; i++)
        memset(state + i * stride, 0, (size_t)w->values * sizeof *state);
    delta_load(&c->x[0], row, at, w->keys, w->wide_keys, w->q);
    delta_load(&c->x[1], row, at, w->keys, w->wide_keys, w->k);
    delta_normalise(w->q, w->wide_keys, delta_query_scale(w));
    delta_normalise(w->k, w->wide_keys, 1.0f);
    lanes_load(w->u, &c->x[2], row, head * w->values, w->values);
    make_update(w, state, stride, less, beta);
    move_state(w, state, stride, less);
    lanes_store(&c->y, row, head * w->values, w->values, w->out);
}

static void delta_step(const cpu_delta *d) {
    const device_delta_attributes *a = &d->call->attributes.delta;
    const device_matrix *states = &d->call->saved[0];
    delta_work w = delta_describe(d->call);
    delta_layout(&w, d->scratch);
    int64_t place = (d->sequence * a->value_heads + d->head) * w.keys;
    float *state = (float *)states->data + place * states->stride;
    int64_t first = a->sequences == 1 ? 0 : d->sequence;
    int64_t end = a->sequences == 1 ? d->call->y.rows : first + 1;
    for (int64_t row = first; row < end; row++) step_row(&w, row, d->head, state);
}

static int64_t scratch_floats(const device_call *call) {
    if (call->kernel == DEVICE_DELTA_BACKWARD) return KERNEL_NAME(cpu_delta_backward_floats)(call);
    delta_work w = delta_describe(call);
    return delta_layout(&w, NULL);
}

extern const cpu_delta_kernels KERNEL_NAME(cpu_delta_kernels);
const cpu_delta_kernels KERNEL_NAME(cpu_delta_kernels) = {
    .forward = delta_forward,
    .backward = KERNEL_NAME(cpu_delta_backward),
    .step = delta_step,
    .floats = scratch_floats,
};

/* Gradients of a chunk (delta_chunk.h), from its last value head's row to the first. With dS1 the
 * gradient of the state behind it,
 *   dU = P^T dY + rest K dS1;  (I + A)^T dR = dU;  dP = dY U^T;  dA = -dR U^T (below the diagonal);
 *   X = decay dY;  W = -beta decay dR;  dS0 = decay_n dS1 + Q^T X + K^T W;
 *   dq = X S0^T + (dP D) K;  dv = beta dR;
 *   dk = W S0^T + (rest U) dS1^T + (dA beta D) K + (dA beta D)^T K + (dP D)^T Q.
 * dG_i gets its row of M = dP P + dA A less its column, and what decay and rest are part of; dg is
 * the sum of dG from a row on. States are made again from the start of a segment: of each `every`th
 * chunk first, then of the chunks between two of them. */
#include "device/cpu/delta/delta_chunk.h"

typedef struct delta_back {
    delta_work w;
    int64_t every;
    float *slots, *inner;       /* states: of each `every`th chunk, and of those between two */
    float *dstates;             /* of each value head: dS1, then dS0 */
    float *dq, *dk;             /* CHUNK x wide_keys */
    float *part;                /* likewise: X S0^T */
    float *q_turned;            /* wide_keys x CHUNK */
    float *state_turned;        /* wide_values x wide_keys */
    float *u_turned;            /* wide_values x CHUNK */
    float *turned;              /* CHUNK x CHUNK */
    float *dy, *dr, *z, *x, *y; /* CHUNK x wide_values; z: K dS1; y: W above */
    float *t, *dp;              /* dR U^T, dP; then dA beta D and dP D */
    double dtotal[CHUNK], dbeta[CHUNK];
} delta_back;

/* All states of a segment are kept where they are few. */
enum { FEW_CHUNKS = 32 };

static int64_t states_apart(int64_t chunks) {
    int64_t every = 1;
    while (chunks > FEW_CHUNKS && every * every < chunks) every++;
    return every;
}

static int64_t all_states(const delta_work *w) {
    return w->group * delta_state_floats(w);
}

static int64_t back_layout(delta_back *b, float *scratch) {
    delta_work *w = &b->w;
    int64_t chunks = (w->call->attributes.delta.length + CHUNK - 1) / CHUNK;
    int64_t total = delta_layout(w, scratch);
    b->every = states_apart(chunks);
#define BACK_PLACE(member, count)                                                                  \
    (b->member = scratch == NULL ? NULL : scratch + total, total += base_ceil_to((count), 16))
    BACK_PLACE(slots, (chunks + b->every - 1) / b->every * all_states(w));
    BACK_PLACE(inner, b->every > 1 ? b->every * all_states(w) : 0);
    BACK_PLACE(dstates, all_states(w));
    BACK_PLACE(dq, CHUNK * w->wide_keys);
    BACK_PLACE(dk, CHUNK * w->wide_keys);
    BACK_PLACE(part, CHUNK * w->wide_keys);
    BACK_PLACE(q_turned, w->wide_keys * CHUNK);
    BACK_PLACE(state_turned, w->wide_values * w->wide_keys);
    BACK_PLACE(u_turned, w->wide_values * CHUNK);
    BACK_PLACE(turned, CHUNK * CHUNK);
    BACK_PLACE(dy, CHUNK * w->wide_values);
    BACK_PLACE(dr, CHUNK * w->wide_values);
    BACK_PLACE(z, CHUNK * w->wide_values);
    BACK_PLACE(x, CHUNK * w->wide_values);
    BACK_PLACE(y, CHUNK * w->wide_values);
    BACK_PLACE(t, CHUNK * CHUNK);
    BACK_PLACE(dp, CHUNK * CHUNK);
    return total;
}

int64_t KERNEL_NAME(cpu_delta_backward_floats)(const device_call *call) {
    delta_back b = {.w = delta_describe(call)};
    return back_layout(&b, NULL);
}

/* --- states --- */

/* The states behind the chunk take the place of those before it. */
static void advance(delta_work *w, float *states) {
    delta_load_keys(w, false);
    for (int64_t h = 0; h < w->group; h++) {
        float *state = states + h * delta_state_floats(w);
        delta_load_gates(w, w->head + h);
        delta_make_pairs(w);
        delta_make_updates(w, w->head + h, state);
        delta_move_state(w, state);
    }
}

static void copy_states(const delta_work *w, float *to, const float *from) {
    memcpy(to, from, (size_t)all_states(w) * sizeof *to);
}

/* The states before each `every`th chunk; those before the first are never read. */
static void fill_slots(delta_back *b, int64_t first, int64_t chunks, int64_t end) {
    delta_work *w = &b->w;
    for (int64_t n = 0; n < chunks; n++) {
        if (n % b->every == 0 && n > 0)
            copy_states(w, b->slots + n / b->every * all_states(w), w->states);
        if (n == (chunks - 1) / b->every * b->every) return;
        delta_place_chunk(w, first, n, end);
        delta_ahead_inputs(w, w->row + CHUNK, base_min_i64(CHUNK, end - w->row - CHUNK), false);
        advance(w, w->states);
    }
}

/* Those before chunks from ... from + count - 1. */
static void fill_inner(delta_back *b, int64_t first, int64_t from, int64_t count, int64_t end) {
    delta_work *w = &b->w;
    if (from > 0) copy_states(w, b->inner, b->slots + from / b->every * all_states(w));
    for (int64_t n = 0; n + 1 < count; n++) {
        float *here = b->inner + n * all_states(w), *next = here + all_states(w);
        if (from + n > 0) copy_states(w, next, here);
        delta_place_chunk(w, first, from + n, end);
        delta_ahead_begin(&w->ahead, 0);
        advance(w, next);
    }
}

/* --- a value head of a chunk --- */

/* (I + A)^-T u, a: -A turned */
static void solve_turned(int64_t n, const float *a, int64_t wide, float *u) {
    for (int64_t r = (n - 1) / BAND * BAND; r >= 0; r -= BAND) {
        int64_t end = delta_band_end(r, n);
        if (end < n)
            delta_add(NULL, end - r, wide, n - end, a + r * CHUNK + end, CHUNK, u + end * wide,
                      wide, u + r * wide, wide);
        for (int64_t i = end - 2; i >= r; i--)
            delta_add(NULL, 1, wide, end - 1 - i, a + i * CHUNK + i + 1, CHUNK, u + (i + 1) * wide,
                      wide, u + i * wide, wide);
    }
}

/* dR, and z */
static void make_dr(delta_back *b, const float *dstate, bool last) {
    delta_work *w = &b->w;
    int64_t n = w->rows, wide = w->wide_values;
    transpose(w->p, n, n, CHUNK, b->turned, CHUNK);
    delta_add_upper(n, b->turned, b->dy, wide, b->dr, false);
    if (!last) {
        delta_set(&w->ahead, n, wide, w->keys, w->k, w->wide_keys, dstate, wide, b->z, wide);
        for (int64_t i = 0; i < n; i++) {
            float *dr = b->dr + i * wide, rest = w->rest[i];
            const float *z = b->z + i * wide;
            LANES_EACH(c, wide) dr[c] = LANES_FMA(rest, z[c], dr[c]);
        }
    }
    transpose(w->a, n, n, CHUNK, b->turned, CHUNK);
    solve_turned(n, b->turned, wide, b->dr);
}

/* dv, x, y, and what dbeta and dG get of rows of R. */
static void finish_rows(delta_back *b, int64_t head) {
    const delta_work *w = &b->w;
    const device_call *c = w->call;
    int64_t wide = w->wide_values, at = head * w->values;
    float *v = w->out; /* free */
    for (int64_t i = 0; i < w->rows; i++) {
        const float *dr = b->dr + i * wide, *dy = b->dy + i * wide, *kept = w->kept + i * wide;
        float *x = b->x + i * wide, *y = b->y + i * wide, beta = w->beta[i], decay = w->decay[i];
        delta_load(&c->x[2], w->row + i, at, w->values, wide, v);
        b->dbeta[i] = delta_dot(dr, v, wide);
        b->dtotal[i] = 0;
        LANES_EACH(e, wide) v[e] = beta * dr[e];
        lanes_store(&c->dx[2], w->row + i, at, w->values, v);
        if (w->fresh) continue;
        double of_state = (double)decay * delta_dot(dr, kept, wide);
        b->dbeta[i] -= of_state;
        b->dtotal[i] = -(double)beta * of_state;
        float minus = -beta * decay;
        LANES_EACH(e, wide) x[e] = decay * dy[e];
        LANES_EACH(e, wide) y[e] = minus * dr[e];
    }
}

/* Turns t and dp into gradients of products of rows, and adds what pairs are to dbeta and dG. */
static void finish_pairs(delta_back *b) {
    const delta_work *w = &b->w;
    for (int64_t i = 0; i < w->rows; i++) {
        float *t = b->t + i * CHUNK, *dp = b->dp + i * CHUNK, beta = w->beta[i];
        const float *d = w->d + i * CHUNK, *a = w->a + i * CHUNK, *p = w->p + i * CHUNK;
        const float *kk = w->kk + i * CHUNK;
        double row = 0, of_beta = 0;
        for (int64_t j = 0; j < i; j++) {
            double m = (double)dp[j] * p[j] + (double)t[j] * a[j];
            row += m;
            b->dtotal[j] -= m;
            of_beta += (double)(t[j] * d[j]) * kk[j];
        }
        b->dtotal[i] += row;
        b->dbeta[i] -= of_beta;
        LANES_EACH(j, i + 1) {
            t[j] = -beta * (t[j] * d[j]);
            dp[j] *= d[j];
        }
        t[i] = 0.0f;
        for (int64_t j = i + 1; j < (i / BAND + 1) * BAND; j++) t[j] = dp[j] = 0.0f;
    }
}

/* What dq and dk get of products of rows. */
static void add_pairs(delta_back *b) {
    const delta_work *w = &b->w;
    int64_t n = w->rows, wide = w->wide_keys;
    delta_add_lower(n, b->dp, w->k, wide, b->dq, true);
    delta_add_lower(n, b->t, w->k, wide, b->dk, true);
    transpose(b->t, n, n, CHUNK, b->turned, CHUNK);
    delta_add_upper(n, b->turned, w->k, wide, b->dk, true);
    transpose(b->dp, n, n, CHUNK, b->turned, CHUNK);
    delta_add_upper(n, b->turned, w->q, wide, b->dk, true);
}

/* What there is of the state behind the chunk. */
static void add_next_state(delta_back *b, const float *state, const float *dstate) {
    delta_work *w = &b->w;
    int64_t n = w->rows, wide = w->wide_values;
    double all = 0;
    for (int64_t i = 0; i < n; i++) {
        const float *u = w->u + i * wide;
        float *u_rest = w->u_rest + i * wide, rest = w->rest[i];
        LANES_EACH(c, wide) u_rest[c] = rest * u[c];
        double of_row = delta_dot(u_rest, b->z + i * wide, wide);
        b->dtotal[i] -= of_row;
        all += of_row;
    }
    double kept = 0;
    for (int64_t i = 0; i < w->keys && !w->fresh; i++)
        kept += delta_dot(state + i * wide, dstate + i * wide, wide);
    b->dtotal[n - 1] += all + (double)w->decay[n - 1] * kept;
    delta_turn(dstate, w->keys, w->values, wide, b->state_turned, w->wide_keys);
    delta_add(&w->ahead, n, w->wide_keys, w->values, w->u_rest, wide, b->state_turned, w->wide_keys,
              b->dk, w->wide_keys);
}

/* What there is of the state before the chunk; dS0 takes the place of dS1. */
static void add_state(delta_back *b, const float *state, float *dstate, bool last) {
    delta_work *w = &b->w;
    int64_t n = w->rows, wide = w->wide_values, keys = w->wide_keys;
    delta_turn(state, w->keys, w->values, wide, b->state_turned, keys);
    delta_set(&w->ahead, n, keys, w->values, b->x, wide, b->state_turned, keys, b->part, keys);
    for (int64_t i = 0; i < n; i++) {
        const float *part = b->part + i * keys;
        float *dq = b->dq + i * keys;
        b->dtotal[i] += delta_dot(w->q + i * keys, part, keys);
        LANES_EACH(c, keys) dq[c] += part[c];
    }
    delta_add(&w->ahead, n, keys, w->values, b->y, wide, b->state_turned, keys, b->dk, keys);
    if (last) {
        delta_set(&w->ahead, w->keys, wide, n, b->q_turned, CHUNK, b->x, wide, dstate, wide);
    } else {
        delta_fill_alpha(w);
        delta_scale_add(&w->ahead, w->keys, wide, n, b->q_turned, CHUNK, b->x, wide, dstate, wide,
                        w->alpha);
    }
    delta_add(&w->ahead, w->keys, wide, n, w->k_turned, CHUNK, b->y, wide, dstate, wide);
}

static void put_value(const device_matrix *m, int64_t row, int64_t column, double value) {
    float single = (float)value;
    lanes_store(m, row, column, 1, &single);
}

/* Through g and beta to their inputs and weights. */
static void finish_gates(delta_back *b, int64_t head, double sums[2]) {
    const delta_work *w = &b->w;
    const device_call *c = w->call;
    double rate = delta_rate(c, head), dg = 0;
    for (int64_t i = w->rows - 1; i >= 0; i--) {
        int64_t row = w->row + i;
        double beta = delta_beta(c, row, head),
               other = delta_sigmoid(-delta_value(&c->x[4], row, head));
        dg += b->dtotal[i];
        double dtime = dg * rate * delta_sigmoid(delta_time(c, row, head));
        put_value(&c->dx[3], row, head, dtime);
        put_value(&c->dx[4], row, head, b->dbeta[i] * beta * other);
        sums[0] += dg * w->g[i];
        sums[1] += dtime;
    }
}

static void backward_head(delta_back *b, int64_t h, const float *state, bool last, double *sums) {
    delta_work *w = &b->w;
    int64_t head = w->head + h, wide = w->wide_values;
    float *dstate = b->dstates + h * delta_state_floats(w);
    delta_load_gates(w, head);
    delta_make_pairs(w);
    delta_make_updates(w, head, state);
    for (int64_t i = 0; i < w->rows; i++)
        delta_load(&w->call->dy, w->row + i, head * w->values, w->values, wide, b->dy + i * wide);
    make_dr(b, dstate, last);
    delta_turn(w->u, w->rows, w->values, wide, b->u_turned, CHUNK);
    delta_pairs(w->rows, w->values, b->dr, wide, b->u_turned, b->t);
    delta_pairs(w->rows, w->values, b->dy, wide, b->u_turned, b->dp);
    finish_rows(b, head);
    finish_pairs(b);
    add_pairs(b);
    if (!last) add_next_state(b, state, dstate);
    if (!w->fresh) add_state(b, state, dstate, last);
    finish_gates(b, head, sums + 2 * h);
}

/* --- chunks and segments --- */

/* dx = size (d - (x d) x / scale^2), of rows x that were normalised to `scale`. */
static void put_keys(const delta_work *w, int which, const float *normal, float *d,
                     const float *sizes, float scale) {
    int64_t wide = w->wide_keys;
    for (int64_t i = 0; i < w->rows; i++) {
        const float *x = normal + i * wide;
        float *dx = d + i * wide, size = sizes[i];
        float minus = -delta_dot(x, dx, wide) / (scale * scale);
        LANES_EACH(c, wide) dx[c] = size * LANES_FMA(minus, x[c], dx[c]);
        lanes_store(&w->call->dx[which], w->row + i, w->key_head * w->keys, w->keys, dx);
    }
}

/* The chunk before this one, unless this is the first. */
static void ahead(delta_back *b) {
    delta_work *w = &b->w;
    const device_call *c = w->call;
    int64_t row = w->row - CHUNK, values = w->group * w->values;
    delta_ahead_begin(&w->ahead, 0);
    if (w->fresh) return;
    delta_ahead_inputs(w, row, CHUNK, true);
    delta_ahead_add(&w->ahead, &c->dy, row, w->head * w->values, values);
    delta_ahead_add(&w->ahead, &c->dx[2], row, w->head * w->values, values);
    for (int i = 0; i < 2; i++)
        delta_ahead_add(&w->ahead, &c->dx[i], row, w->key_head * w->keys, w->keys);
}

static void backward_chunk(delta_back *b, const float *states, bool last, double *sums) {
    delta_work *w = &b->w;
    size_t bytes = (size_t)(w->rows * w->wide_keys) * sizeof *b->dq;
    delta_load_keys(w, true);
    ahead(b);
    delta_turn(w->q, w->rows, w->keys, w->wide_keys, b->q_turned, CHUNK);
    memset(b->dq, 0, bytes);
    memset(b->dk, 0, bytes);
    for (int64_t h = 0; h < w->group; h++)
        backward_head(b, h, states + h * delta_state_floats(w), last, sums);
    put_keys(w, 0, w->q, b->dq, w->q_size, delta_query_scale(w));
    put_keys(w, 1, w->k, b->dk, w->k_size, 1.0f);
}

static void backward_segment(delta_back *b, int64_t first, int64_t end, double *sums) {
    int64_t chunks = (end - first + CHUNK - 1) / CHUNK;
    fill_slots(b, first, chunks, end);
    for (int64_t from = (chunks - 1) / b->every * b->every; from >= 0; from -= b->every) {
        int64_t count = base_min_i64(b->every, chunks - from);
        const float *states = b->slots + from / b->every * all_states(&b->w);
        if (b->every > 1) {
            fill_inner(b, first, from, count, end);
            states = b->inner;
        }
        for (int64_t n = count - 1; n >= 0; n--) {
            delta_place_chunk(&b->w, first, from + n, end);
            backward_chunk(b, states + n * all_states(&b->w), from + n + 1 == chunks, sums);
        }
    }
}

void KERNEL_NAME(cpu_delta_backward)(const cpu_delta *d) {
    delta_back b = {.w = delta_describe(d->call)};
    int64_t length = d->call->attributes.delta.length;
    b.w.key_head = d->head, b.w.head = d->head * b.w.group;
    back_layout(&b, d->scratch);
    for (int64_t i = 0; i < 2 * b.w.group; i++) d->sums[i] = 0;
    int64_t end = (d->sequence + 1) * length, next;
    for (int64_t row = d->sequence * length; row < end; row = next) {
        next = delta_segment_end(d->call, row, end);
        backward_segment(&b, row, next, d->sums);
    }
}

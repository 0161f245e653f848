#include "support/delta_reference.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int64_t delta_columns(const delta_problem *p, int i) {
    if (i < 2) return p->key_heads * p->key_dim;
    return i == 2 ? p->value_heads * p->value_dim : p->value_heads;
}

static double *take(int64_t count) {
    double *values = calloc((size_t)count, sizeof *values);
    if (!values) abort();
    return values;
}

/* What a row of a value head is made of. */
typedef struct delta_row {
    double *q, *k; /* normalised */
    double q_length, k_length, g, softplus, slope, beta;
    double *before, *kept, *u; /* e^g S, its product with k, and u */
} delta_row;

static double normalise(const double *x, int64_t n, double *out) {
    double sum = 1e-6;
    for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
    for (int64_t i = 0; i < n; i++) out[i] = x[i] / sqrt(sum);
    return sqrt(sum);
}

static bool begins(const delta_problem *p, int64_t row) {
    return row % p->length == 0 || (p->segments && p->segments[row] != p->segments[row - 1]);
}

static void read_row(const delta_problem *p, const delta_values *v, int64_t row, int64_t head,
                     delta_row *r) {
    int64_t keys = p->key_dim, key_head = head / (p->value_heads / p->key_heads);
    int64_t at = (row * p->key_heads + key_head) * keys, gate = row * p->value_heads + head;
    double x = v->x[3][gate] + v->w[1][head];
    r->q_length = normalise(v->x[0] + at, keys, r->q);
    r->k_length = normalise(v->x[1] + at, keys, r->k);
    for (int64_t i = 0; i < keys; i++) r->q[i] /= sqrt((double)keys);
    r->softplus = x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    r->slope = 1 / (1 + exp(-x));
    r->g = -exp(v->w[0][head]) * r->softplus;
    r->beta = 1 / (1 + exp(-v->x[4][gate]));
}

/* Moves the state by one row; r keeps what the way back reads, y may be NULL. */
static void move(const delta_problem *p, const delta_values *v, int64_t row, int64_t head,
                 double *state, delta_row *r, double *y) {
    int64_t keys = p->key_dim, values = p->value_dim;
    const double *from = v->x[2] + (row * p->value_heads + head) * values;
    read_row(p, v, row, head, r);
    if (begins(p, row)) memset(state, 0, (size_t)(keys * values) * sizeof *state);
    for (int64_t i = 0; i < keys * values; i++) r->before[i] = exp(r->g) * state[i];
    for (int64_t c = 0; c < values; c++) {
        r->kept[c] = 0;
        for (int64_t i = 0; i < keys; i++) r->kept[c] += r->before[i * values + c] * r->k[i];
        r->u[c] = r->beta * (from[c] - r->kept[c]);
    }
    for (int64_t i = 0; i < keys; i++)
        for (int64_t c = 0; c < values; c++)
            state[i * values + c] = r->before[i * values + c] + r->k[i] * r->u[c];
    for (int64_t c = 0; c < values && y; c++) {
        double *to = y + (row * p->value_heads + head) * values + c;
        *to = 0;
        for (int64_t i = 0; i < keys; i++) *to += state[i * values + c] * r->q[i];
    }
}

static delta_row make_row(const delta_problem *p) {
    delta_row r = {.q = take(2 * p->key_dim + p->key_dim * p->value_dim + 2 * p->value_dim)};
    r.k = r.q + p->key_dim;
    r.before = r.k + p->key_dim;
    r.kept = r.before + p->key_dim * p->value_dim;
    r.u = r.kept + p->value_dim;
    return r;
}

void delta_reference(const delta_problem *p, const delta_values *v, double *y) {
    delta_row r = make_row(p);
    double *state = take(p->key_dim * p->value_dim);
    for (int64_t head = 0; head < p->value_heads; head++)
        for (int64_t row = 0; row < p->sequences * p->length; row++)
            move(p, v, row, head, state, &r, y);
    free(state), free(r.q);
}

/* dx of x / length scale, where `normal` is that and d its gradient; adds to dx. */
static void add_normal(const double *normal, const double *d, int64_t n, double length,
                       double scale, double *dx) {
    double along = 0;
    for (int64_t i = 0; i < n; i++) along += normal[i] * d[i];
    for (int64_t i = 0; i < n; i++)
        dx[i] += scale / length * (d[i] - along / (scale * scale) * normal[i]);
}

/* What a row's result and the state behind it, whose gradient *ds is, give to all; *ds becomes that
 * of the state before it. */
static void move_back(const delta_problem *p, const delta_values *v, const double *before,
                      const double *state, int64_t row, int64_t head, const delta_row *r,
                      const double *dy, double *ds, const delta_values *d) {
    int64_t keys = p->key_dim, values = p->value_dim;
    int64_t key_head = head / (p->value_heads / p->key_heads);
    int64_t at = (row * p->key_heads + key_head) * keys, gate = row * p->value_heads + head;
    const double *from = v->x[2] + gate * values;
    double *dq = take(2 * keys + values), *dk = dq + keys, *du = dk + keys;
    double dbeta = 0, dg = 0;
    dy += gate * values;
    for (int64_t i = 0; i < keys; i++)
        for (int64_t c = 0; c < values; c++) {
            dq[i] += state[i * values + c] * dy[c];
            ds[i * values + c] += r->q[i] * dy[c];
            du[c] += ds[i * values + c] * r->k[i];
            dk[i] += ds[i * values + c] * r->u[c];
        }
    for (int64_t c = 0; c < values; c++) {
        d->x[2][gate * values + c] = r->beta * du[c];
        dbeta += du[c] * (from[c] - r->kept[c]);
    }
    for (int64_t i = 0; i < keys; i++)
        for (int64_t c = 0; c < values; c++) {
            double *to = &ds[i * values + c];
            *to -= r->k[i] * r->beta * du[c];
            dk[i] -= r->before[i * values + c] * r->beta * du[c];
            dg += *to * exp(r->g) * before[i * values + c];
            *to *= exp(r->g);
        }
    double rate = -exp(v->w[0][head]);
    add_normal(r->q, dq, keys, r->q_length, 1 / sqrt((double)keys), d->x[0] + at);
    add_normal(r->k, dk, keys, r->k_length, 1, d->x[1] + at);
    d->x[3][gate] = dg * rate * r->slope;
    d->x[4][gate] = dbeta * r->beta * (1 - r->beta);
    d->w[0][head] += dg * r->g;
    d->w[1][head] += dg * rate * r->slope;
    free(dq);
}

void delta_reference_gradients(const delta_problem *p, const delta_values *v, const double *dy,
                               const delta_values *d) {
    int64_t size = p->key_dim * p->value_dim, rows = p->sequences * p->length;
    double *states = take((rows + 1) * size), *ds = take(size), *state = take(size);
    delta_row r = make_row(p);
    for (int i = 0; i < DELTA_X; i++)
        memset(d->x[i], 0, (size_t)(rows * delta_columns(p, i)) * sizeof(double));
    for (int i = 0; i < DELTA_W; i++) memset(d->w[i], 0, (size_t)p->value_heads * sizeof(double));
    for (int64_t head = 0; head < p->value_heads; head++) {
        for (int64_t row = 0; row < rows; row++) { /* the state before each row */
            if (begins(p, row)) memset(state, 0, (size_t)size * sizeof *state);
            memcpy(states + row * size, state, (size_t)size * sizeof *state);
            move(p, v, row, head, state, &r, NULL);
        }
        for (int64_t row = rows - 1; row >= 0; row--) {
            if (row + 1 == rows || begins(p, row + 1)) memset(ds, 0, (size_t)size * sizeof *ds);
            memcpy(state, states + row * size, (size_t)size * sizeof *state);
            move(p, v, row, head, state, &r, NULL);
            move_back(p, v, states + row * size, state, row, head, &r, dy, ds, d);
        }
    }
    free(states), free(ds), free(state), free(r.q);
}

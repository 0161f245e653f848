/* Attention in double precision: its result, its gradients by the textbook's formula, and the check
 * of both, for the cases of attention_case.h. */
#ifndef TESTS_ATTENTION_REFERENCE_H
#define TESTS_ATTENTION_REFERENCE_H

#include "device/attention_case.h"

/* Rows of one sequence. */
static inline bool sees(const attention_case *c, int64_t sequence, int64_t i, int64_t j) {
    int64_t first = sequence * c->length;
    if (c->segments && segment_of(c, first + i) != segment_of(c, first + j)) return false;
    bool near = c->window == 0 || llabs(i - j) < c->window;
    return near && (c->bidirectional || j <= i);
}

static inline double capped(const attention_case *c, double score) {
    return c->softcap > 0 ? c->softcap * tanh(score / c->softcap) : score;
}

static inline double cap_slope(const attention_case *c, double score) {
    if (c->softcap == 0) return 1;
    double t = tanh(score / c->softcap);
    return 1 - t * t;
}

/* The operands, which are read many times. */
typedef struct attention_values {
    double *qkv, *y, *dy;
} attention_values;

static inline attention_values attention_values_of(const attention_operands *o) {
    return (attention_values){case_doubles(&o->qkv), case_doubles(&o->y), case_doubles(&o->dy)};
}

static inline void free_values(attention_values *values) {
    free(values->qkv);
    free(values->y);
    free(values->dy);
}

/* One sequence and query head of the reference. Columns: q, k, v of this head. */
typedef struct head_view {
    const attention_operands *o;
    const attention_values *values;
    int64_t row, q, k, v;
} head_view;

static inline head_view view_of(const attention_operands *o, const attention_values *values,
                                int64_t sequence, int head) {
    const attention_case *c = o->c;
    int64_t kv = head / (c->heads / c->kv_heads) * (int64_t)c->head_dim;
    return (head_view){.o = o,
                       .values = values,
                       .row = sequence * c->length,
                       .q = (int64_t)head * c->head_dim,
                       .k = q_width(c) + kv,
                       .v = q_width(c) + kv_width(c) + kv};
}

/* Row i of this sequence, from a column on; and of dy and y, of this head. */
static inline const double *row_at(const head_view *v, int64_t i, int64_t column) {
    return v->values->qkv + (v->row + i) * v->o->qkv.columns + column;
}

static inline const double *head_row(const head_view *v, const double *values, int64_t i) {
    return values + (v->row + i) * q_width(v->o->c) + v->q;
}

static inline double product(const double *a, const double *b, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}

/* As transformers' _get_alibi_slopes has them. */
static inline double alibi_slope(int heads, int64_t head) {
    int64_t closest = (int64_t)pow(2, floor(log2(heads)));
    double base = pow(2, -pow(2, -(log2((double)closest) - 3)));
    double extra = pow(2, -pow(2, -(log2(2 * (double)closest) - 3)));
    if (head < closest) return pow(base, (double)(head + 1));
    return pow(extra, (double)(1 + 2 * (head - closest)));
}

static inline double score_of(const head_view *v, int64_t i, int64_t j) {
    const attention_case *c = v->o->c;
    double bias = 0;
    if (c->alibi > 0) bias = c->alibi * alibi_slope(c->heads, v->q / c->head_dim) * (double)(j - i);
    return scale_of(c) * product(row_at(v, i, v->q), row_at(v, j, v->k), c->head_dim) + bias;
}

/* What dropout multiplies a probability by: 16 bits of Philox's for each key, 8 keys a call. */
static inline double kept(const head_view *v, int64_t i, int64_t j) {
    const attention_operands *o = v->o;
    if (!(o->dropout > 0) || !step.training) return 1;
    device_call call = describe_call(o, DEVICE_ATTENTION);
    uint64_t place = (uint64_t)(uint32_t)call.attributes.micro_batch << 32;
    uint64_t key =
        base_random_key(step.seed, (uint64_t)step.step, place | (uint32_t)call.attributes.op);
    int64_t head = v->row / o->c->length * o->c->heads + v->q / o->c->head_dim;
    base_random4 random = base_philox(key, (uint64_t)i << 32 | (uint64_t)j / 8, (uint64_t)head);
    uint32_t number = random.v[j % 8 / 2] >> (j % 2 * 16) & 0xffff;
    uint32_t threshold = (uint32_t)(o->dropout * 65536 + 0.5f);
    return number < threshold ? 0 : 65536.0 / (65536 - threshold);
}

/* Probabilities of query i over all keys; returns the logarithm of the sum. */
static inline double probabilities(const head_view *v, int64_t i, double *p) {
    const attention_case *c = v->o->c;
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < c->length; j++) {
        p[j] = sees(c, v->row / c->length, i, j) ? capped(c, score_of(v, i, j)) : -INFINITY;
        most = fmax(most, p[j]);
    }
    for (int64_t j = 0; j < c->length; j++) sum += p[j] = exp(p[j] - most);
    for (int64_t j = 0; j < c->length; j++) p[j] /= sum;
    return most + log(sum);
}

static inline void check_forward(const attention_operands *o) {
    const attention_case *c = o->c;
    double *p = calloc((size_t)c->length, sizeof *p);
    attention_values values = attention_values_of(o);
    for (int64_t s = 0; s < c->sequences; s++)
        for (int h = 0; h < c->heads; h++) {
            head_view v = view_of(o, &values, s, h);
            for (int64_t i = 0; i < c->length; i++) {
                double log_sum = probabilities(&v, i, p);
                for (int64_t j = 0; j < c->length; j++)
                    if (p[j] > 0) p[j] *= kept(&v, i, j);
                check_value("log sum", c, BASE_FP32, case_get(&o->log_sums, h, v.row + i), log_sum,
                            1 + fabs(log_sum));
                for (int d = 0; d < c->head_dim; d++) {
                    double sum = 0, terms = 0;
                    for (int64_t j = 0; j < c->length; j++) {
                        double term = p[j] * row_at(&v, j, v.v)[d];
                        sum += term, terms += fabs(term);
                    }
                    check_value("y", c, o->y.dtype, case_get(&o->y, v.row + i, v.q + d), sum,
                                terms);
                }
            }
        }
    free(p);
    free_values(&values);
}

/* Gradients in double by the textbook's formula, and the sums of absolute terms. */
typedef struct reference {
    double *gradient, *terms;
} reference;

static inline void add_gradient(reference *ref, const attention_operands *o, int64_t row,
                                int64_t column, double value) {
    ref->gradient[row * o->qkv.columns + column] += value;
    ref->terms[row * o->qkv.columns + column] += fabs(value);
}

static inline reference make_reference(const attention_operands *o) {
    const attention_case *c = o->c;
    size_t count = (size_t)(o->qkv.rows * o->qkv.columns);
    reference ref = {calloc(count, sizeof(double)), calloc(count, sizeof(double))};
    double *p = calloc((size_t)c->length, sizeof *p), *dp = calloc((size_t)c->length, sizeof *dp);
    attention_values values = attention_values_of(o);
    double *factor = calloc((size_t)c->length, sizeof *factor);
    for (int64_t s = 0; s < c->sequences; s++)
        for (int h = 0; h < c->heads; h++) {
            head_view v = view_of(o, &values, s, h);
            for (int64_t i = 0; i < c->length; i++) {
                probabilities(&v, i, p);
                const double *y = head_row(&v, values.y, i), *dy = head_row(&v, values.dy, i);
                double mean = 0, mean_terms = 0;
                for (int d = 0; d < c->head_dim; d++) /* y is rounded */
                    mean_terms += fabs(dy[d] * y[d]);
                for (int64_t j = 0; j < c->length; j++) {
                    if (!sees(c, s, i, j)) continue;
                    factor[j] = kept(&v, i, j);
                    dp[j] = factor[j] * product(dy, row_at(&v, j, v.v), c->head_dim);
                    mean += p[j] * dp[j], mean_terms += p[j] * fabs(dp[j]);
                }
                for (int64_t j = 0; j < c->length; j++) {
                    if (!sees(c, s, i, j)) continue;
                    double slope = cap_slope(c, score_of(&v, i, j)) * scale_of(c);
                    double ds = p[j] * (dp[j] - mean) * slope;
                    double ds_terms = p[j] * (fabs(dp[j]) + mean_terms) * slope;
                    for (int d = 0; d < c->head_dim; d++) {
                        double q = row_at(&v, i, v.q)[d];
                        double k = row_at(&v, j, v.k)[d];
                        add_gradient(&ref, o, v.row + i, v.q + d, ds * k);
                        add_gradient(&ref, o, v.row + j, v.k + d, ds * q);
                        add_gradient(&ref, o, v.row + j, v.v + d, p[j] * factor[j] * dy[d]);
                        ref.terms[(v.row + i) * o->qkv.columns + v.q + d] += fabs(ds_terms * k);
                        ref.terms[(v.row + j) * o->qkv.columns + v.k + d] += fabs(ds_terms * q);
                    }
                }
            }
        }
    free(p);
    free(dp);
    free(factor);
    free_values(&values);
    return ref;
}

static inline void check_backward(const attention_operands *o) {
    reference ref = make_reference(o);
    for (int64_t r = 0; r < o->qkv.rows; r++)
        for (int64_t column = 0; column < o->qkv.columns; column++) {
            int64_t at = r * o->qkv.columns + column;
            check_value(column < q_width(o->c) ? "dq" : "dk or dv", o->c, o->dqkv.dtype,
                        case_get(&o->dqkv, r, column), ref.gradient[at], ref.terms[at]);
        }
    free(ref.gradient);
    free(ref.terms);
}

#endif

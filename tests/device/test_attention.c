/* Attention against double precision: forward, gradients (also against finite differences of the
 * reference), grouped heads, slices, dropout, the cache, and the same bits for any number of
 * threads.
 * in test_asan */
#include "device/matrix_case.h"
#include "support/thinned.h"

#include <math.h>
#include <stdio.h>

typedef struct attention_case {
    int64_t sequences, length;
    int heads, kv_heads, head_dim;
    double scale, softcap; /* scale 0: 1/sqrt(head_dim) */
    int64_t window;
    bool bidirectional;
    int segments; /* 0: none; else one of the patterns of segment_of() */
} attention_case;

#define SHAPE(s, l, h, kv, d)                                                                      \
    .sequences = (s), .length = (l), .heads = (h), .kv_heads = (kv), .head_dim = (d)

static const attention_case cases[] = {
    {SHAPE(1, 1, 1, 1, 1)},    {SHAPE(2, 5, 2, 1, 3)},    {SHAPE(1, 70, 2, 2, 16)},
    {SHAPE(2, 65, 4, 2, 64)},  {SHAPE(1, 130, 1, 1, 80)}, {SHAPE(1, 200, 3, 1, 128)},
    {SHAPE(1, 67, 2, 1, 256)}, {SHAPE(3, 64, 2, 2, 33)},  {SHAPE(1, 66, 1, 1, 96)},
    {SHAPE(1, 65, 2, 1, 72)},  {SHAPE(1, 97, 2, 1, 24)},  {SHAPE(1, 35, 4, 1, 256), .softcap = 4}};

enum { PADDED = 1, DOCUMENTS, SCATTERED, ALONE };

/* The features, alone and together; blocks of queries have 16 to 64 rows, tiles 64 keys. */
static const attention_case features[] = {
    {SHAPE(2, 70, 2, 1, 16), .scale = 0.4},
    {SHAPE(1, 150, 2, 1, 24), .softcap = 1.5},
    {SHAPE(2, 9, 1, 1, 8), .window = 1},
    {SHAPE(1, 210, 2, 2, 16), .window = 7},
    {SHAPE(2, 201, 2, 1, 40), .window = 64, .softcap = 3},
    {SHAPE(1, 333, 1, 1, 33), .window = 100, .scale = 0.3},
    {SHAPE(1, 300, 1, 1, 8), .window = 300},
    {SHAPE(1, 131, 2, 1, 256), .window = 65, .softcap = 0.7, .scale = 0.1},
    {SHAPE(2, 75, 2, 1, 16), .bidirectional = true},
    {SHAPE(1, 203, 2, 2, 24), .bidirectional = true, .softcap = 1},
    {SHAPE(1, 310, 1, 1, 40), .bidirectional = true, .window = 65},
    {SHAPE(2, 3, 1, 1, 8), .bidirectional = true, .window = 2},
    {SHAPE(1, 257, 2, 1, 8), .bidirectional = true, .window = 9},
    {SHAPE(1, 1, 1, 1, 4), .bidirectional = true},
    {SHAPE(2, 150, 2, 1, 16), .segments = PADDED, .bidirectional = true},
    {SHAPE(1, 333, 2, 2, 24), .segments = DOCUMENTS},
    {SHAPE(2, 301, 1, 1, 40), .segments = DOCUMENTS, .window = 70, .softcap = 2},
    {SHAPE(1, 210, 2, 1, 8), .segments = SCATTERED},
    {SHAPE(2, 170, 1, 1, 16), .segments = SCATTERED, .window = 20, .bidirectional = true},
    {SHAPE(1, 130, 1, 1, 8), .segments = ALONE, .bidirectional = true},
    {SHAPE(1, 257, 2, 1, 33), .segments = PADDED, .window = 65},
};

/* Text and, behind it, padding; runs of odd lengths with numbers in no order; each token by chance
 * in one of three; no two alike. */
static int32_t segment_of(const attention_case *c, int64_t row) {
    int64_t at = row % c->length, sequence = row / c->length;
    switch (c->segments) {
    case PADDED:
        return at >= c->length * (3 + sequence) / 5;
    case DOCUMENTS:
        return (int32_t)((at + 11 * sequence) / 37 * 7919 % 31) - 15;
    case SCATTERED:
        return (int32_t)(base_philox(3, (uint64_t)row, 0).v[0] % 3);
    default:
        return (int32_t)(at ^ 5) - 50;
    }
}

/* q, k and v are slices of columns of one matrix, as GPT-2's are; so are their gradients. */
typedef struct attention_operands {
    const attention_case *c;
    device_matrix qkv, dqkv, y, dy, log_sums, segments;
    float dropout;
} attention_operands;

static device_step step = {.seed = 5, .step = 3, .training = true};

static int64_t kv_width(const attention_case *c) {
    return (int64_t)c->kv_heads * c->head_dim;
}

static int64_t q_width(const attention_case *c) {
    return (int64_t)c->heads * c->head_dim;
}

static device_matrix part(const device_matrix *m, const attention_case *c, int which) {
    device_matrix slice = *m;
    int64_t first = which == 0 ? 0 : q_width(c) + (which - 1) * kv_width(c);
    slice.columns = which == 0 ? q_width(c) : kv_width(c);
    slice.data = (char *)m->data + first * base_dtype_bytes(m->dtype);
    return slice;
}

static device_matrix make_segments(const attention_case *c) {
    if (c->segments == 0) return (device_matrix){0};
    device_matrix m = case_matrix(c->sequences * c->length, 2, BASE_INT32, 1, 100);
    m.columns = 1; /* a slice */
    for (int64_t r = 0; r < m.rows; r++) case_set(&m, r, 0, segment_of(c, r));
    return m;
}

static attention_operands make_operands(const attention_case *c, base_dtype type, float dropout) {
    int64_t rows = c->sequences * c->length, width = q_width(c) + 2 * kv_width(c);
    return (attention_operands){.c = c,
                                .qkv = case_matrix(rows, width, type, 1, 1.5),
                                .dqkv = case_matrix(rows, width, type, 2, 1),
                                .y = case_matrix(rows, q_width(c), type, 3, 1),
                                .dy = case_matrix(rows, q_width(c), type, 4, 1),
                                .log_sums = case_matrix(c->heads, rows, BASE_FP32, 5, 1),
                                .segments = make_segments(c),
                                .dropout = dropout};
}

static void free_operands(attention_operands *o) {
    free(o->qkv.data);
    free(o->dqkv.data);
    free(o->y.data);
    free(o->dy.data);
    free(o->log_sums.data);
    free(o->segments.data);
}

static double scale_of(const attention_case *c) {
    return (float)(c->scale > 0 ? c->scale : 1.0 / sqrt(c->head_dim));
}

/* Rows of one sequence. */
static bool sees(const attention_case *c, int64_t sequence, int64_t i, int64_t j) {
    int64_t first = sequence * c->length;
    if (c->segments && segment_of(c, first + i) != segment_of(c, first + j)) return false;
    bool near = c->window == 0 || llabs(i - j) < c->window;
    return near && (c->bidirectional || j <= i);
}

static double capped(const attention_case *c, double score) {
    return c->softcap > 0 ? c->softcap * tanh(score / c->softcap) : score;
}

static double cap_slope(const attention_case *c, double score) {
    if (c->softcap == 0) return 1;
    double t = tanh(score / c->softcap);
    return 1 - t * t;
}

static device_call describe_call(const attention_operands *o, device_kernel kernel) {
    device_call call = {
        .kernel = kernel,
        .x = {part(&o->qkv, o->c, 0), part(&o->qkv, o->c, 1), part(&o->qkv, o->c, 2), o->segments},
        .y = o->y,
        .saved = {o->log_sums},
        .step = &step};
    if (kernel == DEVICE_ATTENTION_BACKWARD) {
        call.dy = o->dy;
        for (int i = 0; i < 3; i++) call.dx[i] = part(&o->dqkv, o->c, i);
    }
    call.attributes.op = 7, call.attributes.micro_batch = 2;
    call.attributes.attention.heads = o->c->heads;
    call.attributes.attention.kv_heads = o->c->kv_heads;
    call.attributes.attention.head_dim = o->c->head_dim;
    call.attributes.attention.sequences = o->c->sequences;
    call.attributes.attention.length = o->c->length;
    call.attributes.attention.scale = (float)scale_of(o->c);
    call.attributes.attention.softcap = (float)o->c->softcap;
    call.attributes.attention.window = o->c->window;
    call.attributes.attention.bidirectional = o->c->bidirectional;
    call.attributes.attention.dropout = o->dropout;
    return call;
}

static void run_attention(device *dev, attention_operands *o) {
    device_call forward = describe_call(o, DEVICE_ATTENTION);
    case_run(dev, &forward);
    device_call backward = describe_call(o, DEVICE_ATTENTION_BACKWARD);
    case_run(dev, &backward);
}

/* One sequence and query head of the reference. Columns: q, k, v of this head. */
typedef struct head_view {
    const attention_operands *o;
    int64_t row, q, k, v;
} head_view;

static head_view view_of(const attention_operands *o, int64_t sequence, int head) {
    const attention_case *c = o->c;
    int64_t kv = head / (c->heads / c->kv_heads) * (int64_t)c->head_dim;
    return (head_view){o, sequence * c->length, (int64_t)head * c->head_dim, q_width(c) + kv,
                       q_width(c) + kv_width(c) + kv};
}

static double product(const device_matrix *a, int64_t row, int64_t column, const device_matrix *b,
                      int64_t other_row, int64_t other_column, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += case_get(a, row, column + i) * case_get(b, other_row, other_column + i);
    return sum;
}

static double score_of(const head_view *v, int64_t i, int64_t j) {
    const device_matrix *m = &v->o->qkv;
    return scale_of(v->o->c) * product(m, v->row + i, v->q, m, v->row + j, v->k, v->o->c->head_dim);
}

/* Probabilities of query i over all keys; returns the logarithm of the sum. */
static double probabilities(const head_view *v, int64_t i, double *p) {
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

/* bf16 stores P and dS with 8 bits, so what they are summed into carries that of all its terms;
 * fp16 only y and the gradients, with 11. */
static double tolerance(base_dtype type) {
    return type == BASE_BF16 ? 1.0 / 100 : type == BASE_FP16 ? 1.0 / 1000 : 4e-6;
}

static void check_value(const char *what, const attention_case *c, base_dtype type, double got,
                        double want, double terms) {
    double allowed = tolerance(type) * terms + 1e-7; /* products that cancel have no terms */
    if (type == BASE_FP16) allowed += 0x1p-25;       /* below 2^-14 */
    if (!(fabs(got - want) <= allowed))
        fail_msg("%s %s %lldx%lld heads %d/%d of %d, scale %g, softcap %g, window %lld%s, segments "
                 "%d: %.9g, "
                 "expected %.9g within %.2g",
                 what, base_dtype_name(type), (long long)c->sequences, (long long)c->length,
                 c->heads, c->kv_heads, c->head_dim, c->scale, c->softcap, (long long)c->window,
                 c->bidirectional ? ", bidirectional" : "", c->segments, got, want, allowed);
}

static void check_forward(const attention_operands *o) {
    const attention_case *c = o->c;
    double *p = calloc((size_t)c->length, sizeof *p);
    for (int64_t s = 0; s < c->sequences; s++)
        for (int h = 0; h < c->heads; h++) {
            head_view v = view_of(o, s, h);
            for (int64_t i = 0; i < c->length; i++) {
                double log_sum = probabilities(&v, i, p);
                check_value("log sum", c, BASE_FP32, case_get(&o->log_sums, h, v.row + i), log_sum,
                            1 + fabs(log_sum));
                for (int d = 0; d < c->head_dim; d++) {
                    double sum = 0, terms = 0;
                    for (int64_t j = 0; j < c->length; j++) {
                        double term = p[j] * case_get(&o->qkv, v.row + j, v.v + d);
                        sum += term, terms += fabs(term);
                    }
                    check_value("y", c, o->y.dtype, case_get(&o->y, v.row + i, v.q + d), sum,
                                terms);
                }
            }
        }
    free(p);
}

/* Gradients in double by the textbook's formula, and the sums of absolute terms. */
typedef struct reference {
    double *gradient, *terms;
} reference;

static void add_gradient(reference *ref, const attention_operands *o, int64_t row, int64_t column,
                         double value) {
    ref->gradient[row * o->qkv.columns + column] += value;
    ref->terms[row * o->qkv.columns + column] += fabs(value);
}

static reference make_reference(const attention_operands *o) {
    const attention_case *c = o->c;
    size_t count = (size_t)(o->qkv.rows * o->qkv.columns);
    reference ref = {calloc(count, sizeof(double)), calloc(count, sizeof(double))};
    double *p = calloc((size_t)c->length, sizeof *p), *dp = calloc((size_t)c->length, sizeof *dp);
    for (int64_t s = 0; s < c->sequences; s++)
        for (int h = 0; h < c->heads; h++) {
            head_view v = view_of(o, s, h);
            for (int64_t i = 0; i < c->length; i++) {
                probabilities(&v, i, p);
                double mean = 0, mean_terms = 0;
                for (int64_t j = 0; j < c->length; j++) {
                    if (!sees(c, s, i, j)) continue;
                    dp[j] = product(&o->dy, v.row + i, v.q, &o->qkv, v.row + j, v.v, c->head_dim);
                    mean += p[j] * dp[j], mean_terms += p[j] * fabs(dp[j]);
                }
                for (int64_t j = 0; j < c->length; j++) {
                    if (!sees(c, s, i, j)) continue;
                    double slope = cap_slope(c, score_of(&v, i, j)) * scale_of(c);
                    double ds = p[j] * (dp[j] - mean) * slope;
                    double ds_terms = p[j] * (fabs(dp[j]) + mean_terms) * slope;
                    for (int d = 0; d < c->head_dim; d++) {
                        double q = case_get(&o->qkv, v.row + i, v.q + d);
                        double k = case_get(&o->qkv, v.row + j, v.k + d);
                        add_gradient(&ref, o, v.row + i, v.q + d, ds * k);
                        add_gradient(&ref, o, v.row + j, v.k + d, ds * q);
                        add_gradient(&ref, o, v.row + j, v.v + d,
                                     p[j] * case_get(&o->dy, v.row + i, v.q + d));
                        ref.terms[(v.row + i) * o->qkv.columns + v.q + d] += fabs(ds_terms * k);
                        ref.terms[(v.row + j) * o->qkv.columns + v.k + d] += fabs(ds_terms * q);
                    }
                }
            }
        }
    free(p);
    free(dp);
    return ref;
}

static void check_backward(const attention_operands *o) {
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

static void check_threads(const char *isa, const attention_operands *first) {
    for (int t = 1; t < CASE_THREADS; t++) {
        attention_operands other = *first;
        other.y = case_copy(&first->y), other.dqkv = case_copy(&first->dqkv);
        other.log_sums = case_copy(&first->log_sums);
        memset(other.y.data, 0, case_bytes(&other.y));
        memset(other.dqkv.data, 0, case_bytes(&other.dqkv));
        device *dev = case_device(case_threads[t], isa);
        run_attention(dev, &other);
        device_close(dev);
        assert_memory_equal(other.y.data, first->y.data, case_bytes(&first->y));
        assert_memory_equal(other.dqkv.data, first->dqkv.data, case_bytes(&first->dqkv));
        assert_memory_equal(other.log_sums.data, first->log_sums.data,
                            case_bytes(&first->log_sums));
        free(other.y.data);
        free(other.dqkv.data);
        free(other.log_sums.data);
    }
}

static void check_cases(device *dev, const char *isa, const attention_case *list, size_t count) {
    static const base_dtype types[] = {BASE_FP32, BASE_BF16, BASE_FP16};
    for (size_t i = 0; i < count; i++)
        for (int type = 0; type < (i % 2 ? 2 : 3); type++) {
            if (i % 2 == 0 && thinned_out(i / 2 + (size_t)type)) continue;
            attention_operands o = make_operands(&list[i], types[type], 0);
            run_attention(dev, &o);
            check_forward(&o);
            check_backward(&o);
            check_threads(isa, &o);
            free_operands(&o);
        }
}

static void check_isa(const char *isa) {
    device *dev = case_device(1, isa);
    if (dev == NULL) skip();
    check_cases(dev, isa, cases, sizeof cases / sizeof *cases);
    check_cases(dev, isa, features, sizeof features / sizeof *features);
    device_close(dev);
}

static void attention_avx512_bf16(void **state) {
    (void)state;
    check_isa("avx512_bf16");
}

static void attention_avx512(void **state) {
    (void)state;
    check_isa("avx512");
}

static void attention_avx2(void **state) {
    (void)state;
    check_isa("avx2");
}

static void attention_plain(void **state) {
    (void)state;
    check_isa("plain");
}

static double weighted_output(device *dev, attention_operands *o) {
    device_call call = describe_call(o, DEVICE_ATTENTION);
    case_run(dev, &call);
    double sum = 0;
    for (int64_t r = 0; r < o->y.rows; r++)
        for (int64_t c = 0; c < o->y.columns; c++)
            sum += case_get(&o->y, r, c) * case_get(&o->dy, r, c);
    return sum;
}

/* With dropout the numbers come back in the backward pass: differences of the forward kernel. */
static void attention_differences(void **state) {
    (void)state;
    static const attention_case plain = {SHAPE(2, 9, 2, 1, 6)},
                                both = {SHAPE(2, 9, 2, 1, 6), .bidirectional = true},
                                all = {SHAPE(2, 9, 2, 1, 6), .scale = 0.5, .softcap = 1.2,
                                       .segments = SCATTERED, .window = 4};
    for (int isa = 0; isa < CASE_ISAS; isa++)
        for (int variant = 0; variant < 6; variant++) {
            device *dev = case_device(2, case_isas[isa]);
            if (dev == NULL) continue;
            bool dropout = variant % 2;
            const attention_case c = variant < 2 ? plain : variant < 4 ? both : all;
            attention_operands o = make_operands(&c, BASE_FP32, dropout ? 0.4f : 0.0f);
            run_attention(dev, &o);
            for (int64_t r = 0; r < o.qkv.rows; r += 2)
                for (int64_t column = r % 5; column < o.qkv.columns; column += 5) {
                    double at = case_get(&o.qkv, r, column), delta = 0x1p-7;
                    case_set(&o.qkv, r, column, at + delta);
                    double high = weighted_output(dev, &o);
                    case_set(&o.qkv, r, column, at - delta);
                    double low = weighted_output(dev, &o);
                    case_set(&o.qkv, r, column, at);
                    double want = (high - low) / (2 * delta);
                    double got = case_get(&o.dqkv, r, column);
                    if (!(fabs(got - want) <= 2e-3 * (0.1 + fabs(want))))
                        fail_msg("%s variant %d: gradient (%lld, %lld) is %g, difference %g",
                                 case_isas[isa], variant, (long long)r, (long long)column, got,
                                 want);
                }
            free_operands(&o);
            device_close(dev);
        }
}

/* Values of ones: each output is the sum of what dropout leaves of the probabilities. Its mean is
 * 1; with equal scores over n keys its variance is p / (1 - p) / n. */
static void attention_dropout(void **state) {
    (void)state;
    static const attention_case c = {SHAPE(2, 256, 4, 2, 8)};
    static const char *const sets[] = {"avx512_bf16", "avx512", "avx2", "plain"};
    device_matrix before = {0};
    for (int isa = 0; isa < 4; isa++) {
        device *dev = case_device(1, sets[isa]);
        if (dev == NULL) continue;
        attention_operands o = make_operands(&c, BASE_FP32, 0.25f);
        for (int64_t r = 0; r < o.qkv.rows; r++)
            for (int64_t i = 0; i < o.qkv.columns; i++)
                case_set(&o.qkv, r, i, i < q_width(&c) + kv_width(&c) ? 0 : 1);
        weighted_output(dev, &o);
        double mean = 0, variance = 0;
        int64_t count = 0;
        for (int64_t r = 0; r < o.y.rows; r++)
            for (int h = 0; h < c.heads; h++) {
                double y = case_get(&o.y, r, (int64_t)h * c.head_dim);
                assert_true(fabs(y - case_get(&o.y, r, (int64_t)h * c.head_dim + 5)) < 1e-5);
                double n = (double)(r % c.length + 1);
                mean += y, variance += (y - 1) * (y - 1) * n, count++;
            }
        mean /= (double)count, variance /= (double)count;
        if (fabs(mean - 1) > 0.01) fail_msg("%s: mean %g", sets[isa], mean);
        if (fabs(variance - 1.0 / 3) > 0.04) fail_msg("%s: variance %g", sets[isa], variance);
        device_matrix again = case_copy(&o.y);
        for (int64_t r = 0; before.data != NULL && r < o.y.rows; r++) /* every set drops alike */
            for (int64_t i = 0; i < o.y.columns; i++)
                assert_true(fabs(case_get(&before, r, i) - case_get(&o.y, r, i)) < 1e-5);
        free(before.data);
        before = case_copy(&o.y);
        weighted_output(dev, &o);
        assert_memory_equal(again.data, o.y.data, case_bytes(&o.y));
        step.step++;
        weighted_output(dev, &o);
        assert_memory_not_equal(again.data, o.y.data, case_bytes(&o.y));
        step.step--, step.training = false;
        weighted_output(dev, &o);
        assert_true(fabs(case_get(&o.y, 100, 0) - 1) < 1e-5);
        step.training = true;
        free(again.data);
        free_operands(&o);
        device_close(dev);
    }
    free(before.data);
}

static device_matrix rows_of(const device_matrix *m, int64_t first, int64_t rows) {
    device_matrix slice = *m;
    slice.data = (char *)m->data + first * m->stride * base_dtype_bytes(m->dtype);
    slice.rows = rows;
    return slice;
}

/* A sequence fed to the cache piece by piece gives what attention gives for the whole. */
static void check_cached(const char *isa, const attention_case *c, base_dtype type) {
    static const int64_t pieces[] = {1, 5, 60, 1, 8, 7, 1000, 3, 1000, 5, 3000};
    device *dev = case_device(2, isa);
    if (dev == NULL) return;
    attention_operands o = make_operands(c, type, 0);
    device_call whole = describe_call(&o, DEVICE_ATTENTION);
    case_run(dev, &whole);
    device_matrix got = case_matrix(c->length, q_width(c), type, 8, 1);
    device_matrix positions = case_matrix(c->length, 1, BASE_INT32, 9, 0);
    device_matrix caches[2];
    for (int i = 0; i < 2; i++) caches[i] = case_matrix(c->length + 3, kv_width(c), type, 10, 1);
    for (int64_t r = 0; r < c->length; r++) case_set(&positions, r, 0, (double)r);
    int64_t first = 0;
    for (int i = 0; first < c->length; i++) {
        int64_t rows = pieces[i] < c->length - first ? pieces[i] : c->length - first;
        device_call call = whole;
        call.kernel = DEVICE_ATTENTION_CACHED;
        for (int j = 0; j < 3; j++) call.x[j] = rows_of(&whole.x[j], first, rows);
        call.x[3] = rows_of(&positions, first, rows);
        call.w[0] = caches[0], call.w[1] = caches[1];
        call.y = rows_of(&got, first, rows);
        call.saved[0] = (device_matrix){0};
        call.attributes.attention.sequences = 1;
        call.attributes.attention.length = c->length + 3;
        case_run(dev, &call);
        first += rows;
    }
    for (int64_t r = 0; r < c->length; r++)
        for (int64_t i = 0; i < got.columns; i++)
            check_value("cached y", c, type, case_get(&got, r, i), case_get(&o.y, r, i), 1.5);
    for (int i = 0; i < 2; i++) free(caches[i].data);
    free(positions.data);
    free(got.data);
    free_operands(&o);
    device_close(dev);
}

static void attention_cached(void **state) {
    (void)state;
    static const attention_case some[] = {
        {SHAPE(1, 90, 4, 2, 24)},
        {SHAPE(1, 1100, 2, 1, 16)},
        {SHAPE(1, 81, 2, 1, 256), .softcap = 4, .window = 40},
        {SHAPE(1, 79, 2, 2, 96)},
        {SHAPE(1, 75, 1, 1, 33)},
        {SHAPE(1, 90, 4, 2, 40), .scale = 0.3, .softcap = 1.5, .window = 13},
        {SHAPE(1, 2150, 2, 1, 8), .softcap = 2, .window = 1030}}; /* three ranges of keys */
    for (int isa = 0; isa < CASE_ISAS; isa++)
        for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
            check_cached(case_isas[isa], &some[i], BASE_FP32);
            check_cached(case_isas[isa], &some[i], BASE_BF16);
            check_cached(case_isas[isa], &some[i], BASE_FP16);
        }
}

/* One token of each of several sequences: the same bits as each alone, and caches alike. */
static void check_batch(const char *isa, const attention_case *c, base_dtype type) {
    enum { SEQUENCES = 11 };
    device *dev = case_device(2, isa);
    if (dev == NULL) return;
    attention_case tokens = *c;
    tokens.length = SEQUENCES; /* as rows of one sequence: the operands are the same */
    attention_operands o = make_operands(&tokens, type, 0);
    device_matrix got = case_matrix(SEQUENCES, q_width(c), type, 8, 1);
    device_matrix positions = case_matrix(SEQUENCES, 1, BASE_INT32, 9, 0);
    device_matrix together[2], alone[2];
    for (int i = 0; i < 2; i++) {
        together[i] = case_matrix(SEQUENCES * c->length, kv_width(c), type, 10 + (uint64_t)i, 1);
        alone[i] = case_copy(&together[i]);
    }
    for (int64_t r = 0; r < SEQUENCES; r++)
        case_set(&positions, r, 0, (double)(r * 977 % c->length));
    case_set(&positions, 3, 0, (double)(c->length - 1));
    device_call call = describe_call(&o, DEVICE_ATTENTION);
    call.kernel = DEVICE_ATTENTION_CACHED;
    call.x[3] = positions, call.w[0] = together[0], call.w[1] = together[1], call.y = got;
    call.saved[0] = (device_matrix){0};
    call.attributes.attention.sequences = SEQUENCES;
    call.attributes.attention.length = c->length;
    case_run(dev, &call);
    for (int64_t r = 0; r < SEQUENCES; r++) {
        device_call one = call;
        for (int j = 0; j < 4; j++) one.x[j] = rows_of(&call.x[j], r, 1);
        for (int j = 0; j < 2; j++) one.w[j] = rows_of(&alone[j], r * c->length, c->length);
        one.y = rows_of(&o.y, r, 1);
        one.attributes.attention.sequences = 1;
        case_run(dev, &one);
        for (int64_t i = 0; i < got.columns; i++)
            assert_true(case_get(&got, r, i) == case_get(&o.y, r, i));
    }
    for (int i = 0; i < 2; i++)
        assert_memory_equal(together[i].data, alone[i].data, case_bytes(&alone[i]));
    for (int i = 0; i < 2; i++) free(together[i].data), free(alone[i].data);
    free(positions.data);
    free(got.data);
    free_operands(&o);
    device_close(dev);
}

static void attention_batch(void **state) {
    (void)state;
    static const attention_case some[] = {
        {SHAPE(1, 90, 4, 2, 24)},
        {SHAPE(1, 90, 4, 2, 40), .scale = 0.3, .softcap = 1.5, .window = 13},
        {SHAPE(1, 2150, 2, 1, 8), .softcap = 2, .window = 1030}}; /* three ranges of keys */
    for (int isa = 0; isa < CASE_ISAS; isa++)
        for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
            check_batch(case_isas[isa], &some[i], BASE_FP32);
            check_batch(case_isas[isa], &some[i], BASE_BF16);
        }
}

static void attention_refuses(void **state) {
    (void)state;
    device *dev = case_device(1, NULL);
    static const attention_case c = {SHAPE(1, 4, 4, 2, 8)};
    attention_operands o = make_operands(&c, BASE_FP32, 0);
    sifr_error error = {0};
    device_call call = describe_call(&o, DEVICE_ATTENTION);
    call.attributes.attention.kv_heads = 3;
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "4 heads over 3 kv heads"));
    call = describe_call(&o, DEVICE_ATTENTION_BACKWARD);
    call.dx[1].columns--;
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "dx1"));
    call = describe_call(&o, DEVICE_ATTENTION);
    call.attributes.attention.window = -1;
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "window -1"));
    call = describe_call(&o, DEVICE_ATTENTION);
    call.kernel = DEVICE_ATTENTION_CACHED, call.attributes.attention.bidirectional = true;
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "does not generate"));
    call = describe_call(&o, DEVICE_ATTENTION);
    call.kernel = DEVICE_ATTENTION_CACHED, call.attributes.attention.sequences = 3;
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "4 rows are not one of each of 3 sequences"));
    call = describe_call(&o, DEVICE_ATTENTION);
    call.attributes.attention.softcap = NAN;
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "softcap"));
    free_operands(&o);
    device_close(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_avx512_bf16), cmocka_unit_test(attention_avx512),
        cmocka_unit_test(attention_avx2),        cmocka_unit_test(attention_plain),
        cmocka_unit_test(attention_differences), cmocka_unit_test(attention_dropout),
        cmocka_unit_test(attention_cached),      cmocka_unit_test(attention_batch),
        cmocka_unit_test(attention_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

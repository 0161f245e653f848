/* Attention with scores by relative position against double precision: forward, gradients of all
 * operands (also against finite differences, with dropout), either table and both, buckets of
 * distances, and the same bits for any number of threads; the same of the kernels of GPUs. */
#include "device/matrix_case.h"
#include "support/cuda/op_gpu.h"
#include "support/cuda/shim_run.h"
#include "support/thinned.h"

#include <math.h>
#include <stdio.h>

enum { KEYS = 1, QUERIES = 2, BOTH = 3 };

typedef struct relative_case {
    int64_t sequences, length;
    int heads, head_dim;
    int64_t span; /* half of the tables' rows */
    int tables;
    int buckets, most; /* buckets 0: distances as they are */
    double softcap;
    int64_t window;
    bool padded; /* the end of each sequence is a segment of its own */
} relative_case;

#define SHAPE(s, l, h, d, n)                                                                       \
    .sequences = (s), .length = (l), .heads = (h), .head_dim = (d), .span = (n)

/* Blocks of queries have 16 to 64 rows, of keys 64. */
static const relative_case cases[] = {
    {SHAPE(1, 1, 1, 1, 1), .tables = BOTH},
    {SHAPE(2, 5, 2, 3, 4), .tables = BOTH},
    {SHAPE(2, 9, 2, 8, 3), .tables = KEYS},
    {SHAPE(2, 9, 2, 8, 3), .tables = QUERIES},
    {SHAPE(1, 70, 2, 16, 100), .tables = BOTH},
    {SHAPE(2, 150, 2, 24, 40), .tables = BOTH, .padded = true},
    {SHAPE(1, 203, 1, 33, 16), .tables = BOTH, .buckets = 16, .most = 64},
    {SHAPE(3, 131, 2, 16, 8), .tables = KEYS, .buckets = 8, .most = 512, .padded = true},
    {SHAPE(1, 129, 1, 64, 32), .tables = QUERIES, .buckets = 32, .most = 100, .softcap = 3},
    {SHAPE(1, 260, 1, 20, 64), .tables = BOTH, .buckets = 64, .most = 256, .window = 90},
    {SHAPE(67, 3, 1, 4, 5), .tables = BOTH}, /* more sequences than groups */
    {SHAPE(1, 40, 70, 4, 9), .tables = BOTH, .buckets = 9, .most = 20},
};

typedef struct operands {
    const relative_case *c;
    /* q, k, v and y beside each other; so are the two tables */
    device_matrix tokens, dtokens, dy, log_sums, tables, dtables, segments;
    float dropout;
} operands;

enum { Q, K, V, Y };

static const device_step step = {.seed = 5, .step = 3, .training = true};

static int64_t width_of(const relative_case *c) {
    return (int64_t)c->heads * c->head_dim;
}

static int32_t segment_of(const relative_case *c, int64_t row) {
    return c->padded && row % c->length >= c->length * (3 + row / c->length) / 6;
}

static device_matrix part(const device_matrix *m, const relative_case *c, int which) {
    device_matrix slice = *m;
    slice.columns = width_of(c);
    slice.data = (char *)m->data + which * width_of(c) * base_dtype_bytes(m->dtype);
    return slice;
}

static operands make_operands(const relative_case *c, base_dtype type, float dropout) {
    int64_t rows = c->sequences * c->length, width = width_of(c);
    operands o = {.c = c,
                  .tokens = case_matrix(rows, 4 * width, type, 1, 1.2),
                  .dtokens = case_matrix(rows, 3 * width, type, 2, 1),
                  .dy = case_matrix(rows, width, type, 4, 1),
                  .log_sums = case_matrix(c->heads, rows, BASE_FP32, 5, 1),
                  .tables = case_matrix(2 * c->span, 2 * width, type, 6, 1.2),
                  .dtables = case_matrix(2 * c->span, 2 * width, type, 7, 1),
                  .dropout = dropout};
    if (c->padded) {
        o.segments = case_matrix(rows, 1, BASE_INT32, 1, 100);
        for (int64_t r = 0; r < rows; r++) case_set(&o.segments, r, 0, segment_of(c, r));
    }
    return o;
}

static void free_operands(operands *o) {
    void *const blocks[] = {o->tokens.data, o->dtokens.data, o->dy.data,      o->log_sums.data,
                            o->tables.data, o->dtables.data, o->segments.data};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
}

static float scale_of(const relative_case *c) {
    return (float)(1 / sqrt(3.0 * c->head_dim));
}

static device_call describe_call(const operands *o, device_kernel kernel) {
    const relative_case *c = o->c;
    device_call call = {.kernel = kernel, .saved = {o->log_sums}, .step = &step};
    for (int i = 0; i < 3; i++) call.x[i] = part(&o->tokens, c, i);
    call.x[3] = o->segments;
    call.y = part(&o->tokens, c, Y);
    for (int i = 0; i < 2; i++)
        if (c->tables & 1 << i) call.x[4 + i] = part(&o->tables, c, i);
    if (kernel == DEVICE_ATTENTION_BACKWARD) {
        call.dy = o->dy;
        for (int i = 0; i < 3; i++) call.dx[i] = part(&o->dtokens, c, i);
        for (int i = 0; i < 2; i++)
            if (c->tables & 1 << i) call.dx[4 + i] = part(&o->dtables, c, i);
    }
    call.attributes.op = 7, call.attributes.micro_batch = 2;
    call.attributes.attention.heads = call.attributes.attention.kv_heads = c->heads;
    call.attributes.attention.head_dim = c->head_dim;
    call.attributes.attention.sequences = c->sequences;
    call.attributes.attention.length = c->length;
    call.attributes.attention.scale = scale_of(c);
    call.attributes.attention.softcap = (float)c->softcap;
    call.attributes.attention.window = c->window;
    call.attributes.attention.bidirectional = true;
    call.attributes.attention.dropout = o->dropout;
    call.attributes.attention.buckets = c->buckets;
    call.attributes.attention.most_distance = c->most;
    return call;
}

static void run_both(device *dev, operands *o) {
    device_call forward = describe_call(o, DEVICE_ATTENTION);
    case_run(dev, &forward);
    device_call backward = describe_call(o, DEVICE_ATTENTION_BACKWARD);
    case_run(dev, &backward);
}

/* The reference. */

static int64_t row_of(const relative_case *c, int64_t distance) {
    double at = (double)distance, middle = c->buckets / 2;
    if (c->buckets > 0 && fabs(at) > middle) {
        double part = log(fabs(at) / middle) / log((c->most - 1) / middle) * (middle - 1);
        at = copysign(ceil(part) + middle, at);
    }
    return (int64_t)fmin(fmax(at + (double)c->span, 0), (double)(2 * c->span - 1));
}

typedef struct reference {
    double *tokens, *tables, *dy;  /* what is given */
    double *dtokens, *terms;       /* gradients, and the absolute terms of their sums */
    double *dtables, *table_terms; /* of tables */
    double *y, *y_terms;
} reference;

static double *zeros(int64_t count) {
    double *all = calloc((size_t)count, sizeof *all);
    assert_non_null(all);
    return all;
}

static double dot(const double *a, const double *b, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}

/* Rows of the matrices that pair (i, j) of a head reads, by their first elements. */
typedef struct pair_rows {
    int64_t q, k, v, y, dq, dk, dv, dy, by_query, by_key;
} pair_rows;

static pair_rows find_rows(const relative_case *c, int64_t s, int head, int64_t i, int64_t j) {
    int64_t width = width_of(c), at = (int64_t)head * c->head_dim;
    int64_t a = s * c->length + i, b = s * c->length + j, row = row_of(c, i - j) * 2 * width + at;
    return (pair_rows){.q = a * 4 * width + at,
                       .k = b * 4 * width + width + at,
                       .v = b * 4 * width + 2 * width + at,
                       .y = a * width + at,
                       .dq = a * 3 * width + at,
                       .dk = b * 3 * width + width + at,
                       .dv = b * 3 * width + 2 * width + at,
                       .dy = a * width + at,
                       .by_query = row,
                       .by_key = row + width};
}

static double score_of(const relative_case *c, const reference *ref, const pair_rows *at) {
    int d = c->head_dim;
    double sum = dot(ref->tokens + at->q, ref->tokens + at->k, d);
    if (c->tables & KEYS) sum += dot(ref->tokens + at->q, ref->tables + at->by_query, d);
    if (c->tables & QUERIES) sum += dot(ref->tokens + at->k, ref->tables + at->by_key, d);
    return scale_of(c) * sum;
}

static bool sees(const relative_case *c, int64_t s, int64_t i, int64_t j) {
    int64_t first = s * c->length;
    if (segment_of(c, first + i) != segment_of(c, first + j)) return false;
    return c->window == 0 || llabs((long long)(i - j)) < c->window;
}

static void add_product(double *to, double *terms, double factor, double size, const double *x,
                        int count) {
    for (int i = 0; i < count; i++) {
        to[i] += factor * x[i];
        terms[i] += size * fabs(x[i]);
    }
}

static void refer_query(const relative_case *c, reference *ref, int64_t s, int head, int64_t i,
                        double *p, double *slope) {
    int d = c->head_dim;
    double most = -INFINITY, sum = 0, mean = 0, mean_size = 0;
    for (int64_t j = 0; j < c->length; j++) {
        pair_rows at = find_rows(c, s, head, i, j);
        double score = score_of(c, ref, &at), t = c->softcap > 0 ? tanh(score / c->softcap) : 0;
        if (c->softcap > 0) score = c->softcap * t;
        p[j] = sees(c, s, i, j) ? score : -INFINITY;
        slope[j] = (1 - t * t) * scale_of(c);
        most = fmax(most, p[j]);
    }
    for (int64_t j = 0; j < c->length; j++) sum += p[j] = exp(p[j] - most);
    for (int64_t j = 0; j < c->length; j++) {
        pair_rows at = find_rows(c, s, head, i, j);
        double dp = dot(ref->dy + at.dy, ref->tokens + at.v, d);
        p[j] /= sum;
        mean += p[j] * dp, mean_size += p[j] * fabs(dp);
        add_product(ref->y + at.y, ref->y_terms + at.y, p[j], p[j], ref->tokens + at.v, d);
        add_product(ref->dtokens + at.dv, ref->terms + at.dv, p[j], p[j], ref->dy + at.dy, d);
    }
    pair_rows own = find_rows(c, s, head, i, i);
    for (int k = 0; k < d; k++) mean_size += fabs(ref->dy[own.dy + k] * ref->y[own.y + k]);
    for (int64_t j = 0; j < c->length; j++) {
        pair_rows at = find_rows(c, s, head, i, j);
        double dp = dot(ref->dy + at.dy, ref->tokens + at.v, d);
        double ds = p[j] * (dp - mean) * slope[j];
        double size = p[j] * (fabs(dp) + mean_size) * fabs(slope[j]);
        const double *q = ref->tokens + at.q, *k = ref->tokens + at.k;
        double *dq = ref->dtokens + at.dq, *dk = ref->dtokens + at.dk;
        add_product(dq, ref->terms + at.dq, ds, size, k, d);
        add_product(dk, ref->terms + at.dk, ds, size, q, d);
        if (c->tables & KEYS) {
            add_product(dq, ref->terms + at.dq, ds, size, ref->tables + at.by_query, d);
            add_product(ref->dtables + at.by_query, ref->table_terms + at.by_query, ds, size, q, d);
        }
        if (c->tables & QUERIES) {
            add_product(dk, ref->terms + at.dk, ds, size, ref->tables + at.by_key, d);
            add_product(ref->dtables + at.by_key, ref->table_terms + at.by_key, ds, size, k, d);
        }
    }
}

static reference make_reference(const operands *o) {
    const relative_case *c = o->c;
    int64_t rows = o->tokens.rows, width = width_of(c), table = 4 * c->span * width;
    reference ref = {.tokens = case_doubles(&o->tokens),
                     .tables = case_doubles(&o->tables),
                     .dy = case_doubles(&o->dy),
                     .dtokens = zeros(rows * 3 * width),
                     .terms = zeros(rows * 3 * width),
                     .dtables = zeros(table),
                     .table_terms = zeros(table),
                     .y = zeros(rows * width),
                     .y_terms = zeros(rows * width)};
    double *p = zeros(c->length), *slope = zeros(c->length);
    for (int64_t s = 0; s < c->sequences; s++)
        for (int h = 0; h < c->heads; h++)
            for (int64_t i = 0; i < c->length; i++) refer_query(c, &ref, s, h, i, p, slope);
    free(p);
    free(slope);
    return ref;
}

static void free_reference(reference *ref) {
    double *const blocks[] = {ref->tokens,  ref->tables,      ref->dy, ref->dtokens, ref->terms,
                              ref->dtables, ref->table_terms, ref->y,  ref->y_terms};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
}

/* Arithmetic is in fp32 whatever the storage; y, of which the backward pass takes the sum of p dp,
 * and the results are rounded. */
static void check_matrix(const char *what, const operands *o, const device_matrix *got,
                         const double *want, const double *terms) {
    double part = got->dtype == BASE_BF16 ? 1.0 / 128 : got->dtype == BASE_FP16 ? 1.0 / 1000 : 4e-6;
    for (int64_t r = 0; r < got->rows; r++)
        for (int64_t k = 0; k < got->columns; k++) {
            int64_t at = r * got->columns + k;
            double allowed = part * terms[at] + 1e-7 + (got->dtype == BASE_FP16 ? 0x1p-25 : 0);
            if (fabs(case_get(got, r, k) - want[at]) <= allowed) continue;
            fail_msg("%s of case %d %s, (%lld, %lld): %.9g, expected %.9g within %.2g", what,
                     (int)(o->c - cases), base_dtype_name(got->dtype), (long long)r, (long long)k,
                     case_get(got, r, k), want[at], allowed);
        }
}

static void check_results(const operands *o) {
    reference ref = make_reference(o);
    const relative_case *c = o->c;
    device_matrix y = part(&o->tokens, c, Y);
    check_matrix("y", o, &y, ref.y, ref.y_terms);
    check_matrix("a gradient of tokens", o, &o->dtokens, ref.dtokens, ref.terms);
    int64_t width = width_of(c);
    for (int i = 0; i < 2; i++) {
        if (!(c->tables & 1 << i)) continue;
        for (int64_t r = 0; r < 2 * c->span; r++) {
            device_matrix row = part(&o->dtables, c, i);
            row.data = (char *)row.data + r * row.stride * base_dtype_bytes(row.dtype);
            row.rows = 1;
            int64_t at = r * 2 * width + i * width;
            check_matrix(i ? "the gradient of x5" : "the gradient of x4", o, &row, ref.dtables + at,
                         ref.table_terms + at);
        }
    }
    free_reference(&ref);
}

/* Another device gives the same bits; it is closed. */
static void check_same(device *dev, const operands *first) {
    operands other = *first;
    other.tokens = case_copy(&first->tokens), other.dtokens = case_copy(&first->dtokens);
    other.dtables = case_copy(&first->dtables), other.log_sums = case_copy(&first->log_sums);
    run_both(dev, &other);
    device_close(dev);
    const device_matrix *made[] = {&other.tokens, &other.dtokens, &other.dtables, &other.log_sums};
    const device_matrix *want[] = {&first->tokens, &first->dtokens, &first->dtables,
                                   &first->log_sums};
    for (int i = 0; i < 4; i++) {
        assert_memory_equal(made[i]->data, want[i]->data, case_bytes(want[i]));
        free(made[i]->data);
    }
}

static void check_threads(const char *isa, const operands *first) {
    for (int t = 1; t < CASE_THREADS; t++) check_same(case_device(case_threads[t], isa), first);
}

static void check_isa(const char *isa) {
    static const base_dtype types[] = {BASE_FP32, BASE_BF16, BASE_FP16};
    device *dev = case_device(1, isa);
    if (dev == NULL) skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int type = 0; type < 3; type++) {
            if (thinned_out(i + (size_t)type)) continue;
            operands o = make_operands(&cases[i], types[type], 0);
            run_both(dev, &o);
            check_results(&o);
            check_threads(isa, &o);
            free_operands(&o);
        }
    device_close(dev);
}

static void relative_avx512_bf16(void **state) {
    (void)state;
    check_isa("avx512_bf16");
}

static void relative_avx512(void **state) {
    (void)state;
    check_isa("avx512");
}

static void relative_avx2(void **state) {
    (void)state;
    check_isa("avx2");
}

static void relative_plain(void **state) {
    (void)state;
    check_isa("plain");
}

static device *open_gpu(int order) {
    device *dev = NULL;
    sifr_error error = {0};
    if (op_gpu_open(order, &dev, &error) != SIFR_OK) fail_msg("%s", error.message);
    return dev;
}

/* The kernels of GPUs over the shim, which is slow: the types take turns. */
static void relative_cuda(void **state) {
    static const base_dtype types[] = {BASE_FP32, BASE_BF16, BASE_FP16};
    static const int orders[] = {SHIM_DOWN, 2, 3};
    (void)state;
    if (shim_skipped()) skip();
    device *dev = open_gpu(SHIM_UP);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool many = cases[i].sequences * cases[i].heads > 8; /* for the groups of CPUs */
        if (many || thinned_out(i)) continue;
        operands o = make_operands(&cases[i], types[i % 3], 0);
        run_both(dev, &o);
        check_results(&o);
        if (cases[i].length < 200) check_same(open_gpu(orders[i % 3]), &o);
        free_operands(&o);
    }
    device_close(dev);
}

static double weighted_output(device *dev, const operands *o) {
    device_call call = describe_call(o, DEVICE_ATTENTION);
    case_run(dev, &call);
    double sum = 0;
    for (int64_t r = 0; r < o->dy.rows; r++)
        for (int64_t c = 0; c < o->dy.columns; c++)
            sum += case_get(&call.y, r, c) * case_get(&o->dy, r, c);
    return sum;
}

static void check_differences(const char *isa, device *dev, const operands *o,
                              const device_matrix *x, const device_matrix *dx, int64_t columns) {
    for (int64_t r = 0; r < x->rows; r++)
        for (int64_t column = r % 3; column < columns; column += 3) {
            double at = case_get(x, r, column), delta = 0x1p-7;
            case_set(x, r, column, at + delta);
            double high = weighted_output(dev, o);
            case_set(x, r, column, at - delta);
            double low = weighted_output(dev, o);
            case_set(x, r, column, at);
            double want = (high - low) / (2 * delta), got = case_get(dx, r, column);
            if (!(fabs(got - want) <= 2e-3 * (0.1 + fabs(want))))
                fail_msg("%s: gradient (%lld, %lld) is %g, difference %g", isa, (long long)r,
                         (long long)column, got, want);
        }
}

/* With dropout the numbers come back in the backward pass: differences of the forward kernel. */
static void relative_differences(void **state) {
    (void)state;
    static const relative_case some[] = {
        {SHAPE(2, 9, 2, 6, 4), .tables = BOTH, .padded = true},
        {SHAPE(2, 11, 1, 5, 4), .tables = BOTH, .buckets = 4, .most = 9, .softcap = 1.5}};
    for (int isa = 0; isa <= CASE_ISAS; isa++)
        for (int variant = 0; variant < 4; variant++) {
            bool gpu = isa == CASE_ISAS;
            if (gpu && (shim_skipped() || variant < 3)) continue;
            device *dev = gpu ? open_gpu(SHIM_UP) : case_device(2, case_isas[isa]);
            const char *name = gpu ? "cuda" : case_isas[isa];
            if (dev == NULL) continue;
            operands o = make_operands(&some[variant / 2], BASE_FP32, variant % 2 ? 0.4f : 0.0f);
            run_both(dev, &o);
            int64_t width = width_of(o.c);
            check_differences(name, dev, &o, &o.tokens, &o.dtokens, 3 * width);
            check_differences(name, dev, &o, &o.tables, &o.dtables, 2 * width);
            free_operands(&o);
            device_close(dev);
        }
}

static void expect_refusal(device *dev, device_call call, const char *message) {
    sifr_error error = {0};
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    if (!strstr(error.message, message)) fail_msg("%s; expected %s", error.message, message);
}

static void relative_refuses(void **state) {
    (void)state;
    device *dev = case_device(1, NULL);
    static const relative_case c = {SHAPE(1, 4, 2, 8, 3), .tables = BOTH};
    operands o = make_operands(&c, BASE_FP32, 0);
    device_call call = describe_call(&o, DEVICE_ATTENTION);
    call.x[5].rows--;
    expect_refusal(dev, call, "x5");
    call = describe_call(&o, DEVICE_ATTENTION);
    call.x[4].rows = call.x[5].rows = 5;
    expect_refusal(dev, call, "5 rows of relative positions must be even");
    call = describe_call(&o, DEVICE_ATTENTION);
    call.attributes.attention.buckets = 8, call.attributes.attention.most_distance = 5;
    expect_refusal(dev, call, "8 buckets below twice the largest distance 5");
    call = describe_call(&o, DEVICE_ATTENTION);
    call.attributes.attention.bidirectional = false;
    expect_refusal(dev, call, "need bidirectional attention");
    call = describe_call(&o, DEVICE_ATTENTION_BACKWARD);
    call.dx[4].columns--;
    expect_refusal(dev, call, "dx4");
    free_operands(&o);
    device_close(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relative_avx512_bf16), cmocka_unit_test(relative_avx512),
        cmocka_unit_test(relative_avx2),        cmocka_unit_test(relative_plain),
        cmocka_unit_test(relative_cuda),        cmocka_unit_test(relative_differences),
        cmocka_unit_test(relative_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

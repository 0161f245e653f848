/* Head and cross entropy against double precision, with and without labels, and the same bits for
 * any number of threads.
 * in test_asan */
#include "device/head_matrices.h"
#include "support/thinned.h"

#include <math.h>
#include <stdio.h>

typedef struct head_case {
    int64_t rows, width, words;
    int every; /* of so many rows one has no label; 1: none has; 0: all have */
    bool biased;
    double scale, softcap;
} head_case;

#define PLAIN(r, n, w, e)                                                                          \
    { .rows = r, .width = n, .words = w, .every = e }
static const head_case cases[] = {
    PLAIN(1, 8, 5, 0),
    PLAIN(70, 24, 65, 3),
    PLAIN(300, 32, 1000, 0),
    PLAIN(1025, 16, 257, 0),
    PLAIN(2500, 24, 300, 5),
    PLAIN(40, 16, 64, 1),
    PLAIN(130, 16, 17000, 7),
    PLAIN(1024, 8, 17, 0),
    PLAIN(1100, 128, 520, 0),
    PLAIN(300, 64, 512, 2),
    PLAIN(20, 16, 17000, 3),
    PLAIN(128, 48, 520, 0),
    PLAIN(129, 48, 520, 0),
    {70, 24, 65, 3, true, 0, 0},
    {1, 8, 5, 0, false, 0, 1.5},
    {300, 32, 1000, 0, false, 0, 5},
    {1100, 16, 300, 0, false, 0.125, 0},
    {40, 16, 64, 1, true, 0, 0},
    {2500, 24, 257, 5, true, -1.7, 2.5},
    {130, 16, 17000, 7, true, 3, 4},
    PLAIN(8200, 8, 5, 0), /* beyond a chunk of GPUs */
};

typedef struct head_operands {
    const head_case *c;
    head_matrices m;
} head_operands;

static const device_step step = {.gradient_scale = 0.37f, .training = true};

static head_operands make_operands(const head_case *c, base_dtype type, bool accumulate) {
    head_operands o = {.c = c,
                       .m.x = case_matrix(c->rows, c->width, type, 1, 1),
                       .m.labels = case_matrix(c->rows, 1, BASE_INT32, 2, 0),
                       .m.w = case_matrix(c->words, c->width, type, 3, 1),
                       .m.dx_before = case_matrix(c->rows, c->width, type, 4, 0.1),
                       .m.dw_before = case_matrix(c->words, c->width, BASE_FP32, 5, 0.1),
                       .m.bias = case_matrix(1, c->words, type, 8, 1),
                       .m.db_before = case_matrix(1, c->words, BASE_FP32, 9, 0.1),
                       .m.accumulate = accumulate};
    if (!c->biased) o.m.bias.dtype = o.m.db_before.dtype = BASE_NONE;
    for (int64_t r = 0; r < c->rows; r++) {
        base_random4 random = base_philox(9, (uint64_t)r, 0);
        bool none = c->every != 0 && random.v[1] % (uint32_t)c->every == 0;
        case_set(&o.m.labels, r, 0, none ? -100 : (double)(random.v[0] % (uint64_t)c->words));
    }
    return o;
}

static void begin_results(head_operands *o) {
    head_begin(&o->m, case_matrix(o->m.x.rows, 1, BASE_FP32, 6, 1));
}

/* A call that makes the losses, with what all calls of a head have. */
static device_call head_call(const head_operands *o, device_kernel kernel) {
    device_call call = {.kernel = kernel,
                        .x = {o->m.x, o->m.labels},
                        .w = {o->m.w, o->m.bias},
                        .y = o->m.y,
                        .step = &step};
    call.attributes.head.scale = (float)o->c->scale;
    call.attributes.head.softcap = (float)o->c->softcap;
    return call;
}

static void run_head(device *dev, head_operands *o) {
    device_call call = head_call(o, DEVICE_HEAD_LOSS_BACKWARD);
    head_with_gradients(&o->m, &call);
    case_run(dev, &call);
}

/* Of each logit of a row: itself, its slope in its product, and by how much both would change if
 * the product grew by all of itself, if they went on as they begin. */
typedef struct head_logit {
    double value, slope, change, bend;
} head_logit;

static void make_logits(const head_operands *o, const double *x, const double *w, int64_t r,
                        head_logit *logits) {
    int64_t width = o->m.x.columns;
    double scale = o->c->scale != 0 ? (double)(float)o->c->scale : 1, cap = o->c->softcap;
    for (int64_t v = 0; v < o->m.w.rows; v++) {
        double sum = o->c->biased ? case_get(&o->m.bias, 0, v) : 0;
        for (int64_t c = 0; c < width; c++) sum += x[r * width + c] * w[v * width + c];
        double t = cap > 0 ? tanh(scale * sum / cap) : 0, slope = scale * (1 - t * t);
        logits[v] = (head_logit){.value = cap > 0 ? cap * t : scale * sum,
                                 .slope = slope,
                                 .change = fabs(slope * sum),
                                 .bend = cap > 0 ? fabs(2 * t * slope * scale / cap * sum) : 0};
    }
}

/* The error of the gradients of the logits before they are summed: in bf16 they are rounded to 8
 * bits. In fp16 CPUs do not round them, GPUs do. */
static double gradient_error(base_dtype type, const char *isa) {
    if (type == BASE_BF16) return 1.0 / 256;
    return type == BASE_FP16 && case_is_gpu(isa) ? 1.0 / 2048 : 3e-6;
}

/* The error of a product that becomes a logit: GPUs keep it in 16 bits. What follows from it is
 * worked out to first order, and a seventh is room for the others. */
static double logit_error(base_dtype type, const char *isa) {
    if (!case_is_gpu(isa) || type == BASE_FP32) return 0;
    return (type == BASE_BF16 ? 1.0 / 256 : 1.0 / 2048) * 8 / 7;
}

/* Loss, dx, dw and db in double, and what roundings of logits and their gradients may change. */
typedef struct head_reference {
    double *loss, *loss_error, *dx, *dx_error, *dw, *dw_error, *db, *db_error;
} head_reference;

static head_reference empty_reference(size_t rows, size_t width, size_t words) {
    return (head_reference){.loss = calloc(rows, sizeof(double)),
                            .loss_error = calloc(rows, sizeof(double)),
                            .dx = calloc(rows * width, sizeof(double)),
                            .dx_error = calloc(rows * width, sizeof(double)),
                            .dw = calloc(words * width, sizeof(double)),
                            .dw_error = calloc(words * width, sizeof(double)),
                            .db = calloc(words, sizeof(double)),
                            .db_error = calloc(words, sizeof(double))};
}

/* A row with a label; x and w of all rows. */
static void add_row(head_reference *ref, const head_operands *o, const double *x, const double *w,
                    int64_t r, const head_logit *logits, double rounding, double logit) {
    int64_t label = (int64_t)case_get(&o->m.labels, r, 0);
    int64_t width = o->m.x.columns, words = o->m.w.rows;
    double largest = -INFINITY, sum = 0, mean = 0; /* of changes */
    for (int64_t v = 0; v < words; v++) largest = fmax(largest, logits[v].value);
    for (int64_t v = 0; v < words; v++) sum += exp(logits[v].value - largest);
    for (int64_t v = 0; v < words; v++)
        mean += exp(logits[v].value - largest) / sum * logits[v].change;
    ref->loss[r] = largest + log(sum) - logits[label].value;
    ref->loss_error[r] = logit * (mean + logits[label].change);
    for (int64_t v = 0; v < words; v++) {
        double p = exp(logits[v].value - largest) / sum, off = p - (v == label);
        double d = off * logits[v].slope * step.gradient_scale;
        double moved = fabs(logits[v].slope) * p * (logits[v].change + mean);
        moved = logit * (moved + fabs(off) * logits[v].bend) * step.gradient_scale;
        double error = rounding * fabs(d) + moved;
        ref->db[v] += d, ref->db_error[v] += 3e-6 * fabs(d) + moved;
        for (int64_t c = 0; c < width; c++) {
            double by_w = w[v * width + c], by_x = x[r * width + c];
            ref->dx[r * width + c] += d * by_w;
            ref->dx_error[r * width + c] += error * fabs(by_w);
            ref->dw[v * width + c] += d * by_x;
            ref->dw_error[v * width + c] += error * fabs(by_x);
        }
    }
}

static head_reference make_reference(const head_operands *o, const char *isa) {
    int64_t rows = o->m.x.rows, width = o->m.x.columns, words = o->m.w.rows;
    double rounding = gradient_error(o->m.x.dtype, isa), logit = logit_error(o->m.x.dtype, isa);
    head_reference ref = empty_reference((size_t)rows, (size_t)width, (size_t)words);
    head_logit *logits = calloc((size_t)words, sizeof *logits);
    double *x = case_doubles(&o->m.x), *w = case_doubles(&o->m.w);
    for (int64_t r = 0; r < rows; r++) {
        if (case_get(&o->m.labels, r, 0) < 0) continue;
        make_logits(o, x, w, r, logits);
        add_row(&ref, o, x, w, r, logits, rounding, logit);
    }
    free(logits);
    free(x);
    free(w);
    return ref;
}

static void free_reference(head_reference *ref) {
    free(ref->loss);
    free(ref->loss_error);
    free(ref->dx);
    free(ref->dx_error);
    free(ref->dw);
    free(ref->dw_error);
    free(ref->db);
    free(ref->db_error);
}

static double gradient_distance(const device_matrix *got, const device_matrix *before,
                                bool accumulate, const double *want, const double *error) {
    double worst = 0;
    for (int64_t r = 0; r < got->rows; r++)
        for (int64_t c = 0; c < got->columns; c++) {
            double sum = want[r * got->columns + c] + (accumulate ? case_get(before, r, c) : 0);
            double allowed = error[r * got->columns + c] + 1e-6 * fabs(sum) + 1e-12;
            if (got->dtype == BASE_BF16) allowed += fabs(sum) / 256;
            if (got->dtype == BASE_FP16) allowed += fabs(sum) / 2048 + 0x1p-25;
            worst = fmax(worst, fabs(case_get(got, r, c) - sum) / allowed);
        }
    return worst;
}

static void check_against(const head_operands *o, const head_reference *ref, const char *what) {
    for (int64_t r = 0; r < o->m.x.rows; r++) {
        double distance = fabs(case_get(&o->m.y, r, 0) - ref->loss[r]);
        if (!(distance <= 2e-6 * (1 + ref->loss[r]) + ref->loss_error[r]))
            fail_msg("%s: loss of row %lld is %.9g, expected %.9g", what, (long long)r,
                     case_get(&o->m.y, r, 0), ref->loss[r]);
    }
    bool add = o->m.accumulate;
    double dx = gradient_distance(&o->m.dx, &o->m.dx_before, add, ref->dx, ref->dx_error), db = 0;
    double dw = gradient_distance(&o->m.dw, &o->m.dw_before, add, ref->dw, ref->dw_error);
    if (o->c->biased)
        db = gradient_distance(&o->m.db, &o->m.db_before, add, ref->db, ref->db_error);
    if (!(dx <= 1 && dw <= 1 && db <= 1))
        fail_msg("%s: dx is %g, dw %g, db %g times too far off", what, dx, dw, db);
}

static void check_evaluation(device *dev, const head_operands *o) {
    device_matrix loss = case_matrix(o->m.x.rows, 1, BASE_FP32, 7, 1);
    device_call call = head_call(o, DEVICE_HEAD_LOSS);
    call.y = loss;
    case_run(dev, &call);
    assert_memory_equal(loss.data, o->m.y.data, case_bytes(&loss));
    free(loss.data);
}

/* What generation reads: rounded once more where 16 bits hold the product. */
static void check_logits(device *dev, const head_operands *o, const char *what) {
    int64_t words = o->m.w.rows, rows = o->m.x.rows < 40 ? o->m.x.rows : 40;
    head_logit *logits = calloc((size_t)words, sizeof *logits);
    double *x = case_doubles(&o->m.x), *w = case_doubles(&o->m.w);
    device_call call = head_call(o, DEVICE_HEAD_LOGITS);
    call.x[0].rows = rows;
    call.x[1] = (device_matrix){0};
    call.y = case_matrix(rows, words, o->m.x.dtype, 10, 1);
    case_run(dev, &call);
    base_dtype type = o->m.x.dtype;
    double unit = type == BASE_FP32 ? 0 : type == BASE_BF16 ? 1.0 / 256 : 1.0 / 2048;
    for (int64_t r = 0; r < rows; r++) {
        make_logits(o, x, w, r, logits);
        for (int64_t v = 0; v < words; v++) {
            double allowed = 2 * unit * fabs(logits[v].value) + 1e-5;
            double got = case_get(&call.y, r, v);
            if (!(fabs(got - logits[v].value) <= allowed))
                fail_msg("%s: logit %lld of row %lld is %g, expected %g", what, (long long)v,
                         (long long)r, got, logits[v].value);
        }
    }
    free(logits);
    free(x);
    free(w);
    free(call.y.data);
}

/* `counts`: how many of case_threads to try. */
static void check_case(const char *isa, const head_case *c, base_dtype type, bool accumulate,
                       int counts) {
    char what[100];
    snprintf(what, sizeof what, "%s %s %lldx%lldx%lld", isa, base_dtype_name(type),
             (long long)c->rows, (long long)c->width, (long long)c->words);
    head_operands first = make_operands(c, type, accumulate);
    head_reference ref = make_reference(&first, isa);
    begin_results(&first);
    device *dev = case_device(1, isa);
    run_head(dev, &first);
    check_against(&first, &ref, what);
    check_evaluation(dev, &first);
    check_logits(dev, &first, what);
    device_close(dev);
    for (int t = 1; t < counts; t++) {
        head_operands other = first;
        begin_results(&other);
        dev = case_device(case_threads[t], isa);
        run_head(dev, &other);
        device_close(dev);
        head_expect_same(&other.m, &first.m);
        head_end(&other.m);
    }
    free_reference(&ref);
    head_end(&first.m);
    head_free(&first.m);
}

static void check_isa(const char *isa) {
    device *dev = case_device(1, isa);
    if (dev == NULL) skip();
    device_close(dev);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t logits = cases[i].rows * cases[i].words;
        if (!strcmp(isa, "plain") && thinned_large(logits, 100000)) continue;
        if (!thinned_out(i)) check_case(isa, &cases[i], BASE_FP32, i % 2, CASE_THREADS);
        if (!thinned_out(i + 1)) check_case(isa, &cases[i], BASE_BF16, (i + 1) % 2, CASE_THREADS);
        if (!thinned_out(i + 2)) check_case(isa, &cases[i], BASE_FP16, i % 2, CASE_THREADS);
    }
}

static void head_avx512_bf16(void **state) {
    (void)state;
    check_isa("avx512_bf16");
}

static void head_avx512(void **state) {
    (void)state;
    check_isa("avx512");
}

static void head_avx2(void **state) {
    (void)state;
    check_isa("avx2");
}

static void head_plain(void **state) {
    (void)state;
    check_isa("plain");
}

/* The first cases in each type and in four orders of threads, the others in one, and those with the
 * most logits not at all: fibres take their time. Every other one has several chunks. */
static void head_cuda(void **state) {
    (void)state;
    enum { FIRST = 2, MOST_LOGITS = 800000 };
    static const base_dtype types[] = {BASE_FP32, BASE_BF16, BASE_FP16};
    device *dev = case_device(1, case_cuda);
    if (dev == NULL) skip();
    device_close(dev);
    size_t turn = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const head_case *c = &cases[i];
        const char *isa = i % 2 || c->rows > CUDA_TOKEN_CHUNK ? case_cuda : case_cuda_shortest();
        int64_t logits = c->rows * c->words;
        if (logits > MOST_LOGITS || thinned_large(logits, 100000) || thinned_out(turn++)) continue;
        for (size_t t = 0; t < 3; t++)
            if (i < FIRST || t == i % 3)
                check_case(isa, c, types[t], (i + t) % 2, i < FIRST ? CASE_THREADS : 1);
    }
}

static void head_refuses_labels(void **state) {
    (void)state;
    device *dev = case_device(1, NULL);
    head_case c = PLAIN(4, 8, 6, 0);
    head_operands o = make_operands(&c, BASE_FP32, false);
    case_set(&o.m.labels, 2, 0, 6);
    begin_results(&o);
    device_call call = head_call(&o, DEVICE_HEAD_LOSS);
    sifr_error error = {0};
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_OK);
    call.scratch = aligned_alloc(64, (size_t)(call.scratch_bytes + 63) / 64 * 64);
    assert_int_equal(device_run(dev, &call, &error), SIFR_FAILED);
    assert_non_null(strstr(error.message, "label 6 in row 2"));
    free(call.scratch);
    head_end(&o.m);
    head_free(&o.m);
    device_close(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(head_avx512_bf16), cmocka_unit_test(head_avx512),
        cmocka_unit_test(head_avx2),        cmocka_unit_test(head_plain),
        cmocka_unit_test(head_cuda),        cmocka_unit_test(head_refuses_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

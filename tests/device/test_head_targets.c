/* Heads of regression and of several labels at once: losses against double precision, gradients
 * against its central differences, and the same bits for any number of threads; the kernels of GPUs
 * likewise, in several orders of threads. */
#include "device/head_matrices.h"
#include "support/cuda/op_gpu.h"
#include "support/cuda/shim_run.h"
#include "support/thinned.h"

#include <math.h>
#include <stdio.h>

typedef struct targets_case {
    int64_t rows, width, columns;
    int every; /* of so many rows one has no target; 1: none has; 0: all have */
    bool biased;
    double size; /* of hidden values and weights */
} targets_case;

static const targets_case cases[] = {
    {1, 8, 1, 0, true, 1},      {7, 33, 1, 3, false, 1},  {70, 24, 5, 3, true, 1},
    {40, 16, 3, 1, true, 1},    {9, 1030, 2, 0, true, 1}, {1500, 17, 3, 2, true, 1},
    {5, 40, 1000, 0, false, 1}, {2100, 8, 2, 0, true, 1}, {12, 64, 4, 0, true, 4},
};

enum { REGRESSION, MULTILABEL };

typedef struct targets_operands {
    const targets_case *c;
    int kind;
    head_matrices m;
} targets_operands;

static const device_step step = {.gradient_scale = 0.37f, .training = true};

static targets_operands make_operands(const targets_case *c, int kind, base_dtype type,
                                      bool accumulate) {
    targets_operands o = {.c = c,
                          .kind = kind,
                          .m.x = case_matrix(c->rows, c->width, type, 1, c->size),
                          .m.labels = case_matrix(c->rows, c->columns, BASE_FP32, 2, 3),
                          .m.w = case_matrix(c->columns, c->width, type, 3, c->size),
                          .m.bias = case_matrix(1, c->columns, type, 4, 1),
                          .m.dx_before = case_matrix(c->rows, c->width, type, 5, 0.1),
                          .m.dw_before = case_matrix(c->columns, c->width, BASE_FP32, 6, 0.1),
                          .m.db_before = case_matrix(1, c->columns, BASE_FP32, 7, 0.1),
                          .m.accumulate = accumulate};
    if (!c->biased) o.m.bias.dtype = o.m.db_before.dtype = BASE_NONE;
    for (int64_t r = 0; r < c->rows; r++) {
        base_random4 random = base_philox(9, (uint64_t)r, 0);
        for (int64_t j = 0; j < c->columns && kind == MULTILABEL; j++)
            case_set(&o.m.labels, r, j, base_philox(10, (uint64_t)r, (uint64_t)j).v[0] % 2);
        if (c->every && random.v[1] % (uint32_t)c->every == 0) case_set(&o.m.labels, r, 0, NAN);
    }
    return o;
}

static void begin_results(targets_operands *o) {
    head_begin(&o->m, case_matrix(o->m.x.rows, 1, BASE_FP32, 8, 1));
}

static device_call make_call(const targets_operands *o, bool backward) {
    static const device_kernel kernels[2][2] = {
        {DEVICE_HEAD_REGRESSION, DEVICE_HEAD_REGRESSION_BACKWARD},
        {DEVICE_HEAD_MULTILABEL, DEVICE_HEAD_MULTILABEL_BACKWARD}};
    device_call call = {.kernel = kernels[o->kind][backward],
                        .x = {o->m.x, o->m.labels},
                        .w = {o->m.w, o->m.bias},
                        .y = o->m.y,
                        .step = &step};
    if (!backward) return call;
    head_with_gradients(&o->m, &call);
    return call;
}

static double row_loss(const targets_operands *o, const head_doubles *d, int64_t r) {
    int64_t width = o->c->width, columns = o->c->columns;
    double sum = 0;
    if (isnan(case_get(&o->m.labels, r, 0))) return 0;
    for (int64_t j = 0; j < columns; j++) {
        double l = d->bias ? d->bias[j] : 0, t = case_get(&o->m.labels, r, j);
        for (int64_t i = 0; i < width; i++) l += d->x[r * width + i] * d->w[j * width + i];
        sum +=
            o->kind == REGRESSION ? (l - t) * (l - t) : fmax(l, 0) - l * t + log1p(exp(-fabs(l)));
    }
    return sum / (double)columns;
}

/* Of the sum of all losses, or of one row's (row >= 0), in *value; the second difference is what
 * rounding in fp32 is measured by. */
static double slope(const targets_operands *o, const head_doubles *d, double *value, int64_t row) {
    double kept = *value, by = 1e-4, sums[2] = {0};
    for (int side = 0; side < 2; side++) {
        *value = kept + (side ? by : -by);
        for (int64_t r = row < 0 ? 0 : row; r < (row < 0 ? o->m.x.rows : row + 1); r++)
            sums[side] += row_loss(o, d, r);
    }
    *value = kept;
    return (sums[1] - sums[0]) / (2 * by) * step.gradient_scale;
}

/* `terms`: a bound on the sum of the sizes of what was added up. */
static void expect_near(const char *what, const char *name, const device_matrix *m, int64_t r,
                        int64_t c, double want, double terms) {
    double allowed = 4e-6 * (terms + fabs(want)) + 1e-7;
    if (m->dtype == BASE_BF16) allowed += fabs(want) / 256;
    if (m->dtype == BASE_FP16) allowed += fabs(want) / 2048 + 0x1p-25;
    head_expect_near(what, name, m, r, c, want, allowed);
}

static double before(const targets_operands *o, const device_matrix *m, int64_t r, int64_t c) {
    return o->m.accumulate ? case_get(m, r, c) : 0;
}

static void check_against(const targets_operands *o, const char *what) {
    head_doubles d = head_in_double(&o->m);
    int64_t rows = o->c->rows, width = o->c->width, columns = o->c->columns;
    double most = 1;
    for (int64_t r = 0; r < rows; r++) {
        double want = row_loss(o, &d, r);
        most = fmax(most, want);
        expect_near(what, "loss", &o->m.y, r, 0, want, 4 + 4 * want);
    }
    double terms = 4 * o->c->size * (1 + sqrt(most)) * sqrt((double)width);
    for (int s = 0; s < 40; s++) {
        base_random4 random = base_philox(11, (uint64_t)s, 0);
        int64_t r = random.v[0] % (uint64_t)rows, i = random.v[1] % (uint64_t)width;
        int64_t j = random.v[2] % (uint64_t)columns;
        expect_near(what, "dx", &o->m.dx, r, i,
                    slope(o, &d, &d.x[r * width + i], r) + before(o, &o->m.dx_before, r, i), terms);
        if (s >= 8) continue; /* each a run over all rows */
        expect_near(what, "dw", &o->m.dw, j, i,
                    slope(o, &d, &d.w[j * width + i], -1) + before(o, &o->m.dw_before, j, i),
                    terms * sqrt((double)rows));
        if (!d.bias) continue;
        expect_near(what, "db", &o->m.db, 0, j,
                    slope(o, &d, &d.bias[j], -1) + before(o, &o->m.db_before, 0, j),
                    terms * sqrt((double)rows));
    }
    head_free_doubles(&d);
}

/* isa "cuda": over the shim, in an order of its threads for each number of them. */
static device *open_device(int turn, const char *isa) {
    device *dev;
    sifr_error error = {0};
    if (strcmp(isa, "cuda") != 0) return case_device(case_threads[turn], isa);
    assert_int_equal(op_gpu_open(turn, &dev, &error), SIFR_OK);
    return dev;
}

/* Fibres take their time: of long cases the shim runs some, in its two plain orders. */
static bool is_long(const char *isa, const targets_case *c) {
    return strcmp(isa, "cuda") == 0 && c->rows * c->columns > 1000;
}

static void check_case(const char *isa, const targets_case *c, int kind, base_dtype type,
                       bool accumulate) {
    char what[100];
    snprintf(what, sizeof what, "%s %s %s %lldx%lldx%lld", kind ? "labels" : "regression", isa,
             base_dtype_name(type), (long long)c->rows, (long long)c->width, (long long)c->columns);
    targets_operands first = make_operands(c, kind, type, accumulate);
    for (int t = 0; t < (is_long(isa, c) ? 2 : CASE_THREADS); t++) {
        targets_operands o = first;
        begin_results(t == 0 ? &first : &o);
        if (t == 0) o = first;
        device *dev = open_device(t, isa);
        device_call call = make_call(&o, true);
        case_run(dev, &call);
        if (t == 0) {
            check_against(&o, what);
        } else {
            head_expect_same(&o.m, &first.m);
        }
        call = make_call(&o, false); /* evaluation */
        call.y = case_matrix(c->rows, 1, BASE_FP32, 12, 1);
        case_run(dev, &call);
        assert_memory_equal(call.y.data, first.m.y.data, case_bytes(&first.m.y));
        free(call.y.data);
        device_close(dev);
        if (t > 0) head_end(&o.m);
    }
    head_end(&first.m);
    head_free(&first.m);
}

static void check_isa(const char *isa) {
    static const base_dtype types[] = {BASE_FP32, BASE_BF16, BASE_FP16};
    device *dev = open_device(0, isa);
    if (dev == NULL) skip();
    device_close(dev);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t t = 0; t < 3; t++)
            for (int kind = 0; kind < 2; kind++)
                if (!thinned_out(i + t + (size_t)kind) &&
                    !(is_long(isa, &cases[i]) && (i + t + (size_t)kind) % 3 != 0))
                    check_case(isa, &cases[i], kind, types[t], (i + t) % 2);
}

static void targets_avx512_bf16(void **state) {
    (void)state;
    check_isa("avx512_bf16");
}

static void targets_avx512(void **state) {
    (void)state;
    check_isa("avx512");
}

static void targets_avx2(void **state) {
    (void)state;
    check_isa("avx2");
}

static void targets_plain(void **state) {
    (void)state;
    check_isa("plain");
}

static void targets_cuda(void **state) {
    (void)state;
    if (shim_skipped()) skip();
    check_isa("cuda");
}

/* Where only the bias is trained, or only what is before the head. */
static void check_some_gradients(device *dev) {
    targets_operands o = make_operands(&cases[2], MULTILABEL, BASE_FP32, false);
    begin_results(&o);
    device_call call = make_call(&o, true);
    case_run(dev, &call);
    for (int kept = 0; kept < 3; kept++) {
        targets_operands other = o;
        begin_results(&other);
        call = make_call(&other, true);
        if (kept != 0) call.dx[0].dtype = BASE_NONE;
        if (kept != 1) call.dw[0].dtype = BASE_NONE;
        if (kept != 2) call.dw[1].dtype = BASE_NONE;
        case_run(dev, &call);
        const device_matrix *have = kept == 0 ? &other.m.dx : kept == 1 ? &other.m.dw : &other.m.db;
        const device_matrix *want = kept == 0 ? &o.m.dx : kept == 1 ? &o.m.dw : &o.m.db;
        assert_memory_equal(have->data, want->data, case_bytes(want));
        head_end(&other.m);
    }
    head_end(&o.m);
    head_free(&o.m);
    device_close(dev);
}

static void some_gradients(void **state) {
    (void)state;
    check_some_gradients(case_device(2, NULL));
    if (!shim_skipped()) check_some_gradients(open_device(0, "cuda"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_avx512_bf16), cmocka_unit_test(targets_avx512),
        cmocka_unit_test(targets_avx2),        cmocka_unit_test(targets_plain),
        cmocka_unit_test(targets_cuda),        cmocka_unit_test(some_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

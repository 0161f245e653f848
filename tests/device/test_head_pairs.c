/* Heads that learn from pairs of answers, and from another head's distribution: losses against
 * double precision, gradients against its central differences, the same bits for any number of
 * threads, with one chunk of labels and with several. */
#include "device/head_matrices.h"
#include "support/thinned.h"

#include <stdio.h>

typedef struct pairs_case {
    int64_t length, sequences, width, words;
    int every; /* of so many rows one has no label; 0: all have */
    bool biased;
    double scale, softcap;
    int64_t top; /* of a distribution */
    double temperature, weight;
} pairs_case;

static const pairs_case cases[] = {
    {7, 2, 24, 65, 3, false, 0, 0, 5, 1, 0.5},     {30, 4, 33, 300, 4, true, 0, 0, 40, 2, 0.3},
    {9, 6, 16, 17, 2, true, 0.7, 3, 17, 3, 1},     {1, 2, 8, 5, 0, false, 0, 1.5, 1, 0.5, 0},
    {310, 4, 8, 20, 0, false, 0, 0, 4, 1.5, 0.9}, /* two chunks */
    {70, 2, 12, 1100, 5, true, 2, 0, 600, 1, 0.6},
};

enum { SIGMOID, HINGE, IPO, ORPO, DISTIL, KINDS };
static const char *const kind_names[] = {"sigmoid", "hinge", "ipo", "orpo", "distil"};

typedef struct pairs_operands {
    const pairs_case *c;
    int kind;
    int64_t rows;
    head_matrices m;
    device_matrix numbers;
} pairs_operands;

static const device_step step = {.gradient_scale = 0.37f, .training = true};
static const double beta = 0.25;

static double some(uint64_t seed, int64_t a, int64_t b) {
    return 2 * (double)base_uniform(base_philox(seed, (uint64_t)a, (uint64_t)b).v[0]) - 1;
}

/* `top` words behind each other, and the logarithms of what they have of a softmax over all. */
static void fill_distribution(pairs_operands *o, int64_t row) {
    double sum = 0;
    int64_t k = o->c->top, words = o->c->words;
    for (int64_t j = 0; j < words; j++) sum += exp(2 * some(21, row, j));
    for (int64_t i = 0; i < k; i++) {
        int64_t word = (row * 5 + i) % words;
        case_set(&o->numbers, row, i, (double)word);
        case_set(&o->numbers, row, k + i, 2 * some(21, row, word) - log(sum));
    }
}

static pairs_operands make_operands(const pairs_case *c, int kind, base_dtype type,
                                    bool accumulate) {
    int64_t rows = c->length * c->sequences, columns = kind == DISTIL ? 2 * c->top : 1;
    pairs_operands o = {.c = c,
                        .kind = kind,
                        .rows = rows,
                        .m.x = case_matrix(rows, c->width, type, 1, 0.7),
                        .m.labels = case_matrix(rows, 1, BASE_INT32, 2, 0),
                        .numbers = case_matrix(rows, columns, BASE_FP32, 3, 0),
                        .m.w = case_matrix(c->words, c->width, type, 4, 0.7),
                        .m.bias = case_matrix(1, c->words, type, 5, 1),
                        .m.dx_before = case_matrix(rows, c->width, type, 6, 0.1),
                        .m.dw_before = case_matrix(c->words, c->width, BASE_FP32, 7, 0.1),
                        .m.db_before = case_matrix(1, c->words, BASE_FP32, 8, 0.1),
                        .m.accumulate = accumulate};
    if (!c->biased) o.m.bias.dtype = o.m.db_before.dtype = BASE_NONE;
    for (int64_t r = 0; r < rows; r++) {
        base_random4 random = base_philox(9, (uint64_t)r, 0);
        bool none = c->every != 0 && random.v[1] % (uint32_t)c->every == 0;
        case_set(&o.m.labels, r, 0, none ? -100 : (double)(random.v[0] % (uint64_t)c->words));
        if (kind == DISTIL)
            fill_distribution(&o, r);
        else
            case_set(&o.numbers, r, 0, kind == ORPO ? r % 3 > 0 : some(10, r, 0) - 3);
        if (none)
            for (int64_t i = 0; i < columns; i++) case_set(&o.numbers, r, i, NAN);
    }
    return o;
}

static void begin_results(pairs_operands *o) {
    bool distil = o->kind == DISTIL;
    head_begin(&o->m, case_matrix(distil ? o->rows : 2, distil ? 1 : o->rows, BASE_FP32, 11, 1));
}

static void free_operands(pairs_operands *o) {
    free(o->numbers.data);
    head_free(&o->m);
}

static device_call make_call(const pairs_operands *o, bool backward) {
    bool distil = o->kind == DISTIL;
    device_call call = {.kernel = distil     ? DEVICE_HEAD_DISTIL_BACKWARD
                                  : backward ? DEVICE_HEAD_PREFERENCE_BACKWARD
                                             : DEVICE_HEAD_PREFERENCE,
                        .x = {o->m.x, o->m.labels, o->numbers},
                        .w = {o->m.w, o->m.bias},
                        .y = o->m.y,
                        .step = &step};
    call.attributes.head.scale = (float)o->c->scale;
    call.attributes.head.softcap = (float)o->c->softcap;
    call.attributes.head.beta = (float)beta;
    call.attributes.head.length = o->c->length;
    call.attributes.head.temperature = (float)o->c->temperature;
    call.attributes.head.weight = (float)o->c->weight;
    if (!distil) call.attributes.head.preference = (sifr_preference)(o->kind + 1);
    if (!backward) return call;
    head_with_gradients(&o->m, &call);
    return call;
}

/* --- the reference --- */

typedef struct doubles {
    head_doubles of;
    double *logits; /* of one row */
} doubles;

static bool has_label(const pairs_operands *o, int64_t r) {
    return case_get(&o->m.labels, r, 0) >= 0;
}

static void logits_of(const pairs_operands *o, const doubles *d, int64_t r) {
    const pairs_case *c = o->c;
    double scale = c->scale == 0 ? 1 : c->scale;
    for (int64_t j = 0; j < c->words; j++) {
        double l = d->of.bias ? d->of.bias[j] : 0;
        for (int64_t i = 0; i < c->width; i++)
            l += d->of.x[r * c->width + i] * d->of.w[j * c->width + i];
        l *= scale;
        d->logits[j] = c->softcap > 0 ? c->softcap * tanh(l / c->softcap) : l;
    }
}

static double log_sum(const double *logits, int64_t count, double temperature) {
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < count; j++) largest = fmax(largest, logits[j] / temperature);
    for (int64_t j = 0; j < count; j++) sum += exp(logits[j] / temperature - largest);
    return largest + log(sum);
}

static double log_probability(const pairs_operands *o, const doubles *d, int64_t r) {
    logits_of(o, d, r);
    return d->logits[(int64_t)case_get(&o->m.labels, r, 0)] - log_sum(d->logits, o->c->words, 1);
}

static double distil_loss(const pairs_operands *o, const doubles *d, int64_t r) {
    if (!has_label(o, r)) return 0;
    double entropy = -log_probability(o, d, r), t = o->c->temperature, a = o->c->weight;
    double sum = log_sum(d->logits, o->c->words, t), loss = 0, p = 0, q = 0;
    for (int64_t i = 0; i < o->c->top; i++) {
        double log_q = case_get(&o->numbers, r, o->c->top + i);
        double log_p = d->logits[(int64_t)case_get(&o->numbers, r, i)] / t - sum;
        loss += exp(log_q) * (log_q - log_p);
        p += exp(log_p), q += exp(log_q);
    }
    if (o->c->top < o->c->words) loss += (1 - q) * (log(1 - q) - log(1 - p));
    return (1 - a) * entropy + a * t * t * loss;
}

static double log_sigmoid(double x) {
    return x < 0 ? x - log1p(exp(x)) : -log1p(exp(-x));
}

static double pair_loss(const pairs_operands *o, const doubles *d, int64_t pair) {
    double sum[2] = {0}, count[2] = {0}, all = 0, labels = 0;
    for (int side = 0; side < 2; side++) {
        int64_t first = (2 * pair + side) * o->c->length;
        for (int64_t r = first; r < first + o->c->length; r++) {
            if (!has_label(o, r)) continue;
            double l = log_probability(o, d, r), n = case_get(&o->numbers, r, 0);
            if (side == 0) all += l, labels++;
            if (o->kind == ORPO && n <= 0) continue;
            sum[side] += o->kind == ORPO ? l : l - n;
            count[side]++;
        }
    }
    double delta = sum[0] - sum[1], m[2], means = 0, odds = 0;
    for (int side = 0; side < 2; side++) {
        m[side] = sum[side] / fmax(count[side], 1);
        means += side ? -m[1] : m[0];
        odds += (side ? -1 : 1) * (m[side] - log(1 - exp(m[side])));
    }
    switch (o->kind) {
    case SIGMOID:
        return -log_sigmoid(beta * delta);
    case HINGE:
        return fmax(0, 1 - beta * delta);
    case IPO:
        return (means - 1 / (2 * beta)) * (means - 1 / (2 * beta));
    default:
        return -all / labels - beta * log_sigmoid(odds);
    }
}

/* Of the unit, a row or a pair, that has `row`; of all with row -1. */
static double loss_of(const pairs_operands *o, const doubles *d, int64_t row) {
    bool distil = o->kind == DISTIL;
    int64_t per = distil ? 1 : 2 * o->c->length, units = o->rows / per;
    double sum = 0;
    for (int64_t u = row < 0 ? 0 : row / per; u < (row < 0 ? units : row / per + 1); u++)
        sum += distil ? distil_loss(o, d, u) : pair_loss(o, d, u);
    return sum;
}

static double slope(const pairs_operands *o, const doubles *d, double *value, int64_t row) {
    double kept = *value, by = 1e-4, sums[2];
    for (int side = 0; side < 2; side++) {
        *value = kept + (side ? by : -by);
        sums[side] = loss_of(o, d, row);
    }
    *value = kept;
    return (sums[1] - sums[0]) / (2 * by) * (double)step.gradient_scale;
}

static void expect_near(const char *what, const char *name, const device_matrix *m, int64_t r,
                        int64_t c, double want, double size, base_dtype type) {
    double allowed = 2e-5 * size + 2e-5 * fabs(want) + 1e-6;
    if (type != BASE_FP32) allowed += fabs(want) / 128 + size / 128; /* of gradients of logits */
    head_expect_near(what, name, m, r, c, want, allowed);
}

/* GPUs keep logits in the type of the operands: by how much a row's loss is off, and a pair's, of 1
 * plus its size. */
static double loss_error(const pairs_operands *o, const char *isa) {
    base_dtype type = o->m.x.dtype;
    if (!case_is_gpu(isa) || type == BASE_FP32) return 0;
    return type == BASE_BF16 ? 1.0 / 64 : 1.0 / 512;
}

static void check_losses(const pairs_operands *o, const doubles *d, double off, const char *what) {
    const float *y = o->m.y.data;
    for (int64_t r = 0; r < o->rows; r++) {
        bool distil = o->kind == DISTIL, begins = distil || r % (2 * o->c->length) == 0;
        double want = begins ? loss_of(o, d, r) : 0;
        if (!(fabs((double)y[r] - want) <= (3e-5 + off) * (1 + fabs(want))))
            fail_msg("%s: loss %lld is %.9g, expected %.9g", what, (long long)r, (double)y[r],
                     want);
        if (distil) continue;
        want = has_label(o, r) ? log_probability(o, d, r) : 0;
        if (!(fabs((double)y[o->rows + r] - want) <= (1e-5 + off) * (1 + fabs(want))))
            fail_msg("%s: log-probability %lld is %.9g, expected %.9g", what, (long long)r,
                     (double)y[o->rows + r], want);
    }
}

static void check_against(const pairs_operands *o, base_dtype type, double off, const char *what) {
    const pairs_case *c = o->c;
    doubles d = {head_in_double(&o->m), malloc((size_t)c->words * sizeof(double))};
    double before = o->m.accumulate ? 1 : 0, size = 0.1;
    if (o->kind == IPO) size = 1;
    if (o->kind == DISTIL) size = 0.3 * (1 + c->temperature);
    assert_non_null(d.logits);
    check_losses(o, &d, off, what);
    for (int s = 0; s < 12; s++) {
        base_random4 random = base_philox(12, (uint64_t)s, 0);
        int64_t r = random.v[0] % (uint64_t)o->rows, i = random.v[1] % (uint64_t)c->width;
        int64_t j = random.v[2] % (uint64_t)c->words;
        double want = slope(o, &d, &d.of.x[r * c->width + i], r);
        expect_near(what, "dx", &o->m.dx, r, i, want + before * case_get(&o->m.dx_before, r, i),
                    size, type);
        if (s >= 4) continue; /* each a run over all rows */
        want = slope(o, &d, &d.of.w[j * c->width + i], -1);
        double rows = sqrt((double)o->rows);
        expect_near(what, "dw", &o->m.dw, j, i, want + before * case_get(&o->m.dw_before, j, i),
                    size * rows, type);
        if (!d.of.bias) continue;
        want = slope(o, &d, &d.of.bias[j], -1);
        expect_near(what, "db", &o->m.db, 0, j, want + before * case_get(&o->m.db_before, 0, j),
                    size * rows, type);
    }
    head_free_doubles(&d.of);
    free(d.logits);
}

/* `counts`: how many of case_threads to try. */
static void check_case(const char *isa, const pairs_case *c, int kind, base_dtype type,
                       bool accumulate, int counts) {
    char what[100];
    snprintf(what, sizeof what, "%s %s %s %lldx%lldx%lldx%lld", kind_names[kind], isa,
             base_dtype_name(type), (long long)c->length, (long long)c->sequences,
             (long long)c->width, (long long)c->words);
    pairs_operands first = make_operands(c, kind, type, accumulate);
    for (int t = 0; t < counts; t++) {
        pairs_operands o = first;
        begin_results(t == 0 ? &first : &o);
        if (t == 0) o = first;
        device *dev = case_device(case_threads[t], isa);
        device_call call = make_call(&o, true);
        case_run(dev, &call);
        if (t == 0) {
            check_against(&o, type, loss_error(&o, isa), what);
        } else {
            head_expect_same(&o.m, &first.m);
        }
        if (kind != DISTIL) {
            call = make_call(&o, false); /* evaluation */
            call.y = case_matrix(2, o.rows, BASE_FP32, 13, 1);
            case_run(dev, &call);
            assert_memory_equal(call.y.data, first.m.y.data, case_bytes(&first.m.y));
            free(call.y.data);
        }
        device_close(dev);
        if (t > 0) head_end(&o.m);
    }
    head_end(&first.m);
    free_operands(&first);
}

static void check_isa(const char *isa) {
    static const base_dtype types[] = {BASE_FP32, BASE_BF16, BASE_FP16};
    device *dev = case_device(1, isa);
    if (dev == NULL) skip();
    device_close(dev);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t t = 0; t < 3; t++)
            for (int kind = 0; kind < KINDS; kind++)
                if (!thinned_out(i + t + (size_t)kind))
                    check_case(isa, &cases[i], kind, types[t], (i + t) % 2, CASE_THREADS);
}

static void pairs_avx512_bf16(void **state) {
    (void)state;
    check_isa("avx512_bf16");
}

static void pairs_avx512(void **state) {
    (void)state;
    check_isa("avx512");
}

static void pairs_avx2(void **state) {
    (void)state;
    check_isa("avx2");
}

static void pairs_plain(void **state) {
    (void)state;
    check_isa("plain");
}

/* The first cases in four orders of threads, the others in one; every other one has several chunks.
 */
static void pairs_cuda(void **state) {
    (void)state;
    enum { FIRST = 2 };
    static const base_dtype types[] = {BASE_FP32, BASE_BF16, BASE_FP16};
    device *dev = case_device(1, case_cuda);
    if (dev == NULL) skip();
    device_close(dev);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *isa = i % 2 ? case_cuda : case_cuda_shortest();
        for (size_t kind = 0; kind < KINDS; kind++)
            for (size_t t = 0; t < 3; t++)
                if (!thinned_out(i + kind) && (i < FIRST || t == (i + kind) % 3))
                    check_case(isa, &cases[i], (int)kind, types[t], (i + t) % 2,
                               i < FIRST ? CASE_THREADS : 1);
    }
}

/* Of a temperature of 1 and all words given, another head's own gradient: p - q. Beside it a head
 * without the divergence has the bits of the plain head. */
static void is_plain_without_weight(void **state) {
    (void)state;
    device *dev = case_device(2, NULL);
    pairs_case c = cases[1];
    c.weight = 0;
    pairs_operands o = make_operands(&c, DISTIL, BASE_FP32, false), plain = o;
    begin_results(&o);
    begin_results(&plain);
    device_call call = make_call(&o, true);
    case_run(dev, &call);
    call = make_call(&plain, true);
    call.kernel = DEVICE_HEAD_LOSS_BACKWARD;
    call.x[2].dtype = BASE_NONE;
    case_run(dev, &call);
    assert_memory_equal(o.m.y.data, plain.m.y.data, case_bytes(&o.m.y));
    for (int64_t i = 0; i < o.rows * c.width; i++)
        assert_true(fabsf(((float *)o.m.dx.data)[i] - ((float *)plain.m.dx.data)[i]) < 1e-6f);
    head_end(&o.m);
    head_end(&plain.m);
    free_operands(&o);
    device_close(dev);
}

/* A sequence without a pair, and pairs without labels, have neither loss nor gradient. */
static void leaves_rests_alone(void **state) {
    (void)state;
    device *dev = case_device(2, NULL);
    pairs_case c = cases[0];
    c.sequences = 5;
    pairs_operands o = make_operands(&c, SIGMOID, BASE_FP32, false);
    for (int64_t r = 0; r < 2 * c.length; r++) case_set(&o.m.labels, r, 0, -100);
    begin_results(&o);
    device_call call = make_call(&o, true);
    case_run(dev, &call);
    const float *y = o.m.y.data, *dx = o.m.dx.data;
    assert_true(y[0] == 0);
    assert_true(y[4 * c.length] == 0);
    assert_true(y[2 * c.length] > 0);
    for (int64_t i = 0; i < 2 * c.length * c.width; i++) assert_true(dx[i] == 0);
    for (int64_t i = 4 * c.length * c.width; i < o.rows * c.width; i++) assert_true(dx[i] == 0);
    head_end(&o.m);
    free_operands(&o);
    device_close(dev);
}

static void refuses(device *dev, device_call call, const char *message) {
    sifr_error error = {0};
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    if (!strstr(error.message, message)) fail_msg("\"%s\" without \"%s\"", error.message, message);
}

static void refuses_operands(void **state) {
    (void)state;
    device *dev = case_device(1, NULL);
    pairs_operands o = make_operands(&cases[0], SIGMOID, BASE_FP32, false);
    begin_results(&o);
    device_call call = make_call(&o, true), wrong = call;
    wrong.attributes.head.length = 4;
    refuses(dev, wrong, "14 rows are no sequences of 4");
    wrong = call, wrong.attributes.head.beta = 0;
    refuses(dev, wrong, "beta 0");
    wrong = call, wrong.attributes.head.preference = SIFR_PREFERENCE_NONE;
    refuses(dev, wrong, "preference 0");
    wrong = call, wrong.y.rows = 1;
    refuses(dev, wrong, "y");
    wrong = call, wrong.x[2].dtype = BASE_INT32;
    refuses(dev, wrong, "x2");
    head_end(&o.m);
    free_operands(&o);
    o = make_operands(&cases[0], DISTIL, BASE_FP32, false);
    begin_results(&o);
    call = make_call(&o, true), wrong = call;
    wrong.attributes.head.temperature = 0;
    refuses(dev, wrong, "temperature 0");
    wrong = call, wrong.attributes.head.weight = 2;
    refuses(dev, wrong, "weight 2");
    wrong = call, wrong.x[2].columns = wrong.x[2].stride = 9;
    refuses(dev, wrong, "9 columns");
    head_end(&o.m);
    free_operands(&o);
    device_close(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_avx512_bf16),  cmocka_unit_test(pairs_avx512),
        cmocka_unit_test(pairs_avx2),         cmocka_unit_test(pairs_plain),
        cmocka_unit_test(pairs_cuda),         cmocka_unit_test(is_plain_without_weight),
        cmocka_unit_test(leaves_rests_alone), cmocka_unit_test(refuses_operands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Adafactor's kernels against their formula in double, and the same bits however a weight is cut:
 * matrices of several bands of rows, and vectors, which are matrices of one row. */
#include <stdio.h>

#include "base/checked.h"
#include "base/exact_sum.h"
#include "base/half.h"
#include "base/random.h"
#include "device/update_case.h"

enum { WORDS = 2 * EXACT_WORDS, STEPS = 4, PARTS = 3, MOST = 40 * DEVICE_BLOCK };

typedef struct shape {
    int64_t rows, columns;
} shape;
static const shape shapes[] = {{300, 41}, {41, 700}, {1, 5000}, {3000, 1}};

typedef struct variant {
    shape of;
    base_dtype gradient;
    bool moment, scaled;
    float clip, decay, weights; /* weights: the size of the first ones */
} variant;

/* What one rank has: all that is whole, and elements of its own. */
typedef struct rank_state {
    float *weights, *copy, *moment, *rows, *columns, *average;
} rank_state;

typedef struct run_state {
    variant v;
    int parts;
    int64_t padded;
    void *gradient;
    rank_state ranks[PARTS];
    int64_t sums[PARTS][WORDS];
} run_state;

static int64_t elements_of(const variant *v) {
    return v->of.rows * v->of.columns;
}

static int64_t border(const run_state *s, int part) {
    return s->padded / DEVICE_BLOCK * part / s->parts * DEVICE_BLOCK;
}

static run_state make_run(variant v, int parts) {
    run_state s = {.v = v, .parts = parts};
    s.padded = base_ceil_to(elements_of(&v), DEVICE_BLOCK);
    assert_in_range(s.padded, 1, MOST);
    size_t bytes = (size_t)s.padded * sizeof(float);
    s.gradient = update_block(bytes, 0);
    for (int p = 0; p < parts; p++) {
        rank_state *r = &s.ranks[p];
        float **all[] = {&r->weights, &r->copy, &r->moment, &r->rows, &r->columns, &r->average};
        for (int i = 0; i < 6; i++) *all[i] = update_block(bytes, 0);
        for (int64_t i = 0; i < elements_of(&v); i++)
            r->weights[i] = v.weights * (float)base_normal(3, (uint64_t)i);
    }
    return s;
}

static void free_run(run_state *s) {
    free(s->gradient);
    for (int p = 0; p < s->parts; p++) {
        rank_state *r = &s->ranks[p];
        float *all[] = {r->weights, r->copy, r->moment, r->rows, r->columns, r->average};
        for (int i = 0; i < 6; i++) free(all[i]);
    }
}

/* Columns differ in size, and some rows have no gradient. */
static float gradient_at(const variant *v, int t, int64_t i) {
    int64_t row = i / v->of.columns, column = i % v->of.columns;
    if (row % 7 == 3) return 0;
    float g = (float)base_normal((uint64_t)t + 10, (uint64_t)i) * (float)(1 + column % 5);
    return v->gradient == BASE_BF16 ? base_bf16_to_float(base_bf16_from_float(g)) : g;
}

static void set_gradient(run_state *s, int t) {
    for (int64_t i = 0; i < elements_of(&s->v); i++) {
        float g = gradient_at(&s->v, t, i);
        if (s->v.gradient == BASE_BF16)
            ((uint16_t *)s->gradient)[i] = base_bf16_from_float(g);
        else
            ((float *)s->gradient)[i] = g;
    }
}

static device_step step_of(int t) {
    device_step step = update_step(t, 1e-2f);
    step.share = (float)pow(t, -0.8);
    step.beta2 = (float)(1 - pow(t, -0.8));
    step.average_share = t == 1 ? 1.0f : 0.25f;
    return step;
}

static device_call call_of(run_state *s, int part, device_kernel kernel, const device_step *step) {
    rank_state *r = &s->ranks[part];
    const variant *v = &s->v;
    int64_t first = border(s, part), count = border(s, part + 1) - first;
    char *gradient = (char *)s->gradient + first * base_dtype_bytes(v->gradient);
    device_call call = {.kernel = kernel,
                        .x = {update_vector(gradient, count, v->gradient)},
                        .w = {update_vector(r->weights + first, count, BASE_FP32)},
                        .step = step};
    call.attributes.update.epsilon = 1e-30f;
    call.attributes.update.weight_decay = v->decay;
    call.attributes.update.lr_scale = 0.7f;
    call.attributes.update.clip = v->clip;
    call.attributes.update.least_scale = 1e-3f;
    call.attributes.update.scaled = v->scaled;
    call.attributes.update.first = first;
    return call;
}

static void run_step(device *dev, run_state *s, const device_step *step) {
    const variant *v = &s->v;
    memset(s->sums, 0, sizeof s->sums);
    for (int p = 0; p < s->parts; p++) {
        device_call call = call_of(s, p, DEVICE_ADAFACTOR_BEGIN, step);
        call.y = (device_matrix){s->sums[p], 1, WORDS, WORDS, BASE_INT64};
        update_run(dev, &call);
    }
    for (int p = 0; p < s->parts; p++) {
        rank_state *r = &s->ranks[p];
        device_call call =
            call_of(s, p, v->moment ? DEVICE_ADAFACTOR_MOMENT : DEVICE_ADAFACTOR, step);
        int64_t count = call.x[0].columns, first = border(s, p);
        call.x[1] = (device_matrix){s->sums, s->parts, WORDS, WORDS, BASE_INT64};
        call.x[2] =
            (device_matrix){s->gradient, v->of.rows, v->of.columns, v->of.columns, v->gradient};
        call.w[1] = update_vector((uint16_t *)r->copy + first, count, BASE_BF16);
        int k = 0;
        if (v->moment) call.saved[k++] = update_vector(r->moment + first, count, BASE_FP32);
        call.saved[k++] = update_vector(r->rows, v->of.rows, BASE_FP32);
        call.saved[k++] = update_vector(r->columns, v->of.columns, BASE_FP32);
        call.saved[k++] = update_vector(r->average + first, count, BASE_FP32);
        call.attributes.update.averages = true;
        sifr_error error = {0};
        if (device_prepare(dev, &call, &error) != SIFR_OK) fail_msg("%s", error.message);
        call.scratch = update_block((size_t)call.scratch_bytes, 0xff);
        assert_int_equal(device_run(dev, &call, &error), SIFR_OK);
        free(call.scratch);
    }
}

typedef struct reference {
    double p[MOST], m[MOST], u[MOST], a[MOST], rows[MOST], columns[MOST];
} reference;

static double rms(const double *values, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += values[i] * values[i];
    return sqrt(sum / (double)n);
}

/* transformers.optimization.Adafactor; returns what the update is divided by. */
static double reference_step(reference *r, const variant *v, int t, const device_step *s) {
    int64_t rows = v->of.rows, columns = v->of.columns, n = elements_of(v);
    double beta2 = 1 - pow(t, -0.8), mean = 0;
    double squares[2] = {0, 0};
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int64_t j = 0; j < columns; j++) {
            double g = (double)(gradient_at(v, t, i * columns + j) * s->update_scale);
            sum += (g * g + 1e-30) / (double)columns;
        }
        r->rows[i] = beta2 * r->rows[i] + (1 - beta2) * sum;
        mean += r->rows[i] / (double)rows;
    }
    for (int64_t j = 0; j < columns; j++) {
        double sum = 0;
        for (int64_t i = 0; i < rows; i++) {
            double g = (double)(gradient_at(v, t, i * columns + j) * s->update_scale);
            sum += (g * g + 1e-30) / (double)rows;
        }
        r->columns[j] = beta2 * r->columns[j] + (1 - beta2) * sum;
    }
    for (int64_t i = 0; i < n; i++) {
        double g = (double)(gradient_at(v, t, i) * s->update_scale);
        r->u[i] = g / sqrt(r->rows[i / columns] / mean) / sqrt(r->columns[i % columns]);
        squares[0] += r->u[i] * r->u[i];
    }
    double over = fmax(1, sqrt(squares[0] / (double)n) / (double)v->clip);
    double rate = (double)(s->learning_rate * 0.7f);
    if (v->scaled) rate *= fmax(1e-3, rms(r->p, n));
    for (int64_t i = 0; i < n; i++) {
        double u = rate * r->u[i] / over;
        r->m[i] = (double)s->beta1 * r->m[i] + (1 - (double)s->beta1) * u;
        r->p[i] -= (double)v->decay * rate * r->p[i];
        r->p[i] -= v->moment ? r->m[i] : u;
        r->a[i] += (double)s->average_share * (r->p[i] - r->a[i]);
    }
    return over;
}

static void compare(const char *what, const float *have, const double *want, int64_t n,
                    double near) {
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)have[i] - want[i]) <= near * fabs(want[i]) + 1e-3 * near))
            fail_msg("%s %d is %.9g, expected %.9g", what, (int)i, (double)have[i], want[i]);
}

static void check(const run_state *s, const reference *r) {
    const rank_state *one = &s->ranks[0];
    int64_t n = elements_of(&s->v);
    compare("row", one->rows, r->rows, s->v.of.rows, 2e-6);
    compare("column", one->columns, r->columns, s->v.of.columns, 2e-6);
    compare("weight", one->weights, r->p, n, 1e-5);
    compare("average", one->average, r->a, n, 1e-5);
    if (s->v.moment) compare("moment", one->moment, r->m, n, 1e-4);
    for (int64_t i = 0; i < s->padded; i++) {
        assert_int_equal(((uint16_t *)one->copy)[i], base_bf16_from_float(one->weights[i]));
        if (i >= n) {
            assert_true(one->weights[i] == 0);
            assert_true(one->average[i] == 0);
        }
    }
}

static void expect_same(const run_state *whole, const run_state *cut) {
    for (int p = 0; p < cut->parts; p++) {
        const rank_state *a = &whole->ranks[0], *b = &cut->ranks[p];
        size_t first = (size_t)border(cut, p), count = (size_t)border(cut, p + 1) - first;
        assert_memory_equal(a->weights + first, b->weights + first, count * sizeof(float));
        assert_memory_equal(a->average + first, b->average + first, count * sizeof(float));
        assert_memory_equal(a->moment + first, b->moment + first, count * sizeof(float));
        assert_memory_equal((uint16_t *)a->copy + first, (uint16_t *)b->copy + first, count * 2);
        assert_memory_equal(a->rows, b->rows, (size_t)whole->v.of.rows * sizeof(float));
        assert_memory_equal(a->columns, b->columns, (size_t)whole->v.of.columns * sizeof(float));
    }
}

/* `least`, `most`: of what the first update is divided by. */
static void check_steps(device *const devices[2], variant v, double least, double most) {
    run_state whole = make_run(v, 1), cut = make_run(v, PARTS);
    reference *r = calloc(1, sizeof *r);
    assert_non_null(r);
    for (int64_t i = 0; i < elements_of(&v); i++) r->p[i] = (double)whole.ranks[0].weights[i];
    for (int t = 1; t <= STEPS; t++) {
        device_step step = step_of(t);
        set_gradient(&whole, t);
        set_gradient(&cut, t);
        run_step(devices[0], &whole, &step);
        run_step(devices[1], &cut, &step);
        double over = reference_step(r, &v, t, &step);
        if (t == 1) {
            assert_true(over >= least);
            assert_true(over <= most);
        }
        check(&whole, r);
        expect_same(&whole, &cut);
    }
    free(r);
    free_run(&whole);
    free_run(&cut);
}

static void steps(void **state) {
    (void)state;
    for (int i = 0; i < UPDATE_ISAS; i++) {
        device *devices[] = {update_device(1, update_isas[i]), update_device(3, update_isas[i])};
        if (!devices[0]) continue;
        for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
            variant v = {.of = shapes[k], .gradient = BASE_FP32, .clip = 1, .weights = 1};
            check_steps(devices, v, 1, 1.5);
            v.moment = v.scaled = true, v.clip = 0.5f, v.decay = 0.1f;
            check_steps(devices, v, 1.5, 3);
            v.gradient = BASE_BF16, v.weights = 1e-5f; /* below least_scale */
            check_steps(devices, v, 1.5, 3);
        }
        device_close(devices[0]);
        device_close(devices[1]);
    }
}

/* A step that does not update changes nothing, and a matrix of zeros moves nothing. */
static void nothing(void **state) {
    (void)state;
    device *dev = update_device(1, NULL);
    variant v = {.of = {7, 300}, .gradient = BASE_FP32, .clip = 1, .weights = 1, .scaled = true};
    run_state s = make_run(v, 2), before = make_run(v, 2);
    size_t bytes = (size_t)s.padded * sizeof(float);
    device_step step = step_of(1);
    step.update = false;
    set_gradient(&s, 1);
    run_step(dev, &s, &step);
    assert_memory_equal(s.ranks[0].weights, before.ranks[0].weights, bytes);
    assert_memory_equal(s.ranks[0].rows, before.ranks[0].rows, bytes);
    assert_memory_equal(s.ranks[0].average, before.ranks[0].average, bytes);
    memset(s.gradient, 0, bytes);
    step.update = true;
    run_step(dev, &s, &step);
    assert_memory_equal(s.ranks[0].weights, before.ranks[0].weights, bytes);
    for (int i = 0; i < 7; i++) assert_true(s.ranks[0].rows[i] == 1e-30f);
    free_run(&s);
    free_run(&before);
    device_close(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps), cmocka_unit_test(nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

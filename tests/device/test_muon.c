/* Muon's kernels against their formulas in double: momentum and weights, the same bits however a
 * vector is cut; the orthogonal factor of matrices of many shapes, by both forms of the iteration.
 */
#include <stdio.h>

#include "base/random.h"
#include "device/update_case.h"

enum { COUNT = 3 * 1024, CUT = 1024, STEPS = 3 };

typedef struct muon_state {
    float *gradient, *weights, *momentum, *values;
} muon_state;

static muon_state make_state(void) {
    muon_state s;
    float **all[] = {&s.gradient, &s.weights, &s.momentum, &s.values};
    for (int i = 0; i < 4; i++) *all[i] = update_block(COUNT * sizeof(float), 0);
    for (uint64_t i = 0; i < COUNT; i++) s.weights[i] = (float)base_normal(3, i);
    return s;
}

static void free_state(muon_state *s) {
    free(s->gradient);
    free(s->weights);
    free(s->momentum);
    free(s->values);
}

static void set_attributes(device_call *call, float momentum) {
    call->attributes.update.weight_decay = 0.1f;
    call->attributes.update.lr_scale = 0.7f;
    call->attributes.update.momentum = momentum;
}

/* The values stand for what they would be made orthogonal to. */
static void run_range(device *dev, muon_state *s, int64_t first, int64_t count, float momentum,
                      const device_step *step) {
    device_call begin = {.kernel = DEVICE_MUON_BEGIN,
                         .x = {update_vector(s->gradient + first, count, BASE_FP32)},
                         .w = {update_vector(s->weights + first, count, BASE_FP32)},
                         .saved = {update_vector(s->momentum + first, count, BASE_FP32)},
                         .y = update_vector(s->values + first, count, BASE_FP32),
                         .step = step};
    device_call end = {.kernel = DEVICE_MUON,
                       .x = {update_vector(s->values + first, count, BASE_FP32)},
                       .w = {update_vector(s->weights + first, count, BASE_FP32)},
                       .step = step};
    set_attributes(&begin, momentum);
    set_attributes(&end, momentum);
    update_run(dev, &begin);
    update_run(dev, &end);
}

static void check_steps(device *dev, float momentum) {
    muon_state whole = make_state(), cut = make_state();
    double *p = calloc(COUNT, sizeof *p), *m = calloc(COUNT, sizeof *m),
           share = 1 - (double)momentum;
    for (int i = 0; i < COUNT; i++) p[i] = (double)whole.weights[i];
    for (int t = 1; t <= STEPS; t++) {
        device_step step = update_step(t, 1e-3f);
        double rate = (double)(step.learning_rate * 0.7f);
        for (uint64_t i = 0; i < COUNT; i++)
            whole.gradient[i] = cut.gradient[i] = (float)base_normal((uint64_t)t + 10, i);
        run_range(dev, &whole, 0, COUNT, momentum, &step);
        run_range(dev, &cut, 0, CUT, momentum, &step);
        run_range(dev, &cut, CUT, COUNT - CUT, momentum, &step);
        for (int i = 0; i < COUNT; i++) {
            double g = (double)whole.gradient[i] * (double)step.update_scale;
            m[i] += share * (g - m[i]);
            double u = g + (double)momentum * (m[i] - g);
            p[i] = p[i] * (1 - rate * (double)0.1f) - rate * u;
            const double want[] = {p[i], m[i], u};
            const float have[] = {whole.weights[i], whole.momentum[i], whole.values[i]};
            for (int k = 0; k < 3; k++)
                if (!(fabs((double)have[k] - want[k]) <= 1e-6 * (1 + fabs(want[k]))))
                    fail_msg("step %d: kind %d of %d is %.9g, expected %.9g", t, k, i,
                             (double)have[k], want[k]);
        }
        assert_memory_equal(whole.weights, cut.weights, COUNT * sizeof(float));
        assert_memory_equal(whole.momentum, cut.momentum, COUNT * sizeof(float));
    }
    free(p);
    free(m);
    free_state(&whole);
    free_state(&cut);
}

static void steps(void **state) {
    (void)state;
    for (int i = 0; i < UPDATE_ISAS; i++) {
        device *dev = update_device(2, update_isas[i]);
        if (!dev) continue;
        check_steps(dev, 0.95f);
        check_steps(dev, 0.25f);
        device_close(dev);
    }
}

/* --- orthogonal factors --- */

/* out, rows x columns, = a b, with b `inner` x columns */
static void multiply(const double *a, const double *b, int rows, int inner, int columns,
                     double *out) {
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) {
            double sum = 0;
            for (int k = 0; k < inner; k++) sum += a[r * inner + k] * b[k * columns + c];
            out[r * columns + c] = sum;
        }
}

static void transpose(const double *a, int rows, int columns, double *out) {
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) out[c * rows + r] = a[r * columns + c];
}

/* As DeepSpeed writes the plain iteration. */
static void reference(const float *matrix, int rows, int columns, double *out) {
    int n = rows * columns, k = rows < columns ? rows : columns, m = n / k;
    double *x = calloc((size_t)n, sizeof *x), *t = calloc((size_t)n, sizeof *t),
           *a = calloc((size_t)(k * k), sizeof *a), *aa = calloc((size_t)(k * k), sizeof *aa);
    double norm = 0, scale = rows > columns ? sqrt((double)rows / columns) : 1;
    for (int i = 0; i < n; i++) t[i] = (double)matrix[i], norm += t[i] * t[i];
    if (rows > columns) transpose(t, rows, columns, x);
    for (int i = 0; i < n; i++) x[i] = (rows > columns ? x[i] : t[i]) / (sqrt(norm) + 1e-7);
    for (int s = 0; s < 5; s++) {
        transpose(x, k, m, t);
        multiply(x, t, k, m, k, a);
        multiply(a, a, k, k, k, aa);
        for (int i = 0; i < k * k; i++) a[i] = -4.7750 * a[i] + 2.0315 * aa[i];
        multiply(a, x, k, k, m, t);
        for (int i = 0; i < n; i++) x[i] = 3.4445 * x[i] + t[i];
    }
    if (rows > columns)
        transpose(x, k, m, out);
    else
        memcpy(out, x, (size_t)n * sizeof *x);
    for (int i = 0; i < n; i++) out[i] *= scale;
    free(x), free(t), free(a), free(aa);
}

static void orthogonalise(device *dev, float *y, int rows, int columns, int matrices, bool gram,
                          bool update) {
    device_step step = {.update = update};
    device_call call = {.kernel = DEVICE_ORTHOGONALISE,
                        .y = {y, (int64_t)rows * matrices, columns, columns, BASE_FP32},
                        .step = &step};
    call.attributes.update.matrices = matrices;
    call.attributes.update.gram = gram;
    sifr_error error = {0};
    if (device_prepare(dev, &call, &error) != SIFR_OK) fail_msg("%s", error.message);
    call.scratch = update_block((size_t)call.scratch_bytes, 0xff);
    assert_int_equal(device_run(dev, &call, &error), SIFR_OK);
    free(call.scratch);
}

static float *random_matrices(int count, uint64_t seed) {
    float *y = update_block((size_t)count * sizeof *y, 0);
    for (uint64_t i = 0; i < (uint64_t)count; i++) y[i] = (float)base_normal(seed, i) * 1e-3f;
    return y;
}

typedef struct shape {
    int rows, columns, matrices;
} shape;

static const shape shapes[] = {{24, 40, 1}, {40, 24, 1}, {32, 32, 1}, {300, 64, 1}, {64, 300, 1},
                               {1, 50, 1},  {50, 1, 1},  {5, 3, 7},   {272, 260, 1}};

static void check_shape(device *dev, shape s, bool gram) {
    int each = s.rows * s.columns, count = each * s.matrices;
    float *y = random_matrices(count, 5), *before = random_matrices(count, 5);
    double *want = calloc((size_t)each, sizeof *want);
    orthogonalise(dev, y, s.rows, s.columns, s.matrices, gram, true);
    for (int n = 0; n < s.matrices; n++) {
        double off = 0, size = 0;
        reference(before + n * each, s.rows, s.columns, want);
        for (int i = 0; i < each; i++) {
            off += pow((double)y[n * each + i] - want[i], 2);
            size += want[i] * want[i];
        }
        if (!(sqrt(off / size) <= 1e-4))
            fail_msg("%d x %d, matrix %d of %d, %s: off by %.3g", s.rows, s.columns, n, s.matrices,
                     gram ? "gram" : "standard", sqrt(off / size));
    }
    free(y), free(before), free(want);
}

static void orthogonal(void **state) {
    (void)state;
    for (int i = 0; i < UPDATE_ISAS; i++) {
        device *dev = update_device(1, update_isas[i]);
        if (!dev) continue;
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int gram = 0; gram < 2; gram++) check_shape(dev, shapes[s], gram);
        device_close(dev);
    }
}

static void same_bits(void **state) {
    (void)state;
    device *one = update_device(1, NULL), *three = update_device(3, NULL);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int gram = 0; gram < 2; gram++) {
            int count = shapes[s].rows * shapes[s].columns * shapes[s].matrices;
            float *a = random_matrices(count, 9), *b = random_matrices(count, 9);
            orthogonalise(one, a, shapes[s].rows, shapes[s].columns, shapes[s].matrices, gram,
                          true);
            orthogonalise(three, b, shapes[s].rows, shapes[s].columns, shapes[s].matrices, gram,
                          true);
            assert_memory_equal(a, b, (size_t)count * sizeof *a);
            free(a), free(b);
        }
    device_close(one);
    device_close(three);
}

/* A matrix of zeros stays, and so does any in a step that does not update. */
static void unchanged(void **state) {
    (void)state;
    device *dev = update_device(1, NULL);
    float *zeros = update_block(24 * 40 * sizeof *zeros, 0), *y = random_matrices(24 * 40, 1),
          *before = random_matrices(24 * 40, 1);
    orthogonalise(dev, zeros, 24, 40, 1, true, true);
    for (int i = 0; i < 24 * 40; i++) assert_true(!(fabsf(zeros[i]) > 0));
    orthogonalise(dev, y, 24, 40, 1, true, false);
    assert_memory_equal(y, before, 24 * 40 * sizeof *y);
    muon_state s = make_state(), was = make_state();
    device_step step = update_step(1, 1e-3f);
    step.update = false;
    for (int i = 0; i < COUNT; i++) s.gradient[i] = NAN;
    run_range(dev, &s, 0, COUNT, 0.95f, &step);
    assert_memory_equal(s.weights, was.weights, COUNT * sizeof(float));
    assert_memory_equal(s.momentum, was.momentum, COUNT * sizeof(float));
    free(zeros), free(y), free(before);
    free_state(&s);
    free_state(&was);
    device_close(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps), cmocka_unit_test(orthogonal),
                                       cmocka_unit_test(same_bits), cmocka_unit_test(unchanged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

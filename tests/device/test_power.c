/* PowerSGD's kernels: products by a reference in double, orthonormal bases, the same bits on 1 and
 * 3 threads; factors of full rank give the sum of all ranks' gradients; what ranks have not sent
 * and what was sent are that sum; a step that is skipped changes nothing; NaN is seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "device/device.h"

enum { RANKS = 3, MOST = 700 * 1500 };

typedef struct shape {
    int64_t rows, columns, rank;
} shape;

static device_matrix matrix_of(float *data, int64_t rows, int64_t columns) {
    return (device_matrix){data, rows, columns, columns, BASE_FP32};
}

static float *numbers(int64_t count, uint64_t key) {
    float *out = malloc((size_t)count * sizeof *out);
    for (int64_t i = 0; i < count; i++) out[i] = (float)base_normal(key, (uint64_t)i);
    return out;
}

static void run(device *dev, device_call call, bool update, float scale) {
    device_step step = {.step = 7, .update = update, .loss_scale = scale};
    sifr_error error;
    call.step = &step;
    if (device_prepare(dev, &call, &error) != SIFR_OK) fail_msg("%s", error.message);
    if (device_run(dev, &call, &error) != SIFR_OK) fail_msg("%s", error.message);
}

static void make_base(device *dev, float *rows, int64_t rank, int64_t columns, bool draws) {
    device_call call = {.kernel = DEVICE_POWER_BASE, .y = matrix_of(rows, rank, columns)};
    call.attributes.power = (device_power_attributes){.weight = 3, .draws = draws};
    run(dev, call, true, 1);
}

static void make_left(device *dev, shape s, float *m, float *right, float *left) {
    run(dev,
        (device_call){.kernel = DEVICE_POWER_LEFT,
                      .x = {matrix_of(m, s.rows, s.columns), matrix_of(right, s.rank, s.columns)},
                      .y = matrix_of(left, s.rank, s.rows)},
        true, 1);
}

static void make_right(device *dev, shape s, float *m, float *left, float *right) {
    run(dev,
        (device_call){.kernel = DEVICE_POWER_RIGHT,
                      .x = {matrix_of(m, s.rows, s.columns), matrix_of(left, s.rank, s.rows)},
                      .y = matrix_of(right, s.rank, s.columns)},
        true, 1);
}

static void expect_orthonormal(const float *rows, int64_t rank, int64_t columns) {
    for (int64_t a = 0; a < rank; a++)
        for (int64_t b = 0; b <= a; b++) {
            double dot = 0;
            for (int64_t i = 0; i < columns; i++)
                dot += (double)rows[a * columns + i] * (double)rows[b * columns + i];
            assert_true(fabs(dot - (a == b)) < 1e-5);
        }
}

/* Both products and what they stand for, against sums in double. */
static void expect_products(device *dev, shape s) {
    float *m = numbers(s.rows * s.columns, 1), *right = numbers(s.rank * s.columns, 2),
          *left = malloc((size_t)(s.rank * s.rows) * sizeof *left),
          *back = malloc((size_t)(s.rank * s.columns) * sizeof *back),
          *built = malloc((size_t)(s.rows * s.columns) * sizeof *built);
    make_left(dev, s, m, right, left);
    make_right(dev, s, m, left, back);
    for (int64_t k = 0; k < s.rank; k++) {
        for (int64_t i = 0; i < s.rows; i++) {
            double sum = 0;
            for (int64_t j = 0; j < s.columns; j++)
                sum += (double)m[i * s.columns + j] * (double)right[k * s.columns + j];
            assert_true(fabs(sum - (double)left[k * s.rows + i]) < 1e-5 * (double)s.columns);
        }
        for (int64_t j = 0; j < s.columns; j++) {
            double sum = 0, size = 0;
            for (int64_t i = 0; i < s.rows; i++) {
                double term = (double)m[i * s.columns + j] * (double)left[k * s.rows + i];
                sum += term, size += fabs(term);
            }
            assert_true(fabs(sum - (double)back[k * s.columns + j]) < 1e-5 * size);
        }
    }
    int64_t first = s.columns / 3, count = s.rows * s.columns - first - 1;
    device_call build = {
        .kernel = DEVICE_POWER_BUILD,
        .x = {matrix_of(left, s.rank, s.rows), matrix_of(right, s.rank, s.columns)},
        .y = matrix_of(built, 1, count)};
    build.attributes.power.first = first;
    run(dev, build, true, 1);
    for (int64_t e = 0; e < count; e++) {
        int64_t i = (first + e) / s.columns, j = (first + e) % s.columns;
        double sum = 0, size = 0;
        for (int64_t k = 0; k < s.rank; k++) {
            double term = (double)left[k * s.rows + i] * (double)right[k * s.columns + j];
            sum += term, size += fabs(term);
        }
        assert_true(fabs(sum - (double)built[e]) <= 1e-6 * size);
    }
    free(m), free(right), free(left), free(back), free(built);
}

static const char *const sets[] = {NULL, "avx2", "plain"};

static void products(void **state) {
    (void)state;
    static const shape shapes[] = {{5, 7, 1}, {37, 53, 3}, {300, 1100, 2}, {700, 40, 4}};
    for (int s = 0; s < 3; s++) {
        device *dev;
        sifr_error error;
        if (device_open_cpu(2, sets[s], &dev, &error) != SIFR_OK) continue; /* not here */
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) expect_products(dev, shapes[i]);
        device_close(dev);
    }
}

/* Rows that depend on others, or are 0: drawn anew, or 0. */
static void bases(void **state) {
    (void)state;
    enum { RANK = 4, COLUMNS = 333 };
    device *dev;
    sifr_error error;
    assert_int_equal(device_open_cpu(2, NULL, &dev, &error), SIFR_OK);
    float *rows = numbers(RANK * COLUMNS, 5), again[RANK * COLUMNS];
    for (int i = 0; i < COLUMNS; i++) {
        rows[COLUMNS + i] = 3 * rows[i];
        rows[2 * COLUMNS + i] = 0;
    }
    memcpy(again, rows, sizeof again);
    make_base(dev, rows, RANK, COLUMNS, true);
    expect_orthonormal(rows, RANK, COLUMNS);
    make_base(dev, again, RANK, COLUMNS, false);
    for (int i = 0; i < 2 * COLUMNS; i++) assert_true(again[COLUMNS + i] == 0);
    memcpy(again + COLUMNS, again + 3 * COLUMNS, COLUMNS * sizeof *again);
    expect_orthonormal(again, 2, COLUMNS);
    /* All zeros: numbers of seed, step and weight. */
    memset(again, 0, sizeof again);
    memset(rows, 0, sizeof again);
    make_base(dev, again, RANK, COLUMNS, true);
    make_base(dev, rows, RANK, COLUMNS, true);
    expect_orthonormal(again, RANK, COLUMNS);
    assert_memory_equal(rows, again, sizeof again);
    rows[5] = NAN;
    make_base(dev, rows, RANK, COLUMNS, true);
    assert_true(isnan(rows[5]));
    free(rows);
    device_close(dev);
}

/* --- a step of several ranks --- */

typedef struct step_of {
    shape s;
    float *gradient[RANKS], *error[RANKS], *left[RANKS], *right[RANKS], *base[RANKS];
} step_of;

static void sum_over_ranks(float *of[RANKS], int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        float sum = 0;
        for (int r = 0; r < RANKS; r++) sum += of[r][i];
        for (int r = 0; r < RANKS; r++) of[r][i] = sum;
    }
}

static device_call keep_of(step_of *t, int r) {
    shape s = t->s;
    device_call keep = {
        .kernel = DEVICE_POWER_KEEP,
        .x = {matrix_of(t->left[r], s.rank, s.rows), matrix_of(t->right[r], s.rank, s.columns)},
        .y = matrix_of(t->gradient[r], 1, s.rows * s.columns),
        .saved = {matrix_of(t->error[r], 1, s.rows * s.columns),
                  matrix_of(t->base[r], s.rank, s.columns)}};
    keep.attributes.power.ranks = RANKS;
    return keep;
}

static void run_step(device *dev, step_of *t, bool update, float scale) {
    shape s = t->s;
    int64_t all = s.rows * s.columns;
    for (int r = 0; r < RANKS; r++) {
        memcpy(t->right[r], t->base[r], (size_t)(s.rank * s.columns) * sizeof(float));
        make_base(dev, t->right[r], s.rank, s.columns, true);
        run(dev,
            (device_call){.kernel = DEVICE_POWER_ADD,
                          .x = {matrix_of(t->error[r], 1, all)},
                          .y = matrix_of(t->gradient[r], 1, all)},
            update, scale);
        make_left(dev, s, t->gradient[r], t->right[r], t->left[r]);
    }
    sum_over_ranks(t->left, s.rank * s.rows);
    for (int r = 0; r < RANKS; r++) {
        make_base(dev, t->left[r], s.rank, s.rows, false);
        make_right(dev, s, t->gradient[r], t->left[r], t->right[r]);
    }
    sum_over_ranks(t->right, s.rank * s.columns);
    for (int r = 0; r < RANKS; r++) run(dev, keep_of(t, r), update, scale);
}

static step_of begin(shape s) {
    step_of t = {.s = s};
    for (int r = 0; r < RANKS; r++) {
        t.gradient[r] = numbers(s.rows * s.columns, (uint64_t)(10 + r));
        t.error[r] = numbers(s.rows * s.columns, (uint64_t)(20 + r));
        t.left[r] = calloc((size_t)(s.rank * s.rows), sizeof(float));
        t.right[r] = calloc((size_t)(s.rank * s.columns), sizeof(float));
        t.base[r] = calloc((size_t)(s.rank * s.columns), sizeof(float));
    }
    return t;
}

static void end(step_of *t) {
    for (int r = 0; r < RANKS; r++)
        free(t->gradient[r]), free(t->error[r]), free(t->left[r]), free(t->right[r]),
            free(t->base[r]);
}

/* With the loss scale in the gradient, and not in the error. */
static double *wanted_sum(const step_of *t, float scale) {
    int64_t all = t->s.rows * t->s.columns;
    double *sum = calloc((size_t)all, sizeof *sum);
    for (int r = 0; r < RANKS; r++)
        for (int64_t i = 0; i < all; i++)
            sum[i] += (double)t->gradient[r][i] + (double)scale * (double)t->error[r][i];
    return sum;
}

static void sums(void **state) {
    (void)state;
    static const shape shapes[] = {{24, 40, 2}, {24, 40, 24}, {40, 24, 24}, {64, 300, 5}};
    device *dev;
    sifr_error error;
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    for (size_t n = 0; n < sizeof shapes / sizeof *shapes; n++) {
        shape s = shapes[n];
        const float scale = 8;
        step_of t = begin(s);
        double *want = wanted_sum(&t, scale), lost = 0;
        run_step(dev, &t, true, scale);
        for (int64_t i = 0; i < s.rows * s.columns; i++) {
            double errors = 0, sent = (double)t.gradient[0][i];
            for (int r = 0; r < RANKS; r++) {
                errors += (double)scale * (double)t.error[r][i];
                assert_true(t.gradient[r][i] == t.gradient[0][i]);
            }
            assert_true(fabs(sent + errors - want[i]) < 1e-4 * (1 + fabs(want[i])));
            lost += fabs(sent - want[i]);
            if (s.rank == 24) assert_true(fabs(sent - want[i]) < 2e-4);
        }
        if (s.rank != 24) assert_true(lost > 1);
        assert_memory_equal(t.base[0], t.right[0], (size_t)(s.rank * s.columns) * sizeof(float));
        free(want);
        end(&t);
    }
    device_close(dev);
}

static void skipped(void **state) {
    (void)state;
    shape s = {24, 40, 2};
    device *dev;
    sifr_error error;
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    step_of t = begin(s), kept = begin(s);
    t.gradient[1][77] = NAN;
    run_step(dev, &t, false, 8);
    int64_t seen = 0;
    for (int64_t i = 0; i < s.rank * s.columns; i++) seen += isnan(t.right[0][i]);
    assert_true(seen > 0);
    for (int r = 0; r < RANKS; r++) {
        assert_memory_equal(t.error[r], kept.error[r], 24 * 40 * sizeof(float));
        assert_memory_equal(t.base[r], kept.base[r], 2 * 40 * sizeof(float));
    }
    end(&t), end(&kept);
    device_close(dev);
}

static void threads(void **state) {
    (void)state;
    step_of t[2];
    shape s = {700, 1500, 3};
    for (int n = 0; n < 2; n++) {
        device *dev;
        sifr_error error;
        assert_int_equal(device_open_cpu(n ? 3 : 1, NULL, &dev, &error), SIFR_OK);
        t[n] = begin(s);
        run_step(dev, &t[n], true, 1);
        device_close(dev);
    }
    for (int r = 0; r < RANKS; r++) {
        assert_memory_equal(t[0].gradient[r], t[1].gradient[r], MOST * sizeof(float));
        assert_memory_equal(t[0].error[r], t[1].error[r], MOST * sizeof(float));
    }
    end(&t[0]), end(&t[1]);
}

static void expect_refused(device_call call, const char *message) {
    device *dev;
    sifr_error error = {0};
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    if (!strstr(error.message, message)) fail_msg("%s", error.message);
    device_close(dev);
}

static void checked(void **state) {
    (void)state;
    device_matrix m = matrix_of(NULL, 6, 8), left = matrix_of(NULL, 2, 6),
                  right = matrix_of(NULL, 2, 8), flat = matrix_of(NULL, 1, 48);
    expect_refused((device_call){.kernel = DEVICE_POWER_LEFT, .x = {m, left}, .y = left},
                   "power_left: x[1]");
    expect_refused((device_call){.kernel = DEVICE_POWER_RIGHT, .x = {m, left}, .y = left},
                   "power_right: y");
    expect_refused((device_call){.kernel = DEVICE_POWER_BASE, .y = matrix_of(NULL, 65, 80)},
                   "power_base: y has rank 65, not 1 to 64");
    expect_refused((device_call){.kernel = DEVICE_POWER_ADD, .x = {m}, .y = flat},
                   "power_add: x[0]");
    device_call build = {.kernel = DEVICE_POWER_BUILD, .x = {left, right}, .y = flat};
    build.attributes.power.first = 1;
    expect_refused(build, "power_build: elements 1 to 49 of 48");
    expect_refused((device_call){.kernel = DEVICE_POWER_KEEP, .x = {left, right}, .y = flat},
                   "power_keep: 0 ranks");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(products), cmocka_unit_test(bases),
                                       cmocka_unit_test(sums),     cmocka_unit_test(skipped),
                                       cmocka_unit_test(threads),  cmocka_unit_test(checked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

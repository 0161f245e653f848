/* CUDA kernels that add what ranks and blocks have, over the shim: slices in the order of
 * device/tree_sum.h, losses in order, and the decision of a step. in test_asan */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/float_mode.h"
#include "base/half.h"
#include "base/random.h"
#include "device/tree_sum.h"
#include "support/cuda/op_gpu.h"
#include "support/cuda/shim_run.h"

enum { ORDERS = 4 };

static device *shims[ORDERS];

static int open_devices(void **state) {
    static const int orders[ORDERS] = {SHIM_UP, SHIM_DOWN, 2, 5};
    sifr_error error = {0};
    (void)state;
    for (int o = 0; o < ORDERS; o++)
        if (op_gpu_open(orders[o], &shims[o], &error) != SIFR_OK) return -1;
    return 0;
}

static int close_devices(void **state) {
    (void)state;
    for (int o = 0; o < ORDERS; o++) device_close(shims[o]);
    return 0;
}

static void *block(size_t bytes) {
    void *out = malloc(bytes);
    assert_non_null(out);
    memset(out, 0x5a, bytes);
    return out;
}

static void fill(void *to, base_dtype type, int64_t count, uint64_t key) {
    for (int64_t i = 0; i < count; i++) {
        float value = (float)base_normal(key, (uint64_t)i);
        if (type == BASE_FP32) ((float *)to)[i] = value;
        if (type == BASE_BF16) ((uint16_t *)to)[i] = base_bf16_from_float(value);
        if (type == BASE_FP16) ((uint16_t *)to)[i] = base_half_from_float(value);
    }
}

static void check_tree(base_dtype type, base_dtype sum, int32_t count, int64_t elements,
                       bool in_place) {
    size_t size = (size_t)base_dtype_bytes(type), out_size = (size_t)base_dtype_bytes(sum);
    size_t bytes = (size_t)elements * size, out_bytes = (size_t)elements * out_size;
    const void *slices[DEVICE_MOST_SLICES];
    void *rows[DEVICE_MOST_SLICES], *want = block(out_bytes), *out = block(out_bytes);
    for (int32_t r = 0; r < count; r++) {
        rows[r] = block(bytes);
        fill(rows[r], type, elements, (uint64_t)r + 1);
        slices[r] = rows[r];
    }
    unsigned before = base_flush_floats();
    device_tree_sum_typed(type, sum, slices, count, elements, want);
    base_restore_floats(before);
    for (int o = 0; o < ORDERS; o++) {
        sifr_error error = {0};
        void *to = in_place ? rows[count - 1] : out;
        fill(rows[count - 1], type, elements, (uint64_t)count);
        device_sum asked = {type, sum, slices, count, elements, to};
        assert_int_equal(device_start_sum(shims[o], DEVICE_EXCHANGE, &asked, &error), SIFR_OK);
        if (memcmp(to, want, out_bytes) != 0)
            fail_msg("%d slices of %lld in %s, sum in %s%s: other bits than device_tree_sum", count,
                     (long long)elements, base_dtype_name(type), base_dtype_name(sum),
                     in_place ? ", in place" : "");
    }
    for (int32_t r = 0; r < count; r++) free(rows[r]);
    free(want);
    free(out);
}

static void test_tree(void **state) {
    static const int32_t counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 20, 24, 32, 63, 64};
    static const base_dtype types[] = {BASE_FP32, BASE_BF16, BASE_FP16};
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (int t = 0; t < 3; t++) {
            check_tree(types[t], types[t], counts[i], 103, false);
            check_tree(types[t], types[t], counts[i], 24, true);
            check_tree(types[t], BASE_FP32, counts[i], 40, false);
        }
    }
    check_tree(BASE_BF16, BASE_BF16, 8, 5003, true);
}

static void test_too_many_slices(void **state) {
    const void *slices[DEVICE_MOST_SLICES + 1] = {0};
    device_sum sum = {BASE_FP32, BASE_FP32, slices, DEVICE_MOST_SLICES + 1, 1, NULL};
    sifr_error error = {0};
    (void)state;
    assert_int_equal(device_start_sum(shims[0], DEVICE_EXCHANGE, &sum, &error), SIFR_FAILED);
    assert_non_null(strstr(error.message, "65 slices"));
}

static void test_losses(void **state) {
    static const int64_t counts[] = {0, 1, 7, 1023, 1024, 1025, 2048, 5000};
    (void)state;
    for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) {
        size_t rows = (size_t)counts[n];
        float *losses = block((rows + 1) * sizeof *losses);
        double want = 0;
        fill(losses, BASE_FP32, counts[n], 3);
        for (size_t i = 0; i < rows; i++) {
            losses[i] *= ldexpf(1, (int)(i % 40)); /* so that the order counts */
            want += (double)losses[i];
        }
        for (int o = 0; o < ORDERS; o++) {
            sifr_error error = {0};
            double sum = NAN;
            assert_int_equal(device_fold_losses(shims[o], losses, counts[n], &sum, &error),
                             SIFR_OK);
            assert_memory_equal(&sum, &want, sizeof sum);
        }
        free(losses);
    }
}

typedef struct decision {
    float size; /* of the gradients */
    double loss, scale, clipping;
    int64_t labelled;
    bool across_first;
} decision;

enum { RANKS = 4, BATCHES = 3 };

/* As a rank sends it. */
typedef struct part {
    base_exact_sum squares;
    double losses[BATCHES];
} part;

/* Rank r owns gradients of size 3^r x `size`, whose squares and their sums are exact in double, and
 * so many of them that a sum that is not settled has carries. */
static double fill_squares(float size, int32_t owners, part parts[RANKS]) {
    enum { MANY = 1000 };
    double want = 0;
    for (int r = 0; r < RANKS; r++, size *= 3) {
        parts[r].squares = (base_exact_sum){0};
        for (int i = 0; i < MANY; i++) base_exact_square(&parts[r].squares, size);
        if (r == 1) base_exact_settle(&parts[r].squares);
        if (r < owners) want += MANY * (double)size * (double)size;
    }
    return want;
}

static void check_decision(device *dev, const decision *d, int32_t owners) {
    double ordered[RANKS * BATCHES], sum = 0, scale = 1;
    int n = d->across_first ? owners : 1;
    part parts[RANKS];
    double squares = fill_squares(d->size, owners, parts);
    assert_int_equal(sizeof *parts, device_part_bytes(BATCHES));
    for (int r = 0; r < RANKS; r++) {
        for (int j = 0; j < BATCHES; j++) {
            int i = r * BATCHES + j;
            double large = i == 1 ? 0x1p53 : i == 5 ? -0x1p53 : 0; /* what is between is rounded */
            double loss = parts[r].losses[j] = d->loss * (large + 1 + i * 0.1);
            ordered[(r / n * BATCHES + j) * n + r % n] = loss;
        }
    }
    for (int i = 0; i < RANKS * BATCHES; i++) sum += ordered[i];
    double norm = sqrt(squares) / d->scale;
    bool updated = isfinite(squares) && isfinite(sum) && d->labelled > 0;
    if (d->clipping > 0) scale = 1 / fmax(1, (norm + 1e-6) / d->clipping);
    device_step step = {.seed = 9, .learning_rate = 0.5f, .update_scale = -1.0f};
    device_outcome result = {.loss_sum = -1};
    device_decision asked = {.parts = parts,
                             .ranks = RANKS,
                             .micro_batches = BATCHES,
                             .owners = owners,
                             .across_first = d->across_first,
                             .labelled = d->labelled,
                             .loss_scale = d->scale,
                             .clipping = d->clipping,
                             .step = &step,
                             .outcome = &result};
    sifr_error error = {0};
    assert_int_equal(device_decide(dev, &asked, &error), SIFR_OK);
    assert_true(isnan(sum) ? isnan(result.loss_sum) : result.loss_sum == sum);
    assert_true(isnan(norm) ? isnan(result.gradient_norm) : result.gradient_norm == norm);
    assert_int_equal(result.updated, updated);
    assert_int_equal(step.update, updated);
    assert_true(isnan(scale) ? isnan(step.update_scale)
                             : step.update_scale == (float)(scale / d->scale));
    assert_true(step.seed == 9);
    assert_true(step.learning_rate == 0.5f);
}

static void test_decide(void **state) {
    static const decision decisions[] = {
        {2.5, 1, 1, 0, 5, false},        {2.5, 1, 1, 1, 5, true},       {2.5, 1, 1024, 1, 5, false},
        {2.5, 1, 1024, 1e-4, 5, true},   {INFINITY, 1, 1, 1, 5, false}, {NAN, 1, 1, 1, 5, false},
        {2.5, INFINITY, 1, 1, 5, false}, {2.5, NAN, 1, 0, 5, true},     {2.5, 1, 1, 1, 0, false},
        {0, 0, 1, 1, 5, false},
    };
    (void)state;
    device *cpu;
    sifr_error error;
    assert_int_equal(device_open_cpu(1, NULL, &cpu, &error), SIFR_OK);
    for (size_t i = 0; i < sizeof decisions / sizeof *decisions; i++) {
        for (int32_t owners = 1; owners <= RANKS; owners *= 2) {
            check_decision(shims[i % ORDERS], &decisions[i], owners);
            check_decision(cpu, &decisions[i], owners);
        }
    }
    device_close(cpu);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_too_many_slices),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_decide),
    };
    if (shim_skipped()) return 77;
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}

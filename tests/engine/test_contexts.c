/* Context ranks, as threads: what one rank trains, to the rounding of other sums; the same bits
 * with and without recomputation, at ZeRO stages that add alike, and over data ranks; each row's
 * loss, and the gradient that comes back to it, to the bit; and what each group moves is what the
 * plan says (zero_run checks it in each step). in test_tsan */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "support/zero_run.h"

/* LENGTH: 8 sequences have fewer tokens than there are words. */
enum { GLOBAL = 4, LENGTH = 8 };

/* Adam makes of a gradient that is only rounding a step as large as any, so weights are compared in
 * the mean. */
static void expect_near(const zero_outcome *want, const zero_outcome *have, double bound) {
    double difference = 0, size = 0;
    for (int s = 0; s < ZERO_STEPS; s++) {
        assert_true(isfinite(want->loss[s]));
        assert_true(fabs(have->loss[s] - want->loss[s]) < bound * want->loss[s]);
        assert_true(fabs(have->norm[s] - want->norm[s]) < 10 * bound * want->norm[s]);
    }
    assert_int_equal(have->count, want->count);
    for (size_t i = 0; i < want->count; i++) {
        difference += fabs(have->weights[i] - want->weights[i]);
        size += fabs(want->weights[i]);
    }
    assert_true(difference < 10 * bound * size);
    if (!(fabs(have->evaluated - want->evaluated) <= bound * want->evaluated))
        fail_msg("an evaluation is %.9g, not %.9g", have->evaluated, want->evaluated);
}

static void near_one_rank(void **state) {
    (void)state;
    static const zero_variant variants[] = {
        {.type = "llama", .contexts = 2},
        {.type = "llama", .contexts = 2, .sequences = 2},
        {.type = "llama", .contexts = 2, .packed = true},
        {.type = "llama", .contexts = 2, .packed = true, .sequences = 3},
        {.type = "gpt2", .contexts = 2}, /* dropout counts the elements of the micro batch */
    };
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        zero_variant v = variants[i];
        int32_t contexts = v.contexts;
        v.global = GLOBAL, v.evaluate = true;
        v.ranks = 1, v.contexts = 0;
        zero_outcome want = zero_run(v);
        v.ranks = v.contexts = contexts;
        zero_outcome have = zero_run(v);
        expect_near(&want, &have, 1e-5);
        free(want.weights);
        free(have.weights);
    }
}

/* Where each micro batch is reduced at once its contexts are added first, on any number of data
 * ranks. */
static void same_bits_on_any_ranks(void **state) {
    (void)state;
    for (int precision = SIFR_FP32; precision <= SIFR_FP16; precision++) {
        zero_variant v = {.ranks = 2,
                          .contexts = 2,
                          .type = "llama",
                          .precision = (sifr_precision)precision,
                          .global = GLOBAL,
                          .stage = 2};
        zero_outcome want = zero_run(v);
        zero_expect_same(&want, v); /* twice */
        v.stage = 3;
        zero_expect_same(&want, v);
        v.ranks = 4, v.recompute = true;
        zero_expect_same(&want, v);
        v.ranks = 8, v.stage = 2;
        zero_expect_same(&want, v);
        v.shard_size = 2, v.stage = 3;
        zero_expect_same(&want, v);
        free(want.weights);
    }
}

/* Otherwise they are added behind a rank's micro batches: the same at each stage on as many ranks.
 */
static void same_bits_at_each_stage(void **state) {
    (void)state;
    zero_variant v = {.ranks = 4, .contexts = 2, .type = "llama", .global = GLOBAL};
    zero_outcome want = zero_run(v);
    for (int stage = 0; stage <= 3; stage++) {
        for (int recompute = 0; recompute < 2; recompute++) {
            v.stage = stage, v.recompute = recompute;
            v.unit_order = stage > 1 || recompute;
            zero_expect_same(&want, v);
        }
    }
    free(want.weights);
}

/* Forward, each row's loss is that of one rank to the bit: products of fewer rows, and attention on
 * both sides of the border below which its tiles are single heads (16 = sequences x 2 kv heads).
 * Backward, so is the gradient that comes back to each row: of tokens that are there once, it is
 * the gradient of their embedding. */
static void rows_have_the_bits(void **state) {
    (void)state;
    static const int64_t sequences[] = {1, 2, 7, 8};
    for (int precision = SIFR_FP32; precision <= SIFR_BF16; precision++) {
        for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++) {
            size_t tokens = (size_t)sequences[i] * LENGTH;
            zero_variant v = {.ranks = 1,
                              .type = "llama",
                              .precision = (sifr_precision)precision,
                              .global = 1,
                              .sequences = sequences[i],
                              .length = LENGTH,
                              .distinct = true,
                              .freeze = {"*layers*", "*norm*", "*lm_head*"},
                              .evaluate = true};
            zero_outcome want = zero_run(v);
            v.ranks = v.contexts = 2;
            zero_outcome have = zero_run(v);
            assert_int_equal(have.count, want.count);
            assert_memory_equal(have.rows, want.rows, tokens * sizeof(float));
            assert_memory_equal(have.weights, want.weights, want.count * sizeof(float));
            free(want.weights);
            free(have.weights);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_one_rank), cmocka_unit_test(same_bits_on_any_ranks),
        cmocka_unit_test(same_bits_at_each_stage), cmocka_unit_test(rows_have_the_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

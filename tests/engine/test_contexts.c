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
#include <string.h>

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
        {.type = "llama", .contexts = 4, .sequences = 2}, /* two kv heads */
        {.type = "llama", .contexts = 2, .tensors = 2},
        {.type = "llama", .contexts = 2, .tensors = 2, .packed = true, .sequences = 2},
        {.type = "llama",
         .contexts = 2,
         .stage = 3,
         .coding = MODEL_NF4,
         .intermediate = 1000,
         .freeze = {"*mlp*"}},
    };
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        zero_variant v = variants[i];
        v.global = GLOBAL, v.evaluate = true;
        v.ranks = 1, v.contexts = v.tensors = 0;
        zero_outcome want = zero_run(v);
        v.contexts = variants[i].contexts, v.tensors = variants[i].tensors;
        v.ranks = v.contexts * (v.tensors ? v.tensors : 1);
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

/* Stages change no bit, nor do tiles of a rank's tokens. */
static void beside_stages_and_tiles(void **state) {
    (void)state;
    zero_variant v = {
        .ranks = 4, .contexts = 2, .type = "llama", .global = GLOBAL, .stage = 2, .evaluate = true};
    zero_outcome want = zero_run(v);
    v.stages = 2;
    zero_expect_same(&want, v);
    v.stage = 3, v.recompute = true, v.schedule = SIFR_SCHEDULE_ZB_H1;
    zero_expect_same(&want, v);
    free(want.weights);
    v = (zero_variant){
        .ranks = 2, .contexts = 2, .type = "llama", .global = 1, .length = 5120, .steps = 1};
    want = zero_run(v);
    v.tile_tokens = 1024;
    zero_expect_same(&want, v);
    v.recompute = true;
    zero_expect_same(&want, v);
    free(want.weights);
}

/* A second copy of the parameters among two of four ranks. */
static void beside_second_copies(void **state) {
    (void)state;
    sifr_zero keys = sifr_settings_defaults().zero;
    zero_variant v = {.ranks = 4, .contexts = 2, .type = "llama", .global = GLOBAL, .stage = 3};
    zero_outcome want = zero_run(v);
    keys.hpz_partition_size = 2;
    v.keys = &keys;
    zero_expect_same(&want, v);
    free(want.weights);
}

/* Those that read whole weights make of rounding more than Adam does. */
static void optimizers(void **state) {
    (void)state;
    static const sifr_optimizer_type types[] = {SIFR_LAMB, SIFR_MUON, SIFR_ADAFACTOR,
                                                SIFR_ADAMW_8BIT};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        sifr_optimizer optimizer = sifr_settings_defaults().optimizer;
        optimizer.type = types[i];
        zero_variant v = {
            .ranks = 1, .type = "llama", .global = GLOBAL, .stage = 3, .optimizer = &optimizer};
        zero_outcome want = zero_run(v);
        v.contexts = 2, v.ranks = 4;
        zero_outcome have = zero_run(v);
        for (int s = 0; s < ZERO_STEPS; s++)
            assert_true(fabs(have.loss[s] - want.loss[s]) < 1e-4 * want.loss[s]);
        free(want.weights);
        free(have.weights);
    }
}

/* Each row's loss is that of one rank to the bit: attention on both sides of the border below which
 * its tiles are single heads (16 = sequences x 2 kv heads), and products on both sides of the one
 * from which they are packed (256 rows). Products of 4 rows, with columns as many as these, have
 * other kernels. */
static void losses_of_rows(void **state) {
    (void)state;
    static const struct {
        int64_t sequences, length;
    } cases[] = {{1, 32}, {2, 16}, {7, 8}, {8, 8}, {7, 80}, {8, 96}};
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        zero_variant v = {.ranks = 1,
                          .type = "llama",
                          .precision = i % 2 ? SIFR_BF16 : SIFR_FP32,
                          .global = 1,
                          .sequences = cases[i / 2].sequences,
                          .length = cases[i / 2].length,
                          .intermediate = 2100,
                          .steps = -1,
                          .evaluate = true};
        size_t tokens = (size_t)(v.sequences * v.length);
        zero_outcome want = zero_run(v);
        for (v.contexts = 2; v.contexts <= 4; v.contexts *= 2) {
            v.ranks = v.contexts;
            zero_outcome have = zero_run(v);
            if (memcmp(have.rows, want.rows, tokens * sizeof(float)) != 0)
                fail_msg("other losses of %d x %d tokens on %d ranks", (int)v.sequences,
                         (int)v.length, (int)v.contexts);
            free(have.weights);
        }
        free(want.weights);
    }
}

/* So is the gradient that comes back to each row: of tokens that are there once, it is the gradient
 * of their embedding. */
static void gradients_of_rows(void **state) {
    (void)state;
    static const int64_t sequences[] = {1, 2, 7, 8};
    for (size_t i = 0; i < 2 * sizeof sequences / sizeof *sequences; i++) {
        zero_variant v = {.ranks = 1,
                          .type = "llama",
                          .precision = i % 2 ? SIFR_BF16 : SIFR_FP32,
                          .global = 1,
                          .sequences = sequences[i / 2],
                          .length = LENGTH,
                          .distinct = true,
                          .freeze = {"*layers*", "*norm*", "*lm_head*"}};
        zero_outcome want = zero_run(v);
        v.ranks = v.contexts = 2;
        zero_outcome have = zero_run(v);
        assert_int_equal(have.count, want.count);
        assert_memory_equal(have.weights, want.weights, want.count * sizeof(float));
        free(want.weights);
        free(have.weights);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_one_rank),           cmocka_unit_test(same_bits_on_any_ranks),
        cmocka_unit_test(same_bits_at_each_stage), cmocka_unit_test(beside_stages_and_tiles),
        cmocka_unit_test(beside_second_copies),    cmocka_unit_test(optimizers),
        cmocka_unit_test(losses_of_rows),          cmocka_unit_test(gradients_of_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Context ranks that gather keys and values, as threads: what one rank trains, to the rounding of
 * other sums, also where ranks exceed the heads; the same bits with and without recomputation, at
 * ZeRO stages that add alike, over data ranks and stages; each row's loss to the bit; and what each
 * group moves is what the plan says (zero_run checks it in each step). in test_tsan */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/zero_run.h"

enum { GLOBAL = 4 };

/* Adam makes of a gradient that is only rounding a step as large as any, so weights are compared in
 * the mean. */
static void expect_near(const zero_outcome *want, const zero_outcome *have, double bound) {
    double difference = 0, size = 0;
    for (int s = 0; s < ZERO_STEPS; s++) {
        assert_true(isfinite(want->loss[s]));
        if (!(fabs(have->loss[s] - want->loss[s]) < bound * want->loss[s]))
            fail_msg("step %d: loss %.9g, not %.9g", s, have->loss[s], want->loss[s]);
        if (!(fabs(have->norm[s] - want->norm[s]) < 10 * bound * want->norm[s]))
            fail_msg("step %d: norm %.9g, not %.9g", s, have->norm[s], want->norm[s]);
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
        {.type = "llama", .contexts = 2, .sequences = 3},
        {.type = "llama", .contexts = 4, .packed = true, .sequences = 2},
        {.type = "llama", .contexts = 8}, /* four heads, two kv heads */
        {.type = "llama", .contexts = 2, .sequences = 9, .length = 8}, /* more than rows */
        {.type = "mistral", .contexts = 4, .sequences = 5, .length = 32},
        {.type = "mistral", .contexts = 4, .sequences = 2},
        {.type = "modernbert", .contexts = 2, .sequences = 2, .length = 64},
        {.type = "llama", .contexts = 2, .tensors = 2, .packed = true, .sequences = 2},
        {.type = "llama",
         .contexts = 4,
         .stage = 3,
         .coding = MODEL_INT8,
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
        v.kind = SIFR_CONTEXT_GATHER;
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
                          .kind = SIFR_CONTEXT_GATHER,
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
        v.ranks = 4, v.stages = 2, v.recompute = false;
        zero_expect_same(&want, v);
        free(want.weights);
    }
}

/* Otherwise they are added behind a rank's micro batches: the same at each stage on as many ranks.
 */
static void same_bits_at_each_stage(void **state) {
    (void)state;
    zero_variant v = {
        .ranks = 4, .contexts = 2, .kind = SIFR_CONTEXT_GATHER, .type = "llama", .global = GLOBAL};
    zero_outcome want = zero_run(v);
    for (int stage = 0; stage <= 3; stage++) {
        v.stage = stage, v.recompute = stage % 2 == 0;
        v.unit_order = true;
        zero_expect_same(&want, v);
    }
    free(want.weights);
}

static void beside_tiles(void **state) {
    (void)state;
    zero_variant v = {.ranks = 2,
                      .contexts = 2,
                      .kind = SIFR_CONTEXT_GATHER,
                      .type = "llama",
                      .global = 1,
                      .length = 5120,
                      .steps = 1};
    zero_outcome want = zero_run(v);
    v.tile_tokens = 1024, v.recompute = true;
    zero_expect_same(&want, v);
    free(want.weights);
}

/* Each row's loss is that of one rank to the bit, with runs of tokens that begin in a block of
 * attention's queries and runs that begin with one. */
static void losses_of_rows(void **state) {
    (void)state;
    static const struct {
        int64_t sequences, length;
    } cases[] = {{1, 32}, {2, 16}, {8, 8}, {7, 80}, {1, 512}, {3, 328}};
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
        v.kind = SIFR_CONTEXT_GATHER;
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_one_rank), cmocka_unit_test(same_bits_on_any_ranks),
        cmocka_unit_test(same_bits_at_each_stage), cmocka_unit_test(beside_tiles),
        cmocka_unit_test(losses_of_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Copies of the state, each cut over a few neighbours (HSDP), over ranks that are threads: the bits
 * of one rank, and what each group of the mesh moves is what the plan says.
 * in test_tsan */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "support/zero_run.h"

enum { GLOBAL = 8 };

static void same_bits(void **state) {
    (void)state;
    static const char *const types[] = {"llama", "gpt2"};
    static const int32_t meshes[][2] = {{4, 2}, {8, 2}, {8, 4}}; /* ranks, shards */
    size_t turn = 0;
    for (int t = 0; t < 3; t++) {
        zero_variant v = {
            .ranks = 1, .type = types[t % 2], .precision = (sifr_precision)t, .global = 2 * GLOBAL};
        zero_outcome want = zero_run(v);
        assert_true(isfinite(want.loss[ZERO_STEPS - 1]));
        assert_true(want.updates >= ZERO_STEPS - 1); /* fp16 skips its first step */
        for (int m = 0; m < 3; m++) {
            v.ranks = meshes[m][0], v.shard_size = meshes[m][1];
            zero_expect_each_stage(&want, v, &turn);
        }
        free(want.weights);
    }
}

/* Sums in 16 bits are rounded at each node of the tree, wherever it is cut. */
static void narrow_sums(void **state) {
    (void)state;
    zero_variant v = {.ranks = 1,
                      .type = "llama",
                      .precision = SIFR_BF16,
                      .gradients = SIFR_BF16,
                      .global = GLOBAL};
    zero_outcome want = zero_run(v);
    v.ranks = 4, v.shard_size = 2;
    for (v.stage = 1; v.stage < 4; v.stage++) zero_expect_same(&want, v);
    free(want.weights);
}

/* Groups of three, and three copies: right, though not to the bit. */
static void other_counts(void **state) {
    (void)state;
    static const int32_t meshes[][2] = {{6, 2}, {6, 3}, {9, 3}};
    for (int m = 0; m < 3; m++) {
        zero_variant v = {.ranks = 1, .type = "llama", .global = 2 * meshes[m][0]};
        zero_outcome want = zero_run(v);
        v.ranks = meshes[m][0], v.shard_size = meshes[m][1];
        for (v.stage = 1; v.stage < 4; v.stage++) {
            zero_outcome have = zero_run(v);
            for (int s = 0; s < ZERO_STEPS; s++)
                assert_true(fabs(have.loss[s] - want.loss[s]) < 1e-5 * want.loss[s]);
            free(have.weights);
        }
        free(want.weights);
    }
}

/* Gradients that are sent in 16 bits are rounded on their way, between copies as well. */
static void narrow_transfers(void **state) {
    (void)state;
    zero_variant v = {.ranks = 1, .type = "llama", .global = GLOBAL};
    zero_outcome want = zero_run(v);
    v.ranks = 4, v.shard_size = 2, v.travel = SIFR_BF16;
    for (v.stage = 1; v.stage < 4; v.stage++) {
        zero_outcome have = zero_run(v);
        for (int s = 0; s < ZERO_STEPS; s++)
            assert_true(fabs(have.loss[s] - want.loss[s]) < 1e-2 * want.loss[s]);
        free(have.weights);
    }
    free(want.weights);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits), cmocka_unit_test(narrow_sums),
                                       cmocka_unit_test(other_counts),
                                       cmocka_unit_test(narrow_transfers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

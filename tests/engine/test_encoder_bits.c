/* Encoders, whose batches have token types and padding: the same bits at each ZeRO stage and
 * power-of-two number of ranks, in both orders, with recomputation, in tiles, and on devices with
 * memory of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "support/zero_run.h"

static const char *const types[] = {"bert", "distilbert", "modernbert", "roberta", "deberta-v2"};

enum { TYPES = sizeof types / sizeof *types, GLOBAL = 4 };

static void stages(void **state) {
    (void)state;
    for (int t = 0; t < TYPES; t++) {
        zero_variant v = {.ranks = 1,
                          .type = types[t],
                          .precision = (sifr_precision)(t % 3),
                          .global = GLOBAL,
                          .sequences = 3,
                          .evaluate = true};
        zero_outcome want = zero_run(v);
        assert_true(isfinite(want.loss[ZERO_STEPS - 1]));
        assert_true(want.norm[0] > 0);
        for (v.ranks = 1; v.ranks <= GLOBAL; v.ranks *= 2) {
            for (v.stage = 0; v.stage < 4; v.stage++) {
                v.unit_order = (v.stage + t) % 2;
                v.recompute = v.stage >= 2;
                v.separate = v.ranks == 2 && v.stage == 3;
                zero_outcome have = zero_run(v);
                if (!zero_is_same(&want, &have))
                    fail_msg("%s: %d ranks, stage %d: other bits", v.type, v.ranks, v.stage);
                assert_true(fabs(have.evaluated - want.evaluated) <= 1e-5 * want.evaluated ||
                            v.ranks > 1);
                free(have.weights);
            }
        }
        free(want.weights);
    }
}

static void tiles(void **state) {
    (void)state;
    for (int t = 0; t < TYPES; t++) {
        zero_variant v = {.ranks = 1,
                          .type = types[t],
                          .precision = SIFR_BF16,
                          .global = 1,
                          .sequences = 35,
                          .length = 33, /* a last tile of 131 tokens */
                          .steps = 2};
        zero_outcome want = zero_run(v);
        v.tile_tokens = 1024;
        zero_expect_same(&want, v);
        v.recompute = true;
        zero_expect_same(&want, v);
        free(want.weights);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(stages), cmocka_unit_test(tiles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Context ranks of a model with short convolutions (LFM2), as threads: before each of its runs a
 * rank gets the rows that the convolution reads. What one rank trains, to the rounding of other
 * sums, on each kind of context ranks; each row's loss to the bit; the same bits at ZeRO stages,
 * over data ranks and stages, with recomputation; runs that are shorter than what is read are
 * refused. zero_run checks what each step moves. */
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

/* Convolutions of `taps` rows in two of three layers. */
static model_config lfm2(int taps) {
    char text[600];
    model_config c;
    sifr_error error;
    snprintf(text, sizeof text,
             "{\"model_type\": \"lfm2\", \"vocab_size\": 97, \"hidden_size\": 32, "
             "\"num_hidden_layers\": 3, \"num_attention_heads\": 4, \"num_key_value_heads\": 2, "
             "\"intermediate_size\": 48, \"block_auto_adjust_ff_dim\": false, "
             "\"max_position_embeddings\": 1024, \"conv_L_cache\": %d, \"conv_bias\": true, "
             "\"layer_types\": [\"conv\", \"full_attention\", \"conv\"]}",
             taps);
    if (model_config_parse(text, strlen(text), "halo", &c, &error)) fail_msg("%s", error.message);
    return c;
}

static zero_variant variant_of(const model_config *config, int32_t contexts,
                               sifr_context_kind kind) {
    return (zero_variant){.type = "lfm2",
                          .config = config,
                          .ranks = contexts,
                          .contexts = contexts,
                          .kind = kind,
                          .layers = 3,
                          .global = GLOBAL,
                          .length = 32};
}

static void near_one_rank(void **state) {
    (void)state;
    for (int n = 0; n < 8; n++) {
        model_config config = lfm2(n % 2 ? 3 : 5);
        zero_variant v = variant_of(&config, 0, SIFR_CONTEXT_ULYSSES);
        v.ranks = 1, v.sequences = 1 + n % 3, v.evaluate = true;
        zero_outcome want = zero_run(v);
        v.kind = (sifr_context_kind)(n % 3);
        v.contexts = v.ranks = n < 4 ? 2 : 4;
        if (n == 7) v.tensors = 2, v.ranks = 4, v.contexts = 2, v.kind = SIFR_CONTEXT_GATHER;
        zero_outcome have = zero_run(v);
        for (int s = 0; s < ZERO_STEPS; s++) {
            assert_true(isfinite(want.loss[s]));
            if (!(fabs(have.loss[s] - want.loss[s]) < 1e-5 * want.loss[s]))
                fail_msg("%d, step %d: loss %.9g, not %.9g", n, s, have.loss[s], want.loss[s]);
            if (!(fabs(have.norm[s] - want.norm[s]) < 1e-4 * want.norm[s]))
                fail_msg("%d, step %d: norm %.9g, not %.9g", n, s, have.norm[s], want.norm[s]);
        }
        assert_true(fabs(have.evaluated - want.evaluated) <= 1e-5 * want.evaluated);
        free(want.weights);
        free(have.weights);
    }
}

static void same_bits(void **state) {
    (void)state;
    model_config config = lfm2(4);
    for (int n = 0; n < 3; n++) {
        zero_variant v = variant_of(&config, 2, (sifr_context_kind)n);
        v.precision = n ? SIFR_BF16 : SIFR_FP32;
        v.stage = 2;
        zero_outcome want = zero_run(v);
        v.stage = 3, v.ranks = 4, v.recompute = true;
        zero_expect_same(&want, v);
        v.ranks = 2, v.stages = 2, v.recompute = false;
        zero_expect_same(&want, v);
        free(want.weights);
    }
}

static void losses_of_rows(void **state) {
    (void)state;
    static const struct { int64_t sequences, length; } cases[] = {{1, 64}, {2, 32}, {3, 320}};
    model_config config = lfm2(5);
    for (size_t i = 0; i < 6; i++) {
        zero_variant v = variant_of(&config, 0, SIFR_CONTEXT_ULYSSES);
        v.ranks = v.global = 1;
        v.precision = i % 2 ? SIFR_BF16 : SIFR_FP32;
        v.sequences = cases[i / 2].sequences, v.length = cases[i / 2].length;
        v.steps = -1, v.evaluate = true;
        size_t tokens = (size_t)(v.sequences * v.length);
        zero_outcome want = zero_run(v);
        for (int n = 0; n < 6; n++) {
            v.kind = (sifr_context_kind)(n % 3);
            v.ranks = v.contexts = n < 3 ? 2 : 4;
            zero_outcome have = zero_run(v);
            if (memcmp(have.rows, want.rows, tokens * sizeof(float)) != 0)
                fail_msg("other losses of %d x %d tokens on %d ranks, kind %d", (int)v.sequences,
                         (int)v.length, (int)v.contexts, (int)v.kind);
            free(have.weights);
        }
        free(want.weights);
    }
}

static void refusals(void **state) {
    (void)state;
    char why[SIFR_ERROR_LENGTH];
    zero_outcome out;
    model_config config = lfm2(6);
    zero_variant v = variant_of(&config, 4, SIFR_CONTEXT_GATHER);
    assert_false(zero_try(v, &out, why));
    assert_non_null(strstr(why, "a token reads 5 before it, and a rank has runs of 4"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(near_one_rank), cmocka_unit_test(same_bits),
                                       cmocka_unit_test(losses_of_rows),
                                       cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

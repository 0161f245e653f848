/* sifr.tp_exact, ranks as threads: losses, norms and weights of 1, 2, 4 and 8 tensor ranks are the
 * same bits, in fp32, bf16 and fp16, at every ZeRO stage, in both step orders, with and without
 * recomputation, over data ranks, copies and pipeline stages.
 * in test_tsan */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "support/thinned.h"
#include "support/zero_run.h"

enum { GLOBAL = 4, PIECES = 8 };

static zero_variant variant(const char *type, int precision) {
    return (zero_variant){.ranks = 1,
                          .type = type,
                          .precision = (sifr_precision)precision,
                          .exact = PIECES,
                          .global = GLOBAL};
}

/* Fused q, k and v, biases and dropout (GPT-2); gates and rope (Llama). */
static void same_at_every_size(void **state) {
    (void)state;
    static const char *const types[] = {"llama", "gpt2"};
    size_t turn = 0;
    for (int type = 0; type < 2; type++)
        for (int precision = SIFR_FP32; precision <= SIFR_FP16; precision++) {
            zero_variant v = variant(types[type], precision);
            v.sequences = 1 + (type + precision) % 2;
            v.evaluate = true;
            zero_outcome want = zero_run(v);
            for (int32_t t = 2; t <= PIECES; t *= 2) {
                if (thinned_out(turn++)) continue;
                v.ranks = v.tensors = t;
                zero_expect_same(&want, v);
            }
            free(want.weights);
        }
}

/* Attention makes its tiles otherwise from 16 kv heads of all sequences on: 8 with two sequences,
 * 16 with four, of which two ranks have 8 each. */
static void tiles_go_by_all_heads(void **state) {
    (void)state;
    for (int64_t sequences = 2; sequences <= 4; sequences *= 2) {
        zero_variant v = variant("llama", SIFR_FP32);
        v.exact = 4;
        v.sequences = sequences;
        v.global = 2;
        zero_outcome want = zero_run(v);
        for (int32_t t = 2; t <= 4; t *= 2) {
            v.ranks = v.tensors = t;
            zero_expect_same(&want, v);
        }
        free(want.weights);
    }
}

static void same_whatever_else(void **state) {
    (void)state;
    size_t turn = 0;
    for (int precision = SIFR_FP32; precision <= SIFR_BF16; precision++) {
        zero_variant v = variant("llama", precision);
        zero_outcome want = zero_run(v);
        v.ranks = 4, v.tensors = 2;
        zero_expect_each_stage(&want, v, &turn);
        free(want.weights);
    }
}

static void beside_copies_and_stages(void **state) {
    (void)state;
    zero_variant v = variant("llama", SIFR_FP32);
    zero_outcome want = zero_run(v);
    v.ranks = 8, v.tensors = 2, v.shard_size = 2, v.stage = 3;
    zero_expect_same(&want, v);
    v = variant("llama", SIFR_FP32);
    v.stages = 2;
    zero_expect_same(&want, v);
    v.ranks = v.tensors = 4, v.stage = 1;
    zero_expect_same(&want, v);
    free(want.weights);
}

/* Regions of rows end at sums between ranks, so tiles cut other nodes there. */
static void with_tiles(void **state) {
    (void)state;
    zero_variant v = variant("llama", SIFR_BF16);
    v.length = 1056, v.global = 1, v.steps = 2;
    zero_outcome want = zero_run(v);
    v.tile_tokens = 1024;
    zero_expect_same(&want, v);
    v.ranks = v.tensors = 4;
    zero_expect_same(&want, v);
    free(want.weights);
}

/* Without it bits follow from the number of ranks: else nothing here would be shown. */
static void differs_without(void **state) {
    (void)state;
    zero_variant v = variant("llama", SIFR_FP32);
    zero_outcome want = zero_run(v);
    v.exact = 4;
    zero_outcome have = zero_run(v);
    assert_false(zero_is_same(&want, &have));
    free(have.weights);
    free(want.weights);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_at_every_size), cmocka_unit_test(tiles_go_by_all_heads),
        cmocka_unit_test(same_whatever_else), cmocka_unit_test(beside_copies_and_stages),
        cmocka_unit_test(with_tiles),         cmocka_unit_test(differs_without)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Tensor ranks that have a run of the tokens each between products: the bits of tensor ranks that
 * have all tokens, of every kind of block, at each ZeRO stage, in both step orders, with
 * recomputation, tiles, stages and packed sequences; and fewer activations. The same of inputs of
 * units that are cut for the backward pass alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "support/zero_run.h"

/* Of ZERO_LENGTH tokens each: 256, 128 for each of two ranks. */
enum { GLOBAL = 4, SEQUENCES = 16 };

/* The variant without and with the layout. */
static void expect_same(zero_variant v, const char *what) {
    v.rows = false;
    zero_outcome want = zero_run(v);
    v.rows = true;
    zero_outcome have = zero_run(v);
    if (!zero_is_same(&want, &have)) fail_msg("%s, %s: other bits", v.type, what);
    if (v.evaluate && want.evaluated != have.evaluated) fail_msg("%s: other evaluations", v.type);
    if (have.activations >= want.activations)
        fail_msg("%s, %s: activations take %lld of %lld", v.type, what, (long long)have.activations,
                 (long long)want.activations);
    free(want.weights);
    free(have.weights);
}

/* GPT-2 and encoders have dropout; encoders divide attention of three heads alone, and the norm is
 * behind the sum; DeBERTa has values with rows of their own; four ranks have Llama's attention
 * whole. */
static void each_block(void **state) {
    (void)state;
    static const char *const types[] = {"llama", "gpt2",       "llama", "qwen3",
                                        "bert",  "deberta-v2", "olmo"};
    static const int32_t tensors[] = {2, 2, 4, 2, 3, 3, 2};
    for (int t = 0; t < 7; t++) {
        zero_variant v = {.ranks = tensors[t],
                          .tensors = tensors[t],
                          .type = types[t],
                          .sequences = 8 * tensors[t],
                          .global = 2,
                          .evaluate = true};
        expect_same(v, "kept");
        v.recompute = true;
        v.layers = 6; /* or what one block takes at a time is more than all that is kept */
        if (!strstr(v.type, "bert")) expect_same(v, "recomputed");
    }
}

/* What reads the residual stream whole adds to gradients that others made: also where a type
 * rounds. */
static void whole_readers(void **state) {
    (void)state;
    static const char *const types[] = {"olmo2", "bert", "deberta-v2"};
    static const int32_t tensors[] = {2, 3, 3};
    for (int t = 0; t < 3; t++) {
        zero_variant v = {.ranks = tensors[t],
                          .tensors = tensors[t],
                          .type = types[t],
                          .precision = SIFR_BF16,
                          .sequences = 8 * tensors[t],
                          .global = 2};
        expect_same(v, "kept");
    }
}

static void same_bits_whatever_else(void **state) {
    (void)state;
    size_t turn = 0;
    for (int precision = SIFR_FP32; precision <= SIFR_FP16; precision++) {
        zero_variant v = {.ranks = 2,
                          .tensors = 2,
                          .type = precision == SIFR_FP16 ? "gpt2" : "llama",
                          .precision = (sifr_precision)precision,
                          .sequences = SEQUENCES,
                          .global = GLOBAL};
        zero_outcome want = zero_run(v);
        v.rows = true;
        zero_expect_same(&want, v);
        v.ranks = 4;
        zero_expect_each_stage(&want, v, &turn);
        free(want.weights);
    }
}

static void beside(void **state) {
    (void)state;
    zero_variant v = {.ranks = 2,
                      .tensors = 2,
                      .type = "llama",
                      .sequences = SEQUENCES,
                      .global = GLOBAL,
                      .packed = true};
    expect_same(v, "packed");
    v.packed = false;
    v.stages = 2;
    for (int s = SIFR_SCHEDULE_GPIPE; s <= SIFR_SCHEDULE_ZB_H1; s++) {
        v.schedule = (sifr_pipeline_schedule)s;
        v.chunks = s == SIFR_SCHEDULE_INTERLEAVED ? 2 : 1;
        v.layers = 4;
        expect_same(v, "stages");
        v.recompute = !v.recompute;
    }
    v = (zero_variant){.ranks = 2,
                       .tensors = 2,
                       .type = "gpt2",
                       .sequences = SEQUENCES,
                       .global = GLOBAL,
                       .freeze = {"*wte*", "*attn*", "*ln_1.weight"}};
    expect_same(v, "frozen");
    v = (zero_variant){.ranks = 2,
                       .tensors = 2,
                       .type = "llama",
                       .sequences = 144,
                       .tile_tokens = 1024,
                       .global = 1};
    expect_same(v, "tiles");
    v.recompute = true;
    expect_same(v, "tiles, recomputed");
}

/* Inputs of units cut by partition_activations, in place of rows: the same bits, and of six
 * blocks' inputs half. */
static void inputs_are_cut(void **state) {
    (void)state;
    static const char *const types[] = {"llama", "gpt2", "qwen3"};
    for (int t = 0; t < 11; t++) {
        zero_variant v = {.ranks = t % 2 ? 4 : 2,
                          .stages = t == 9 ? 2 : 0,
                          .contexts = t == 10 ? 2 : 0,
                          .tensors = 2,
                          .type = types[t % 3],
                          .stage = t % 4,
                          .layers = 6,
                          .sequences = SEQUENCES,
                          .global = GLOBAL,
                          .recompute = t != 8,
                          .unit_order = t == 4,
                          .checkpoints = t == 5 ? 3 : 0,
                          .precision = t == 6 ? SIFR_BF16 : SIFR_FP32};
        if (v.contexts) v.ranks = 4, v.sequences = 1, v.length = 256, v.type = "llama";
        zero_outcome want = zero_run(v);
        v.partitions = true;
        zero_outcome have = zero_run(v);
        if (!zero_is_same(&want, &have)) fail_msg("%s, turn %d: other bits", v.type, t);
        if (have.gathered <= want.gathered || have.activations >= want.activations)
            fail_msg("%s, turn %d: activations take %lld of %lld", v.type, t,
                     (long long)have.activations, (long long)want.activations);
        free(want.weights);
        free(have.weights);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_block),
                                       cmocka_unit_test(whole_readers),
                                       cmocka_unit_test(same_bits_whatever_else),
                                       cmocka_unit_test(beside), cmocka_unit_test(inputs_are_cut)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

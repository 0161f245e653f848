/* Muon on tensor ranks, as threads: the matrices that they divide are put together before they are
 * orthogonalised, so a run is near that of one rank, whatever way its matrices are cut: by outputs,
 * by inputs, fused, unevenly, by words, or with more ranks than kv heads. The same bits at every
 * ZeRO stage, over data ranks, copies of the state and with it elsewhere; with tp_exact on
 * any number of tensor ranks. What each group moves is what the plan says (zero_run checks it in
 * each step).
 * label: full */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "support/scratch.h"
#include "support/zero_run.h"

enum { GLOBAL = 4 };

/* Muon's Adam with an epsilon of 1e-10 makes steps of GPT-2's biases of keys, whose gradient is
 * rounding alone. */
static const sifr_optimizer muon = {.type = SIFR_MUON,
                                    .beta1 = 0.9,
                                    .beta2 = 0.95,
                                    .eps = 1e-8,
                                    .bias_correction = true,
                                    .decoupled = true,
                                    .momentum = 0.95,
                                    .weight_decay = 0.01};

static zero_variant variant_of(const char *type, int32_t tensors) {
    return (zero_variant){.ranks = tensors,
                          .tensors = tensors,
                          .type = type,
                          .global = GLOBAL,
                          .length = tensors == 3 ? 15 : 16,
                          .optimizer = &muon,
                          .evaluate = true};
}

static void expect_near(const zero_outcome *want, const zero_outcome *have) {
    double difference = 0, size = 0;
    for (int s = 0; s < ZERO_STEPS; s++) {
        if (!(fabs(have->loss[s] / want->loss[s] - 1) < 1e-5))
            fail_msg("step %d: %.9g, not %.9g", s, have->loss[s], want->loss[s]);
        assert_true(fabs(have->norm[s] / want->norm[s] - 1) < 1e-4);
    }
    assert_int_equal(have->count, want->count);
    for (size_t i = 0; i < want->count; i++) {
        difference += fabs(have->weights[i] - want->weights[i]);
        size += fabs(want->weights[i]);
    }
    if (!(difference < 1e-4 * size)) fail_msg("weights are %g off, of %g", difference, size);
    assert_true(fabs(have->evaluated / want->evaluated - 1) < 1e-5);
}

static void near_one_rank(void **state) {
    (void)state;
    static const char *const types[] = {"llama", "gpt2", "qwen3", "llama", "bert", "gpt2"};
    static const int32_t tensors[] = {2, 2, 4, 3, 3, 4};
    for (int t = 0; t < 6; t++) {
        zero_variant v = variant_of(types[t], tensors[t]), one = v;
        one.ranks = 1, one.tensors = 0;
        zero_outcome want = zero_run(one), have = zero_run(v);
        expect_near(&want, &have);
        free(want.weights);
        free(have.weights);
    }
}

/* GPT-2's table of words is a matrix to Muon. One of two ranks has no words of 97, of 1,100 the
 * first has more. */
static void words_are_divided(void **state) {
    (void)state;
    for (int t = 0; t < 2; t++) {
        zero_variant v = variant_of("gpt2", 2), one = v;
        v.words = SIFR_VOCAB_SPLIT;
        v.vocabulary = one.vocabulary = t ? 1100 : 97;
        one.ranks = 1, one.tensors = 0;
        zero_outcome want = zero_run(one), have = zero_run(v);
        expect_near(&want, &have);
        free(want.weights);
        free(have.weights);
    }
}

static void same_bits_at_every_stage(void **state) {
    (void)state;
    size_t turn = 0;
    static const char *const types[] = {"llama", "gpt2", "qwen3"};
    for (int t = 0; t < 3; t++) {
        zero_variant v = variant_of(types[t], t == 2 ? 4 : 2);
        v.precision = (sifr_precision)t;
        zero_outcome want = zero_run(v);
        zero_expect_same(&want, v); /* twice */
        v.ranks *= 2;
        zero_expect_each_stage(&want, v, &turn);
        v.ranks *= 2, v.shard_size = 2, v.stage = 3;
        zero_expect_same(&want, v);
        free(want.weights);
    }
}

/* With tp_exact the matrix that is put together has the same bits at every size. */
static void exact(void **state) {
    (void)state;
    for (int t = 0; t < 2; t++) {
        zero_variant v = variant_of(t ? "gpt2" : "llama", 1);
        v.exact = 4, v.precision = t ? SIFR_BF16 : SIFR_FP32;
        zero_outcome want = zero_run(v);
        for (v.tensors = 2; v.tensors <= 4; v.tensors *= 2) {
            v.ranks = v.tensors;
            zero_expect_same(&want, v);
            v.ranks *= 2, v.stage = 3;
            zero_expect_same(&want, v);
            v.stage = 0;
        }
        free(want.weights);
    }
}

static void with_states_on_disk(void **state) {
    (void)state;
    sifr_offload offload = sifr_settings_defaults().offload;
    zero_variant v = variant_of("llama", 2);
    offload.nvme_path = scratch;
    offload.optimizer.device = SIFR_TIER_NVME;
    zero_outcome want = zero_run(v);
    v.offload = &offload;
    zero_expect_same(&want, v);
    v.ranks = 4, v.stage = 3;
    zero_expect_same(&want, v);
    free(want.weights);
    scratch_expect_empty();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_one_rank), cmocka_unit_test(words_are_divided),
        cmocka_unit_test(same_bits_at_every_stage), cmocka_unit_test(exact),
        cmocka_unit_test(with_states_on_disk)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}

/* Tensor ranks, as threads: what one rank trains, to the rounding of other sums; the same bits at
 * every ZeRO stage, in both step orders, with and without recomputation, and over data ranks; and
 * what each group moves is what the plan says (zero_run checks it in each step).
 * in test_tsan */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "model/registry.h"
#include "model/shard.h"
#include "support/scratch.h"
#include "support/zero_run.h"

enum { GLOBAL = 4 };

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

/* Dropout draws by the elements and heads of whole values, so it is that of one rank: of encoders
 * in attention, too. Qwen3's norms of heads have weights whose gradients are sums over the ranks.
 * Of four ranks two have each of two kv heads; heads and columns that do not divide are as even as
 * can be. */
static void near_one_rank(void **state) {
    (void)state;
    static const char *const types[] = {"llama", "gpt2",       "llama",      "qwen3",
                                        "bert",  "deberta-v2", "olmo",       "qwen3",
                                        "gpt2",  "bert",       "deberta-v2", "llama"};
    static const int32_t tensors[] = {2, 2, 4, 2, 3, 3, 2, 4, 3, 2, 2, 3};
    for (int t = 0; t < 12; t++) {
        zero_variant v = {.ranks = 1,
                          .type = types[t],
                          .global = GLOBAL,
                          .length = tensors[t] == 3 ? 15 : 16,
                          .evaluate = true};
        zero_outcome want = zero_run(v);
        v.ranks = v.tensors = tensors[t];
        zero_outcome have = zero_run(v);
        expect_near(&want, &have, 1e-5);
        free(want.weights);
        free(have.weights);
    }
}

/* Three ranks divide attention of three heads, and an MLP of 56 columns unevenly: the products of
 * two layers, of DeBERTa also those of positions. Two divide all of OLMo's, through its clipped
 * values. */
static void heads_are_divided(void **state) {
    (void)state;
    static const char *const types[] = {"bert", "deberta-v2", "olmo"};
    for (int t = 0; t < 3; t++) {
        bool decoder = t == 2;
        model_config config = zero_config(types[t]);
        sifr_model *model = NULL;
        sifr_error error = {0};
        model_layouts layouts;
        if (model_from_config(&config, &model, &error)) fail_msg("%s", error.message);
        assert_int_equal(model_find_layouts(model, decoder ? 2 : 3, false, &layouts, &error),
                         SIFR_OK);
        int32_t want = decoder ? 2 * 7 : 2 * 6;
        for (size_t n = 0; n < model->node_count; n++)
            want += model->nodes[n].op->layout == MODEL_LAYOUT_PRODUCT &&
                    model->values[model->nodes[n].x[0]].rows > 0;
        assert_int_equal(layouts.cut_count, want);
        model_layouts_free(&layouts);
        sifr_model_free(model);
    }
}

static void same_bits_whatever_else(void **state) {
    (void)state;
    size_t turn = 0;
    for (int precision = SIFR_FP32; precision <= SIFR_FP16; precision++) {
        zero_variant v = {.ranks = 2,
                          .tensors = 2,
                          .type = "llama",
                          .precision = (sifr_precision)precision,
                          .global = GLOBAL};
        zero_outcome want = zero_run(v);
        zero_expect_same(&want, v); /* twice */
        v.ranks = 4;
        zero_expect_each_stage(&want, v, &turn);
        free(want.weights);
    }
}

/* Copies of what ZeRO cuts, each of two shards of two tensor ranks. */
static void beside_copies(void **state) {
    (void)state;
    static const char *const types[] = {"llama", "qwen3"};
    for (int t = 0; t < 2; t++) {
        zero_variant v = {.ranks = 2, .tensors = 2, .type = types[t], .global = GLOBAL};
        zero_outcome want = zero_run(v);
        v.ranks = 8, v.shard_size = 2, v.stage = 3;
        zero_expect_same(&want, v);
        free(want.weights);
    }
}

/* Gradients of which each rank makes a part: the sums over ranks follow those over micro batches,
 * wherever these are made, and in whatever type. */
static void sums_of_parts(void **state) {
    (void)state;
    size_t turn = 0;
    zero_variant v = {.ranks = 2, .tensors = 2, .type = "qwen3", .global = GLOBAL};
    zero_outcome want = zero_run(v);
    zero_expect_same(&want, v);
    v.ranks = 4;
    zero_expect_each_stage(&want, v, &turn);
    free(want.weights);
    v.ranks = v.tensors = 4; /* keys and values that two ranks have alike */
    want = zero_run(v);
    zero_expect_same(&want, v);
    v.ranks = 8;
    zero_expect_each_stage(&want, v, &turn);
    free(want.weights);
    v.tensors = 2;
    v.ranks = 2, v.precision = v.gradients = SIFR_BF16;
    want = zero_run(v);
    v.ranks = 4;
    zero_expect_each_stage(&want, v, &turn);
    free(want.weights);
}

/* Optimizer state on disk changes no bit, with an update that is delayed into the next step or not.
 */
static void offloaded_state(void **state) {
    (void)state;
    static const char *const types[] = {"llama", "qwen3"};
    for (int n = 0; n < 8; n++) {
        sifr_offload offload = sifr_settings_defaults().offload;
        zero_variant v = {
            .ranks = 2, .tensors = 2, .type = types[n % 2], .global = GLOBAL, .evaluate = n > 5};
        zero_outcome want = zero_run(v);
        offload.nvme_path = scratch;
        offload.optimizer.device = SIFR_TIER_NVME;
        offload.optimizer.pipeline_read = offload.optimizer.pipeline_write = n / 2 % 2;
        offload.sub_group_size = n % 3 ? 1000 : 100000000;
        v.ranks = 4, v.stage = n / 2, v.offload = &offload;
        zero_outcome have = zero_run(v);
        assert_true(have.nvme_bytes > 0);
        v.offload = NULL;
        if (!zero_is_same(&want, &have)) fail_msg("%s, stage %d: other bits", v.type, v.stage);
        free(want.weights);
        free(have.weights);
    }
    scratch_expect_empty();
}

/* LAMB's sums over a weight are those of all tensor ranks' parts, and of what each has whole one
 * rank's; they are integers, so ZeRO's slices change no bit. Where one rank has no element of a
 * segment it takes part in the gathers. */
static void sums_of_weights(void **state) {
    (void)state;
    static const char *const types[] = {"llama", "qwen3"};
    sifr_optimizer lamb = sifr_settings_defaults().optimizer;
    size_t turn = 0;
    lamb.type = SIFR_LAMB;
    for (int t = 0; t < 2; t++) {
        zero_variant v = {
            .ranks = 1, .type = types[t], .global = GLOBAL, .optimizer = &lamb, .evaluate = true};
        zero_outcome one = zero_run(v);
        v.ranks = v.tensors = 2;
        zero_outcome two = zero_run(v);
        expect_near(&one, &two, 1e-5);
        free(two.weights);
        v.evaluate = false;
        two = zero_run(v);
        v.ranks = 4;
        zero_expect_each_stage(&two, v, &turn);
        v.ranks = 8, v.shard_size = 2, v.stage = 3;
        zero_expect_same(&two, v);
        free(one.weights);
        free(two.weights);
    }
}

static void frozen_weights(void **state) {
    (void)state;
    zero_variant v = {.ranks = 2,
                      .type = "llama",
                      .global = GLOBAL,
                      .freeze = {"*embed*", "*q_proj*", "*norm*"},
                      .stage = 3,
                      .evaluate = true};
    zero_outcome want = zero_run(v);
    v.ranks = 4, v.tensors = 2;
    zero_outcome have = zero_run(v);
    expect_near(&want, &have, 1e-5);
    free(want.weights);
    free(have.weights);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_one_rank),           cmocka_unit_test(heads_are_divided),
        cmocka_unit_test(same_bits_whatever_else), cmocka_unit_test(beside_copies),
        cmocka_unit_test(sums_of_parts),           cmocka_unit_test(offloaded_state),
        cmocka_unit_test(sums_of_weights),         cmocka_unit_test(frozen_weights)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}

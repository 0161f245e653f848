/* Frozen weights: their bits never change, the others train as they would without them, at every
 * stage, and what is not trained takes no moments, no reduction and no backward pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "engine/state/convert.h"
#include "plan/pass/passes.h"
#include "support/zero_run.h"

enum { GLOBAL = 4 };

static sifr_model *frozen_model(const zero_variant *v) {
    model_config config = zero_config(v->type);
    sifr_model *model;
    sifr_error error = {0};
    assert_int_equal(model_from_config(&config, &model, &error), SIFR_OK);
    for (int i = 0; i < 3 && v->freeze[i]; i++) {
        assert_int_equal(sifr_model_freeze(model, v->freeze[i], &error), SIFR_OK);
    }
    return model;
}

/* As a frozen weight is kept: in the training type. */
static void round_values(float *values, int64_t count, sifr_precision precision) {
    base_dtype type = device_dtype_of(precision);
    uint16_t *narrow = malloc((size_t)count * sizeof *narrow);
    if (type != BASE_FP32) {
        engine_from_fp32(narrow, values, type, count);
        engine_to_fp32(values, narrow, type, count);
    }
    free(narrow);
}

/* Frozen weights as they started, trained ones not; `like`, where given, has the trained ones. */
static void check_weights(const zero_variant *v, const zero_outcome *have,
                          const zero_outcome *like) {
    sifr_model *model = frozen_model(v);
    const float *at = have->weights;
    for (size_t w = 0; w < model->weight_count; w++) {
        const model_weight *weight = &model->weights[w];
        int64_t count = weight->rows * weight->columns;
        size_t bytes = (size_t)count * sizeof(float);
        float *first = malloc(bytes);
        model_initial_values(model, w, ZERO_SEED, 0, count, first);
        if (weight->frozen) round_values(first, count, v->precision);
        if ((memcmp(first, at, bytes) == 0) != weight->frozen) {
            fail_msg("%s, stage %d: %s %s", v->type, v->stage, weight->name,
                     weight->frozen ? "changed" : "did not change");
        }
        const float *other = like ? like->weights + (at - have->weights) : at;
        if (!weight->frozen && memcmp(at, other, bytes) != 0) {
            fail_msg("%s, stage %d: %s trains otherwise", v->type, v->stage, weight->name);
        }
        free(first);
        at += count;
    }
    sifr_model_free(model);
}

/* Whole units, tied tables, parts of units, the tail or head of one; and weights that are used
 * together, one of them frozen. */
static const char *const patterns[][4] = {
    {"llama", "model.embed_tokens.weight", "model.layers.0.*"},
    {"llama", "*norm*", "*proj*"},
    {"llama", "model.layers.1.*", "model.norm.weight"},
    {"llama", "*_proj.weight"},
    {"llama", "*down_proj*", "*input_layernorm*"},
    {"llama", "*embed_tokens*", "*layers.0.*norm*", "*layers.0.self_attn.k_proj*"},
    {"gpt2", "*wte*", "*attn*"},
    {"gpt2", "*.bias"},
    {"gpt2", "*.weight"},
    {"gpt2", "*h.0.*", "*wpe*", "*ln_f*"},
};
enum { PATTERNS = sizeof patterns / sizeof *patterns };

static zero_variant variant_of(int p) {
    return (zero_variant){.ranks = 1,
                          .type = patterns[p][0],
                          .precision = p % 2 ? SIFR_BF16 : SIFR_FP32,
                          .global = GLOBAL,
                          .freeze = {patterns[p][1], patterns[p][2], patterns[p][3]}};
}

/* One step without clipping: gradients of trained weights are those of a run that trains all. */
static void others_train_as_ever(void **state) {
    (void)state;
    for (int p = 0; p < PATTERNS; p++) {
        zero_variant v = variant_of(p), all = v;
        v.steps = all.steps = 1;
        v.no_clipping = all.no_clipping = true;
        memset(all.freeze, 0, sizeof all.freeze);
        for (int recompute = 0; recompute < 2; recompute++) {
            v.recompute = all.recompute = recompute;
            zero_outcome have = zero_run(v), like = zero_run(all);
            check_weights(&v, &have, &like);
            assert_true(have.loss[0] == like.loss[0]);
            assert_true(have.norm[0] > 0);
            assert_true(have.norm[0] < like.norm[0]);
            free(have.weights);
            free(like.weights);
        }
    }
}

static void same_bits(void **state) {
    (void)state;
    for (int p = 0; p < PATTERNS; p++) {
        zero_variant v = variant_of(p);
        zero_outcome want = zero_run(v);
        check_weights(&v, &want, NULL);
        for (int n = 0; n < 8; n++) {
            sifr_zero keys = sifr_settings_defaults().zero;
            keys.max_reuse_distance = n * 4000;
            keys.param_persistence_threshold = n % 2 ? 8192 : 0;
            v.keys = &keys;
            v.stage = n % 4;
            v.unit_order = (n / 4 + p) % 2;
            v.ranks = n % 3 ? 4 : 2;
            zero_expect_same(&want, v);
        }
        free(want.weights);
    }
}

/* Embedding (and with it the tied head's table) and first block frozen: of the four units the last
 * two are reduced, gathered after the update and have moments; nothing goes back beyond them. */
static void costs_nothing(void **state) {
    (void)state;
    zero_variant v = variant_of(0), all = v;
    v.ranks = all.ranks = 2;
    v.stage = all.stage = 1;
    memset(all.freeze, 0, sizeof all.freeze);
    sifr_model *model = frozen_model(&v);
    zero_outcome have = zero_run(v), like = zero_run(all);
    assert_int_equal(have.reductions, 2);
    assert_int_equal(have.gathers, 2);
    assert_int_equal(like.reductions, 5);
    assert_int_equal(like.gathers, 4);
    assert_true((double)have.peak[PLAN_MOMENTS] < 0.6 * (double)like.peak[PLAN_MOMENTS]);
    assert_int_equal(sifr_model_parameters(model), sifr_model_trained(model) + 97 * 40 +
                                                       3 * 56 * 40 + (2 * 40 + 2 * 20) * 40 +
                                                       2 * 40);
    device *dev;
    plan_schedule *s;
    sifr_error error = {0};
    plan_settings settings = {.mode = PLAN_TRAIN,
                              .step.precision = SIFR_FP32,
                              .step.micro_batch_size = 1,
                              .step.seq_length = ZERO_LENGTH,
                              .step.gradient_accumulation_steps = 2,
                              .mesh = plan_mesh_flat(1, 0),
                              .step.recompute = SIFR_RECOMPUTE_UNIT};
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    assert_int_equal(plan_lower(model, dev, &settings, &s, &error), SIFR_OK);
    int forward[4] = {0}, backward[4] = {0};
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (in->unit < 0) continue;
        forward[in->unit] += in->action == PLAN_FORWARD || in->action == PLAN_RECOMPUTE;
        backward[in->unit] += in->action == PLAN_BACKWARD;
        if (in->unit < 2) assert_true(in->action == PLAN_FORWARD);
    }
    assert_true(backward[2] > 0);
    assert_true(backward[3] > 0);
    assert_true(forward[1] < forward[2]); /* what has no backward pass is not run again */
    plan_free(s);
    device_close(dev);
    sifr_model_free(model);
    free(have.weights);
    free(like.weights);
}

/* Of units that are frozen in part the trained weights travel together, as one segment. */
static void parts_travel_once(void **state) {
    (void)state;
    zero_variant v = variant_of(4);
    v.ranks = 2;
    v.stage = 1;
    zero_outcome have = zero_run(v);
    assert_int_equal(have.gathers, 4);
    assert_int_equal(have.reductions, 5);
    free(have.weights);
}

/* Groups of settings that are alike: a unit's weights lie, are gathered, reduced and updated in
 * several segments, and train to the bits of one. Only the norm is folded in another order. */
static void groups(void **state) {
    (void)state;
    for (int p = 0; p < 4; p++) {
        zero_variant v = {.ranks = 1,
                          .type = p % 2 ? "gpt2" : "llama",
                          .precision = p / 2 ? SIFR_BF16 : SIFR_FP32,
                          .global = GLOBAL,
                          .no_clipping = true};
        zero_outcome whole = zero_run(v), grouped;
        v.groups = 2;
        grouped = zero_run(v);
        assert_int_equal(grouped.count, whole.count);
        assert_memory_equal(grouped.weights, whole.weights, whole.count * sizeof *whole.weights);
        v.freeze[0] = p % 2 ? "*ln_*" : "*norm*", v.freeze[1] = p % 2 ? "*attn*" : NULL;
        zero_outcome want = zero_run(v);
        for (int n = 0; n < 8; n++) {
            v.stage = n % 4;
            v.ranks = n / 4 ? 4 : 2;
            v.unit_order = (n / 4 + p) % 2;
            zero_expect_same(&want, v);
        }
        free(whole.weights);
        free(grouped.weights);
        free(want.weights);
    }
}

static void refusals(void **state) {
    (void)state;
    zero_variant v = {.type = "llama"};
    sifr_model *model = frozen_model(&v);
    sifr_engine *engine;
    sifr_error error = {0};
    assert_int_equal(sifr_model_freeze(model, "model.layer.*", &error), SIFR_USAGE);
    assert_string_equal(error.message, "freeze: no weight's name matches \"model.layer.*\"; names "
                                       "look like model.norm.weight");
    assert_int_equal(sifr_model_freeze(model, "*", &error), SIFR_OK);
    sifr_settings options = sifr_settings_defaults();
    options.seq_length = ZERO_LENGTH;
    assert_int_equal(sifr_engine_create(model, &options, &engine, &error), SIFR_USAGE);
    assert_string_equal(error.message, "freeze: every weight is frozen, nothing is left to train");
    sifr_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(others_train_as_ever),
                                       cmocka_unit_test(same_bits),
                                       cmocka_unit_test(costs_nothing),
                                       cmocka_unit_test(parts_travel_once),
                                       cmocka_unit_test(groups),
                                       cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Frozen weights held in 4 or 8 bits: a run computes what one does that holds the values of these
 * codes, to the bit, at every stage and number of ranks; it holds the bytes of the codes alone, and
 * the values of a unit while it runs; and what does not go with them is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "engine/state/convert.h"
#include "model/quantization.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "support/on_queues.h"
#include "support/scratch.h"
#include "support/thinned.h"
#include "support/zero_run.h"

enum { GLOBAL = 4, WIDE = 1000 }; /* weights of 40 x 1000 take two records and a part */

static const model_coding codings[] = {MODEL_NF4_DOUBLED, MODEL_NF4, MODEL_INT8};

/* Products are frozen; norms, embedding and head are trained. In bf16 some products are trained. */
static zero_variant variant_of(model_coding coding, sifr_precision precision) {
    return (zero_variant){.ranks = 1,
                          .type = "llama",
                          .precision = precision,
                          .global = GLOBAL,
                          .intermediate = WIDE,
                          .freeze = {"*mlp*", precision == SIFR_BF16 ? "*q_proj*" : "*_proj*"},
                          .coding = coding};
}

static sifr_model *coded_model(const zero_variant *v) {
    model_config config = zero_config(v->type);
    sifr_model *model;
    sifr_error error = {0};
    config.intermediate_size = v->intermediate;
    config.coding = v->coding;
    assert_int_equal(model_from_config(&config, &model, &error), SIFR_USAGE); /* none is frozen */
    assert_non_null(strstr(error.message, "no frozen weight"));
    config.coding = MODEL_UNCODED;
    assert_int_equal(model_from_config(&config, &model, &error), SIFR_OK);
    for (int i = 0; i < 3 && v->freeze[i]; i++)
        assert_int_equal(sifr_model_freeze(model, v->freeze[i], &error), SIFR_OK);
    config.coding = v->coding;
    model_code_base(model, &config);
    assert_int_equal(model_arrange(model, &error), SIFR_OK);
    return model;
}

/* As kernels have them. */
static void round_values(float *values, int64_t count, sifr_precision precision) {
    base_dtype type = device_dtype_of(precision);
    uint16_t *narrow = malloc((size_t)count * sizeof *narrow);
    if (type != BASE_FP32) {
        engine_from_fp32(narrow, values, type, count);
        engine_to_fp32(values, narrow, type, count);
    }
    free(narrow);
}

/* Codes are read as what they stand for, in fp32. */
static void check_like_opened(const zero_variant *v, const zero_outcome *have,
                              const zero_outcome *opened) {
    sifr_model *model = coded_model(v);
    assert_int_equal(have->count, opened->count);
    assert_memory_equal(have->loss, opened->loss, sizeof have->loss);
    assert_memory_equal(have->norm, opened->norm, sizeof have->norm);
    assert_true(have->evaluated == opened->evaluated);
    const float *at = have->weights, *other = opened->weights;
    for (size_t w = 0; w < model->weight_count; w++) {
        const model_weight *weight = &model->weights[w];
        int64_t count = weight->rows * weight->columns;
        size_t bytes = (size_t)count * sizeof(float);
        float *values = malloc(bytes);
        memcpy(values, at, bytes);
        if (weight->coding) round_values(values, count, v->precision);
        if (memcmp(values, other, bytes) != 0) fail_msg("%s: other bits", weight->name);
        free(values);
        at += count, other += count;
    }
    sifr_model_free(model);
}

static void like_their_values(void **state) {
    (void)state;
    for (int p = 0; p < 9; p++) {
        zero_variant v = variant_of(codings[p % 3], (sifr_precision)(p / 3));
        v.evaluate = true;
        for (int recompute = 0; recompute < 2; recompute++) {
            v.recompute = recompute;
            zero_variant as_ever = v;
            as_ever.opened = true;
            zero_outcome have = zero_run(v), opened = zero_run(as_ever);
            assert_true(have.loss[0] != have.loss[1]);
            check_like_opened(&v, &have, &opened);
            free(have.weights);
            free(opened.weights);
        }
    }
}

static void same_bits(void **state) {
    size_t turn = 0;
    (void)state;
    for (int p = 0; p < 3; p++) {
        zero_variant v = variant_of(codings[p], p % 2 ? SIFR_BF16 : SIFR_FP32);
        zero_outcome want = zero_run(v);
        for (int ranks = 2; ranks <= 4; ranks += 2) {
            v.ranks = ranks;
            zero_expect_each_stage(&want, v, &turn);
        }
        sifr_zero keys = sifr_settings_defaults().zero;
        keys.max_reuse_distance = 1000000;
        keys.param_persistence_threshold = 70000; /* some segments stay whole, others do not */
        keys.model_persistence_threshold = 200000;
        v.keys = &keys;
        v.stage = 3;
        zero_expect_same(&want, v);
        v.keys = NULL;
        v.separate = true;
        zero_expect_same(&want, v);
        v.separate = false;
        v.shard_size = 2; /* two copies of the state */
        zero_expect_same(&want, v);
        free(want.weights);
    }
}

/* On a device that has only begun its work and hides its memory. */
static void queued(void **state) {
    size_t turn = 0;
    (void)state;
    for (int p = 0; p < 3; p++) {
        zero_variant v = variant_of(codings[p], p % 2 ? SIFR_FP32 : SIFR_BF16);
        zero_outcome want = zero_run(v);
        v.open = on_queues_open;
        v.hidden = true;
        v.ranks = p ? 4 : 2;
        zero_expect_each_stage(&want, v, &turn);
        v.ranks = 1, v.stage = p ? 3 : 0;
        zero_expect_same(&want, v);
        free(want.weights);
    }
}

/* With the codes, or all that is kept, on disk or in host memory. */
static void expect_away(const zero_outcome *want, zero_variant v, sifr_tier tier, bool all) {
    sifr_offload offload = sifr_settings_defaults().offload;
    offload.nvme_path = scratch;
    offload.param.device = tier;
    if (all) offload.optimizer.device = offload.gradients = offload.activations = tier;
    v.stage = 3;
    v.offload = &offload;
    v.recompute = all;
    zero_expect_same(want, v);
}

static void offloaded(void **state) {
    (void)state;
    for (int p = 0; p < 3; p++) {
        zero_variant v = variant_of(codings[p], p % 2 ? SIFR_BF16 : SIFR_FP32);
        v.evaluate = true;
        zero_outcome want = zero_run(v);
        v.evaluate_each = true;
        for (v.ranks = 1; v.ranks <= 4; v.ranks *= 2) {
            v.unit_order = v.ranks == 2;
            expect_away(&want, v, SIFR_TIER_NVME, (v.ranks + p) % 2);
            zero_variant apart = v;
            apart.separate = true;
            expect_away(&want, apart, SIFR_TIER_CPU, v.ranks % 2);
            apart = v, apart.open = on_queues_open, apart.hidden = true;
            apart.evaluate_each = false;
            expect_away(&want, apart, p ? SIFR_TIER_CPU : SIFR_TIER_NVME, v.ranks == 2);
        }
        free(want.weights);
    }
    scratch_expect_empty();
}

/* Bytes of the codes of the model's weights, whole records each. */
static int64_t code_bytes(const sifr_model *model, int64_t ranks) {
    int64_t bytes = 0;
    for (size_t g = 0; g < model->segment_count; g++) {
        int64_t records = model->segments[g].elements / BASE_NF4_RECORD;
        if (!model->segments[g].coding) continue;
        assert_int_equal(model->segments[g].elements % BASE_NF4_RECORD, 0);
        bytes += (records + ranks - 1) / ranks * model_record_bytes(model->segments[g].coding);
    }
    return bytes;
}

static void check_bytes(model_coding coding) {
    zero_variant v = variant_of(coding, SIFR_FP32);
    sifr_model *model = coded_model(&v);
    for (int32_t ranks = 1; ranks <= 4; ranks *= 4) {
        device *dev;
        plan_schedule *s;
        sifr_error error = {0};
        plan_settings settings = {
            .mode = PLAN_TRAIN, .step = sifr_settings_defaults(), .mesh = plan_mesh_flat(ranks, 0)};
        settings.step.seq_length = ZERO_LENGTH;
        settings.step.zero.stage = 3;
        assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
        if (plan_lower(model, dev, &settings, &s, &error) != SIFR_OK) fail_msg("%s", error.message);
        int64_t codes = 0, decoded = 0, largest = 0, units = 0;
        for (size_t b = 0; b < s->buffer_count; b++) {
            const plan_buffer *buffer = &s->buffers[b];
            bool coded = buffer->segment >= 0 && model->segments[buffer->segment].coding;
            if (buffer->class == PLAN_PARAMETERS && coded) codes += buffer->bytes;
            if (buffer->class == PLAN_DECODED) largest = base_max_i64(largest, buffer->bytes);
        }
        for (size_t i = 0; i < s->instruction_count; i++)
            decoded += s->instructions[i].action == PLAN_DECODE;
        for (size_t u = 0; u < model->unit_count; u++)
            for (int32_t g = 0; g < model->units[u].segments; g++)
                units += model->segments[model->units[u].first_segment + g].coding != 0;
        assert_int_equal(codes, code_bytes(model, ranks));
        assert_int_equal(units, 2);
        /* Forward, and backward; the last block's values are there in between if nothing is
         * between. */
        assert_int_equal(decoded, 2 * units);
        assert_true(s->largest_bytes[PLAN_DECODED] <= plan_capacity(largest));
        plan_free(s);
        device_close(dev);
    }
    sifr_model_free(model);
}

static void bytes_held(void **state) {
    (void)state;
    for (int p = 0; p < 3; p++) check_bytes(codings[p]);
}

static void refusals(void **state) {
    model_config config = zero_config("gpt2");
    sifr_model *model;
    sifr_error error = {0};
    (void)state;
    assert_int_equal(model_from_config(&config, &model, &error), SIFR_OK);
    assert_int_equal(sifr_model_freeze(model, "*attn*", &error), SIFR_OK);
    config.coding = MODEL_NF4;
    model_code_base(model, &config);
    assert_non_null(strstr(model->error.message, "stored transposed (Conv1D)"));
    sifr_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(like_their_values),
                                       cmocka_unit_test(same_bits),
                                       cmocka_unit_test(queued),
                                       cmocka_unit_test(offloaded),
                                       cmocka_unit_test(bytes_held),
                                       cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}

/* Frozen weights in 4 or 8 bits on tensor ranks, as threads: each rank has its part of the codes,
 * and computes, to the bit, what it does that holds the values of these codes; at every ZeRO stage
 * and with data ranks beside them; all of it near one rank. What falls inside of a block of values
 * that share a scale is not cut.
 * label: full */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "engine/state/convert.h"
#include "model/quantization.h"
#include "model/shard.h"
#include "plan/queries.h"
#include "support/model_case.h"
#include "support/zero_run.h"

enum { GLOBAL = 4 };

static const model_coding codings[] = {MODEL_NF4_DOUBLED, MODEL_NF4, MODEL_INT8};

/* Of the products that two ranks divide by outputs, keys' and values' parts are a whole record
 * each; on four they are half of one, and so are parts by inputs anyway. Blocks of 8 bits are
 * longer. */
static model_config config_of(model_coding coding) {
    model_config c = model_case_llama();
    bool eight = coding == MODEL_INT8;
    c.tie_word_embeddings = true;
    c.hidden_size = eight ? 64 : 256;
    c.num_attention_heads = eight ? 2 : 8;
    c.num_key_value_heads = eight ? 2 : 4;
    c.head_dim = eight ? 1024 : 32;
    c.intermediate_size = eight ? 2048 : 512;
    return c;
}

static zero_variant variant_of(const model_config *config, model_coding coding) {
    return (zero_variant){.ranks = 1,
                          .type = "llama",
                          .config = config,
                          .global = GLOBAL,
                          .evaluate = true,
                          .freeze = {"*mlp*", "*_proj*"},
                          .coding = coding};
}

static sifr_model *model_of(const zero_variant *v, model_config config) {
    sifr_model *model;
    sifr_error error = {0};
    assert_int_equal(model_from_config(&config, &model, &error), SIFR_OK);
    for (int i = 0; i < 3 && v->freeze[i]; i++)
        (void)!sifr_model_freeze(model, v->freeze[i], &error);
    config.coding = v->coding;
    model_code_base(model, &config);
    assert_int_equal(model_arrange(model, &error), SIFR_OK);
    return model;
}

/* Codes are read as what they stand for, in fp32. */
static void expect_like(const zero_variant *v, const zero_outcome *have,
                        const zero_outcome *opened) {
    sifr_model *model = model_of(v, *v->config);
    base_dtype type = device_dtype_of(v->precision);
    assert_int_equal(have->count, opened->count);
    assert_memory_equal(have->loss, opened->loss, sizeof have->loss);
    assert_memory_equal(have->norm, opened->norm, sizeof have->norm);
    assert_true(have->evaluated == opened->evaluated);
    const float *at = have->weights, *other = opened->weights;
    for (size_t w = 0; w < model->weight_count; w++) {
        int64_t count = model->weights[w].rows * model->weights[w].columns;
        float *values = malloc((size_t)count * sizeof *values);
        uint16_t *narrow = malloc((size_t)count * sizeof *narrow);
        memcpy(values, at, (size_t)count * sizeof *values);
        if (model->weights[w].coding && type != BASE_FP32) {
            engine_from_fp32(narrow, values, type, count);
            engine_to_fp32(values, narrow, type, count);
        }
        if (memcmp(values, other, (size_t)count * sizeof *values) != 0)
            fail_msg("%s: other bits", model->weights[w].name);
        free(values);
        free(narrow);
        at += count, other += count;
    }
    sifr_model_free(model);
}

static void expect_near(const zero_outcome *want, const zero_outcome *have) {
    for (int s = 0; s < ZERO_STEPS; s++) {
        if (!(fabs(have->loss[s] / want->loss[s] - 1) < 1e-5))
            fail_msg("step %d: %.9g, not %.9g", s, have->loss[s], want->loss[s]);
        assert_true(fabs(have->norm[s] / want->norm[s] - 1) < 1e-4);
    }
    assert_true(fabs(have->evaluated / want->evaluated - 1) < 1e-5);
}

static void like_their_values(void **state) {
    (void)state;
    for (int c = 0; c < 3; c++) {
        model_config config = config_of(codings[c]);
        zero_variant v = variant_of(&config, codings[c]);
        zero_outcome one = zero_run(v);
        for (int32_t tensors = 2; tensors <= (c == 2 ? 2 : 4); tensors *= 2) {
            v.tensors = v.ranks = tensors;
            zero_variant as_ever = v;
            as_ever.opened = true;
            zero_outcome have = zero_run(v), opened = zero_run(as_ever);
            expect_like(&v, &have, &opened);
            expect_near(&one, &have);
            v.ranks = 2 * tensors;
            for (v.stage = c; v.stage < (c == 2 ? 3 : 4); v.stage += 3 - c)
                zero_expect_same(&have, v);
            v.stage = 0;
            free(have.weights);
            free(opened.weights);
        }
        free(one.weights);
    }
}

/* 11 blocks of columns, of which the first rank has more; values that are held as ever would be
 * divided evenly. */
static void unevenly(void **state) {
    (void)state;
    model_config config = config_of(MODEL_NF4_DOUBLED);
    config.intermediate_size = 11 * 64;
    zero_variant v = variant_of(&config, MODEL_NF4_DOUBLED);
    zero_outcome one = zero_run(v);
    for (int32_t tensors = 2; tensors <= 4; tensors += 2) {
        v.tensors = v.ranks = tensors;
        zero_outcome have = zero_run(v);
        expect_near(&one, &have);
        free(have.weights);
    }
    free(one.weights);
}

/* In bf16, with values opened in it, whose scales are opened first. */
static void in_bf16(void **state) {
    (void)state;
    model_config config = config_of(MODEL_NF4_DOUBLED);
    zero_variant v = variant_of(&config, MODEL_NF4_DOUBLED);
    v.precision = SIFR_BF16, v.tensors = v.ranks = 4, v.stage = 3, v.recompute = true;
    zero_variant as_ever = v;
    as_ever.opened = true;
    zero_outcome have = zero_run(v), opened = zero_run(as_ever);
    expect_like(&v, &have, &opened);
    free(have.weights);
    free(opened.weights);
}

/* Norms and residuals cut by tokens change no bit. */
static void with_rows(void **state) {
    (void)state;
    model_config config = config_of(MODEL_NF4_DOUBLED);
    zero_variant v = variant_of(&config, MODEL_NF4_DOUBLED);
    v.tensors = v.ranks = 2, v.length = 256, v.global = 1;
    zero_outcome want = zero_run(v);
    v.rows = true;
    zero_expect_same(&want, v);
    free(want.weights);
}

static sifr_model *part_of(const sifr_model *model, int32_t ranks, int32_t place) {
    sifr_model *part;
    sifr_error error = {0};
    if (model_shard(model, ranks, place, 0, &part, &error)) fail_msg("%s", error.message);
    return part;
}

static const model_weight *weight_of(const sifr_model *model, const char *part) {
    for (size_t w = 0; w < model->weight_count; w++)
        if (strstr(model->weights[w].name, part)) return &model->weights[w];
    fail_msg("no weight %s", part);
    return NULL;
}

/* What a rank has of codes, and in which form. */
static void expect_part(const sifr_model *part, const char *name, int64_t rows, int64_t columns,
                        model_coding coding) {
    const model_weight *w = weight_of(part, name);
    assert_int_equal(w->rows, rows);
    assert_int_equal(w->columns, columns);
    assert_int_equal(w->coding, coding);
    assert_int_equal(w->logical_coding, MODEL_NF4_DOUBLED);
    assert_int_equal(w->rows * w->columns % BASE_NF4_BLOCK, 0);
}

/* Two levels of scales stay where a part is whole records; elsewhere they are opened. */
static void scales_of_parts(void **state) {
    (void)state;
    model_config config = config_of(MODEL_NF4_DOUBLED);
    zero_variant v = variant_of(&config, MODEL_NF4_DOUBLED);
    config.intermediate_size = 11 * 64;
    sifr_model *model = model_of(&v, config);
    for (int32_t place = 0; place < 2; place++) {
        sifr_model *part = part_of(model, 2, place);
        expect_part(part, "q_proj", 128, 256, MODEL_NF4_DOUBLED);
        expect_part(part, "k_proj", 64, 256, MODEL_NF4_DOUBLED);
        expect_part(part, "o_proj", 256, 128, MODEL_NF4);
        expect_part(part, "gate_proj", 6 * 64, 256, MODEL_NF4_DOUBLED); /* of 6 and 5 blocks */
        expect_part(part, "down_proj", 256, 6 * 64, MODEL_NF4);
        sifr_model_free(part);
    }
    sifr_model *part = part_of(model, 4, 3);
    expect_part(part, "q_proj", 64, 256, MODEL_NF4_DOUBLED);
    expect_part(part, "k_proj", 32, 256, MODEL_NF4);
    sifr_model_free(part);
    sifr_model_free(model);
}

/* Rows of 56 columns: blocks lie across them, so the MLP is whole on each rank. Heads of 64 columns
 * in all are one block. Where nothing can be cut, that is said. */
static void blocks_stay_whole(void **state) {
    (void)state;
    model_config config = config_of(MODEL_NF4_DOUBLED);
    zero_variant v = variant_of(&config, MODEL_NF4_DOUBLED);
    config.intermediate_size = 56;
    sifr_model *model = model_of(&v, config), *part = part_of(model, 2, 1);
    expect_part(part, "o_proj", 256, 128, MODEL_NF4);
    expect_part(part, "down_proj", 256, 56, MODEL_NF4_DOUBLED);
    assert_true(weight_of(part, "gate_proj")->replicated);
    sifr_model_free(part);
    sifr_model_free(model);
    config.num_attention_heads = config.num_key_value_heads = 2;
    sifr_error error = {0};
    model = model_of(&v, config);
    assert_int_equal(model_shard(model, 2, 0, 0, &part, &error), SIFR_USAGE);
    sifr_model_free(model);
}

/* A rank's bytes of codes: half of them, but for scales that are opened. */
static void bytes_held(void **state) {
    (void)state;
    model_config config = config_of(MODEL_NF4_DOUBLED);
    zero_variant v = variant_of(&config, MODEL_NF4_DOUBLED);
    sifr_model *model = model_of(&v, config);
    int64_t codes[2] = {0}, trained = 0;
    for (int32_t ranks = 1; ranks <= 2; ranks++) {
        device *dev;
        plan_schedule *s;
        sifr_error error = {0};
        plan_settings settings = {
            .mode = PLAN_TRAIN, .step = sifr_settings_defaults(), .mesh = plan_mesh_flat(ranks, 0)};
        settings.step.seq_length = ZERO_LENGTH;
        if (ranks == 2) {
            settings.step.mesh.tensor_size = 2;
            assert_int_equal(plan_mesh_of(&settings.step, 2, 0, &settings.mesh, &error), SIFR_OK);
        }
        assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
        if (plan_lower(model, dev, &settings, &s, &error) != SIFR_OK) fail_msg("%s", error.message);
        for (size_t b = 0; b < s->buffer_count; b++) {
            const plan_buffer *buffer = &s->buffers[b];
            bool coded = buffer->segment >= 0 && s->model->segments[buffer->segment].coding;
            if (buffer->class == PLAN_PARAMETERS && coded) codes[ranks - 1] += buffer->bytes;
            trained += buffer->class == PLAN_MOMENTS && coded;
        }
        plan_free(s);
        device_close(dev);
    }
    assert_int_equal(trained, 0);
    assert_true(codes[1] * 2 > codes[0] && codes[1] * 2 < codes[0] / 100 * 105);
    sifr_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(like_their_values), cmocka_unit_test(in_bf16),
        cmocka_unit_test(unevenly),          cmocka_unit_test(with_rows),
        cmocka_unit_test(scales_of_parts),   cmocka_unit_test(blocks_stay_whole),
        cmocka_unit_test(bytes_held)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

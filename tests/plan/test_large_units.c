/* Blocks of more than half a billion elements: DeepSpeed's default limits would have every transfer
 * waited for, the defaults here keep them beside computing, and keys that are given are kept to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "model/registry.h"
#include "plan/pass/passes.h"
#include "plan/price/price.h"

enum { RANKS = 64, GIVEN_LIVE = 1000000000, GIVEN_REDUCED = 500000000 };

/* A GPU's figures, ranks of eight on a host. */
static const plan_machine machine = {.fp32_operations = 2e13,
                                     .bf16_operations = 2e14,
                                     .memory_bytes = 1.5e12,
                                     .host = {2e-5, 2e11},
                                     .network = {5e-5, 6e10},
                                     .ranks_per_host = 8};

typedef struct outcome {
    size_t instructions, at_once; /* reductions that are waited for at once */
    int64_t gathered, bytes;      /* at the peaks */
    double step, waiting;
} outcome;

/* Three blocks, as wide as asked: a 70B model has 8,192 and 28,672. */
static sifr_model *make_model(int64_t hidden, int64_t inner) {
    model_config c = {.model_type = "llama",
                      .vocab_size = 32000,
                      .hidden_size = hidden,
                      .num_hidden_layers = 3,
                      .num_attention_heads = 64,
                      .num_key_value_heads = 8,
                      .head_dim = hidden / 64,
                      .intermediate_size = inner,
                      .max_position_embeddings = 4096,
                      .activation = MODEL_SILU,
                      .norm_eps = 1e-5,
                      .rope.theta = 1e4,
                      .rope.factor = 1,
                      .initializer_range = 0.02};
    sifr_model *model;
    sifr_error error = {0};
    if (model_from_config(&c, &model, &error) != SIFR_OK) fail_msg("%s", error.message);
    return model;
}

static size_t waited_for_at_once(const plan_schedule *s) {
    size_t count = 0;
    for (size_t i = 0; i + 1 < s->instruction_count; i++) {
        const plan_instruction *next = &s->instructions[i + 1];
        bool reduction = s->instructions[i].action == PLAN_REDUCE;
        count += reduction && next->action == PLAN_WAIT && next->wait == (int32_t)i;
    }
    return count;
}

static outcome plan_with(const sifr_model *model, sifr_zero zero) {
    plan_settings settings = {
        .mode = PLAN_TRAIN, .mesh = plan_mesh_flat(RANKS, 0), .step = sifr_settings_defaults()};
    settings.step.precision = SIFR_BF16;
    settings.step.seq_length = 4096;
    settings.step.recompute = SIFR_RECOMPUTE_UNIT;
    settings.step.zero = zero;
    device *dev;
    plan_schedule *s;
    plan_prediction p;
    sifr_error error = {0};
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    if (plan_lower(model, dev, &settings, &s, &error) != SIFR_OK) fail_msg("%s", error.message);
    assert_int_equal(plan_predict(s, &machine, &p, NULL, &error), SIFR_OK);
    outcome out = {.instructions = s->instruction_count,
                   .at_once = waited_for_at_once(s),
                   .gathered = s->largest_bytes[PLAN_GATHERED],
                   .bytes = s->total_bytes,
                   .step = p.step_seconds,
                   .waiting = p.waiting};
    plan_free(s);
    device_close(dev);
    return out;
}

static sifr_zero zero_of(int stage, int64_t live, int64_t reduced) {
    sifr_zero zero = sifr_settings_defaults().zero;
    zero.stage = stage;
    zero.max_live_parameters = live;
    zero.reduce_bucket_size = reduced;
    return zero;
}

static void stage_3(void **state) {
    (void)state;
    sifr_model *model = make_model(8192, 28672);
    int64_t block = model->units[1].elements;
    outcome by_units = plan_with(model, zero_of(3, SIFR_BY_UNITS, SIFR_BY_UNITS));
    outcome wide = plan_with(model, zero_of(3, INT64_MAX, INT64_MAX));
    outcome given = plan_with(model, zero_of(3, GIVEN_LIVE, GIVEN_REDUCED));
    assert_true(block > GIVEN_REDUCED);
    assert_true(2 * block > GIVEN_LIVE);

    assert_float_equal(by_units.step, wide.step, 0);
    assert_int_equal(by_units.bytes, wide.bytes);
    assert_true(by_units.waiting < 0.5 * given.waiting);
    assert_true(by_units.step < given.step);

    /* Given, they bind: one block is gathered at a time, and its gradient is waited for. That is
     * what overlap takes: a block's parameters in bf16 and its gradient in fp32. */
    assert_true(given.gathered < 2 * 2 * block);
    assert_true(by_units.gathered >= 2 * 2 * block);
    assert_int_equal(given.at_once, by_units.at_once + 3);
    assert_true(by_units.bytes > given.bytes + (2 + 4) * (block / 100 * 99));
    assert_true(by_units.bytes <= given.bytes + (2 + 4) * (block / 100 * 101));
    sifr_model_free(model);
}

static void stage_2(void **state) {
    (void)state;
    sifr_model *model = make_model(8192, 28672);
    outcome by_units = plan_with(model, zero_of(2, SIFR_BY_UNITS, SIFR_BY_UNITS));
    outcome wide = plan_with(model, zero_of(2, INT64_MAX, INT64_MAX));
    outcome given = plan_with(model, zero_of(2, GIVEN_LIVE, GIVEN_REDUCED));
    assert_float_equal(by_units.step, wide.step, 0);
    assert_true(by_units.waiting < given.waiting);
    assert_int_equal(given.at_once, by_units.at_once + 3);
    sifr_model_free(model);
}

/* Where units are smaller the defaults are DeepSpeed's. */
static void small_units(void **state) {
    (void)state;
    sifr_model *model = make_model(1024, 4096);
    for (int stage = 2; stage <= 3; stage++) {
        sifr_zero zero = zero_of(stage, SIFR_BY_UNITS, SIFR_BY_UNITS);
        zero.prefetch_bucket_size = INT64_MAX;
        outcome by_units = plan_with(model, zero);
        zero.max_live_parameters = GIVEN_LIVE;
        zero.reduce_bucket_size = GIVEN_REDUCED;
        outcome given = plan_with(model, zero);
        assert_int_equal(by_units.instructions, given.instructions);
        assert_int_equal(by_units.bytes, given.bytes);
        assert_float_equal(by_units.step, given.step, 0);
    }
    sifr_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(stage_3), cmocka_unit_test(stage_2),
                                       cmocka_unit_test(small_units)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

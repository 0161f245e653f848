/* The loss scale of a run in fp16 goes through its checkpoints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "checkpoint/checkpoint.h"
#include "engine/engine_private.h"
#include "support/scratch.h"

static sifr_model *model;
static json_t *empty;

static void build(void) {
    assert_int_equal(sifr_model_create(&model, NULL), SIFR_OK);
    sifr_unit(model, "embedding");
    sifr_weight table = sifr_weight_matrix(model, "table", 32, 16, SIFR_INIT_NORMAL, 0.1);
    sifr_value x =
        sifr_embedding(model, (sifr_embedding_args){.ids = sifr_tokens(model), .table = table});
    sifr_unit(model, "head");
    sifr_head_loss(model, (sifr_head_args){.x = x, .weight = table});
    assert_int_equal(sifr_model_finish(model, NULL), SIFR_OK);
}

static sifr_engine *open_engine(sifr_precision precision, double fixed) {
    sifr_engine *engine;
    sifr_settings options = sifr_settings_defaults();
    options.seq_length = 8;
    options.threads = 1;
    options.precision = precision;
    options.fp16.loss_scale = fixed;
    assert_int_equal(sifr_engine_create(model, &options, &engine, NULL), SIFR_OK);
    assert_int_equal(sifr_engine_initialise(engine, 3, NULL), SIFR_OK);
    return engine;
}

static checkpoint_record record(void) {
    return (checkpoint_record){
        .must_match = empty, .may_differ = empty, .state = empty, .trainer = empty};
}

static sifr_status load(sifr_engine *engine, sifr_error *error) {
    json_t *state = NULL;
    checkpoint_record all = record();
    sifr_status status = checkpoint_load(engine, scratch, &all, &state, NULL, error);
    json_decref(state);
    return status;
}

static void save(const sifr_engine *engine) {
    checkpoint_record all = record();
    checkpoint_settings settings = {.keep = 1};
    assert_int_equal(checkpoint_save(engine, scratch, &all, &settings, NULL, NULL), SIFR_OK);
}

static void goes_on(void **state) {
    (void)state;
    sifr_error error = {0};
    sifr_engine *engine = open_engine(SIFR_FP16, 0), *other = open_engine(SIFR_FP16, 0);
    engine->steps = 7;
    engine->scaler = (engine_loss_scaler){
        .scale = 100000.0 / 3, .iteration = 6, .last_overflow = 4, .hysteresis = 1};
    save(engine);
    assert_int_equal(load(other, &error), SIFR_OK);
    assert_true(other->scaler.scale == 100000.0 / 3);
    assert_int_equal(other->scaler.iteration, 6);
    assert_int_equal(other->scaler.last_overflow, 4);
    assert_int_equal(other->scaler.hysteresis, 1);
    sifr_engine_free(other);
    /* another precision, or a scale that was fixed meanwhile, has its own */
    other = open_engine(SIFR_BF16, 0);
    assert_int_equal(load(other, &error), SIFR_OK);
    assert_true(other->scaler.scale == 1);
    sifr_engine_free(other);
    other = open_engine(SIFR_FP16, 64);
    assert_int_equal(load(other, &error), SIFR_OK);
    assert_true(other->scaler.scale == 64);
    /* and back: a run without a dynamic scale left none behind */
    other->steps = 8;
    save(other);
    assert_int_equal(load(engine, &error), SIFR_OK);
    assert_true(engine->scaler.scale == 100000.0 / 3);
    sifr_engine_free(other);
    sifr_engine_free(engine);
}

static void no_state_of_a_scaler(void **state) {
    (void)state;
    sifr_engine *engine = open_engine(SIFR_FP16, 0);
    for (int i = 0; i < 4; i++) {
        sifr_error error = {0};
        engine->steps = 10 + i;
        engine->scaler =
            (engine_loss_scaler){.scale = 2, .iteration = 6, .last_overflow = 4, .hysteresis = 1};
        if (i == 0) engine->scaler.scale = 0;
        if (i == 1) engine->scaler.iteration = -1;
        if (i == 2) engine->scaler.last_overflow = 6;
        if (i == 3) engine->scaler.hysteresis = 0;
        save(engine);
        assert_int_equal(load(engine, &error), SIFR_FAILED);
        assert_non_null(strstr(error.message, "loss_scaler"));
    }
    sifr_engine_free(engine);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(goes_on, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(no_state_of_a_scaler, scratch_setup, scratch_teardown),
    };
    build();
    empty = json_object();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    json_decref(empty);
    sifr_model_free(model);
    return failed;
}

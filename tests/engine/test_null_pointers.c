/* NULL where the library needs something: SIFR_USAGE, with the call and the name, and no damage. */
#include "engine/small_model.h"

enum { TOKENS = 16 };

#define REFUSES(call, message_)                                                                    \
    do {                                                                                           \
        sifr_error error = {0};                                                                    \
        assert_int_equal((call), SIFR_USAGE);                                                      \
        assert_string_equal(error.message, message_ ": NULL; give one");                           \
    } while (0)

static void models(void **state) {
    (void)state;
    sifr_model *model = small_model(SMALL_TIED);
    sifr_settings settings = sifr_settings_defaults();
    sifr_engine *engine = NULL;
    REFUSES(sifr_model_create(NULL, &error), "sifr_model_create: out");
    REFUSES(sifr_model_finish(NULL, &error), "sifr_model_finish: model");
    REFUSES(sifr_model_freeze(NULL, "*", &error), "sifr_model_freeze: model");
    REFUSES(sifr_model_freeze(model, NULL, &error), "sifr_model_freeze: pattern");
    REFUSES(sifr_model_group(NULL, &settings.optimizer, &error), "sifr_model_group: model");
    REFUSES(sifr_model_group(model, NULL, &error), "sifr_model_group: optimizer");
    REFUSES(sifr_settings_check(NULL, &error), "sifr_settings_check: settings");
    REFUSES(sifr_engine_create(NULL, &settings, &engine, &error), "sifr_engine_create: model");
    REFUSES(sifr_engine_create(model, NULL, &engine, &error), "sifr_engine_create: settings");
    REFUSES(sifr_engine_create(model, &settings, NULL, &error), "sifr_engine_create: out");
    assert_int_equal(sifr_engine_create(model, &settings, NULL, NULL), SIFR_USAGE);
    assert_null(engine);
    sifr_model_free(model);
}

/* Names of units and weights: a mistake in the description, as others. */
static void names(void **state) {
    (void)state;
    for (int unit = 0; unit < 2; unit++) {
        sifr_model *model;
        sifr_error error = {0};
        assert_int_equal(sifr_model_create(&model, &error), SIFR_OK);
        sifr_unit(model, unit ? NULL : "unit");
        sifr_weight_vector(model, unit ? "weight" : NULL, 4, SIFR_INIT_ONE);
        sifr_weight_kernel(model, NULL, 4, 4, -1, SIFR_INIT_ONE, 0);
        assert_int_equal(sifr_model_finish(model, &error), SIFR_USAGE);
        assert_string_equal(error.message, unit ? "unit: its name is NULL; give it one"
                                                : "weight: its name is NULL; give it one");
        sifr_model_free(model);
    }
}

static void engines(void **state) {
    (void)state;
    sifr_model *model = small_model(SMALL_TIED);
    sifr_settings settings = sifr_settings_defaults();
    int32_t ids[TOKENS] = {0};
    sifr_batch batch = {.tokens = ids, .labels = ids};
    sifr_step_result result;
    float value;
    double loss;
    int64_t labelled;
    settings.micro_batch_size = 2;
    settings.seq_length = TOKENS / 2;
    settings.threads = 1;
    sifr_engine *engine = small_engine(model, &settings);
    REFUSES(sifr_engine_initialise(NULL, 1, &error), "sifr_engine_initialise: engine");
    REFUSES(sifr_engine_step(NULL, &batch, 0, &result, &error), "sifr_engine_step: engine");
    REFUSES(sifr_engine_step(engine, NULL, 0, &result, &error), "sifr_engine_step: batch");
    REFUSES(sifr_engine_step(engine, &batch, 0, NULL, &error), "sifr_engine_step: result");
    REFUSES(sifr_engine_set_betas(NULL, 0, 0, &error), "sifr_engine_set_betas: engine");
    REFUSES(sifr_engine_evaluate(NULL, &batch, &loss, &labelled, &error),
            "sifr_engine_evaluate: engine");
    REFUSES(sifr_engine_evaluate(engine, NULL, &loss, &labelled, &error),
            "sifr_engine_evaluate: batch");
    REFUSES(sifr_engine_evaluate(engine, &batch, NULL, &labelled, &error),
            "sifr_engine_evaluate: loss_sum");
    REFUSES(sifr_engine_evaluate(engine, &batch, &loss, NULL, &error),
            "sifr_engine_evaluate: labelled");
    REFUSES(sifr_engine_evaluate_logits(engine, &batch, NULL, 1, &loss, &labelled, &error),
            "sifr_engine_evaluate_logits: logits");
    REFUSES(sifr_engine_write_weight(engine, NULL, &value, 1, &error),
            "sifr_engine_write_weight: name");
    REFUSES(sifr_engine_write_weight(engine, "a", NULL, 1, &error),
            "sifr_engine_write_weight: values");
    REFUSES(sifr_engine_read_weight(NULL, "a", &value, 1, &error),
            "sifr_engine_read_weight: engine");
    REFUSES(sifr_engine_read_weight(engine, NULL, &value, 1, &error),
            "sifr_engine_read_weight: name");
    REFUSES(sifr_engine_read_average(engine, NULL, &value, 1, &error),
            "sifr_engine_read_average: name");
    REFUSES(sifr_engine_write_piece(engine, NULL, 0, &value, 1, &error),
            "sifr_engine_write_piece: name");
    REFUSES(sifr_engine_read_piece(NULL, "a", 0, &value, 1, &error),
            "sifr_engine_read_piece: engine");
    REFUSES(sifr_engine_view_weight(engine, "a", NULL, &error), "sifr_engine_view_weight: out");
    assert_int_equal(sifr_engine_steps(engine), 0);
    sifr_engine_free(engine);
    sifr_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models),
        cmocka_unit_test(names),
        cmocka_unit_test(engines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* "freeze" of a config: what it leaves to train is said, what it cannot mean is refused.
 * in test_asan */
#include "config/config_case.h"
#include "support/zero_run.h"
#include "train/prepare/run_settings.h"

static char said[256];

static void listen(void *user, sifr_log_level level, const char *line) {
    (void)user, (void)level;
    snprintf(said, sizeof said, "%s", line);
}

static sifr_status freeze(const char *text, sifr_model **model, sifr_error *error) {
    sifr_log log = {.write = listen};
    model_config config = zero_config("llama");
    config_case *c = config_case_text(text);
    config_case_accepted(c);
    said[0] = 0;
    *error = (sifr_error){0};
    assert_int_equal(model_from_config(&config, model, error), SIFR_OK);
    sifr_status status = train_freeze(&c->config, *model, &log, error);
    config_case_free(c);
    return status;
}

static void what_is_left(void **state) {
    (void)state;
    sifr_model *model;
    sifr_error error;
    assert_int_equal(freeze("{}", &model, &error), SIFR_OK);
    assert_string_equal(said, "");
    assert_int_equal(sifr_model_trained(model), sifr_model_parameters(model));
    sifr_model_free(model);
    static const char *const text =
        "{\"sifr\": {\"freeze\": [\"model.embed_tokens.*\", \"model.layers.0.*\"]}}";
    assert_int_equal(freeze(text, &model, &error), SIFR_OK);
    for (size_t w = 0; w < model->weight_count; w++) {
        assert_int_equal(model->weights[w].frozen, model->weights[w].unit < 2);
    }
    assert_string_equal(said, "trains 11,640 of 27,120 parameters, the others are frozen");
    sifr_model_free(model);
    assert_int_equal(freeze("{\"sifr\": {\"freeze\": \"*norm*\"}}", &model, &error), SIFR_OK);
    sifr_model_free(model);
}

static void refusals(void **state) {
    (void)state;
    sifr_model *model;
    sifr_error error;
    assert_int_equal(
        freeze("{\"sifr\": {\"freeze\": [\"*norm*\", \"layers.0.*\"]}}", &model, &error),
        SIFR_USAGE);
    assert_string_equal(error.message,
                        "freeze: no weight's name matches \"layers.0.*\"; names look "
                        "like model.norm.weight");
    sifr_model_free(model);
    assert_int_equal(freeze("{\"sifr\": {\"freeze\": [\"*\"]}}", &model, &error), SIFR_USAGE);
    assert_string_equal(error.message, "freeze: every weight is frozen, nothing is left to train");
    sifr_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_left), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

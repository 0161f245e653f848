/* Initialisation has the distributions that transformers' has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/engine_private.h"
#include "support/golden.h"

static void one_case(const golden_init *init) {
    sifr_error error = {0};
    model_config config;
    sifr_model *model = NULL;
    sifr_engine *engine = NULL;
    sifr_settings options = sifr_settings_defaults();
    options.seq_length = 16, options.threads = 1;
    if (model_config_parse(init->config, strlen(init->config), init->name, &config, &error) ||
        model_from_config(&config, &model, &error) ||
        sifr_engine_create(model, &options, &engine, &error) ||
        sifr_engine_initialise(engine, 7, &error)) {
        fail_msg("%s", error.message);
    }
    assert_int_equal(model->weight_count, golden_init_tensors(init));
    for (size_t i = 0; i < golden_init_tensors(init); i++) {
        const char *name = golden_init_name(init, i);
        size_t count = golden_init_count(init, name);
        float *values = malloc(count * sizeof *values);
        assert_non_null(values);
        if (sifr_engine_read_weight(engine, name, values, count, &error)) {
            fail_msg("%s", error.message);
        }
        golden_check_init(init, name, values, count);
        free(values);
    }
    sifr_engine_free(engine);
    sifr_model_free(model);
}

static void test_distributions(void **state) {
    (void)state;
    golden_init init;
    for (size_t i = 0; golden_init_open(&init, i); i++) {
        one_case(&init);
        golden_init_close(&init);
    }
    for (size_t i = 0; golden_init_open_at(&init, "encoders/", i); i++) {
        one_case(&init);
        golden_init_close(&init);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_distributions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

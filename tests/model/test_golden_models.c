/* Models against PyTorch and transformers: loss, logits, gradients, ten training steps, evaluation
 * and generation, in fp32, bf16 and fp16. tests/golden/README.md says how the expected results and
 * the bounds came about. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "model/registry.h"
#include "support/golden_run.h"

/* Fails the test with the message of the library. */
#define OK(call)                                                                                   \
    do {                                                                                           \
        sifr_error error = {0};                                                                    \
        if ((call) != SIFR_OK) fail_msg("%s", error.message);                                      \
    } while (0)

static void every_model(void (*check)(const golden *g, golden_precision precision)) {
    golden_list list;
    golden_list_open(&list);
    assert_true(list.count >= 6);
    for (size_t i = 0; i < list.count; i++) {
        golden g;
        golden_open(&list, i, &g);
        check(&g, GOLDEN_FP32);
        check(&g, GOLDEN_BF16);
        check(&g, GOLDEN_FP16);
        golden_close(&g);
    }
    golden_list_close(&list);
}

static void gradients(void **state) {
    (void)state;
    every_model(golden_run_gradients);
}

static void steps(void **state) {
    (void)state;
    every_model(golden_run_steps);
}

static void logits(void **state) {
    (void)state;
    every_model(golden_run_logits);
}

static void evaluation(void **state) {
    (void)state;
    every_model(golden_run_eval);
}

static void generation(void **state) {
    (void)state;
    golden_list list;
    golden_list_open(&list);
    for (size_t i = 0; i < list.count; i++) {
        golden g;
        golden_open(&list, i, &g);
        if (g.generation.expected_count) {
            golden_run_generation(&g, &g.generation, 1);
            golden_run_generation(&g, &g.generation, 3);
        }
        golden_close(&g);
    }
    golden_list_close(&list);
}

static void initial_values(void **state) {
    (void)state;
    golden_init init;
    for (size_t i = 0; golden_init_open(&init, i); i++) {
        model_config config;
        sifr_model *model;
        OK(model_config_parse(init.config, strlen(init.config), "golden", &config, &error));
        OK(model_from_config(&config, &model, &error));
        for (size_t t = 0; t < golden_init_tensors(&init); t++) {
            const char *name = golden_init_name(&init, t);
            size_t index = golden_weight_index(model, name);
            int64_t count = model->weights[index].rows * model->weights[index].columns;
            float *values = malloc((size_t)count * sizeof *values);
            model_initial_values(model, index, 1, 0, count, values);
            golden_check_init(&init, name, values, (size_t)count);
            free(values);
        }
        sifr_model_free(model);
        golden_init_close(&init);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits),     cmocka_unit_test(gradients),
        cmocka_unit_test(steps),      cmocka_unit_test(evaluation),
        cmocka_unit_test(generation), cmocka_unit_test(initial_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

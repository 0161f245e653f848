/* The models that are known by the names of their releases: each config is read, its model is
 * built, and has the parameters of the released text model. */
#include "support/model_config_text.h"

#include "model/released.h"
#include "sifr/model.h"

static void parameters(void **state) {
    (void)state;
    /* Gemma 4: 30.7 and 11.9 thousand millions, as their cards say; layer_scalar counts as well.
     * E4B and E2B: what transformers' Gemma4ForCausalLM has, with layer_scalar; 4.6 and 2.3
     * thousand millions without the layers' own embedding. LFM2: the numbers of its cards, which
     * are those of the weight files. Qwen 3.5: what transformers' Qwen3_5ForCausalLM has of these
     * sizes. */
    static const struct {
        const char *name, *spelt;
        int64_t parameters;
    } cases[] = {{"google/gemma-4-31B", "google/gemma-4-31B", 30697345340},
                 {"gemma-4-31b-it", "google/gemma-4-31B-it", 30697345340},
                 {"google/GEMMA-4-12B", "google/gemma-4-12B", 11907350320},
                 {"gemma-4-12B-it", "google/gemma-4-12B-it", 11907350320},
                 {"google/gemma-4-E4B", "google/gemma-4-E4B", 7463013418},
                 {"gemma-4-e4b-it", "google/gemma-4-E4B-it", 7463013418},
                 {"gemma-4-E2B", "google/gemma-4-E2B", 4628569379},
                 {"google/gemma-4-E2B-it", "google/gemma-4-E2B-it", 4628569379},
                 {"lfm2-350m", "LiquidAI/LFM2-350M", 354483968},
                 {"LiquidAI/LFM2-700M", "LiquidAI/LFM2-700M", 742489344},
                 {"LiquidAI/LFM2-1.2B", "LiquidAI/LFM2-1.2B", 1170340608},
                 {"LiquidAI/LFM2-2.6B", "LiquidAI/LFM2-2.6B", 2569272320},
                 {"LFM2.5-350M", "LiquidAI/LFM2.5-350M", 354483968},
                 {"LFM2.5-1.2B-Base", "LiquidAI/LFM2.5-1.2B-Base", 1170340608},
                 {"LFM2.5-1.2B-Instruct", "LiquidAI/LFM2.5-1.2B-Instruct", 1170340608},
                 {"LFM2-VL-450M", "LiquidAI/LFM2-VL-450M", 354483968},
                 {"LFM2-VL-1.6B", "LiquidAI/LFM2-VL-1.6B", 1170340608},
                 {"LFM2-VL-3B", "LiquidAI/LFM2-VL-3B", 2569272320},
                 {"Qwen/Qwen3.5-0.8B", "Qwen/Qwen3.5-0.8B", 752393024},
                 {"qwen3.5-2b", "Qwen/Qwen3.5-2B", 1881825088},
                 {"Qwen3.5-4B", "Qwen/Qwen3.5-4B", 4205751296},
                 {"Qwen3.5-9B", "Qwen/Qwen3.5-9B", 8953803264},
                 {"qwen/qwen3.5-27b", "Qwen/Qwen3.5-27B", 26895998464}};
    char names[1024];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *spelt, *text = model_released_config(cases[i].name, &spelt);
        sifr_model *model;
        assert_non_null(text);
        assert_string_equal(spelt, cases[i].spelt);
        assert_non_null(strstr(model_released_list(names, sizeof names), spelt));
        if (parse(text) != SIFR_OK) fail_msg("%s", error.message);
        assert_int_equal(model_from_config(&config, &model, &error), SIFR_OK);
        assert_int_equal(sifr_model_parameters(model), cases[i].parameters);
        sifr_model_free(model);
    }
}

static void others(void **state) {
    (void)state;
    static const char *const names[] = {
        "", "google", "google/", "gemma-4-31B-it-qat", "someone/gemma-4-31B", "gemma-4-26B-A4B"};
    const char *spelt;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_null(model_released_config(names[i], &spelt));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(parameters), cmocka_unit_test(others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

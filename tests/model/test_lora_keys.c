/* Which modules PEFT's keys adapt, how, and what is said of keys that are not built. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "model/lora.h"
#include "model/registry.h"

static sifr_status read_keys(const char *text, model_lora *out, sifr_error *error) {
    json_t *json;
    BASE_TRY(base_json_parse(text, strlen(text), "test", &json, error));
    sifr_status status = model_lora_read(json, "lora", out, error);
    json_decref(json);
    return status;
}

static model_lora keys(const char *text) {
    model_lora lora;
    sifr_error error = {0};
    if (read_keys(text, &lora, &error)) fail_msg("%s", error.message);
    return lora;
}

/* As re.fullmatch and PEFT's patterns by module have it in Python. */
static void patterns(void **state) {
    static const struct {
        const char *pattern, *text;
        bool full, behind_dot;
    } cases[] = {
        {".*q_proj", "model.layers.0.self_attn.q_proj", true, true},
        {"q_proj", "model.layers.0.self_attn.q_proj", false, true},
        {"q_proj", "model.layers.0.self_attn.xq_proj", false, false},
        {".*\\.layers\\.(?:0|12)\\..*_proj", "model.layers.12.mlp.up_proj", true, true},
        {".*\\.layers\\.(?:0|12)\\..*_proj", "model.layers.2.mlp.up_proj", false, false},
        {".*layers\\.\\d+\\.mlp\\.(up|down)_proj", "model.layers.31.mlp.down_proj", true, true},
        {".*layers.[\\d].mlp.*?", "model.layers.3.mlp.up_proj", true, true},
        {"[^.]+\\.c_[a-z]{4}", "attn.c_attn", true, true},
        {"a|b", "x.b", false, true},
        {"\\w+\\.h\\.1\\D+", "transformer.h.1.attn", true, true},
        {"", "", true, true},
    };
    static const char *const wrong[] = {"(?=a)", "(a", "a)\\1", "[a", "*+", "\\Aa", "[]a]", "a\\"};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool full = model_pattern_matches(cases[i].pattern, false, cases[i].text);
        bool dot = model_pattern_matches(cases[i].pattern, true, cases[i].text);
        if (full != cases[i].full || dot != cases[i].behind_dot)
            fail_msg("%s on %s: %d %d", cases[i].pattern, cases[i].text, full, dot);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (model_pattern_check(wrong[i], "lora", "key", NULL) != SIFR_USAGE)
            fail_msg("%s is taken", wrong[i]);
}

static void modules(void **state) {
    static const struct {
        const char *keys, *module;
        bool adapted;
    } cases[] = {
        {"{\"target_modules\": [\"q_proj\"]}", "model.layers.0.self_attn.q_proj", true},
        {"{\"target_modules\": [\"proj\"]}", "model.layers.0.self_attn.q_proj", false},
        {"{\"target_modules\": [\"mlp.c_proj\"]}", "transformer.h.0.attn.c_proj", false},
        {"{\"target_modules\": \"all-linear\", \"exclude_modules\": [\"c_proj\"]}",
         "transformer.h.0.attn.c_proj", false},
        {"{\"target_modules\": [\"c_proj\"], \"layers_to_transform\": [1, 3]}",
         "transformer.h.3.attn.c_proj", true},
        {"{\"target_modules\": [\"c_proj\"], \"layers_to_transform\": 1}",
         "transformer.h.11.attn.c_proj", false},
        {"{\"target_modules\": [\"c_proj\"], \"layers_to_transform\": 1, \"layers_pattern\": "
         "\"h\"}",
         "transformer.h.1.attn.c_proj", true},
        {"{\"target_modules\": [\"c_proj\"], \"layers_to_transform\": 1,"
         " \"layers_pattern\": [\"layers\", \"block\"]}",
         "transformer.h.1.attn.c_proj", false},
        {"{\"target_modules\": [\"c_proj\"], \"layers_to_transform\": 1}", "c_proj", false},
        {"{\"target_modules\": \"all-linear\", \"modules_to_save\": [\"mlp\"]}",
         "model.layers.0.mlp.up_proj", false},
        {"{\"target_modules\": \"All-Linear\", \"modules_to_save\": [\"ml\"]}",
         "model.layers.0.mlp.up_proj", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        model_lora lora = keys(cases[i].keys);
        if (model_lora_targets(&lora, lora.targets, cases[i].module) != cases[i].adapted)
            fail_msg("%s: %s", cases[i].keys, cases[i].module);
        model_lora_free(&lora);
    }
}

static void ranks(void **state) {
    (void)state;
    model_lora lora = keys("{\"r\": 4, \"lora_alpha\": 6, \"use_rslora\": true,"
                           " \"rank_pattern\": {\"layers.1.*\": 9, \"q_proj\": 2},"
                           " \"alpha_pattern\": {\"up_proj\": 1.5}}");
    assert_int_equal(model_lora_rank(&lora, "model.layers.0.self_attn.q_proj"), 2);
    assert_int_equal(model_lora_rank(&lora, "model.layers.1.self_attn.q_proj"), 9);
    assert_int_equal(model_lora_rank(&lora, "model.layers.0.mlp.up_proj"), 4);
    assert_true(model_lora_scale(&lora, "model.layers.0.mlp.up_proj") == 1.5 / 2);
    assert_true(model_lora_scale(&lora, "model.layers.1.mlp.down_proj") == 6.0 / 3);
    model_lora_free(&lora);
}

static void refused(void **state) {
    static const struct {
        const char *keys, *says;
    } cases[] = {
        {"[]", "must be an object"},
        {"{\"lora_bias\": true}", "lora_bias is not built"},
        {"{\"use_dora\": true, \"bias\": \"all\"}",
         "use_dora with a bias that is trained is not built"},
        {"{\"loftq_config\": {\"loftq_bits\": 4}}", "loftq_config is not built"},
        {"{\"rank\": 4}", "rank is no key"},
        {"{\"peft_type\": \"IA3\"}", "peft_type IA3"},
        {"{\"r\": 1.5}", "r"},
        {"{\"r\": 70000}", "r 70000"},
        {"{\"lora_dropout\": 1}", "lora_dropout"},
        {"{\"bias\": \"some\"}", "bias"},
        {"{\"init_lora_weights\": \"eva\"}", "init_lora_weights eva"},
        {"{\"target_modules\": 3}", "target_modules must be"},
        {"{\"target_modules\": [\"a\", 1]}", "target_modules must be"},
        {"{\"target_modules\": \"(\"}", "no regular expression"},
        {"{\"target_modules\": \"q_proj\\\\\"}", "no regular expression"},
        {"{\"target_modules\": \"((a{1,255}){1,255}){1,255}\"}", "no regular expression"},
        {"{\"target_modules\": \"((a{2}){2}){2}\"}", "no regular expression"},
        {"{\"rank_pattern\": {\"a\": 0}}", "rank_pattern of a"},
        {"{\"rank_pattern\": [1]}", "rank_pattern must be"},
        {"{\"layers_to_transform\": \"1\"}", "layers_to_transform must be"},
        {"{\"layers_pattern\": \"h\"}", "without layers_to_transform"},
        {"{\"modules_to_save\": \"head\"}", "modules_to_save must be"},
    };
    static const char taken[] = "{\"use_dora\": false, \"loftq_config\": {}, \"eva_config\": null,"
                                " \"future_key\": null, \"peft_version\": \"9\"}";
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        model_lora lora;
        sifr_error error = {0};
        if (read_keys(cases[i].keys, &lora, &error) != SIFR_USAGE ||
            !strstr(error.message, cases[i].says))
            fail_msg("%s: %s", cases[i].keys, error.message);
        assert_null(lora.json);
    }
    model_lora lora = keys(taken);
    model_lora_free(&lora);
}

/* A is drawn as torch draws it, B is zero; all others are frozen. */
static void description(void **state) {
    static const char config[] =
        "{\"model_type\": \"llama\", \"vocab_size\": 64, \"hidden_size\": 32,"
        " \"intermediate_size\": 48, \"num_hidden_layers\": 2, \"num_attention_heads\": 2,"
        " \"max_position_embeddings\": 16}";
    model_lora lora = keys("{\"r\": 2}");
    model_choice choice = {.lora = &lora};
    model_config c;
    sifr_model *model = NULL;
    sifr_error error = {0};
    float values[64];
    (void)state;
    if (model_config_parse_as(config, strlen(config), "test", &choice, &c, &error) ||
        model_from_config(&c, &model, &error))
        fail_msg("%s", error.message);
    assert_int_equal(sifr_model_trained(model), 4 * (2 * 32 + 32 * 2));
    for (size_t i = 0; i < model->weight_count; i++) {
        const model_weight *w = &model->weights[i];
        assert_int_equal(w->frozen, !w->factor);
        if (!w->factor) continue;
        bool a = strstr(w->name, "lora_A.weight") != NULL;
        double most = 0;
        model_initial_values(model, i, 7, 0, 64, values);
        for (int v = 0; v < 64; v++) most = fmax(most, fabs((double)values[v]));
        assert_true(a ? most > 0.12 && most <= 1 / sqrt(32) : most == 0);
    }
    sifr_model_free(model);
    model_lora_free(&lora);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(patterns), cmocka_unit_test(modules),
                                       cmocka_unit_test(ranks), cmocka_unit_test(refused),
                                       cmocka_unit_test(description)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

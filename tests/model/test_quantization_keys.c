/* Which of BitsAndBytesConfig's keys hold weights in 4 bits, which weights these are, and what is
 * said of the others. in test_asan */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/json.h"
#include "model/lora.h"
#include "model/quantization.h"
#include "model/registry.h"

#define NF4 "\"load_in_4bit\": true, \"bnb_4bit_quant_type\": \"nf4\""

static sifr_status read_keys(const char *text, model_quantization *out, sifr_error *error) {
    json_t *json;
    BASE_TRY(base_json_parse(text, strlen(text), "test", &json, error));
    sifr_status status = model_quantization_read(json, "quantization", out, error);
    json_decref(json);
    return status;
}

static model_quantization keys(const char *text) {
    model_quantization out;
    sifr_error error = {0};
    if (read_keys(text, &out, &error)) fail_msg("%s", error.message);
    return out;
}

static void built(void **state) {
    (void)state;
    model_quantization plain = keys("{" NF4 "}");
    assert_int_equal(plain.coding, MODEL_NF4);
    assert_int_equal(plain.compute, BASE_NONE);
    plain = keys("{" NF4 ", \"bnb_4bit_use_double_quant\": true,"
                 "\"bnb_4bit_compute_dtype\": \"bfloat16\"}");
    assert_int_equal(plain.coding, MODEL_NF4_DOUBLED);
    assert_int_equal(plain.compute, BASE_BF16);
    assert_int_equal(keys("{" NF4 ", \"bnb_4bit_compute_dtype\": \"torch.float16\"}").compute,
                     BASE_FP16);
    /* As transformers writes it. */
    plain = keys("{\"_load_in_4bit\": true, \"_load_in_8bit\": false,"
                 "\"bnb_4bit_compute_dtype\": \"float32\", \"bnb_4bit_quant_storage\": \"uint8\","
                 "\"bnb_4bit_quant_type\": \"nf4\", \"bnb_4bit_use_double_quant\": false,"
                 "\"llm_int8_enable_fp32_cpu_offload\": false, \"llm_int8_has_fp16_weight\": false,"
                 "\"llm_int8_skip_modules\": null, \"llm_int8_threshold\": 6.0,"
                 "\"load_in_4bit\": true, \"load_in_8bit\": false,"
                 "\"quant_method\": \"bitsandbytes\"}");
    assert_int_equal(plain.coding, MODEL_NF4);
    assert_int_equal(plain.compute, BASE_FP32);
}

static void refused(void **state) {
    static const char *const cases[][2] = {
        {"[]", "must be an object"},
        {"{}", "load_in_4bit is not true"},
        {"{\"load_in_4bit\": true}", "bnb_4bit_quant_type fp4, the default, is not built here"},
        {"{\"load_in_4bit\": true, \"bnb_4bit_quant_type\": \"fp4\"}",
         "bnb_4bit_quant_type fp4 is not built here; give \"nf4\""},
        {"{\"load_in_8bit\": true}", "load_in_8bit is not built here"},
        {"{" NF4 ", \"llm_int8_skip_modules\": [\"q_proj\"]}",
         "llm_int8_skip_modules is not built here"},
        {"{" NF4 ", \"bnb_4bit_quant_storage\": \"bfloat16\"}",
         "bnb_4bit_quant_storage is not built here"},
        {"{" NF4 ", \"llm_int8_threshold\": 5.0}", "llm_int8_threshold is not built here"},
        {"{" NF4 ", \"quant_method\": \"gptq\"}", "quant_method is not built here"},
        {"{" NF4 ", \"bnb_4bit_compute_dtype\": \"int8\"}",
         "bnb_4bit_compute_dtype \"int8\" must be bfloat16, float16 or float32"},
        {"{" NF4 ", \"bnb_4bit_use_double_quan\": true}",
         "bnb_4bit_use_double_quan is no key of BitsAndBytesConfig; did you mean "
         "bnb_4bit_use_double_quant"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        model_quantization out;
        sifr_error error = {0};
        assert_int_equal(read_keys(cases[i][0], &out, &error), SIFR_USAGE);
        bool named = strncmp(error.message, "quantization", strlen("quantization")) == 0;
        if (!named || !strstr(error.message, cases[i][1]))
            fail_msg("%s: %s", cases[i][0], error.message);
    }
}

/* The model of a config with adapters on q_proj, and these keys of LoRA beside them. */
static sifr_model *adapted(const char *config_text, const char *lora_text, model_lora *lora) {
    json_t *json;
    model_config config;
    sifr_model *model = NULL;
    sifr_error error = {0};
    model_choice choice = {.lora = lora, .coding = MODEL_NF4};
    if (base_json_parse(lora_text, strlen(lora_text), "test", &json, &error) ||
        model_lora_read(json, "lora", lora, &error) ||
        model_config_parse_as(config_text, strlen(config_text), "test", &choice, &config, &error) ||
        model_from_config(&config, &model, &error))
        fail_msg("%s", error.message);
    json_decref(json);
    return model;
}

static bool has_end(const char *name, const char *end) {
    size_t a = strlen(name), b = strlen(end);
    return a >= b && strcmp(name + a - b, end) == 0;
}

/* As transformers has it: all products but the head; not what is trained. */
static void which(void **state) {
    static const char config[] =
        "{\"model_type\": \"llama\", \"vocab_size\": 97, \"hidden_size\": 40,"
        "\"intermediate_size\": 56, \"num_hidden_layers\": 2, \"num_attention_heads\": 4,"
        "\"num_key_value_heads\": 2, \"attention_bias\": true, \"tie_word_embeddings\": false}";
    (void)state;
    for (int saves = 0; saves < 2; saves++) {
        model_lora lora = {0};
        sifr_model *model =
            adapted(config,
                    saves ? "{\"target_modules\": [\"q_proj\"], \"modules_to_save\": [\"up_proj\"]}"
                          : "{\"target_modules\": [\"q_proj\"]}",
                    &lora);
        for (size_t i = 0; i < model->weight_count; i++) {
            const model_weight *w = &model->weights[i];
            bool product = has_end(w->name, "_proj.weight");
            bool wanted = product && !(saves && has_end(w->name, "up_proj.weight"));
            if ((w->coding == MODEL_NF4) != wanted)
                fail_msg("%s is %sin 4 bits", w->name, wanted ? "not " : "");
            if (w->coding) assert_int_equal(w->offset % BASE_NF4_RECORD, 0);
            if (w->coding) {
                assert_true(w->frozen);
                assert_true(w->based);
            }
        }
        /* A unit's frozen weights in two segments, and its adapters in one. */
        assert_int_equal(model->units[1].segments, 3);
        sifr_model_free(model);
        model_lora_free(&lora);
    }
}

/* Of an encoder the products of the body; its pooler and its head stay as they are. */
static void encoders(void **state) {
    static const char config[] =
        "{\"model_type\": \"bert\", \"architectures\": [\"BertForSequenceClassification\"],"
        "\"vocab_size\": 97, \"hidden_size\": 24, \"intermediate_size\": 40,"
        "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"max_position_embeddings\": 32}";
    model_lora lora = {0};
    (void)state;
    sifr_model *model = adapted(config, "{\"target_modules\": [\"query\"]}", &lora);
    size_t coded = 0;
    for (size_t i = 0; i < model->weight_count; i++) {
        const model_weight *w = &model->weights[i];
        coded += w->coding != MODEL_UNCODED;
        bool head = strstr(w->name, "pooler") || strstr(w->name, "classifier") ||
                    strstr(w->name, "embeddings") || w->factor;
        if (w->coding) assert_false(head);
    }
    assert_int_equal(coded, 6);
    sifr_model_free(model);
    model_lora_free(&lora);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(built), cmocka_unit_test(refused),
                                       cmocka_unit_test(which), cmocka_unit_test(encoders)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

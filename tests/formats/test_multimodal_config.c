/* Folders with a tower: the config of their text model, and the names of its tensors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/json.h"
#include "formats/multimodal.h"

static json_t *parse(const char *text) {
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    return json;
}

/* What the text model's config has of `key`, as JSON. */
static void check_text(const char *type, const char *config, const char *key, const char *wanted) {
    sifr_error error = {0};
    json_t *json = parse(config), *text;
    if (formats_multimodal_text(formats_multimodal_find(type), json, "config.json", &text,
                                &error) != SIFR_OK)
        fail_msg("%s", error.message);
    json_t *value = wanted ? json_loads(wanted, JSON_DECODE_ANY, NULL) : NULL;
    if (!json_equal(json_object_get(text, key), value) && (value || json_object_get(text, key)))
        fail_msg("%s: %s: %s", config, key,
                 json_dumps(json_object_get(text, key), JSON_ENCODE_ANY));
    json_decref(value);
    json_decref(text);
    json_decref(json);
}

static void check_refused(const char *type, const char *config, const char *wanted) {
    sifr_error error = {0};
    json_t *json = parse(config), *text;
    assert_int_equal(
        formats_multimodal_text(formats_multimodal_find(type), json, "config.json", &text, &error),
        SIFR_USAGE);
    assert_null(text);
    if (!strstr(error.message, wanted)) fail_msg("%s: %s", config, error.message);
    json_decref(json);
}

static void becomes_a_plain_config(void **state) {
    (void)state;
    const char *qwen = "{\"text_config\": {\"model_type\": \"qwen3_vl_text\", \"hidden_size\": 8, "
                       "\"rope_scaling\": {\"type\": \"mrope\", \"mrope_section\": [1, 1, 1], "
                       "\"mrope_interleaved\": true}}, \"eos_token_id\": 5, \"pad_token_id\": 6, "
                       "\"dtype\": \"bfloat16\"}";
    check_text("qwen3_vl", qwen, "model_type", "\"qwen3\"");
    check_text("qwen3_vl", qwen, "architectures", "[\"Qwen3ForCausalLM\"]");
    check_text("qwen3_vl", qwen, "hidden_size", "8");
    check_text("qwen3_vl", qwen, "rope_scaling", "{\"type\": \"default\"}");
    check_text("qwen3_vl", qwen, "rope_theta", "500000.0");
    check_text("qwen3_vl", qwen, "eos_token_id", "5");
    check_text("qwen3_vl", qwen, "dtype", "\"bfloat16\"");
    /* The row of padding has no gradient, and the class asks text_config alone for it. */
    check_text("qwen3_vl", qwen, "pad_token_id", NULL);
    const char *rope = "{\"text_config\": {\"rope_parameters\": {\"rope_theta\": 7.0}}}";
    check_text("qwen3_vl", rope, "rope_theta", NULL);
    check_text("qwen3_vl", rope, "rope_parameters", "{\"rope_theta\": 7.0}");
    const char *glm = "{\"text_config\": {\"hidden_size\": 48, \"num_attention_heads\": 4, "
                      "\"head_dim\": 128, \"attention_bias\": false}}";
    check_text("glm4v", glm, "head_dim", "12");
    check_text("glm4v", glm, "attention_bias", "true");
    check_text("glm4v", glm, "partial_rotary_factor", "1.0");
    const char *ministral = "{\"text_config\": {\"model_type\": \"ministral3\"}}";
    check_text("mistral3", ministral, "architectures", "[\"Ministral3ForCausalLM\"]");
    check_text("mistral3", "{\"text_config\": {}}", "model_type", "\"mistral\"");
    /* As the first folders of Qwen 2.5 VL have it. */
    const char *flat = "{\"model_type\": \"qwen2_5_vl\", \"hidden_size\": 8, \"vision_config\": "
                       "{}, \"image_token_id\": 3}";
    check_text("qwen2_5_vl", flat, "model_type", "\"qwen2\"");
    check_text("qwen2_5_vl", flat, "vision_config", NULL);
    check_text("qwen2_5_vl", flat, "rms_norm_eps", "1e-05");
}

static void the_top_decides_whether_the_head_is_tied(void **state) {
    (void)state;
    static const char tie[] = "tie_word_embeddings";
    const char *top = "{\"tie_word_embeddings\": true, \"text_config\": {\"tie_word_embeddings\": "
                      "false}}";
    const char *own = "{\"tie_word_embeddings\": false, \"text_config\": {\"tie_word_embeddings\": "
                      "true}}";
    check_text("internvl", top, tie, "true");
    check_text("internvl", own, tie, "false");
    check_text("gemma3", own, tie, "false");
    check_text("qwen3_vl", own, tie, "false");
    /* These two also take it from text_config, as their classes do. */
    check_text("qwen2_5_vl", own, tie, "true");
    check_text("glm4v", own, tie, "true");
    const char *absent = "{\"text_config\": {}}";
    check_text("gemma3", absent, tie, "true");
    check_text("mistral3", absent, tie, "true");
    check_text("internvl", absent, tie, "true");
    check_text("qwen2_5_vl", absent, tie, "false");
    check_text("qwen3_vl", absent, tie, "false");
    check_text("smolvlm", absent, tie, "false");
    check_text("glm4v", absent, tie, "false");
    /* LFM2-VL has another name for it, which goes first, and text_config's does not count. */
    const char *older = "{\"tie_embedding\": false, \"tie_word_embeddings\": true, "
                        "\"text_config\": {\"tie_embedding\": true}}";
    check_text("lfm2_vl", absent, tie, "true");
    check_text("lfm2_vl", older, tie, "false");
    check_text("lfm2_vl", older, "tie_embedding", NULL);
}

static void refuses_what_has_no_text_part(void **state) {
    (void)state;
    check_refused("gemma3", "{\"vision_config\": {}}", "config.json: \"text_config\" is missing");
    check_refused("gemma3", "{\"text_config\": null}", "\"text_config\" is missing");
    check_refused("qwen2_5_vl", "{\"vision_config\": {}}", "\"text_config\" is missing");
    check_refused("gemma3", "{\"text_config\": [1]}", "\"text_config\" must be an object");
    check_refused("gemma3", "{\"text_config\": {\"model_type\": \"gemma2\"}}",
                  "\"model_type\" \"gemma2\" is not supported in model_type \"gemma3\" yet "
                  "(supported: gemma3_text)");
    check_refused("mistral3", "{\"text_config\": {\"model_type\": 7}}", "model_type");
    check_refused("mistral3", "{\"text_config\": {\"model_type\": \"mistral4\"}}",
                  "(supported: mistral, ministral3)");
    check_refused("internvl", "{\"text_config\": {}, \"tie_word_embeddings\": 1}",
                  "tie_word_embeddings");
}

static void check_media(const char *type, const char *config, const char *key, int id) {
    formats_media media[FORMATS_MEDIA_LIMIT];
    sifr_error error = {0};
    int count;
    json_t *json = parse(config);
    assert_int_equal(formats_multimodal_media(formats_multimodal_find(type), json, "config.json",
                                              media, &count, &error),
                     SIFR_OK);
    bool found = false;
    for (int i = 0; i < count; i++) found |= media[i].id == id && !strcmp(media[i].key, key);
    assert_true(found);
    json_decref(json);
}

static void knows_the_ids_of_images(void **state) {
    (void)state;
    check_media("gemma3", "{}", "image_token_index", 262144);
    check_media("gemma3", "{\"image_token_index\": 9}", "image_token_index", 9);
    check_media("gemma3", "{\"image_token_id\": 9}", "image_token_id", 9);
    check_media("qwen3_vl", "{\"image_token_id\": 9}", "image_token_id", 9);
    check_media("qwen3_vl", "{\"image_token_id\": 9}", "video_token_id", 151656);
    formats_media media[FORMATS_MEDIA_LIMIT];
    sifr_error error = {0};
    int count;
    json_t *json = parse("{\"image_token_id\": -7}");
    assert_int_equal(formats_multimodal_media(formats_multimodal_find("glm4v"), json, "config.json",
                                              media, &count, &error),
                     SIFR_USAGE);
    assert_string_equal(error.message,
                        "config.json: \"image_token_id\" is -7, must be the id of a token");
    json_decref(json);
}

static void knows_the_spellings_of_names(void **state) {
    (void)state;
    static const struct {
        const char *name, *older, *plain;
    } names[] = {
        {"model.language_model.layers.0.x", "language_model.model.layers.0.x", "model.layers.0.x"},
        {"model.text_model.norm.weight", "language_model.model.norm.weight", "model.norm.weight"},
        {"lm_head.weight", "language_model.lm_head.weight", "lm_head.weight"},
        {"model.layers.0.x", NULL, "model.layers.0.x"},
        {"model.visual.blocks.0", NULL, NULL},
        {"vision_tower.layers.0", NULL, NULL},
        {"mtp.layers.0", NULL, NULL},
    };
    char out[FORMATS_SPELLING_LENGTH];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_true(formats_multimodal_spelling(names[i].name, 0, out));
        assert_string_equal(out, names[i].name);
        assert_int_equal(formats_multimodal_spelling(names[i].name, 1, out), !!names[i].older);
        if (names[i].older) assert_string_equal(out, names[i].older);
        const char *plain = formats_multimodal_plain(names[i].name, out);
        assert_int_equal(plain != NULL, names[i].plain != NULL);
        if (plain) assert_string_equal(plain, names[i].plain);
        if (!names[i].older) continue;
        assert_string_equal(formats_multimodal_plain(names[i].older, out), names[i].plain);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(becomes_a_plain_config),
                                       cmocka_unit_test(the_top_decides_whether_the_head_is_tied),
                                       cmocka_unit_test(refuses_what_has_no_text_part),
                                       cmocka_unit_test(knows_the_ids_of_images),
                                       cmocka_unit_test(knows_the_spellings_of_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

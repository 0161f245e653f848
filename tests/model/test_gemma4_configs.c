/* config.json of Gemma 4: the heads of its two kinds of layers in both spellings, defaults of
 * transformers' classes, and refusals by name. */
#include "support/model_config_text.h"

#define DENSE "\"hidden_size_per_layer_input\": 0"

/* defaults.json has what the classes say of a dense model. */
static void defaults(void **state) {
    (void)state;
    static const char *const types[][2] = {{"gemma4_text", DENSE}, {"gemma4_unified_text", ""}};
    static model_config bare;
    char path[1024];
    json_t *all;
    snprintf(path, sizeof path, "%s/tests/golden/gemma4/defaults.json",
             getenv("SOURCE") ? getenv("SOURCE") : ".");
    assert_int_equal(base_json_load(path, 1 << 20, &all, &error), SIFR_OK);
    for (int i = 0; i < 2; i++) {
        char *text = json_dumps(json_object_get(all, types[i][0]), 0);
        assert_non_null(text);
        if (parse_with(types[i][0], types[i][1]) != SIFR_OK) fail_msg("%s", error.message);
        bare = config;
        if (parse(text) != SIFR_OK) fail_msg("%s", error.message);
        assert_memory_equal(&bare, &config, sizeof bare);
        free(text);
    }
    json_decref(all);
    assert_int_equal(config.full_head_dim, 512);
    assert_int_equal(config.full_kv_heads, 4);
    assert_int_equal(config.rope.turning, 64);
    assert_int_equal(config.layers[4], MODEL_LAYER_WINDOW | MODEL_LAYER_LOCAL_ROPE);
    assert_int_equal(config.layers[5], 0);
}

#define SMALL                                                                                      \
    DENSE ", \"num_hidden_layers\": 3, \"head_dim\": 8, \"layer_types\": [\"sliding_attention\", " \
          "\"full_attention\", \"full_attention\"], \"attention_k_eq_v\": true, "

/* The released folders' keys, what 5.24 writes, and both: per_layer_config decides. */
static void heads(void **state) {
    (void)state;
    static const char *const same[] = {
        "\"global_head_dim\": 16, \"num_global_key_value_heads\": 2",
        "\"per_layer_config\": {\"1\": {\"head_dim\": 16, \"num_key_value_heads\": 2}, "
        "\"02\": {\"num_key_value_heads\": 2, \"head_dim\": 16}}",
        "\"global_head_dim\": 32, \"num_global_key_value_heads\": 1, \"per_layer_config\": "
        "{\"1\": {\"head_dim\": 16, \"num_key_value_heads\": 2}, \"2\": {\"head_dim\": 16, "
        "\"num_key_value_heads\": 2}}"};
    static model_config first;
    char text[1024];
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text, SMALL "%s", same[i]);
        if (parse_with("gemma4_text", text) != SIFR_OK) fail_msg("%s", error.message);
        if (i == 0) first = config;
        if (memcmp(&first, &config, sizeof first) != 0) fail_msg("%s", same[i]);
    }
    assert_int_equal(config.head_dim, 8);
    assert_int_equal(config.full_head_dim, 16);
    assert_int_equal(config.full_kv_heads, 2);
    assert_int_equal(config.rope.rotary_dim, 16);
    assert_int_equal(config.rope.turning, 2);
    assert_int_equal(config.local_rope.rotary_dim, 8);
    /* An empty one, or null: all layers are alike. */
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, SMALL "\"global_head_dim\": 32, \"per_layer_config\": %s",
                 i ? "null" : "{}");
        if (parse_with("gemma4_text", text) != SIFR_OK) fail_msg("%s", error.message);
        assert_int_equal(config.full_head_dim, 8);
        assert_int_equal(config.full_kv_heads, 4);
    }
    /* Without attention_k_eq_v the other key has no effect, and the last layer has no window. */
    snprintf(text, sizeof text, "%s",
             DENSE ", \"num_hidden_layers\": 2, \"num_global_key_value_heads\": 1, "
                   "\"layer_types\": [\"full_attention\", \"sliding_attention\"], "
                   "\"use_bidirectional_attention\": \"vision\"");
    if (parse_with("gemma4_text", text) != SIFR_OK) fail_msg("%s", error.message);
    assert_int_equal(config.full_kv_heads, 4);
    assert_int_equal(config.layers[1], 0);
}

/* E2B's keys; a wider MLP is that of layers that share. */
static void shared(void **state) {
    (void)state;
    if (parse_with("gemma4_text", "") != SIFR_OK) fail_msg("%s", error.message);
    assert_int_equal(config.layer_input_size, 256);
    assert_int_equal(config.layer_input_words, 262144);
    assert_int_equal(config.shared_kv_layers, 0);
    if (parse_with("gemma4_text", "\"use_double_wide_mlp\": true, \"num_kv_shared_layers\": 24, "
                                  "\"vocab_size_per_layer_input\": 300000") != SIFR_OK)
        fail_msg("%s", error.message);
    assert_int_equal(config.shared_kv_layers, 24);
    assert_true(config.wide_shared_mlp);
    assert_int_equal(config.layer_input_words, 300000);
    if (parse_with("gemma4_text", DENSE ", \"use_double_wide_mlp\": true") != SIFR_OK)
        fail_msg("%s", error.message);
    assert_false(config.wide_shared_mlp);
    assert_int_equal(config.layer_input_words, 0);
    /* The other class has no inputs of layers. */
    if (parse_with("gemma4_unified_text", "\"num_kv_shared_layers\": 4") != SIFR_OK)
        fail_msg("%s", error.message);
    assert_int_equal(config.shared_kv_layers, 4);
    assert_int_equal(parse_with("gemma4_unified_text", "\"hidden_size_per_layer_input\": 8"),
                     SIFR_USAGE);
    assert_message(&error, "\"hidden_size_per_layer_input\": 8 is not supported yet");
}

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *members, *part;
    } cases[] = {
        {"\"vocab_size_per_layer_input\": 262143",
         "\"vocab_size_per_layer_input\" is 262143, below \"vocab_size\" 262144"},
        {"\"hidden_size_per_layer_input\": 65536", "65536 of 30 layers are more than 1048576"},
        {"\"hidden_size_per_layer_input\": -1", "hidden_size_per_layer_input"},
        {DENSE ", \"num_kv_shared_layers\": 30", "num_kv_shared_layers"},
        {DENSE ", \"num_kv_shared_layers\": 25",
         "\"num_kv_shared_layers\" 25: the last layers share keys and values, and none of the 5 "
         "layers before them is of type full_attention"},
        {DENSE ", \"num_hidden_layers\": 3, \"num_kv_shared_layers\": 2, \"layer_types\": "
               "[\"full_attention\", \"sliding_attention\", \"full_attention\"]",
         "none of the 1 layers before them is of type sliding_attention"},
        {DENSE ", \"use_double_wide_mlp\": 1", "use_double_wide_mlp"},
        {DENSE ", \"num_kv_shared_layers\": 2, \"use_double_wide_mlp\": true, "
               "\"intermediate_size\": 1048576",
         "an MLP twice as wide would be too wide"},
        {DENSE ", \"enable_moe_block\": true", "there are no mixtures of experts, as 26B-A4B"},
        {DENSE ", \"use_bidirectional_attention\": \"all\"", "over text is always causal"},
        {DENSE ", \"use_bidirectional_attention\": 3", "over text is always causal"},
        {DENSE ", \"layer_types\": [\"full_attention\"]", "a list of 30 names"},
        {DENSE ", \"num_hidden_layers\": 1, \"layer_types\": [\"chunked_attention\"]",
         "names chunked_attention"},
        {DENSE ", \"sliding_window\": 0", "\"sliding_window\" is 0"},
        {DENSE ", \"global_head_dim\": 9", "window have 9 elements (\"global_head_dim\" or"},
        {DENSE ", \"global_head_dim\": 65536, \"num_attention_heads\": 64", "at most 1048576 in"},
        {DENSE ", \"head_dim\": 9", "an even \"head_dim\" is needed"},
        {DENSE ", \"global_head_dim\": \"512\"", "global_head_dim"},
        {DENSE ", \"attention_k_eq_v\": true, \"num_global_key_value_heads\": 3",
         "is no multiple of the 3 key heads of layers without a window"},
        {DENSE ", \"attention_k_eq_v\": 1", "attention_k_eq_v"},
        {DENSE ", \"per_layer_config\": []", "\"per_layer_config\" must be an object"},
        {DENSE ", \"per_layer_config\": {\"30\": {}}",
         "\"per_layer_config\": \"30\": there is no such layer"},
        {DENSE ", \"per_layer_config\": {\"x\": {}}", "\"x\": there is no such layer"},
        {DENSE ", \"per_layer_config\": {\"-1\": {}}", "\"-1\": there is no such layer"},
        {DENSE ", \"per_layer_config\": {\"5\": 3}", "\"5\": must be an object"},
        {DENSE ", \"per_layer_config\": {\"5\": {\"head_dim\": 0}}",
         "\"5\": \"head_dim\": must be a whole number in 1"},
        {DENSE ", \"per_layer_config\": {\"5\": {\"intermediate_size\": 8}}",
         "\"5\": \"intermediate_size\": not supported yet (supported: head_dim, num_key_value"},
        {DENSE ", \"per_layer_config\": {\"5\": {\"head_dim\": 8}}",
         "layers 5 and 11 are of one type and have other heads"},
        {DENSE ", \"rope_parameters\": {\"sliding_attention\": {\"rope_theta\": 10.0}}",
         "\"rope_parameters\" has no object \"full_attention\" with a \"rope_theta\""},
        {DENSE ", \"rope_parameters\": {\"sliding_attention\": {\"rope_theta\": 10.0}, "
               "\"full_attention\": {\"rope_type\": \"proportional\"}}",
         "\"rope_parameters\" has no object \"full_attention\" with a \"rope_theta\""},
        {DENSE ", \"rope_parameters\": {\"rope_theta\": 10.0}", "\"rope_parameters\""},
        {DENSE ", \"rope_parameters\": 5", "\"rope_parameters\" must be an object"},
        {DENSE ", \"rope_parameters\": {\"sliding_attention\": {\"rope_theta\": 10.0}, "
               "\"full_attention\": {\"rope_type\": \"proportional\", \"rope_theta\": 10.0, "
               "\"partial_rotary_factor\": 1.5}}",
         "\"partial_rotary_factor\" is 1.5"},
        {DENSE ", \"rope_parameters\": {\"sliding_attention\": {\"rope_theta\": 10.0}, "
               "\"full_attention\": {\"rope_type\": \"dynamic\", \"rope_theta\": 10.0, "
               "\"factor\": 2.0}}",
         "supported rope types of Gemma 4: default, linear, proportional"},
        {DENSE ", \"rope_theta\": 10.0", "give \"rope_parameters\" with an object for each type"},
        {DENSE ", \"attn_logit_softcapping\": 50.0", "scores are not capped"},
        {DENSE ", \"final_logit_softcapping\": 0.0", "final_logit_softcapping"},
        {DENSE ", \"hidden_activation\": \"relu\"", "hidden_activation"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (parse_with("gemma4_text", cases[i].members) != SIFR_USAGE)
            fail_msg("%s is accepted", cases[i].members);
        assert_message(&error, cases[i].part);
        assert_int_equal(strncmp(error.message, "config.json: ", 13), 0);
    }
}

/* A folder with a tower names the section. */
static void with_tower(void **state) {
    (void)state;
    if (parse_with("gemma4_unified", "\"text_config\": {}") != SIFR_OK)
        fail_msg("%s", error.message);
    assert_string_equal(config.text_type, "gemma4_unified_text");
    assert_int_equal(config.media_count, 3);
    assert_int_equal(config.media[2].id, 258881);
    assert_int_equal(config.sliding_window, 1024);
    assert_true(config.tie_word_embeddings);
    if (parse_with("gemma4", "\"text_config\": {}") != SIFR_OK) fail_msg("%s", error.message);
    assert_int_equal(config.layer_input_size, 256);
    assert_int_equal(parse_with("gemma4", "\"text_config\": {\"num_kv_shared_layers\": 30}"),
                     SIFR_USAGE);
    assert_message(&error, "config.json: text_config: \"num_kv_shared_layers\" is 30");
    assert_int_equal(parse_with("gemma4", ""), SIFR_USAGE);
    assert_message(&error, "\"text_config\" is missing");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(defaults), cmocka_unit_test(heads),
                                       cmocka_unit_test(shared), cmocka_unit_test(refused),
                                       cmocka_unit_test(with_tower)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

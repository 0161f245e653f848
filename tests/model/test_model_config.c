/* config.json: defaults of transformers, both spellings of rope, ranges, refusals by name. */
#include "support/model_config_text.h"

static void refused(const char *type, const char *members, const char *part) {
    if (parse_with(type, members) != SIFR_USAGE) fail_msg("%s: accepted", members);
    assert_message(&error, part);
    assert_int_equal(strncmp(error.message, "config.json: ", 13), 0);
}

/* transformers' own full list of a default config reads as an empty config does. */
static void defaults(void **state) {
    (void)state;
    static const char *const types[] = {"gpt2", "llama"};
    for (int i = 0; i < 2; i++) {
        char golden[1024];
        model_config bare;
        snprintf(golden, sizeof golden, "%s/tests/golden/formats/config_%s.json",
                 getenv("SOURCE") ? getenv("SOURCE") : ".", types[i]);
        assert_int_equal(parse_with(types[i], ""), SIFR_OK);
        bare = config;
        if (model_config_load(golden, &config, &error) != SIFR_OK) {
            fail_msg("%s", error.message);
        }
        assert_memory_equal(&bare, &config, sizeof bare);
    }
    assert_int_equal(config.head_dim, config.hidden_size / config.num_attention_heads);
    assert_int_equal(config.pad_token_id, -1);
}

static void values_given(void **state) {
    (void)state;
    assert_int_equal(parse_with("gpt2", "\"n_embd\": 96, \"num_attention_heads\": 4, \"n_inner\": "
                                        "100, \"activation_function\": \"gelu\", "
                                        "\"tie_word_embeddings\": false, \"attn_pdrop\": 0"),
                     SIFR_OK);
    assert_int_equal(config.head_dim, 24);
    assert_int_equal(config.intermediate_size, 100);
    assert_int_equal(config.activation, MODEL_GELU_ERF);
    assert_false(config.tie_word_embeddings);
    assert_true(config.attention_dropout == 0);
    assert_int_equal(parse_with("llama", "\"hidden_size\": 64, \"num_attention_heads\": 8, "
                                         "\"num_key_value_heads\": 2, \"head_dim\": 16, "
                                         "\"eos_token_id\": [3, 5], \"bos_token_id\": null, "
                                         "\"pad_token_id\": -1, \"rope_theta\": 5e5, "
                                         "\"architectures\": [\"LlamaForCausalLM\"], "
                                         "\"sliding_window\": null, \"pretraining_tp\": 1, "
                                         "\"torch_dtype\": \"bfloat16\""),
                     SIFR_OK);
    assert_int_equal(config.head_dim, 16);
    assert_int_equal(config.num_key_value_heads, 2);
    assert_int_equal(config.eos_count, 2);
    assert_int_equal(config.eos_token_ids[1], 5);
    assert_int_equal(config.bos_token_id, -1);
    assert_int_equal(config.pad_token_id, -1);
    assert_true(config.rope.theta == 5e5);
    assert_int_equal(parse_with("llama", "\"eos_token_id\": null"), SIFR_OK);
    assert_int_equal(config.eos_count, 0);
}

#define LLAMA3                                                                                     \
    "\"factor\": 8.0, \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, "                       \
    "\"original_max_position_embeddings\": 8192"

static void rope(void **state) {
    (void)state;
    assert_int_equal(
        parse_with("llama",
                   "\"rope_theta\": 5e5, \"rope_scaling\": {\"rope_type\": \"llama3\", " LLAMA3
                   "}"),
        SIFR_OK);
    model_config older = config;
    assert_int_equal(config.rope.kind, MODEL_ROPE_LLAMA3);
    assert_true(config.rope.factor == 8);
    assert_true(config.rope.low_freq_factor == 1);
    assert_true(config.rope.high_freq_factor == 4);
    assert_true(config.rope.original_max_position == 8192);
    assert_int_equal(parse_with("llama", "\"rope_parameters\": {\"rope_theta\": 5e5, "
                                         "\"rope_type\": \"llama3\", " LLAMA3 "}"),
                     SIFR_OK);
    assert_memory_equal(&older, &config, sizeof older);
    assert_int_equal(parse_with("llama", "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}"),
                     SIFR_OK);
    assert_int_equal(config.rope.kind, MODEL_ROPE_LINEAR);
    assert_true(config.rope.factor == 2);
    refused("llama", "\"rope_scaling\": {\"type\": \"dynamic\"}", "lacks \"factor\"");
    refused("llama", "\"rope_scaling\": {\"type\": \"axial\"}", "axial");
    refused("llama", "\"rope_parameters\": {\"rope_type\": \"yarn\"}", "yarn");
    refused("llama", "\"rope_scaling\": {\"type\": \"ntk\"}", "yarn, longrope, llama3");
    refused("llama", "\"rope_parameters\": {\"mrope_section\": [2, 2]}", "mrope_section");
    refused("llama", "\"rope_parameters\": {\"rope_type\": \"longrope\", \"long_factor\": [1]}",
            "lacks \"short_factor\"");
    refused("llama", "\"rope_parameters\": {\"rope_type\": \"su\", \"short_factor\": [1, 2]}",
            "\"short_factor\" must be a list of 64 numbers");
    refused("llama",
            "\"head_dim\": 4, \"rope_parameters\": {\"rope_type\": \"longrope\", "
            "\"short_factor\": [1, 0]}",
            "\"short_factor\" must hold numbers above 0");
    refused("llama",
            "\"head_dim\": 514, \"rope_parameters\": {\"rope_type\": \"longrope\", "
            "\"short_factor\": []}",
            "at most 512");
    refused("llama", "\"head_dim\": 2, \"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2}",
            "at least 4");
    refused("llama", "\"rope_theta\": 1, \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 2}",
            "rope_theta above 1");
    refused("llama", "\"rope_scaling\": {\"type\": \"linear\"}", "lacks \"factor\"");
    refused("llama", "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 0}", "factor");
    refused("llama", "\"rope_scaling\": {\"type\": \"linear\", \"rope_type\": \"default\"}",
            "two types");
    refused("llama", "\"rope_scaling\": [1]", "must be an object");
    refused("llama", "\"rope_theta\": 1e4, \"rope_parameters\": {\"rope_theta\": 5e5}",
            "remove one");
    refused("llama",
            "\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8, "
            "\"low_freq_factor\": 4, \"high_freq_factor\": 4}",
            "must be more than");
    refused("llama", "\"rope_parameters\": {\"partial_rotary_factor\": 0.5}", "partial_rotary");
}

static void hostile(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"\"hidden_size\": 0", "\"hidden_size\" is 0, must be in 1"},
        {"\"hidden_size\": -64", "hidden_size"},
        {"\"hidden_size\": 100", "no multiple of the 32 attention heads"},
        {"\"hidden_size\": true", "must be a whole number, not true"},
        {"\"hidden_size\": \"auto\"", "must be a whole number"},
        {"\"hidden_size\": 64.5", "must be a whole number"},
        {"\"hidden_size\": 1e30", "must be a whole number"},
        {"\"num_attention_heads\": 0", "num_attention_heads"},
        {"\"num_key_value_heads\": 64", "no multiple"},
        {"\"num_key_value_heads\": 5", "no multiple"},
        {"\"num_key_value_heads\": 0", "num_key_value_heads"},
        {"\"num_hidden_layers\": 1000000000", "num_hidden_layers"},
        {"\"vocab_size\": 0", "vocab_size"},
        {"\"vocab_size\": 2147483648", "vocab_size"},
        {"\"rope_theta\": 0", "rope_theta"},
        {"\"rope_theta\": -1", "rope_theta"},
        {"\"max_position_embeddings\": 2147483648", "max_position_embeddings"},
        {"\"head_dim\": 7", "even"},
        {"\"head_dim\": 65536", "together"},
        {"\"intermediate_size\": 9223372036854775807", "intermediate_size"},
        {"\"rms_norm_eps\": 0", "rms_norm_eps"},
        {"\"attention_dropout\": 1", "attention_dropout"},
        {"\"attention_dropout\": -0.1", "attention_dropout"},
        {"\"initializer_range\": -1", "initializer_range"},
        {"\"hidden_act\": \"relu\"", "\"hidden_act\": \"relu\" is not supported yet"},
        {"\"tie_word_embeddings\": 1", "true or false"},
        {"\"eos_token_id\": [1, -2]", "eos_token_id"},
        {"\"eos_token_id\": [1,2,3,4,5,6,7,8,9]", "at most 8"},
        {"\"eos_token_id\": \"x\"", "eos_token_id"},
        {"\"pad_token_id\": -2", "pad_token_id"},
        {"\"bos_token_id\": 4294967296", "bos_token_id"},
        {"\"architectures\": [\"MistralForCausalLM\"]", "MistralForCausalLM"},
        {"\"architectures\": \"LlamaForCausalLM\"", "must be a list"},
        {"\"architectures\": [7]", "not a string"},
        {"\"vocab_size\": 10, \"vocab_size\": 10", "duplicate"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) refused("llama", bad[i][0], bad[i][1]);
    refused("gpt2", "\"n_embd\": 64, \"hidden_size\": 128", "the same thing");
    refused("gpt2", "\"architectures\": [\"GPT2ForQuestionAnswering\"]", "GPT2LMHeadModel");
}

static void not_built(void **state) {
    (void)state;
    static const char *const gpt2[] = {
        "\"scale_attn_weights\": false",     "\"scale_attn_by_inverse_layer_idx\": true",
        "\"reorder_and_upcast_attn\": true", "\"add_cross_attention\": true",
        "\"is_encoder_decoder\": true",      "\"pruned_heads\": {\"0\": [1]}"};
    static const char *const llama[] = {"\"pretraining_tp\": 2",
                                        "\"partial_rotary_factor\": 0.5",
                                        "\"sliding_window\": 4096",
                                        "\"layer_types\": [\"sliding_attention\"]",
                                        "\"final_logit_softcapping\": 30.0",
                                        "\"num_local_experts\": 8"};
    for (size_t i = 0; i < sizeof gpt2 / sizeof *gpt2; i++)
        refused("gpt2", gpt2[i], "not supported");
    for (size_t i = 0; i < sizeof llama / sizeof *llama; i++) {
        refused("llama", llama[i], "is not supported yet");
    }
    refused("llama", "\"quantization_config\": {\"bits\": 4}", "are not read (supported: fp8)");
    refused("nothing_known", "", "supported are gpt2, llama");
    assert_int_equal(parse("{}"), SIFR_USAGE);
    assert_message(&error, "\"model_type\" is missing");
    assert_int_equal(parse_with("llama", "\"sliding_window\": 4096, \"use_sliding_window\": false, "
                                         "\"quantization_config\": null, \"pruned_heads\": {}"),
                     SIFR_OK);
}

/* Keys that change the mathematics of other families, with a value that is not neutral and one
 * that is; the default head of each family has 64 or 128 elements. */
static void other_families(void **state) {
    (void)state;
    static const char *const keys[][3] = {
        {"embedding_multiplier", "12.0", "1.0"},
        {"embedding_scale", "2", "1"},
        {"scale_emb", "12", "1"},
        {"scale_embedding", "true", "false"},
        {"residual_multiplier", "0.22", "1"},
        {"scale_depth", "1.4", "null"},
        {"logit_scale", "0.0625", "1"},
        {"logits_scaling", "8.0", "1.0"},
        {"lm_head_multiplier", "0.5", "1"},
        {"key_multiplier", "0.5", "1"},
        {"attn_scale", "0.1", "null"},
        {"attn_temperature_tuning", "true", "false"},
        {"alibi", "true", "false"},
        {"use_alibi", "true", "false"},
        {"clip_qkv", "8", "null"},
        {"attn_config", "{\"alibi\": true}", "{}"},
        {"logit_soft_cap", "30.0", "null"},
        {"attn_logit_softcapping", "50.0", "null"},
        {"final_logit_softcapping", "30.0", "null"},
        {"use_qk_norm", "true", "false"},
        {"qk_norm", "true", "false"},
        {"qk_layernorm", "true", "false"},
        {"use_parallel_residual", "true", "false"},
        {"parallel_attn", "true", "false"},
        {"rotary_pct", "0.25", "1.0"},
        {"partial_rotary_factor", "0.5", "1.0"},
        {"kv_lora_rank", "512", "null"},
        {"q_lora_rank", "1536", "null"},
        {"n_routed_experts", "64", "null"},
        {"attention_multiplier", "0.015625", "null"},
        {"query_pre_attn_scalar", "256", "null"},
        {"rotary_dim", "32", "null"},
        {"dim_model_base", "256", "null"},
    };
    static const char *const types[] = {"gpt2", "llama"};
    for (size_t i = 0; i < 2 * (sizeof keys / sizeof *keys); i++) {
        const char *const *key = keys[i / 2], *type = types[i % 2];
        char members[128], named[64];
        snprintf(members, sizeof members, "\"%s\": %s", key[0], key[1]);
        snprintf(named, sizeof named, "\"%s\": ", key[0]);
        refused(type, members, "is not supported yet");
        assert_message(&error, named);
        snprintf(members, sizeof members, "\"%s\": %s", key[0], key[2]);
        if (parse_with(type, members) != SIFR_OK) fail_msg("%s: %s", members, error.message);
    }
    assert_int_equal(parse_with("llama", "\"attention_multiplier\": 0.08838834764831845, "
                                         "\"query_pre_attn_scalar\": 128, \"rotary_dim\": 128, "
                                         "\"dim_model_base\": 4096"),
                     SIFR_OK);
    refused("llama", "\"query_pre_attn_scalar\": \"x\"", "query_pre_attn_scalar");
}

static void malformed(void **state) {
    (void)state;
    static const char *const bad[] = {"",
                                      " ",
                                      "[]",
                                      "7",
                                      "null",
                                      "{",
                                      "{\"a\":1,}",
                                      "{\"a\":1}x",
                                      "\xEF\xBB\xBF{}",
                                      "{\"a\":NaN}",
                                      "{\"a\":Infinity}",
                                      "{\"a\":1e400}",
                                      "{\"a\":0x10}",
                                      "{\"a\":012}",
                                      "{/* c */}",
                                      "{\"a\":\"\xFF\"}",
                                      "{\"a\":\"\\ud800\"}",
                                      "{\"a\":18446744073709551616}",
                                      "\xFF\xFE{\0",
                                      "{\"\\u0000\":1}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (parse(bad[i]) != SIFR_USAGE) fail_msg("%zu: accepted", i);
        assert_null(strchr(error.message, '\n'));
    }
    /* jansson alone takes this for 3. */
    static const char nul[] = "{\"model_type\": \"gpt2\", \"n_layer\": 3\0}";
    assert_int_equal(model_config_parse(nul, sizeof nul - 1, "nul", &config, &error), SIFR_USAGE);
    assert_message(&error, "NUL byte at 35");
    enum { DEEP = 100000 };
    char *text = malloc(DEEP);
    assert_non_null(text);
    for (int i = 0; i < 2; i++) {
        memset(text, "[{"[i], DEEP);
        assert_int_equal(model_config_parse(text, DEEP, "deep", &config, &error), SIFR_USAGE);
        assert_message(&error, "deeper than 64");
    }
    free(text);
}

static void files(void **state) {
    (void)state;
    scratch_text("config.json", "{\"model_type\": \"gpt2\", \"n_layer\": 3}");
    assert_int_equal(model_config_load(scratch, &config, &error), SIFR_OK);
    assert_int_equal(config.num_hidden_layers, 3);
    assert_int_equal(model_config_load(scratch_path("config.json"), &config, &error), SIFR_OK);
    assert_int_equal(model_config_load(scratch_path("none.json"), &config, &error), SIFR_FAILED);
    assert_int_equal(model_config_load("/dev/zero", &config, &error), SIFR_FAILED);
    assert_message(&error, "not a regular file");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),  cmocka_unit_test(values_given),
        cmocka_unit_test(rope),      cmocka_unit_test(hostile),
        cmocka_unit_test(not_built), cmocka_unit_test(other_families),
        cmocka_unit_test(malformed), cmocka_unit_test(files)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}

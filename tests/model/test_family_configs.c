/* config.json of the decoder families: defaults of transformers' classes, keys in both spellings,
 * refusals by name. */
#include "support/model_config_text.h"

static void defaults(void **state) {
    (void)state;
    expect_defaults("families/defaults.json", 17);
    expect_defaults("dense/defaults.json", 20);
}

static const struct {
    const char *type, *members, *part;
} refusals[] = {
    {"llama", "\"sliding_window\": 8", "\"sliding_window\": 8"},
    {"mistral", "\"sliding_window\": 0", "\"sliding_window\" is 0, must be in 1"},
    {"mistral", "\"sliding_window\": \"4096\"", "sliding_window"},
    {"mistral", "\"partial_rotary_factor\": 0.5", "partial_rotary_factor"},
    {"mistral", "\"quantization_config\": {\"bits\": 4}", "quantization_config"},
    {"qwen2", "\"layer_types\": [\"full_attention\"]", "a list of 32 names"},
    {"qwen2", "\"layer_types\": \"full_attention\"", "a list of 32 names"},
    {"qwen2", "\"num_hidden_layers\": 1, \"layer_types\": [\"sliding_attention\"]",
     "\"sliding_window\" is not set"},
    {"qwen2", "\"num_hidden_layers\": 1, \"layer_types\": [\"linear_attention\"]",
     "names linear_attention"},
    {"qwen2", "\"num_hidden_layers\": 1, \"layer_types\": [3]", "not a string"},
    {"qwen3", "\"num_experts\": 8", "num_experts"},
    {"qwen3", "\"max_window_layers\": -1", "max_window_layers"},
    {"phi3", "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}", "default and longrope"},
    {"phi3", "\"partial_rotary_factor\": 0", "partial_rotary_factor"},
    {"phi3", "\"partial_rotary_factor\": 0.01", "an even number of at least 2"},
    {"phi3", "\"rope_scaling\": {\"type\": \"yarn\", \"short_factor\": [1]}", "a list of 48"},
    {"smollm3", "\"no_rope_layers\": [1]", "at least 36 numbers"},
    {"smollm3", "\"num_hidden_layers\": 1, \"no_rope_layers\": [2]", "each must be 0 or 1"},
    {"smollm3", "\"no_rope_layer_interval\": 0", "no_rope_layer_interval"},
    {"starcoder2", "\"hidden_act\": \"silu\"", "hidden_act"},
    {"gpt_neox", "\"partial_rotary_factor\": 0.5", "rotary_pct"},
    {"gpt_neox", "\"num_key_value_heads\": 8", "as many key as query heads"},
    {"gpt_neox", "\"hidden_act\": \"relu\"", "hidden_act"},
    {"ministral3", "\"rope_parameters\": {\"llama_4_scaling_beta\": 0.1}", "llama_4_scaling_beta"},
    {"llama", "\"rope_parameters\": {\"llama_4_scaling_beta\": 0.1}", "scaled by position"},
    {"llama", "\"rope_parameters\": {\"full_attention\": {\"rope_theta\": 9}}",
     "\"rope_parameters.full_attention\" is an object"},
    {"apertus", "\"hidden_act\": \"tanh\"", "hidden_act"},
    {"apertus", "\"qk_norm\": false", "queries and keys are normalised"},
    {"apertus", "\"rope_scaling\": {\"rope_type\": \"llama3\"}", "lacks \"factor\""},
    {"llama", "\"hidden_act\": \"xielu\"", "hidden_act"},
    {"deberta-v2", "\"conv_kernel_size\": 3, \"conv_act\": \"xielu\"", "conv_act"},
    {"opt", "\"layerdrop\": 0.1", "\"layerdrop\": 0.1"},
    {"opt", "\"_remove_final_layer_norm\": true", "a norm stands behind the last block"},
    {"opt", "\"word_embed_proj_dim\": 0", "word_embed_proj_dim"},
    {"opt", "\"num_attention_heads\": 7", "is no multiple of the 7 attention heads"},
    {"opt", "\"activation_function\": \"tanh\"", "activation_function"},
    {"falcon", "\"alibi\": true", "\"alibi\": true is not supported yet: transformers rounds this"},
    {"falcon", "\"new_decoder_architecture\": true, \"parallel_attn\": false", "parallel_attn"},
    {"falcon", "\"num_ln_in_parallel_attn\": 2", "2 norms need new_decoder_architecture"},
    {"falcon", "\"num_ln_in_parallel_attn\": 3", "num_ln_in_parallel_attn"},
    {"falcon", "\"num_attention_heads\": 64, \"hidden_size\": 4544", "an even \"head_dim\""},
    {"falcon", "\"new_decoder_architecture\": true, \"num_kv_heads\": 5", "is no multiple of"},
    {"bloom", "\"apply_residual_connection_post_layernorm\": true", "is not normed"},
    {"bloom", "\"n_layer\": 3, \"num_hidden_layers\": 4", "the same thing"},
    {"bloom", "\"n_head\": 7", "is no multiple of the 7 attention heads"},
    {"mpt", "", "ALiBi"},
    {"mixtral", "", "mixtures of experts"},
    {"qwen3_moe", "", "mixtures of experts"},
    {"granitemoeshared", "", "mixtures of experts"},
    {"granitemoehybrid", "", "state spaces"},
    {"qwen3_next", "", "it has mixtures of experts"},
    {"gemma3n_text", "", "altup_num_inputs"},
    {"llama", "\"alibi\": true", "only model_type bloom has a bias by distance"},
    {"qwen3_5_moe", "", "mixtures of experts"},
    {"qwen3_5_moe_text", "", "mixtures of experts"},
    {"qwen3_5_text", "\"layer_types\": [\"full_attention\"]", "must be a list of 32 names"},
    {"qwen3_5_text", "\"num_hidden_layers\": 1, \"layer_types\": [\"conv\"]",
     "names conv, which is not supported (supported: linear_attention, full_attention)"},
    {"qwen3_5_text", "\"full_attention_interval\": 0", "\"full_attention_interval\" is 0"},
    {"qwen3_5_text", "\"linear_num_key_heads\": 3",
     "\"linear_num_value_heads\" 32 is no multiple of \"linear_num_key_heads\" 3"},
    {"qwen3_5_text", "\"linear_key_head_dim\": 0", "\"linear_key_head_dim\" is 0"},
    {"qwen3_5_text", "\"linear_value_head_dim\": 65536", "heads of linear attention have 2048 and"},
    {"qwen3_5_text", "\"linear_conv_kernel_dim\": 9", "\"linear_conv_kernel_dim\" is 9"},
    {"qwen3_5_text", "\"linear_num_value_heads\": \"32\"", "\"linear_num_value_heads\""},
    {"qwen3_5_text", "\"attn_output_gate\": false", "the result of attention is gated"},
    {"qwen3_5_text", "\"hidden_act\": \"gelu\"", "hidden_act"},
    {"mamba2", "", "state spaces"},
    {"t5gemma", "", "encoder-decoder"},
    {"whisper", "", "encoder-decoder"},
    {"lfm2_moe", "", "mixtures of experts"},
    {"lfm2", "\"layer_types\": [\"conv\"]", "\"layer_types\" must be a list of 32 names"},
    {"lfm2", "\"num_hidden_layers\": 1, \"layer_types\": [\"sliding_attention\"]",
     "names sliding_attention, which is not supported (supported: conv, full_attention)"},
    {"lfm2", "\"full_attn_idxs\": 3", "\"full_attn_idxs\": 3"},
    {"lfm2", "\"full_attn_idxs\": [32]", "each must be the number of a layer"},
    {"lfm2", "\"conv_L_cache\": 9", "\"conv_L_cache\" is 9"},
    {"lfm2", "\"conv_L_cache\": 1", "\"conv_L_cache\" is 1"},
    {"lfm2", "\"conv_bias\": 1", "\"conv_bias\""},
    {"lfm2", "\"block_ff_dim\": \"6656\"", "\"block_ff_dim\""},
    {"lfm2", "\"block_multiple_of\": 0", "\"block_multiple_of\" is 0"},
    {"lfm2", "\"block_ffn_dim_multiplier\": 0", "make an MLP of 0, which must be 1 to"},
    {"mistral4", "", "latent attention (kv_lora_rank) and mixtures of experts"},
    {"glm4", "\"rope_parameters\": {\"rope_type\": \"proportional\"}", "turn as a whole"},
    {"zamba2", "\"time_step_limit\": [0.0, Infinity]", "state spaces"},
    {"llama", "\"rope_theta\": Infinity", "rope_theta"},
    {"llama", "\"rope_theta\": NaN", "\"rope_theta\" must be a number, not []"},
    {"qwen2_audio", "", "it has an audio tower. Its text model"},
    {"gemma5", "\"vision_config\": {}, \"audio_config\": {}",
     "it has a vision tower and an audio tower (vision_config, audio_config)"},
    {"ultravox", "\"audio_config\": {}", "it has an audio tower (audio_config)"},
    {"paligemma", "\"text_config\": {\"model_type\": \"mistral4\"}", "is not supported either"},
    {"qwen2_vl", "\"auto_map\": {}", "works as model_type \"qwen2\""},
    {"pixtral", "", "works as model_type \"mistral\""},
    {"mistral3", "\"text_config\": {\"model_type\": \"mistral4\"}",
     "(supported: mistral, ministral3)"},
    {"gemma3", "", "\"text_config\" is missing"},
    {"gemma3", "\"text_config\": 5", "\"text_config\" must be an object"},
    {"gemma3", "\"text_config\": {\"hidden_size\": \"8\"}",
     "config.json: text_config: \"hidden_size\""},
    {"gemma3", "\"text_config\": {\"layer_types\": [\"full_attention\"]}",
     "config.json: text_config: \"layer_types\" must be a list of 26 names"},
    {"gemma3", "\"text_config\": {}, \"architectures\": [\"Gemma3ForCausalLM\"]",
     "(supported: Gemma3ForConditionalGeneration)"},
    {"qwen3_vl", "\"text_config\": {\"num_hidden_layers\": 0}",
     "config.json: text_config: \"num_hidden_layers\" is 0"},
    {"qwen3_vl", "\"text_config\": {\"rope_parameters\": 3}",
     "config.json: text_config: \"rope_parameters\" must be an object"},
    {"qwen2_5_vl", "\"hidden_size\": -8", "config.json: \"hidden_size\" is -8"},
    {"glm4v", "\"text_config\": {\"num_attention_heads\": 0}", "\"num_attention_heads\" is 0"},
    {"internvl", "\"text_config\": {\"num_experts\": 8}", "text_config: \"num_experts\": 8"},
    {"smolvlm", "\"text_config\": {}, \"image_token_id\": \"<image>\"", "image_token_id"},
    {"mistral3", "\"text_config\": {}, \"quantization_config\": {\"quant_method\": \"awq\"}",
     "quantization_config: weights that are quantised by \"awq\""},
    {"mistral3", "\"text_config\": {\"quantization_config\": {\"quant_method\": \"fp8\"}}",
     "text_config: quantization_config is read at the top"},
    {"some_vl", "\"vision_config\": {}, \"text_config\": {\"model_type\": \"qwen3\"}",
     "works as model_type \"qwen3\""},
    {"some_vl", "\"vision_config\": {}", "is not supported either"},
    {"remote", "\"auto_map\": {\"AutoModelForCausalLM\": \"m.M\"}", "Python code"},
    {"gemma", "\"use_bidirectional_attention\": true", "\"use_bidirectional_attention\": true"},
    {"gemma", "\"hidden_act\": \"relu\"", "\"hidden_act\": \"relu\""},
    {"gemma2", "\"use_bidirectional_attention\": true", "\"use_bidirectional_attention\": true"},
    {"gemma2", "\"sliding_window\": null", "\"sliding_window\" is null"},
    {"gemma2", "\"sliding_window\": 0", "\"sliding_window\" is 0"},
    {"gemma2", "\"attn_logit_softcapping\": -1", "\"attn_logit_softcapping\" is -1"},
    {"gemma2", "\"final_logit_softcapping\": \"30\"", "final_logit_softcapping"},
    {"gemma2", "\"query_pre_attn_scalar\": 0", "\"query_pre_attn_scalar\" is 0"},
    {"gemma2", "\"layer_types\": [\"full_attention\"]", "a list of 26 names"},
    {"olmo2", "\"clip_qkv\": 8.0", "\"clip_qkv\": 8.0"},
    {"granite", "\"logits_scaling\": 0", "\"logits_scaling\" is 0"},
    {"granite", "\"num_local_experts\": 4", "\"num_local_experts\": 4"},
    {"gemma3_text", "\"attn_logit_softcapping\": 50.0", "\"attn_logit_softcapping\": 50.0"},
    {"gemma3_text", "\"use_bidirectional_attention\": true",
     "\"use_bidirectional_attention\": true"},
    {"gemma3_text", "\"rope_parameters\": {\"rope_theta\": 10000.0}",
     "one for full_attention and one for"},
    {"gemma3_text", "\"rope_parameters\": {\"full_attention\": 3}",
     "one for full_attention and one for"},
    {"gemma3_text", "\"rope_parameters\": {}, \"rope_scaling\": {}", "remove one"},
    {"gemma3_text",
     "\"rope_local_base_freq\": 7, \"rope_parameters\": {\"sliding_attention\": {\"rope_theta\": "
     "8}}",
     "is 7 and \"rope_parameters.sliding_attention.rope_theta\" is 8"},
    {"gemma3_text", "\"sliding_window_pattern\": 0", "\"sliding_window_pattern\" is 0"},
    {"olmo3", "\"sliding_window\": null", "\"sliding_window\" is null"},
    {"glm4", "\"partial_rotary_factor\": 0", "\"partial_rotary_factor\" is 0"},
    {"glm4", "\"sliding_window\": 64", "\"sliding_window\": 64"},
    {"gemma", "\"final_logit_softcapping\": 30.0", "logits are not capped"},
    {"arcee", "\"hidden_act\": \"tanh\"", "(supported: gelu_new, "},
    {"arcee", "\"mlp_bias\": 1", "mlp_bias"},
    {"seed_oss", "\"residual_dropout\": 1.0", "\"residual_dropout\" is 1"},
    {"seed_oss", "\"attention_out_bias\": \"no\"", "attention_out_bias"},
    {"exaone4", "\"sliding_window_pattern\": \"LLLG\"", "in \"layer_types\""},
    {"exaone4", "\"sliding_window_pattern\": 0", "\"sliding_window_pattern\" is 0"},
    {"exaone4", "\"layer_types\": [\"full_attention\"]", "a list of 32 names"},
    {"exaone4",
     "\"sliding_window\": null, \"num_hidden_layers\": 1, \"layer_types\": "
     "[\"sliding_attention\"]",
     "\"sliding_window\" is not set"},
    {"cohere", "\"use_qk_norm\": 1", "use_qk_norm"},
    {"cohere2", "\"use_qk_norm\": true", "queries and keys are not normalised"},
    {"cohere", "\"logit_scale\": 0", "\"logit_scale\" is 0"},
    {"cohere2", "\"logit_scale\": [1]", "logit_scale"},
    {"cohere2", "\"head_dim\": 64", "cohere2 has hidden_size / num_attention_heads = 8192 / 64"},
    {"cohere2", "\"sliding_window\": null", "layer 0 has a window"},
    {"ernie4_5", "\"attention_dropout\": 0.1", "ernie4_5 has no dropout"},
    {"ernie4_5", "\"use_bias\": \"yes\"", "use_bias"},
    {"hunyuan_v1_dense", "\"use_qk_norm\": false", "queries and keys are normalised"},
    {"hunyuan_v1_dense", "\"num_experts\": 8", "mixtures of experts"},
    {"hunyuan_v1_dense", "\"mlp_bias\": true", "the MLP has no biases"},
    {"hunyuan_v1_dense", "\"rope_scaling\": {\"type\": \"dynamic\", \"alpha\": \"1000\"}", "alpha"},
    {"hunyuan_v1_dense", "\"rope_scaling\": {\"type\": \"dynamic\"}", "lacks \"factor\""},
    {"helium", "\"head_dim\": 64", "remove \"head_dim\""},
    {"internlm3", "\"qkv_bias\": true", "\"qkv_bias\" and \"bias\" differ"},
    {"internlm3", "\"qkv_bias\": true, \"attention_bias\": false", "is false but \"qkv_bias\""},
    {"cwm", "\"sliding_window\": 0", "\"sliding_window\" is 0"},
    {"cwm", "\"sliding_window\": null", "layer 1 has a window"},
    {"cwm", "\"layer_types\": 4", "a list of 64 names"},
    {"phi", "\"qk_layernorm\": true, \"head_dim\": 32", "phi has hidden_size"},
    {"phi", "\"partial_rotary_factor\": 2", "\"partial_rotary_factor\" is 2"},
    {"phi", "\"num_key_value_heads\": 5", "no multiple of"},
    {"stablelm", "\"qk_layernorm\": 1", "qk_layernorm"},
    {"stablelm", "\"hidden_dropout\": -0.1", "\"hidden_dropout\" is -0.1"},
    {"stablelm", "\"rope_parameters\": [8]", "\"rope_parameters\" must be an object"},
    {"glm", "\"sliding_window\": 64", "\"sliding_window\": 64"},
    {"olmo", "\"clip_qkv\": -8", "\"clip_qkv\" is -8"},
    {"olmo", "\"clip_qkv\": \"8\"", "clip_qkv"},
    {"nanochat", "\"final_logit_softcapping\": -1", "\"final_logit_softcapping\" is -1"},
    {"nanochat", "\"rope_parameters\": {\"rope_type\": \"linear\", \"factor\": 2}",
     "supported rope types of nanochat"},
    {"nemotron", "\"norm_eps\": \"1e-5\"", "norm_eps"},
    {"vaultgemma", "\"attn_logit_softcapping\": -1", "\"attn_logit_softcapping\" is -1"},
    {"llama", "\"hidden_size\": null",
     "\"hidden_size\" must be a whole number, not null: transformers' class takes nothing else"},
    {"mistral", "\"use_cache\": \"yes\"", "\"use_cache\" must be true or false, not \"yes\":"},
    {"qwen3", "\"head_dim\": null", "\"head_dim\" must be a whole number, not null"},
    {"gpt2", "\"summary_type\": 1", "\"summary_type\" must be a string, not 1"},
    {"cohere", "\"logit_scale\": null", "\"logit_scale\" must be a number, not null"},
    {"seed_oss", "\"num_key_value_heads\": true", "\"num_key_value_heads\" must be a whole number"},
    {"lfm2", "\"block_ffn_dim_multiplier\": null",
     "\"block_ffn_dim_multiplier\" must be a number, not null"},
    {"qwen3_5_text", "\"full_attention_interval\": null",
     "\"full_attention_interval\" must be a value, not null"},
    {"gemma", "\"rope_theta\": null", "\"rope_theta\" must be a value, not null"},
    {"qwen3_vl", "\"text_config\": {\"use_cache\": 1}",
     "config.json: text_config: \"use_cache\" must be true or false, not 1"},
    {"qwen2_5_vl", "\"text_config\": {\"model_type\": \"qwen2_5_vl_text\", \"rms_norm_eps\": null}",
     "config.json: text_config: \"rms_norm_eps\" must be a number, not null"},
};

static void refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        if (parse_with(refusals[i].type, refusals[i].members) != SIFR_USAGE)
            fail_msg("%s: %s is accepted", refusals[i].type, refusals[i].members);
        assert_message(&error, refusals[i].part);
        assert_int_equal(strncmp(error.message, "config.json: ", 13), 0);
    }
}

/* Keys of published folders that say what the model does anyway. */
static void published(void **state) {
    (void)state;
    assert_int_equal(parse_with("apertus", "\"qk_norm\": true, \"post_norm\": false"), SIFR_OK);
    assert_int_equal(parse_with("llama", "\"return_dict\": 1, \"output_hidden_states\": 0"),
                     SIFR_OK);
}

/* Of each decoder there is a row of types. */
static void typed(void **state) {
    (void)state;
    char list[1024];
    int count = 0;
    model_architecture_list(list, sizeof list);
    for (char *save, *type = strtok_r(list, ", ", &save); type;
         type = strtok_r(NULL, ", ", &save)) {
        const model_architecture *architecture = model_architecture_find(type);
        assert_non_null(architecture);
        if (architecture->encoder || architecture->multimodal) continue;
        assert_int_equal(parse_with(type, "\"use_cache\": 5"), SIFR_USAGE);
        assert_message(&error, "\"use_cache\" must be true or false");
        count++;
    }
    assert_true(count >= 43);
}

/* Which layers have a window, and which rotary positions. */
static void layers(void **state) {
    (void)state;
    static const struct {
        const char *type, *members;
        uint8_t layers[4];
    } cases[] = {
        {"mistral", "", {1, 1, 1, 1}},
        {"mistral", "\"sliding_window\": null", {0}},
        {"ministral", "", {1, 1, 1, 1}},
        {"ministral",
         "\"layer_types\": [\"full_attention\", \"sliding_attention\", \"full_attention\", "
         "\"full_attention\"]",
         {0, 1, 0, 0}},
        {"qwen2", "\"max_window_layers\": 1", {0}},
        {"qwen3", "\"max_window_layers\": 2, \"use_sliding_window\": true", {0, 0, 1, 1}},
        {"qwen2",
         "\"use_sliding_window\": true, \"layer_types\": [\"sliding_attention\", "
         "\"full_attention\", \"full_attention\", \"full_attention\"]",
         {1, 0, 0, 0}},
        {"phi3", "\"sliding_window\": 8", {1, 1, 1, 1}},
        {"smollm3", "", {0, 0, 0, 2}},
        {"smollm3", "\"no_rope_layer_interval\": 2, \"sliding_window\": 9", {0, 2, 0, 2}},
        {"smollm3",
         "\"no_rope_layers\": [1, 0, 0, 1, 0], \"sliding_window\": 9, "
         "\"use_sliding_window\": true",
         {0, 3, 3, 0}},
        {"starcoder2", "\"sliding_window\": 8", {1, 1, 1, 1}},
        {"lfm2", "", {0}},
        {"lfm2", "\"full_attn_idxs\": [2, 0]", {0, 8, 0, 8}},
        {"lfm2",
         "\"full_attn_idxs\": [2], \"layer_types\": [\"conv\", \"full_attention\", "
         "\"conv\", \"conv\"]",
         {8, 0, 8, 8}},
        {"qwen3_5_text", "", {16, 16, 16, 0}},
        {"qwen3_5_text", "\"full_attention_interval\": 2", {16, 0, 16, 0}},
        {"qwen3_5_text",
         "\"layer_types\": [\"full_attention\", \"linear_attention\", \"linear_attention\", "
         "\"full_attention\"], \"full_attention_interval\": 2",
         {0, 16, 16, 0}},
        {"exaone4", "", {1, 1, 1, 2}},
        {"exaone4", "\"sliding_window\": null", {0}},
        {"exaone4", "\"sliding_window_pattern\": 2", {1, 2, 1, 2}},
        {"cohere2", "", {1, 1, 1, 2}},
        {"cohere2", "\"sliding_window_pattern\": 3", {1, 1, 2, 1}},
        {"cwm", "", {0, 1, 1, 1}},
        {"vaultgemma", "", {1, 0, 1, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char members[512];
        snprintf(members, sizeof members, "\"num_hidden_layers\": 4%s%s",
                 *cases[i].members ? ", " : "", cases[i].members);
        if (parse_with(cases[i].type, members) != SIFR_OK) fail_msg("%s", error.message);
        for (int k = 0; k < 4; k++) {
            if (config.layers[k] != cases[i].layers[k])
                fail_msg("%s: %s: layer %d: %d", cases[i].type, members, k, config.layers[k]);
        }
    }
}

/* What null means where it is not what an absent key means. */
static void nulls(void **state) {
    (void)state;
    static const struct {
        const char *type, *members;
        int64_t head_dim, kv_heads;
    } cases[] = {{"seed_oss", "", 128, 8},
                 {"seed_oss",
                  "\"head_dim\": null, \"num_key_value_heads\": null, \"hidden_size\": 5120", 64,
                  80},
                 {"falcon", "", 64, 1},
                 {"falcon", "\"multi_query\": null", 64, 71},
                 {"qwen2", "\"num_key_value_heads\": null", 128, 32}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (parse_with(cases[i].type, cases[i].members) != SIFR_OK) fail_msg("%s", error.message);
        assert_int_equal(config.head_dim, cases[i].head_dim);
        assert_int_equal(config.num_key_value_heads, cases[i].kv_heads);
    }
    assert_int_equal(parse_with("falcon", "\"parallel_attn\": null"), SIFR_OK);
    assert_false(config.parallel_residual);
    assert_int_equal(parse_with("glm4", "\"partial_rotary_factor\": null"), SIFR_OK);
    assert_true(config.rope.rotary_dim == config.head_dim);
    /* Whole numbers and others are one type. */
    assert_int_equal(parse_with("llama", "\"hidden_size\": 4096.0, \"rms_norm_eps\": 1"), SIFR_OK);
}

static void gemma(void **state) {
    (void)state;
    /* The first folders say "gelu" and mean the approximation. */
    assert_int_equal(parse_with("gemma", "\"hidden_act\": \"gelu\", \"hidden_size\": 9"), SIFR_OK);
    assert_int_equal(config.activation, MODEL_GELU_TANH);
    assert_true(config.embedding_scale == 3);
    assert_int_equal(config.head_dim, 256);
}

static void gemma2(void **state) {
    (void)state;
    assert_int_equal(parse_with("gemma2", "\"num_hidden_layers\": 3, \"sliding_window\": 7, "
                                          "\"query_pre_attn_scalar\": 16, "
                                          "\"attn_logit_softcapping\": null"),
                     SIFR_OK);
    assert_int_equal(config.layers[0], MODEL_LAYER_WINDOW);
    assert_int_equal(config.layers[1], 0);
    assert_int_equal(config.layers[2], MODEL_LAYER_WINDOW);
    assert_int_equal(config.sliding_window, 7);
    assert_true(config.attention_scale == 0.25);
    assert_true(config.attention_softcap == 0);
    assert_true(config.logit_softcap == 30);
}

/* Published folders have the older keys, transformers 5 writes the others. */
static void gemma3(void **state) {
    (void)state;
    static model_config older;
    assert_int_equal(
        parse_with("gemma3_text",
                   "\"num_hidden_layers\": 5, \"sliding_window_pattern\": 3, \"rope_theta\": 5e5, "
                   "\"rope_local_base_freq\": 70, "
                   "\"rope_scaling\": {\"factor\": 8.0, \"rope_type\": \"linear\"}"),
        SIFR_OK);
    older = config;
    assert_int_equal(
        parse_with("gemma3_text",
                   "\"num_hidden_layers\": 5, \"layer_types\": [\"sliding_attention\", "
                   "\"sliding_attention\", \"full_attention\", \"sliding_attention\", "
                   "\"sliding_attention\"], \"rope_parameters\": {\"full_attention\": "
                   "{\"rope_theta\": 5e5, \"factor\": 8.0, \"rope_type\": \"linear\"}, "
                   "\"sliding_attention\": {\"rope_theta\": 70}}"),
        SIFR_OK);
    assert_memory_equal(&older, &config, sizeof older);
    assert_int_equal(config.layers[1], MODEL_LAYER_WINDOW | MODEL_LAYER_LOCAL_ROPE);
    assert_int_equal(config.layers[2], 0);
    assert_true(config.rope.theta == 5e5);
    assert_true(config.rope.factor == 8);
    assert_true(config.local_rope.theta == 70);
    assert_true(config.local_rope.factor == 1);
}

/* The size of the MLP: older keys go first, and it is adjusted unless told not to. */
static void lfm2(void **state) {
    (void)state;
    static const struct {
        const char *members;
        int64_t inner;
    } cases[] = {
        {"", 8192},
        {"\"intermediate_size\": 1000", 768},
        {"\"block_ff_dim\": 6656, \"intermediate_size\": 7", 4608},
        {"\"block_ff_dim\": 6656, \"block_auto_adjust_ff_dim\": false", 6656},
        {"\"block_ff_dim\": 100, \"block_multiple_of\": 10, \"block_ffn_dim_multiplier\": 1.3", 90},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (parse_with("lfm2", cases[i].members) != SIFR_OK) fail_msg("%s", error.message);
        assert_int_equal(config.intermediate_size, cases[i].inner);
    }
    assert_int_equal(parse_with("lfm2", "\"tie_embedding\": false, \"norm_eps\": 1e-6, "
                                        "\"tie_word_embeddings\": true, \"theta\": 5"),
                     SIFR_OK);
    assert_false(config.tie_word_embeddings);
    assert_true(config.norm_eps == 1e-6 && config.rope.theta == 1e6);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(defaults),  cmocka_unit_test(refused),
                                       cmocka_unit_test(published), cmocka_unit_test(typed),
                                       cmocka_unit_test(layers),    cmocka_unit_test(nulls),
                                       cmocka_unit_test(gemma),     cmocka_unit_test(gemma2),
                                       cmocka_unit_test(gemma3),    cmocka_unit_test(lfm2)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

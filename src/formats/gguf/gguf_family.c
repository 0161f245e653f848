/* The families, and how a weight's name is found. */
#include "formats/gguf/gguf_family.h"

#include <stdio.h>
#include <string.h>

#include "formats/gguf/gguf_family_parts.h"

static const formats_gguf_family families[] = {
    {.model_type = "gpt2",
     .architecture = "GPT2LMHeadModel",
     .name = "gpt2",
     .prefix = "transformer.",
     .layers = "h.",
     .names = formats_gguf_gpt2_names,
     .layer_names = formats_gguf_gpt2_layer,
     .defaults = "{\"vocab_size\": 50257, \"n_positions\": 1024, \"n_embd\": 768, \"n_layer\": 12, "
                 "\"n_head\": 12, \"layer_norm_epsilon\": 1e-05}",
     .vocab = FORMATS_GGUF_BYTE_LEVEL,
     .keys = formats_gguf_gpt2_keys},
    {.model_type = "llama",
     .architecture = "LlamaForCausalLM",
     .name = "llama",
     .prefix = "model.",
     .layers = "layers.",
     .names = formats_gguf_llama_names,
     .layer_names = formats_gguf_llama_layer,
     .defaults =
         "{\"vocab_size\": 32000, \"hidden_size\": 4096, \"intermediate_size\": 11008, "
         "\"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"max_position_embeddings\": "
         "2048, \"rms_norm_eps\": 1e-06, \"rope_theta\": 10000.0}",
     .vocab = FORMATS_GGUF_LLAMA,
     .fills_head_dim = true,
     .keys = formats_gguf_llama_keys},
    {.model_type = "mistral",
     .architecture = "MistralForCausalLM",
     .name = "llama",
     .prefix = "model.",
     .layers = "layers.",
     .names = formats_gguf_llama_names,
     .layer_names = formats_gguf_llama_layer,
     .defaults =
         "{\"vocab_size\": 32000, \"hidden_size\": 4096, \"intermediate_size\": 14336, "
         "\"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"num_key_value_heads\": 8, "
         "\"max_position_embeddings\": 131072, \"rms_norm_eps\": 1e-06, \"rope_theta\": 10000.0}",
     .vocab = FORMATS_GGUF_LLAMA,
     .fills_head_dim = true,
     .keys = formats_gguf_llama_keys},
    {.model_type = "smollm3",
     .architecture = "SmolLM3ForCausalLM",
     .name = "smollm3",
     .prefix = "model.",
     .layers = "layers.",
     .names = formats_gguf_llama_names,
     .layer_names = formats_gguf_llama_layer,
     .defaults =
         "{\"vocab_size\": 128256, \"hidden_size\": 2048, \"intermediate_size\": 11008, "
         "\"num_hidden_layers\": 36, \"num_attention_heads\": 16, \"num_key_value_heads\": 4, "
         "\"max_position_embeddings\": 32768, \"rms_norm_eps\": 1e-06, \"rope_theta\": 2000000.0}",
     .vocab = FORMATS_GGUF_LLAMA,
     .keys = formats_gguf_llama_keys},
    {.model_type = "granite",
     .architecture = "GraniteForCausalLM",
     .name = "granite",
     .prefix = "model.",
     .layers = "layers.",
     .names = formats_gguf_llama_names,
     .layer_names = formats_gguf_llama_layer,
     .defaults =
         "{\"vocab_size\": 32000, \"hidden_size\": 4096, \"intermediate_size\": 11008, "
         "\"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"max_position_embeddings\": "
         "2048, \"rms_norm_eps\": 1e-06, \"rope_theta\": 10000.0, \"attention_multiplier\": 1.0, "
         "\"embedding_multiplier\": 1.0, \"residual_multiplier\": 1.0, \"logits_scaling\": 1.0}",
     .vocab = FORMATS_GGUF_LLAMA,
     .keys = formats_gguf_granite_keys},
    {.model_type = "qwen2",
     .architecture = "Qwen2ForCausalLM",
     .name = "qwen2",
     .prefix = "model.",
     .layers = "layers.",
     .names = formats_gguf_llama_names,
     .layer_names = formats_gguf_qwen_layer,
     .defaults =
         "{\"vocab_size\": 151936, \"hidden_size\": 4096, \"intermediate_size\": 22016, "
         "\"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"num_key_value_heads\": 32, "
         "\"max_position_embeddings\": 32768, \"rms_norm_eps\": 1e-06, \"rope_theta\": 10000.0}",
     .vocab = FORMATS_GGUF_PIECES_OR_BYTE_LEVEL,
     .keys = formats_gguf_plain_keys},
    {.model_type = "qwen3",
     .architecture = "Qwen3ForCausalLM",
     .name = "qwen3",
     .prefix = "model.",
     .layers = "layers.",
     .names = formats_gguf_llama_names,
     .layer_names = formats_gguf_qwen_layer,
     .defaults = "{\"vocab_size\": 151936, \"hidden_size\": 4096, \"intermediate_size\": 22016, "
                 "\"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"num_key_value_heads\": "
                 "32, \"head_dim\": 128, \"max_position_embeddings\": 32768, \"rms_norm_eps\": "
                 "1e-06, \"rope_theta\": 10000.0}",
     .vocab = FORMATS_GGUF_PIECES_OR_BYTE_LEVEL,
     .keys = formats_gguf_plain_keys},
    {.model_type = "olmo2",
     .architecture = "Olmo2ForCausalLM",
     .name = "olmo2",
     .prefix = "model.",
     .layers = "layers.",
     .names = formats_gguf_llama_names,
     .layer_names = formats_gguf_olmo2_layer,
     .defaults =
         "{\"vocab_size\": 50304, \"hidden_size\": 4096, \"intermediate_size\": 11008, "
         "\"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"max_position_embeddings\": "
         "2048, \"rms_norm_eps\": 1e-05, \"rope_theta\": 10000.0}",
     .vocab = FORMATS_GGUF_BYTE_LEVEL,
     .keys = formats_gguf_plain_keys},
    {.model_type = "olmo3",
     .architecture = "Olmo3ForCausalLM",
     .name = "olmo2",
     .prefix = "model.",
     .layers = "layers.",
     .names = formats_gguf_llama_names,
     .layer_names = formats_gguf_olmo2_layer,
     .defaults =
         "{\"vocab_size\": 50304, \"hidden_size\": 4096, \"intermediate_size\": 11008, "
         "\"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"max_position_embeddings\": "
         "2048, \"rms_norm_eps\": 1e-05, \"rope_theta\": 500000.0, \"sliding_window\": 4096}",
     .vocab = FORMATS_GGUF_BYTE_LEVEL,
     .keys = formats_gguf_olmo3_keys},
    {.model_type = "glm4",
     .architecture = "Glm4ForCausalLM",
     .name = "glm4",
     .prefix = "model.",
     .layers = "layers.",
     .names = formats_gguf_llama_names,
     .layer_names = formats_gguf_glm4_layer,
     .defaults =
         "{\"vocab_size\": 151552, \"hidden_size\": 4096, \"intermediate_size\": 13696, "
         "\"num_hidden_layers\": 40, \"num_attention_heads\": 32, \"num_key_value_heads\": 2, "
         "\"head_dim\": 128, \"max_position_embeddings\": 131072, \"rms_norm_eps\": 1.5625e-07, "
         "\"rope_theta\": 10000.0}",
     .vocab = FORMATS_GGUF_GLM4,
     .keys = formats_gguf_glm4_keys},
    {.model_type = "ministral3",
     .architecture = "Ministral3ForCausalLM",
     .name = "mistral3",
     .prefix = "model.",
     .layers = "layers.",
     .names = formats_gguf_llama_names,
     .layer_names = formats_gguf_llama_layer,
     .defaults =
         "{\"vocab_size\": 131072, \"hidden_size\": 4096, \"intermediate_size\": 14336, "
         "\"num_hidden_layers\": 34, \"num_attention_heads\": 32, \"num_key_value_heads\": 8, "
         "\"head_dim\": 128, \"max_position_embeddings\": 262144, \"rms_norm_eps\": 1e-05, "
         "\"rope_theta\": 10000.0}",
     .vocab = FORMATS_GGUF_LLAMA,
     .keys = formats_gguf_ministral3_keys},
    {.model_type = "starcoder2",
     .architecture = "Starcoder2ForCausalLM",
     .name = "starcoder2",
     .prefix = "model.",
     .layers = "layers.",
     .names = formats_gguf_llama_names,
     .layer_names = formats_gguf_starcoder2_layer,
     .defaults =
         "{\"vocab_size\": 49152, \"hidden_size\": 3072, \"intermediate_size\": 12288, "
         "\"num_hidden_layers\": 30, \"num_attention_heads\": 24, \"num_key_value_heads\": 2, "
         "\"max_position_embeddings\": 4096, \"norm_epsilon\": 1e-05, \"rope_theta\": 10000.0}",
     .vocab = FORMATS_GGUF_BYTE_LEVEL,
     .keys = formats_gguf_plain_keys},
    {.model_type = "phi3",
     .architecture = "Phi3ForCausalLM",
     .name = "phi3",
     .prefix = "model.",
     .layers = "layers.",
     .names = formats_gguf_llama_names,
     .layer_names = formats_gguf_phi3_layer,
     .defaults = "{\"vocab_size\": 32064, \"hidden_size\": 3072, \"intermediate_size\": 8192, "
                 "\"num_hidden_layers\": 32, \"num_attention_heads\": 32, "
                 "\"max_position_embeddings\": 4096, \"rms_norm_eps\": 1e-05, \"rope_theta\": "
                 "10000.0, \"original_max_position_embeddings\": 4096}",
     .vocab = FORMATS_GGUF_PHI3,
     .keys = formats_gguf_phi3_keys},
    {.model_type = "gpt_neox",
     .architecture = "GPTNeoXForCausalLM",
     .name = "gptneox",
     .prefix = "gpt_neox.",
     .layers = "layers.",
     .names = formats_gguf_neox_names,
     .layer_names = formats_gguf_neox_layer,
     .defaults =
         "{\"vocab_size\": 50432, \"hidden_size\": 6144, \"intermediate_size\": 24576, "
         "\"num_hidden_layers\": 44, \"num_attention_heads\": 64, \"max_position_embeddings\": "
         "2048, \"layer_norm_eps\": 1e-05, \"rope_theta\": 10000.0}",
     .vocab = FORMATS_GGUF_BYTE_LEVEL,
     .no_file_type = true,
     .keys = formats_gguf_neox_keys},
    {.model_type = "gemma",
     .architecture = "GemmaForCausalLM",
     .name = "gemma",
     .prefix = "model.",
     .layers = "layers.",
     .names = formats_gguf_gemma_names,
     .layer_names = formats_gguf_gemma_layer,
     .defaults = "{\"vocab_size\": 256000, \"head_dim\": 256, \"rms_norm_eps\": 1e-06, "
                 "\"rope_theta\": 10000.0, \"max_position_embeddings\": 8192, \"hidden_size\": "
                 "3072, \"intermediate_size\": 24576, \"num_hidden_layers\": 28, "
                 "\"num_attention_heads\": 16, \"num_key_value_heads\": 16}",
     .vocab = FORMATS_GGUF_GEMMA,
     .keys = formats_gguf_gemma_keys},
    {.model_type = "gemma2",
     .architecture = "Gemma2ForCausalLM",
     .name = "gemma2",
     .prefix = "model.",
     .layers = "layers.",
     .names = formats_gguf_gemma_names,
     .layer_names = formats_gguf_gemma2_layer,
     .defaults = "{\"vocab_size\": 256000, \"head_dim\": 256, \"rms_norm_eps\": 1e-06, "
                 "\"rope_theta\": 10000.0, \"max_position_embeddings\": 8192, \"hidden_size\": "
                 "2304, \"intermediate_size\": 9216, \"num_hidden_layers\": 26, "
                 "\"num_attention_heads\": 8, \"num_key_value_heads\": 4, \"sliding_window\": "
                 "4096, \"attn_logit_softcapping\": 50.0, \"final_logit_softcapping\": 30.0}",
     .vocab = FORMATS_GGUF_GEMMA2,
     .keys = formats_gguf_gemma2_keys},
    {.model_type = "gemma3_text",
     .architecture = "Gemma3ForCausalLM",
     .name = "gemma3",
     .prefix = "model.",
     .layers = "layers.",
     .names = formats_gguf_gemma_names,
     .layer_names = formats_gguf_gemma2_layer,
     .defaults =
         "{\"vocab_size\": 262208, \"head_dim\": 256, \"rms_norm_eps\": 1e-06, \"rope_theta\": "
         "1000000.0, \"max_position_embeddings\": 131072, \"hidden_size\": 2304, "
         "\"intermediate_size\": 9216, \"num_hidden_layers\": 26, \"num_attention_heads\": 8, "
         "\"num_key_value_heads\": 4, \"sliding_window\": 4096, \"rope_local_base_freq\": 10000.0}",
     .vocab = FORMATS_GGUF_GEMMA2,
     .keys = formats_gguf_gemma3_keys},
    {.model_type = "lfm2",
     .architecture = "Lfm2ForCausalLM",
     .name = "lfm2",
     .prefix = "model.",
     .layers = "layers.",
     .names = formats_gguf_lfm2_names,
     .layer_names = formats_gguf_lfm2_layer,
     .defaults =
         "{\"vocab_size\": 65536, \"hidden_size\": 2560, \"intermediate_size\": 12288, "
         "\"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"num_key_value_heads\": 8, "
         "\"max_position_embeddings\": 128000, \"norm_eps\": 1e-05, \"rope_theta\": 1000000.0, "
         "\"conv_L_cache\": 3, \"block_multiple_of\": 256, \"block_ffn_dim_multiplier\": 1.0, "
         "\"block_auto_adjust_ff_dim\": true}",
     .vocab = FORMATS_GGUF_BYTE_LEVEL,
     .attends_in_some = true,
     .keys = formats_gguf_lfm2_keys},
    {.model_type = "qwen3_5_text",
     .architecture = "Qwen3_5ForCausalLM",
     .name = "qwen35",
     .prefix = "model.",
     .layers = "layers.",
     .names = formats_gguf_qwen35_names,
     .layer_names = formats_gguf_qwen35_layer,
     .defaults =
         "{\"vocab_size\": 248320, \"hidden_size\": 4096, \"intermediate_size\": 12288, "
         "\"num_hidden_layers\": 32, \"num_attention_heads\": 16, \"num_key_value_heads\": 4, "
         "\"head_dim\": 256, \"max_position_embeddings\": 32768, \"rms_norm_eps\": 1e-06, "
         "\"rope_theta\": 10000.0, \"full_attention_interval\": 4, "
         "\"linear_conv_kernel_dim\": 4, \"linear_key_head_dim\": 128, "
         "\"linear_value_head_dim\": 128, \"linear_num_key_heads\": 16, "
         "\"linear_num_value_heads\": 32}",
     .vocab = FORMATS_GGUF_BYTE_LEVEL,
     .keys = formats_gguf_qwen35_keys},
#define GEMMA4(type, class, window, positions)                                                     \
    {                                                                                              \
        .model_type = type, .architecture = class, .name = "gemma4", .prefix = "model.",           \
        .layers = "layers.", .names = formats_gguf_llama_names,                                    \
        .layer_names = formats_gguf_gemma4_layer,                                                  \
        .defaults =                                                                                \
            "{\"vocab_size\": 262144, \"head_dim\": 256, \"rms_norm_eps\": 1e-06, "                \
            "\"max_position_embeddings\": " positions ", \"hidden_size\": 2304, "                  \
            "\"intermediate_size\": 9216, \"num_hidden_layers\": 30, "                             \
            "\"num_attention_heads\": 8, \"num_key_value_heads\": 4, \"sliding_window\": " window  \
            "}",                                                                                   \
        .vocab = FORMATS_GGUF_GEMMA4, .keys = formats_gguf_gemma4_keys                             \
    }
    GEMMA4("gemma4_text", "Gemma4ForCausalLM", "512", "131072"),
    GEMMA4("gemma4_unified_text", "Gemma4UnifiedForCausalLM", "1024", "262144"),
};

enum { FAMILIES = sizeof families / sizeof *families };

sifr_status formats_gguf_family_find(const json_t *config, const char *where,
                                     const formats_gguf_family **out, sifr_error *error) {
    const char *type = json_string_value(json_object_get(config, "model_type"));
    const char *class =
        json_string_value(json_array_get(json_object_get(config, "architectures"), 0));
    char known[512] = "";
    for (int i = 0; i < FAMILIES; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", families[i].model_type);
        if (!type || strcmp(type, families[i].model_type) != 0) continue;
        *out = &families[i];
        if (!class || strcmp(class, families[i].architecture) == 0) return SIFR_OK;
        return base_fail(error, SIFR_USAGE,
                         "%s: architecture %.80s is not supported with --format gguf yet "
                         "(supported: %s)",
                         where, class, families[i].architecture);
    }
    return base_fail(error, SIFR_USAGE,
                     "%s: model_type \"%.80s\" is not supported with --format gguf yet (supported: "
                     "%s)",
                     where, type ? type : "", known);
}

/* --- names of weights --- */

static const char *after(const char *text, const char *prefix) {
    size_t length = strlen(prefix);
    return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

/* The rule for `part`, which may have ".weight" or ".bias" behind it; *suffix: that. */
static const formats_gguf_name *find_rule(const formats_gguf_name *rules, const char *part,
                                          const char **suffix) {
    for (; rules->from; rules++) {
        const char *rest = after(part, rules->from);
        if (!rest || (*rest && strcmp(rest, ".weight") != 0 && strcmp(rest, ".bias") != 0))
            continue;
        bool bare = rules->change == FORMATS_GGUF_LEFT_OUT ||
                    rules->change == FORMATS_GGUF_WITHOUT_SUFFIX ||
                    rules->change == FORMATS_GGUF_VALUE_VECTOR ||
                    rules->change == FORMATS_GGUF_DECAY;
        if (*rest == 0 && !bare) continue;
        *suffix = rest;
        return rules;
    }
    return NULL;
}

sifr_status formats_gguf_family_name(const formats_gguf_family *family, const char *weight,
                                     char out[FORMATS_GGUF_NAME_LIMIT], formats_gguf_change *change,
                                     sifr_error *error) {
    const char *part = after(weight, family->prefix), *suffix = "";
    if (!part) part = weight;
    const char *layer = after(part, family->layers);
    size_t digits = layer ? strspn(layer, "0123456789") : 0;
    bool in_layer = digits > 0 && digits < 7 && layer[digits] == '.';
    const formats_gguf_name *rule =
        in_layer ? find_rule(family->layer_names, layer + digits + 1, &suffix)
                 : find_rule(family->names, part, &suffix);
    if (!rule)
        return base_fail(error, SIFR_USAGE,
                         "tensor %.200s has no name in llama.cpp's %s: --format gguf cannot carry "
                         "it",
                         weight, family->name);
    *change = rule->change;
    out[0] = 0;
    if (rule->change == FORMATS_GGUF_LEFT_OUT) return SIFR_OK;
    if (in_layer)
        snprintf(out, FORMATS_GGUF_NAME_LIMIT, "blk.%.*s.%s%s", (int)digits, layer, rule->to,
                 suffix);
    else
        snprintf(out, FORMATS_GGUF_NAME_LIMIT, "%s%s", rule->to, suffix);
    return SIFR_OK;
}

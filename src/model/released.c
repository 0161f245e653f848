#include "model/released.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

/* Of dense Gemma 4 models: five layers with a window to one without, as their class has it. */
#define GEMMA4_TEXT                                                                                \
    "\"vocab_size\": 262144, \"head_dim\": 256, \"global_head_dim\": 512, \"sliding_window\": "    \
    "1024, \"max_position_embeddings\": 262144, \"final_logit_softcapping\": 30.0, "               \
    "\"attention_k_eq_v\": true, \"num_kv_shared_layers\": 0, \"use_bidirectional_attention\": "   \
    "\"vision\", \"rope_parameters\": {\"sliding_attention\": {\"rope_type\": \"default\", "       \
    "\"rope_theta\": 10000.0}, \"full_attention\": {\"rope_type\": \"proportional\", "             \
    "\"rope_theta\": 1000000.0, \"partial_rotary_factor\": 0.25}}"

static const char gemma4_31b[] =
    "{\"model_type\": \"gemma4\", \"architectures\": [\"Gemma4ForConditionalGeneration\"], "
    "\"text_config\": {\"model_type\": \"gemma4_text\", \"hidden_size\": 5376, "
    "\"intermediate_size\": 21504, \"num_hidden_layers\": 60, \"num_attention_heads\": 32, "
    "\"num_key_value_heads\": 16, \"num_global_key_value_heads\": 4, "
    "\"hidden_size_per_layer_input\": 0, " GEMMA4_TEXT "}}";

static const char gemma4_12b[] =
    "{\"model_type\": \"gemma4_unified\", \"architectures\": "
    "[\"Gemma4UnifiedForConditionalGeneration\"], \"text_config\": {\"model_type\": "
    "\"gemma4_unified_text\", \"hidden_size\": 3840, \"intermediate_size\": 15360, "
    "\"num_hidden_layers\": 48, \"num_attention_heads\": 16, \"num_key_value_heads\": 8, "
    "\"num_global_key_value_heads\": 1, " GEMMA4_TEXT "}}";

/* Of E2B and E4B, in full: every fifth layer of E2B has no window. */
#define FIVE                                                                                       \
    "\"sliding_attention\", \"sliding_attention\", \"sliding_attention\", "                        \
    "\"sliding_attention\", \"full_attention\""
#define GEMMA4_EDGE(hidden, inner, layers, kv_heads, shared, wide, types)                          \
    "{\"model_type\": \"gemma4\", \"architectures\": [\"Gemma4ForConditionalGeneration\"], "       \
    "\"text_config\": {\"model_type\": \"gemma4_text\", \"vocab_size\": 262144, \"head_dim\": "    \
    "256, \"global_head_dim\": 512, \"sliding_window\": 512, \"max_position_embeddings\": "        \
    "131072, \"final_logit_softcapping\": 30.0, \"num_attention_heads\": 8, "                      \
    "\"hidden_size_per_layer_input\": 256, \"vocab_size_per_layer_input\": 262144, "               \
    "\"rope_parameters\": {\"sliding_attention\": {\"rope_type\": \"default\", \"rope_theta\": "   \
    "10000.0}, \"full_attention\": {\"rope_type\": \"proportional\", \"rope_theta\": 1000000.0, "  \
    "\"partial_rotary_factor\": 0.25}}, \"hidden_size\": " hidden                                  \
    ", \"intermediate_size\": " inner ", \"num_hidden_layers\": " layers                           \
    ", \"num_key_value_heads\": " kv_heads ", \"num_kv_shared_layers\": " shared                   \
    ", \"use_double_wide_mlp\": " wide types "}}"

static const char gemma4_e2b[] = GEMMA4_EDGE("1536", "6144", "35", "1", "20", "true",
                                             ", \"layer_types\": [" FIVE ", " FIVE ", " FIVE
                                             ", " FIVE ", " FIVE ", " FIVE ", " FIVE "]");
static const char gemma4_e4b[] = GEMMA4_EDGE("2560", "10240", "42", "2", "18", "false", "");

/* LFM2: what all have, and the layers with attention of those with 16 layers. */
#define LFM2_TEXT                                                                                  \
    "\"model_type\": \"lfm2\", \"vocab_size\": 65536, \"num_key_value_heads\": 8, "                \
    "\"max_position_embeddings\": 128000, \"conv_L_cache\": 3, \"conv_bias\": false, "             \
    "\"tie_word_embeddings\": true, "
#define LFM2_SIXTEEN                                                                               \
    "\"num_hidden_layers\": 16, \"full_attn_idxs\": [2, 5, 8, 10, 12, 14], "                       \
    "\"block_auto_adjust_ff_dim\": true, \"block_multiple_of\": 256, "                             \
    "\"block_ffn_dim_multiplier\": 1.0, "
#define LFM2_350M                                                                                  \
    LFM2_TEXT LFM2_SIXTEEN                                                                         \
        "\"hidden_size\": 1024, \"num_attention_heads\": 16, \"block_ff_dim\": 6656"
#define LFM2_700M                                                                                  \
    LFM2_TEXT LFM2_SIXTEEN                                                                         \
        "\"hidden_size\": 1536, \"num_attention_heads\": 24, \"block_ff_dim\": 10240"
#define LFM2_1200M                                                                                 \
    LFM2_TEXT LFM2_SIXTEEN                                                                         \
        "\"hidden_size\": 2048, \"num_attention_heads\": 32, \"block_ff_dim\": 12288"
#define LFM2_2600M                                                                                 \
    LFM2_TEXT                                                                                      \
    "\"num_hidden_layers\": 30, \"full_attn_idxs\": [2, 5, 9, 13, 17, 21, 24, 27], "               \
    "\"block_auto_adjust_ff_dim\": false, \"hidden_size\": 2048, \"num_attention_heads\": 32, "    \
    "\"block_ff_dim\": 10752"

/* The text model alone, and beside a tower. */
#define LFM2(text) "{\"architectures\": [\"Lfm2ForCausalLM\"], " text "}"
#define LFM2_VL(text)                                                                              \
    "{\"model_type\": \"lfm2_vl\", \"architectures\": [\"Lfm2VlForConditionalGeneration\"], "      \
    "\"tie_word_embeddings\": true, \"text_config\": {" text "}}"

/* Of dense Qwen 3.5 models: what all have, and what differs. */
#define QWEN3_5(hidden, inner, layers, heads, kv_heads, value_heads, tied)                         \
    "{\"model_type\": \"qwen3_5\", \"architectures\": [\"Qwen3_5ForConditionalGeneration\"], "     \
    "\"tie_word_embeddings\": " tied ", \"text_config\": {\"model_type\": \"qwen3_5_text\", "      \
    "\"vocab_size\": 248320, \"head_dim\": 256, \"max_position_embeddings\": 262144, "             \
    "\"full_attention_interval\": 4, \"linear_num_key_heads\": 16, \"linear_key_head_dim\": 128, " \
    "\"linear_value_head_dim\": 128, \"linear_conv_kernel_dim\": 4, \"rms_norm_eps\": 1e-06, "     \
    "\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 10000000, "                 \
    "\"partial_rotary_factor\": 0.25}, \"hidden_size\": " hidden ", \"intermediate_size\": " inner \
    ", \"num_hidden_layers\": " layers ", \"num_attention_heads\": " heads                         \
    ", \"num_key_value_heads\": " kv_heads ", \"linear_num_value_heads\": " value_heads "}}"

static const char qwen3_5_0_8b[] = QWEN3_5("1024", "3584", "24", "8", "2", "16", "true");
static const char qwen3_5_2b[] = QWEN3_5("2048", "6144", "24", "8", "2", "16", "true");
static const char qwen3_5_4b[] = QWEN3_5("2560", "9216", "32", "16", "4", "32", "true");
static const char qwen3_5_9b[] = QWEN3_5("4096", "12288", "32", "16", "4", "32", "false");
static const char qwen3_5_27b[] = QWEN3_5("5120", "17408", "64", "24", "4", "48", "false");

static const struct {
    const char *name, *config;
} released[] = {
    {"google/gemma-4-31B", gemma4_31b},
    {"google/gemma-4-31B-it", gemma4_31b},
    {"google/gemma-4-12B", gemma4_12b},
    {"google/gemma-4-12B-it", gemma4_12b},
    {"google/gemma-4-E4B", gemma4_e4b},
    {"google/gemma-4-E4B-it", gemma4_e4b},
    {"google/gemma-4-E2B", gemma4_e2b},
    {"google/gemma-4-E2B-it", gemma4_e2b},
    {"LiquidAI/LFM2-350M", LFM2(LFM2_350M)},
    {"LiquidAI/LFM2-700M", LFM2(LFM2_700M)},
    {"LiquidAI/LFM2-1.2B", LFM2(LFM2_1200M)},
    {"LiquidAI/LFM2-2.6B", LFM2(LFM2_2600M)},
    {"LiquidAI/LFM2.5-350M", LFM2(LFM2_350M)},
    {"LiquidAI/LFM2.5-1.2B-Base", LFM2(LFM2_1200M)},
    {"LiquidAI/LFM2.5-1.2B-Instruct", LFM2(LFM2_1200M)},
    {"LiquidAI/LFM2-VL-450M", LFM2_VL(LFM2_350M)},
    {"LiquidAI/LFM2-VL-1.6B", LFM2_VL(LFM2_1200M)},
    {"LiquidAI/LFM2-VL-3B", LFM2_VL(LFM2_2600M)},
    {"Qwen/Qwen3.5-0.8B", qwen3_5_0_8b},
    {"Qwen/Qwen3.5-2B", qwen3_5_2b},
    {"Qwen/Qwen3.5-4B", qwen3_5_4b},
    {"Qwen/Qwen3.5-9B", qwen3_5_9b},
    {"Qwen/Qwen3.5-27B", qwen3_5_27b},
};

enum { COUNT = sizeof released / sizeof *released };

const char *model_released_config(const char *name, const char **spelt) {
    for (size_t i = 0; i < COUNT; i++) {
        const char *own = strchr(released[i].name, '/') + 1;
        if (strcasecmp(name, released[i].name) != 0 && strcasecmp(name, own) != 0) continue;
        *spelt = released[i].name;
        return released[i].config;
    }
    return NULL;
}

const char *model_released_near(const char *name) {
    const char *names[COUNT];
    bool owned = strchr(name, '/') != NULL;
    for (size_t i = 0; i < COUNT; i++)
        names[i] = owned ? released[i].name : strchr(released[i].name, '/') + 1;
    const char *near = base_nearest(name, names, COUNT), *spelt = NULL;
    return near && model_released_config(near, &spelt) ? spelt : NULL;
}

const char *model_released_list(char *out, size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < COUNT && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "", released[i].name);
    return out;
}

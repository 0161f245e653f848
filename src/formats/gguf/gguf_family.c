/* Names: tensor_mapping.py of the `gguf` package; metadata: set_gguf_parameters in llama.cpp's
 * conversion/. */
#include "formats/gguf/gguf_family.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

/* --- metadata --- */

/* "llama.block_count" */
static const char *key_of(const formats_gguf_family *f, const char *name, char out[96]) {
    snprintf(out, 96, "%s.%s", f->name, name);
    return out;
}

static sifr_status add_whole(const formats_gguf_family *f, const json_t *config, const char *from,
                             const char *to, formats_gguf_meta *meta, const char *where,
                             sifr_error *error) {
    int64_t value;
    char key[96];
    BASE_TRY(base_json_int(config, from, -1, &value, where, error));
    if (value < 0 || value > UINT32_MAX)
        return base_fail(error, SIFR_USAGE, "%s: \"%s\" is missing, negative or too large", where,
                         from);
    formats_gguf_add_u32(meta, key_of(f, to, key), (uint32_t)value);
    return SIFR_OK;
}

static sifr_status add_real(const formats_gguf_family *f, const json_t *config, const char *from,
                            const char *to, formats_gguf_meta *meta, const char *where,
                            sifr_error *error) {
    double value;
    char key[96];
    if (!json_is_number(json_object_get(config, from)))
        return base_fail(error, SIFR_USAGE, "%s: \"%s\" must be a number", where, from);
    BASE_TRY(base_json_double(config, from, 0, &value, where, error));
    formats_gguf_add_float(meta, key_of(f, to, key), (float)value);
    return SIFR_OK;
}

typedef struct key_pair {
    const char *from, *to;
} key_pair;

static sifr_status add_wholes(const formats_gguf_family *f, const json_t *config,
                              const key_pair *pairs, formats_gguf_meta *meta, const char *where,
                              sifr_error *error) {
    for (; pairs->from; pairs++)
        BASE_TRY(add_whole(f, config, pairs->from, pairs->to, meta, where, error));
    return SIFR_OK;
}

static sifr_status gpt2_keys(const formats_gguf_family *f, json_t *config, formats_gguf_meta *meta,
                             const char *where, sifr_error *error) {
    static const key_pair pairs[] = {
        {"n_layer", "block_count"},         {"n_ctx", "context_length"},
        {"n_embd", "embedding_length"},     {"n_inner", "feed_forward_length"},
        {"n_head", "attention.head_count"}, {NULL, NULL}};
    int64_t width, inner;
    BASE_TRY(base_json_int(config, "n_embd", 0, &width, where, error));
    BASE_TRY(base_json_int(config, "n_inner", 4 * width, &inner, where, error));
    if (inner != 4 * width)
        return base_fail(error, SIFR_USAGE,
                         "%s: \"n_inner\" is %lld; llama.cpp's GPT-2 has 4 x n_embd = %lld alone",
                         where, (long long)inner, (long long)(4 * width));
    json_object_set_new(config, "n_inner", json_integer(inner));
    if (!json_object_get(config, "n_ctx"))
        json_object_set(config, "n_ctx", json_object_get(config, "n_positions"));
    BASE_TRY(add_wholes(f, config, pairs, meta, where, error));
    return add_real(f, config, "layer_norm_epsilon", "attention.layer_norm_epsilon", meta, where,
                    error);
}

/* rope_parameters or the older rope_scaling, with rope_theta and rope_type in it. */
static sifr_status read_rope(json_t *config, const char *where, sifr_error *error) {
    json_t *rope = json_object_get(config, "rope_parameters");
    if (!json_is_object(rope)) rope = json_object_get(config, "rope_scaling");
    rope = json_is_object(rope) ? json_copy(rope) : json_object();
    if (!rope) return base_fail_alloc(error, 64);
    if (!json_object_get(rope, "rope_theta"))
        json_object_set(rope, "rope_theta", json_object_get(config, "rope_theta"));
    if (!json_object_get(rope, "rope_type"))
        json_object_set(rope, "rope_type", json_object_get(rope, "type"));
    json_object_set_new(config, "rope_parameters", rope);
    const char *type = json_string_value(json_object_get(rope, "rope_type"));
    if (!type || !strcmp(type, "default") || !strcmp(type, "llama3") || !strcmp(type, "linear") ||
        !strcmp(type, "yarn"))
        return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: rope_type \"%.40s\" is not supported with --format gguf yet (supported: "
                     "default, linear, llama3, yarn)",
                     where, type);
}

static sifr_status rope_keys(const formats_gguf_family *f, const json_t *rope,
                             formats_gguf_meta *meta, const char *where, sifr_error *error) {
    static const key_pair reals[] = {
        {"extrapolation_factor", "rope.scaling.yarn_ext_factor"},
        {"attention_factor", "rope.scaling.yarn_attn_factor"},
        {"beta_fast", "rope.scaling.yarn_beta_fast"},
        {"beta_slow", "rope.scaling.yarn_beta_slow"},
    };
    char key[96];
    const char *type = json_string_value(json_object_get(rope, "rope_type"));
    bool yarn = type && !strcmp(type, "yarn");
    if (yarn || (type && !strcmp(type, "linear"))) {
        formats_gguf_add_text(meta, key_of(f, "rope.scaling.type", key), type, strlen(type));
        BASE_TRY(add_real(f, rope, "factor", "rope.scaling.factor", meta, where, error));
    }
    if (yarn)
        BASE_TRY(add_whole(f, rope, "original_max_position_embeddings",
                           "rope.scaling.original_context_length", meta, where, error));
    for (size_t i = 0; yarn && i < sizeof reals / sizeof *reals; i++) {
        if (json_is_number(json_object_get(rope, reals[i].from)))
            BASE_TRY(add_real(f, rope, reals[i].from, reals[i].to, meta, where, error));
    }
    return add_real(f, rope, "rope_theta", "rope.freq_base", meta, where, error);
}

/* What the Llama class of transformers fills in. */
static sifr_status complete_llama(json_t *config, const char *where, sifr_error *error) {
    int64_t width, heads;
    BASE_TRY(base_json_int(config, "hidden_size", 0, &width, where, error));
    BASE_TRY(base_json_int(config, "num_attention_heads", 0, &heads, where, error));
    if (heads < 1 || width < heads)
        return base_fail(error, SIFR_USAGE,
                         "%s: \"num_attention_heads\" is %lld for a \"hidden_size\" of %lld", where,
                         (long long)heads, (long long)width);
    if (!json_is_integer(json_object_get(config, "num_key_value_heads")))
        json_object_set_new(config, "num_key_value_heads", json_integer(heads));
    if (!json_is_integer(json_object_get(config, "head_dim")))
        json_object_set_new(config, "head_dim", json_integer(width / heads));
    return read_rope(config, where, error);
}

static sifr_status llama_keys(const formats_gguf_family *f, json_t *config, formats_gguf_meta *meta,
                              const char *where, sifr_error *error) {
    static const key_pair pairs[] = {{"num_hidden_layers", "block_count"},
                                     {"max_position_embeddings", "context_length"},
                                     {"hidden_size", "embedding_length"},
                                     {"intermediate_size", "feed_forward_length"},
                                     {"num_attention_heads", "attention.head_count"},
                                     {"num_key_value_heads", "attention.head_count_kv"},
                                     {"head_dim", "attention.key_length"},
                                     {"head_dim", "attention.value_length"},
                                     {"vocab_size", "vocab_size"},
                                     {"head_dim", "rope.dimension_count"},
                                     {NULL, NULL}};
    BASE_TRY(complete_llama(config, where, error));
    BASE_TRY(add_wholes(f, config, pairs, meta, where, error));
    BASE_TRY(rope_keys(f, json_object_get(config, "rope_parameters"), meta, where, error));
    return add_real(f, config, "rms_norm_eps", "attention.layer_norm_rms_epsilon", meta, where,
                    error);
}

/* --- rows --- */

static const formats_gguf_name gpt2_names[] = {
    {"wte", "token_embd", FORMATS_GGUF_AS_IT_IS},
    {"wpe", "position_embd", FORMATS_GGUF_POSITIONS},
    {"ln_f", "output_norm", FORMATS_GGUF_AS_IT_IS},
    {"lm_head", "output", FORMATS_GGUF_AS_IT_IS},
    {NULL, NULL, FORMATS_GGUF_AS_IT_IS},
};

static const formats_gguf_name gpt2_layer[] = {
    {"ln_1", "attn_norm", FORMATS_GGUF_AS_IT_IS},
    {"attn.c_attn", "attn_qkv", FORMATS_GGUF_TRANSPOSED},
    {"attn.c_proj", "attn_output", FORMATS_GGUF_TRANSPOSED},
    {"ln_2", "ffn_norm", FORMATS_GGUF_AS_IT_IS},
    {"mlp.c_fc", "ffn_up", FORMATS_GGUF_TRANSPOSED},
    {"mlp.c_proj", "ffn_down", FORMATS_GGUF_TRANSPOSED},
    {"attn", NULL, FORMATS_GGUF_LEFT_OUT}, /* attn.bias: a mask in old folders */
    {"attn.masked_bias", NULL, FORMATS_GGUF_LEFT_OUT},
    {NULL, NULL, FORMATS_GGUF_AS_IT_IS},
};

static const formats_gguf_name llama_names[] = {
    {"embed_tokens", "token_embd", FORMATS_GGUF_AS_IT_IS},
    {"norm", "output_norm", FORMATS_GGUF_AS_IT_IS},
    {"lm_head", "output", FORMATS_GGUF_AS_IT_IS},
    {NULL, NULL, FORMATS_GGUF_AS_IT_IS},
};

static const formats_gguf_name llama_layer[] = {
    {"input_layernorm", "attn_norm", FORMATS_GGUF_AS_IT_IS},
    {"self_attn.q_proj", "attn_q", FORMATS_GGUF_QUERY_ROWS},
    {"self_attn.k_proj", "attn_k", FORMATS_GGUF_KEY_ROWS},
    {"self_attn.v_proj", "attn_v", FORMATS_GGUF_AS_IT_IS},
    {"self_attn.o_proj", "attn_output", FORMATS_GGUF_AS_IT_IS},
    {"post_attention_layernorm", "ffn_norm", FORMATS_GGUF_AS_IT_IS},
    {"mlp.gate_proj", "ffn_gate", FORMATS_GGUF_AS_IT_IS},
    {"mlp.up_proj", "ffn_up", FORMATS_GGUF_AS_IT_IS},
    {"mlp.down_proj", "ffn_down", FORMATS_GGUF_AS_IT_IS},
    {"self_attn.rotary_emb.inv_freq", NULL, FORMATS_GGUF_LEFT_OUT},
    {NULL, NULL, FORMATS_GGUF_AS_IT_IS},
};

static const formats_gguf_family families[] = {
    {.model_type = "gpt2",
     .architecture = "GPT2LMHeadModel",
     .name = "gpt2",
     .prefix = "transformer.",
     .layers = "h.",
     .names = gpt2_names,
     .layer_names = gpt2_layer,
     .defaults = "{\"vocab_size\": 50257, \"n_positions\": 1024, \"n_embd\": 768, \"n_layer\": 12, "
                 "\"n_head\": 12, \"layer_norm_epsilon\": 1e-5}",
     .byte_level = true,
     .keys = gpt2_keys},
    {.model_type = "llama",
     .architecture = "LlamaForCausalLM",
     .name = "llama",
     .prefix = "model.",
     .layers = "layers.",
     .names = llama_names,
     .layer_names = llama_layer,
     .defaults = "{\"vocab_size\": 32000, \"hidden_size\": 4096, \"intermediate_size\": 11008, "
                 "\"num_hidden_layers\": 32, \"num_attention_heads\": 32, "
                 "\"max_position_embeddings\": 2048, \"rms_norm_eps\": 1e-6, "
                 "\"rope_theta\": 10000.0}",
     .keys = llama_keys},
};

enum { FAMILIES = sizeof families / sizeof *families };

sifr_status formats_gguf_family_find(const json_t *config, const char *where,
                                     const formats_gguf_family **out, sifr_error *error) {
    const char *type = json_string_value(json_object_get(config, "model_type"));
    const char *class =
        json_string_value(json_array_get(json_object_get(config, "architectures"), 0));
    char known[256] = "";
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
        if (*rest == 0 && rules->change != FORMATS_GGUF_LEFT_OUT) continue;
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

/* Metadata from config.json: set_gguf_parameters in llama.cpp's conversion/. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "formats/gguf/gguf_family_parts.h"

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

sifr_status formats_gguf_gpt2_keys(const formats_gguf_family *f, json_t *config,
                                   formats_gguf_meta *meta, const char *where, sifr_error *error) {
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

/* "rope_parameters" or the older "rope_scaling", with rope_theta and rope_type in it; where layers
 * differ, those of layers with full attention, and "rope_theta_swa" of the others. */
static sifr_status read_rope(const formats_gguf_family *f, json_t *config, const char *where,
                             sifr_error *error) {
    json_t *rope = json_object_get(config, "rope_parameters");
    if (!json_is_object(rope)) rope = json_object_get(config, "rope_scaling");
    const json_t *local = json_object_get(config, "rope_local_base_freq");
    const json_t *window = json_object_get(rope, "sliding_attention");
    if (window) local = json_object_get(window, "rope_theta");
    if (json_is_object(json_object_get(rope, "full_attention")))
        rope = json_object_get(rope, "full_attention");
    rope = json_is_object(rope) ? json_copy(rope) : json_object();
    if (!rope) return base_fail_alloc(error, 64);
    if (!json_object_get(rope, "rope_theta"))
        json_object_set(rope, "rope_theta", json_object_get(config, "rope_theta"));
    if (!json_object_get(rope, "rope_type"))
        json_object_set(rope, "rope_type", json_object_get(rope, "type"));
    if (local) json_object_set_new(rope, "rope_theta_swa", json_deep_copy(local));
    json_object_set_new(config, "rope_parameters", rope);
    const char *type = json_string_value(json_object_get(rope, "rope_type")),
               *own = json_string_value(json_object_get(window, "rope_type"));
    if (own && strcmp(own, "default"))
        return base_fail(error, SIFR_USAGE,
                         "%s: rope_type \"%.40s\" of layers with a window is not supported with "
                         "--format gguf: llama.cpp scales the other layers alone",
                         where, own);
    if (!type || !strcmp(f->name, "phi3") || !strcmp(type, "default") || !strcmp(type, "llama3") ||
        !strcmp(type, "linear") || !strcmp(type, "yarn") ||
        (!strcmp(f->name, "gemma4") && !strcmp(type, "proportional")))
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
    if (json_object_get(rope, "rope_theta_swa"))
        BASE_TRY(add_real(f, rope, "rope_theta_swa", "rope.freq_base_swa", meta, where, error));
    return add_real(f, rope, "rope_theta", "rope.freq_base", meta, where, error);
}

/* Of families for which the converter writes none: where they are not llama.cpp's defaults. */
static sifr_status other_rope_keys(const formats_gguf_family *f, const json_t *config,
                                   formats_gguf_meta *meta, const char *where, sifr_error *error) {
    enum { DEFAULT = 10000 };
    const json_t *rope = json_object_get(config, "rope_parameters");
    const char *type = json_string_value(json_object_get(rope, "rope_type"));
    bool plain = !type || !strcmp(type, "default");
    if (plain && json_number_value(json_object_get(rope, "rope_theta")) == DEFAULT) return SIFR_OK;
    return rope_keys(f, rope, meta, where, error);
}

/* Whether layer `i` has a window; without "layer_types" all but each `period`th have. */
static bool has_window(const json_t *config, size_t i, size_t period) {
    const json_t *types = json_object_get(config, "layer_types");
    const char *type = json_string_value(json_array_get(types, i));
    return type ? !strcmp(type, "sliding_attention") : (i + 1) % period != 0;
}

/* Which layers have a window. `usual`: the period that llama.cpp takes without the key, which the
 * converter leaves out; 0: the key is there in any case. */
static void add_window_layers(const formats_gguf_family *f, const json_t *config, size_t usual,
                              size_t period, formats_gguf_meta *meta) {
    json_int_t layers = json_integer_value(json_object_get(config, "num_hidden_layers"));
    size_t count = layers > 0 ? (size_t)layers : 0;
    bool same = usual > 0;
    char key[96];
    for (size_t i = 0; i < count && same; i++)
        same = has_window(config, i, period) == ((i + 1) % usual != 0);
    if (same) return;
    formats_gguf_add_array(meta, key_of(f, "attention.sliding_window_pattern", key),
                           FORMATS_GGUF_BOOL, count);
    for (size_t i = 0; i < count; i++) formats_gguf_item_bool(meta, has_window(config, i, period));
}

/* What the classes of transformers fill in. */
static sifr_status complete(const formats_gguf_family *f, json_t *config, const char *where,
                            sifr_error *error) {
    int64_t width, heads;
    BASE_TRY(base_json_int(config, "hidden_size", 0, &width, where, error));
    BASE_TRY(base_json_int(config, "num_attention_heads", 0, &heads, where, error));
    if (heads < 1 || width < heads)
        return base_fail(error, SIFR_USAGE,
                         "%s: \"num_attention_heads\" is %lld for a \"hidden_size\" of %lld", where,
                         (long long)heads, (long long)width);
    if (!json_is_integer(json_object_get(config, "num_key_value_heads")))
        json_object_set_new(config, "num_key_value_heads", json_integer(heads));
    if (f->fills_head_dim && !json_is_integer(json_object_get(config, "head_dim")))
        json_object_set_new(config, "head_dim", json_integer(width / heads));
    return read_rope(f, config, where, error);
}

static const key_pair common_wholes[] = {{"num_hidden_layers", "block_count"},
                                         {"max_position_embeddings", "context_length"},
                                         {"hidden_size", "embedding_length"},
                                         {"intermediate_size", "feed_forward_length"},
                                         {"num_attention_heads", "attention.head_count"},
                                         {NULL, NULL}};

static const key_pair head_sizes[] = {
    {"head_dim", "attention.key_length"}, {"head_dim", "attention.value_length"}, {NULL, NULL}};

/* Layers with a convolution in place of attention have no heads. */
static sifr_status add_key_heads(const formats_gguf_family *f, const json_t *config,
                                 formats_gguf_meta *meta, const char *where, sifr_error *error) {
    const json_t *types = json_object_get(config, "layer_types"), *type;
    int64_t heads;
    size_t i;
    char key[96];
    if (!f->attends_in_some)
        return add_whole(f, config, "num_key_value_heads", "attention.head_count_kv", meta, where,
                         error);
    BASE_TRY(base_json_int(config, "num_key_value_heads", 0, &heads, where, error));
    formats_gguf_add_array(meta, key_of(f, "attention.head_count_kv", key), FORMATS_GGUF_I32,
                           json_array_size(types));
    json_array_foreach(types, i, type) {
        const char *name = json_string_value(type);
        formats_gguf_item_i32(meta, name && !strcmp(name, "conv") ? 0 : (int32_t)heads);
    }
    return SIFR_OK;
}

/* The keys that most families have and no others. */
sifr_status formats_gguf_plain_keys(const formats_gguf_family *f, json_t *config,
                                    formats_gguf_meta *meta, const char *where, sifr_error *error) {
    static const key_pair norms[] = {{"rms_norm_eps", "attention.layer_norm_rms_epsilon"},
                                     {"norm_epsilon", "attention.layer_norm_epsilon"}};
    BASE_TRY(complete(f, config, where, error));
    BASE_TRY(add_wholes(f, config, common_wholes, meta, where, error));
    BASE_TRY(add_key_heads(f, config, meta, where, error));
    BASE_TRY(rope_keys(f, json_object_get(config, "rope_parameters"), meta, where, error));
    for (int i = 0; i < 2; i++) {
        if (json_object_get(config, norms[i].from))
            BASE_TRY(add_real(f, config, norms[i].from, norms[i].to, meta, where, error));
    }
    if (!json_is_integer(json_object_get(config, "head_dim"))) return SIFR_OK;
    return add_wholes(f, config, head_sizes, meta, where, error);
}

sifr_status formats_gguf_llama_keys(const formats_gguf_family *f, json_t *config,
                                    formats_gguf_meta *meta, const char *where, sifr_error *error) {
    static const key_pair pairs[] = {
        {"vocab_size", "vocab_size"}, {"rotated", "rope.dimension_count"}, {NULL, NULL}};
    int64_t width, heads, size;
    BASE_TRY(formats_gguf_plain_keys(f, config, meta, where, error));
    BASE_TRY(base_json_int(config, "hidden_size", 0, &width, where, error));
    BASE_TRY(base_json_int(config, "num_attention_heads", 1, &heads, where, error));
    BASE_TRY(base_json_int(config, "head_dim", width / heads, &size, where, error));
    json_object_set_new(config, "rotated", json_integer(size));
    return add_wholes(f, config, pairs, meta, where, error);
}

/* Metadata that is left out where its key is absent or 0. */
static sifr_status add_given(const formats_gguf_family *f, const json_t *config,
                             const key_pair *pairs, formats_gguf_meta *meta, const char *where,
                             sifr_error *error) {
    for (; pairs->from; pairs++) {
        const json_t *value = json_object_get(config, pairs->from);
        if (!value || json_is_null(value)) continue;
        if (json_is_number(value) && json_number_value(value) == 0) continue;
        BASE_TRY(add_real(f, config, pairs->from, pairs->to, meta, where, error));
    }
    return SIFR_OK;
}

sifr_status formats_gguf_granite_keys(const formats_gguf_family *f, json_t *config,
                                      formats_gguf_meta *meta, const char *where,
                                      sifr_error *error) {
    static const key_pair scales[] = {{"attention_multiplier", "attention.scale"},
                                      {"embedding_multiplier", "embedding_scale"},
                                      {"residual_multiplier", "residual_scale"},
                                      {"logits_scaling", "logit_scale"},
                                      {NULL, NULL}};
    int64_t width, heads, size;
    BASE_TRY(base_json_int(config, "hidden_size", 0, &width, where, error));
    BASE_TRY(base_json_int(config, "num_attention_heads", 0, &heads, where, error));
    BASE_TRY(base_json_int(config, "head_dim", 0, &size, where, error));
    /* The converter leaves it out in any case. */
    if (heads > 0 && size == width / heads) json_object_del(config, "head_dim");
    BASE_TRY(formats_gguf_llama_keys(f, config, meta, where, error));
    return add_given(f, config, scales, meta, where, error);
}

sifr_status formats_gguf_ministral3_keys(const formats_gguf_family *f, json_t *config,
                                         formats_gguf_meta *meta, const char *where,
                                         sifr_error *error) {
    static const key_pair scales[] = {{"mscale_all_dim", "rope.scaling.yarn_log_multiplier"},
                                      {"llama_4_scaling_beta", "attention.temperature_scale"},
                                      {NULL, NULL}};
    BASE_TRY(formats_gguf_llama_keys(f, config, meta, where, error));
    return add_given(f, json_object_get(config, "rope_parameters"), scales, meta, where, error);
}

sifr_status formats_gguf_olmo3_keys(const formats_gguf_family *f, json_t *config,
                                    formats_gguf_meta *meta, const char *where, sifr_error *error) {
    enum { PERIOD = 4 };
    BASE_TRY(formats_gguf_plain_keys(f, config, meta, where, error));
    add_window_layers(f, config, 0, PERIOD, meta);
    return add_whole(f, config, "sliding_window", "attention.sliding_window", meta, where, error);
}

/* The part of a head that rotates: "partial_rotary_factor", old or new. */
static sifr_status read_part(const json_t *config, double fallback, double *out, const char *where,
                             sifr_error *error) {
    const json_t *rope = json_object_get(config, "rope_parameters");
    BASE_TRY(base_json_double(config, "partial_rotary_factor", fallback, out, where, error));
    BASE_TRY(base_json_double(rope, "partial_rotary_factor", *out, out, where, error));
    if (*out > 0 && *out <= 1) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s: \"partial_rotary_factor\" is %g, not above 0 to 1",
                     where, *out);
}

sifr_status formats_gguf_glm4_keys(const formats_gguf_family *f, json_t *config,
                                   formats_gguf_meta *meta, const char *where, sifr_error *error) {
    const double usual = 0.5;
    int64_t size;
    double part;
    BASE_TRY(formats_gguf_plain_keys(f, config, meta, where, error));
    BASE_TRY(base_json_int(config, "head_dim", 0, &size, where, error));
    BASE_TRY(read_part(config, usual, &part, where, error));
    json_object_set_new(config, "rotated", json_integer((json_int_t)(part * (double)size)));
    return add_whole(f, config, "rotated", "rope.dimension_count", meta, where, error);
}

sifr_status formats_gguf_neox_keys(const formats_gguf_family *f, json_t *config,
                                   formats_gguf_meta *meta, const char *where, sifr_error *error) {
    static const key_pair pairs[] = {{"max_position_embeddings", "context_length"},
                                     {"hidden_size", "embedding_length"},
                                     {"num_hidden_layers", "block_count"},
                                     {"intermediate_size", "feed_forward_length"},
                                     {"rotated", "rope.dimension_count"},
                                     {"num_attention_heads", "attention.head_count"},
                                     {NULL, NULL}};
    int64_t width, heads;
    double share;
    bool parallel;
    char key[96];
    BASE_TRY(complete(f, config, where, error));
    const json_t *rope = json_object_get(config, "rope_parameters");
    BASE_TRY(base_json_double(rope, "partial_rotary_factor", 0.25, &share, where, error));
    BASE_TRY(base_json_double(config, "rotary_pct", share, &share, where, error));
    BASE_TRY(base_json_int(config, "hidden_size", 0, &width, where, error));
    BASE_TRY(base_json_int(config, "num_attention_heads", 1, &heads, where, error));
    if (!(share > 0 && share <= 1))
        return base_fail(error, SIFR_USAGE, "%s: \"rotary_pct\" is %g, not above 0 to 1", where,
                         share);
    json_object_set_new(config, "rotated",
                        json_integer((json_int_t)(share * (double)(width / heads))));
    BASE_TRY(add_wholes(f, config, pairs, meta, where, error));
    BASE_TRY(base_json_bool(config, "use_parallel_residual", true, &parallel, where, error));
    formats_gguf_add_bool(meta, key_of(f, "use_parallel_residual", key), parallel);
    BASE_TRY(other_rope_keys(f, config, meta, where, error));
    return add_real(f, config, "layer_norm_eps", "attention.layer_norm_epsilon", meta, where,
                    error);
}

sifr_status formats_gguf_gemma_keys(const formats_gguf_family *f, json_t *config,
                                    formats_gguf_meta *meta, const char *where, sifr_error *error) {
    BASE_TRY(complete(f, config, where, error));
    BASE_TRY(add_wholes(f, config, common_wholes, meta, where, error));
    BASE_TRY(add_key_heads(f, config, meta, where, error));
    BASE_TRY(add_wholes(f, config, head_sizes, meta, where, error));
    BASE_TRY(other_rope_keys(f, config, meta, where, error));
    return add_real(f, config, "rms_norm_eps", "attention.layer_norm_rms_epsilon", meta, where,
                    error);
}

sifr_status formats_gguf_gemma2_keys(const formats_gguf_family *f, json_t *config,
                                     formats_gguf_meta *meta, const char *where,
                                     sifr_error *error) {
    BASE_TRY(formats_gguf_gemma_keys(f, config, meta, where, error));
    BASE_TRY(add_real(f, config, "attn_logit_softcapping", "attn_logit_softcapping", meta, where,
                      error));
    BASE_TRY(add_real(f, config, "final_logit_softcapping", "final_logit_softcapping", meta, where,
                      error));
    add_window_layers(f, config, 2, 2, meta);
    return add_whole(f, config, "sliding_window", "attention.sliding_window", meta, where, error);
}

sifr_status formats_gguf_gemma3_keys(const formats_gguf_family *f, json_t *config,
                                     formats_gguf_meta *meta, const char *where,
                                     sifr_error *error) {
    static const key_pair cap[] = {{"final_logit_softcapping", "final_logit_softcapping"},
                                   {NULL, NULL}};
    int64_t pattern;
    BASE_TRY(formats_gguf_plain_keys(f, config, meta, where, error));
    BASE_TRY(add_given(f, config, cap, meta, where, error));
    BASE_TRY(base_json_int(config, "sliding_window_pattern", 6, &pattern, where, error));
    if (pattern == 1) return SIFR_OK;
    add_window_layers(f, config, 6, pattern > 0 ? (size_t)pattern : 6, meta);
    return add_whole(f, config, "sliding_window", "attention.sliding_window", meta, where, error);
}

/* --- Gemma 4 --- */

typedef struct full_heads {
    int64_t size, kv;
} full_heads;

/* Gemma 4's last layer never has a window. */
static bool is_full(const json_t *config, size_t i, size_t count) {
    enum { PERIOD = 6 };
    return i + 1 == count || !has_window(config, i, PERIOD);
}

/* "per_layer_config", which decides where it is: all layers without a window are alike in it, and
 * the others as the config says. */
static sifr_status read_each_layer(const json_t *config, size_t count, full_heads *out,
                                   const char *where, sifr_error *error) {
    const full_heads own = *out;
    size_t full = 0, named = 0;
    const char *key;
    json_t *layer;
    for (size_t i = 0; i < count; i++) full += is_full(config, i, count);
    json_object_foreach(json_object_get(config, "per_layer_config"), key, layer) {
        full_heads its;
        size_t i = (size_t)strtoul(key, NULL, 10);
        BASE_TRY(base_json_int(layer, "head_dim", own.size, &its.size, where, error));
        BASE_TRY(base_json_int(layer, "num_key_value_heads", own.kv, &its.kv, where, error));
        bool is_own = its.size == own.size && its.kv == own.kv;
        bool same = is_full(config, i, count)
                        ? !named || (its.size == out->size && its.kv == out->kv)
                        : is_own;
        if (i >= count || !same)
            return base_fail(error, SIFR_USAGE,
                             "%s: \"per_layer_config\": \"%.20s\": llama.cpp's gemma4 has one size "
                             "of heads for layers with a window and one for the others",
                             where, key);
        if (is_full(config, i, count)) *out = its, named++;
    }
    if (named == 0 || named == full || (out->size == own.size && out->kv == own.kv)) return SIFR_OK;
    return base_fail(
        error, SIFR_USAGE,
        "%s: \"per_layer_config\": llama.cpp's gemma4 has one size of heads for layers "
        "without a window",
        where);
}

static sifr_status read_full_heads(const json_t *config, size_t count, full_heads *out,
                                   const char *where, sifr_error *error) {
    bool shared;
    BASE_TRY(base_json_int(config, "head_dim", 0, &out->size, where, error));
    BASE_TRY(base_json_int(config, "num_key_value_heads", 0, &out->kv, where, error));
    if (json_object_get(config, "per_layer_config"))
        return read_each_layer(config, count, out, where, error);
    BASE_TRY(base_json_bool(config, "attention_k_eq_v", false, &shared, where, error));
    BASE_TRY(base_json_int(config, "global_head_dim", 512, &out->size, where, error));
    if (!shared) return SIFR_OK;
    return base_json_int(config, "num_global_key_value_heads", out->kv, &out->kv, where, error);
}

/* Its rotation of full layers is a list of factors; it has no place for another. */
static sifr_status check_proportional(const json_t *rope, const char *where, sifr_error *error) {
    const char *type = json_string_value(json_object_get(rope, "rope_type"));
    const json_t *factor = json_object_get(rope, "factor");
    bool plain = !json_is_number(factor) || json_number_value(factor) == 1;
    if (plain && type && !strcmp(type, "proportional")) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: \"rope_parameters\": llama.cpp's gemma4 has rotary positions of type "
                     "proportional, with no factor, in layers without a window",
                     where);
}

static void add_kv_heads(const formats_gguf_family *f, const json_t *config, size_t count,
                         int64_t own, int64_t full, formats_gguf_meta *meta) {
    char key[96];
    key_of(f, "attention.head_count_kv", key);
    if (own == full) {
        formats_gguf_add_u32(meta, key, (uint32_t)own);
        return;
    }
    formats_gguf_add_array(meta, key, FORMATS_GGUF_I32, count);
    for (size_t i = 0; i < count; i++)
        formats_gguf_item_i32(meta, (int32_t)(is_full(config, i, count) ? full : own));
}

static void add_full_layers(const formats_gguf_family *f, const json_t *config, size_t count,
                            formats_gguf_meta *meta) {
    char key[96];
    formats_gguf_add_array(meta, key_of(f, "attention.sliding_window_pattern", key),
                           FORMATS_GGUF_BOOL, count);
    for (size_t i = 0; i < count; i++) formats_gguf_item_bool(meta, !is_full(config, i, count));
}

/* What the class fills in where "rope_parameters" is absent. */
static void complete_rope(json_t *config) {
    if (json_is_object(json_object_get(config, "rope_parameters"))) return;
    json_object_set_new(config, "rope_parameters",
                        json_pack("{s:{s:s, s:f}, s:{s:s, s:f, s:f}}", "sliding_attention",
                                  "rope_type", "default", "rope_theta", 1e4, "full_attention",
                                  "rope_type", "proportional", "rope_theta", 1e6,
                                  "partial_rotary_factor", 0.25));
}

sifr_status formats_gguf_gemma4_keys(const formats_gguf_family *f, json_t *config,
                                     formats_gguf_meta *meta, const char *where,
                                     sifr_error *error) {
    static const key_pair pairs[] = {
        {"num_hidden_layers", "block_count"},
        {"max_position_embeddings", "context_length"},
        {"hidden_size", "embedding_length"},
        {"intermediate_size", "feed_forward_length"},
        {"num_attention_heads", "attention.head_count"},
        {"sliding_window", "attention.sliding_window"},
        {"full_size", "attention.key_length"},
        {"full_size", "attention.value_length"},
        {"head_dim", "attention.key_length_swa"},
        {"head_dim", "attention.value_length_swa"},
        {"full_size", "rope.dimension_count"},
        {"head_dim", "rope.dimension_count_swa"},
        {"num_kv_shared_layers", "attention.shared_kv_layers"},
        {"hidden_size_per_layer_input", "embedding_length_per_layer_input"},
        {NULL, NULL}};
    static const key_pair cap[] = {{"final_logit_softcapping", "final_logit_softcapping"},
                                   {NULL, NULL}};
    enum { MOST_LAYERS = 10000 };
    full_heads full;
    int64_t layers;
    complete_rope(config);
    BASE_TRY(complete(f, config, where, error));
    BASE_TRY(base_json_int(config, "num_hidden_layers", 0, &layers, where, error));
    if (layers < 1 || layers > MOST_LAYERS)
        return base_fail(error, SIFR_USAGE, "%s: \"num_hidden_layers\" is %lld, must be in 1 … %d",
                         where, (long long)layers, MOST_LAYERS);
    BASE_TRY(read_full_heads(config, (size_t)layers, &full, where, error));
    const json_t *rope = json_object_get(config, "rope_parameters");
    BASE_TRY(check_proportional(rope, where, error));
    if (!json_object_get(config, "num_kv_shared_layers"))
        json_object_set_new(config, "num_kv_shared_layers", json_integer(0));
    /* The other class has no such key. */
    int inputs = strcmp(f->model_type, "gemma4_text") ? 0 : 256;
    if (!json_object_get(config, "hidden_size_per_layer_input"))
        json_object_set_new(config, "hidden_size_per_layer_input", json_integer(inputs));
    json_object_set_new(config, "full_size", json_integer(full.size));
    BASE_TRY(add_wholes(f, config, pairs, meta, where, error));
    BASE_TRY(add_given(f, config, cap, meta, where, error));
    int64_t own;
    BASE_TRY(base_json_int(config, "num_key_value_heads", 0, &own, where, error));
    add_kv_heads(f, config, (size_t)layers, own, full.kv, meta);
    add_full_layers(f, config, (size_t)layers, meta);
    BASE_TRY(rope_keys(f, rope, meta, where, error));
    return add_real(f, config, "rms_norm_eps", "attention.layer_norm_rms_epsilon", meta, where,
                    error);
}

/* The factor of attention that goes with factors of rotation for long texts. */
static void add_long_factor(const formats_gguf_family *f, const json_t *rope, int64_t length,
                            int64_t original, formats_gguf_meta *meta) {
    char key[96];
    double scale = (double)length / (double)original;
    double factor = scale > 1 ? sqrt(1 + log(scale) / log((double)original)) : 1;
    if (json_array_size(json_object_get(rope, "long_factor")))
        formats_gguf_add_float(meta, key_of(f, "rope.scaling.attn_factor", key), (float)factor);
}

sifr_status formats_gguf_phi3_keys(const formats_gguf_family *f, json_t *config,
                                   formats_gguf_meta *meta, const char *where, sifr_error *error) {
    static const key_pair more[] = {{"original", "rope.scaling.original_context_length"},
                                    {"rotated", "rope.dimension_count"},
                                    {"sliding_window", "attention.sliding_window"},
                                    {NULL, NULL}};
    int64_t width, heads, length, original;
    double share;
    BASE_TRY(complete(f, config, where, error));
    json_t *rope = json_object_get(config, "rope_parameters");
    BASE_TRY(base_json_int(config, "hidden_size", 0, &width, where, error));
    BASE_TRY(base_json_int(config, "num_attention_heads", 1, &heads, where, error));
    BASE_TRY(base_json_int(config, "max_position_embeddings", 0, &length, where, error));
    BASE_TRY(base_json_int(config, "original_max_position_embeddings", 0, &original, where, error));
    BASE_TRY(
        base_json_int(rope, "original_max_position_embeddings", original, &original, where, error));
    BASE_TRY(read_part(config, 1, &share, where, error));
    if (original < 2)
        return base_fail(error, SIFR_USAGE,
                         "%s: \"original_max_position_embeddings\" is %lld, not 2 or more", where,
                         (long long)original);
    json_object_set_new(config, "original", json_integer(original));
    json_object_set_new(config, "rotated",
                        json_integer((json_int_t)(share * (double)width) / heads));
    if (!json_is_integer(json_object_get(config, "sliding_window")))
        json_object_set_new(config, "sliding_window", json_integer(0));
    BASE_TRY(add_wholes(f, config, common_wholes, meta, where, error));
    BASE_TRY(add_key_heads(f, config, meta, where, error));
    BASE_TRY(add_wholes(f, config, more, meta, where, error));
    BASE_TRY(add_real(f, config, "rms_norm_eps", "attention.layer_norm_rms_epsilon", meta, where,
                      error));
    add_long_factor(f, rope, length, original, meta);
    return add_real(f, rope, "rope_theta", "rope.freq_base", meta, where, error);
}

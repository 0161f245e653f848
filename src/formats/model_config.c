#include "formats/model_config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

enum { CONFIG_FILE_LIMIT = 16 << 20 };

/* Bounds that keep every count of parameters or bytes made from a config far from 2^63. */
#define LIMIT_WIDTH (INT64_C(1) << 18)
#define LIMIT_INNER (INT64_C(1) << 20)
#define LIMIT_LAYERS 10000
#define LIMIT_HEADS 65536
#define LIMIT_ID INT32_MAX

typedef struct config_reader {
    const json_t *json;
    const char *name;
    sifr_error *error;
} config_reader;

static const json_t *member(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

/* `alias` (may be NULL) is another spelling of the same key. */
static sifr_status read_int(const config_reader *r, const char *key, const char *alias,
                            int64_t fallback, int64_t least, int64_t most, int64_t *out) {
    const char *used = key;
    if (alias && member(r->json, alias)) {
        int64_t a, b;
        BASE_TRY(base_json_int(r->json, alias, 0, &a, r->name, r->error));
        BASE_TRY(base_json_int(r->json, key, a, &b, r->name, r->error));
        if (a != b) {
            return base_fail(r->error, SIFR_USAGE,
                             "%s: \"%s\" is %lld but \"%s\", the same thing, is %lld: remove one",
                             r->name, key, (long long)b, alias, (long long)a);
        }
        used = alias;
    }
    BASE_TRY(base_json_int(r->json, used, fallback, out, r->name, r->error));
    if (*out < least || *out > most) {
        return base_fail(r->error, SIFR_USAGE, "%s: \"%s\" is %lld, must be in %lld … %lld",
                         r->name, used, (long long)*out, (long long)least, (long long)most);
    }
    return SIFR_OK;
}

/* In least … most, the upper end left out where `open` is set; NaN never is. */
static sifr_status read_double_of(const config_reader *r, const json_t *object, const char *key,
                                  double fallback, double least, double most, bool open,
                                  double *out) {
    BASE_TRY(base_json_double(object, key, fallback, out, r->name, r->error));
    if (!(*out >= least) || !(open ? *out < most : *out <= most)) {
        return base_fail(r->error, SIFR_USAGE, "%s: \"%s\" is %g, must be %s %g and %s %g", r->name,
                         key, *out, "at least", least, open ? "less than" : "at most", most);
    }
    return SIFR_OK;
}

static sifr_status read_double(const config_reader *r, const char *key, double fallback,
                               double least, double most, bool open, double *out) {
    return read_double_of(r, r->json, key, fallback, least, most, open, out);
}

/* Absent: the default of transformers; null: none. Ids at or past the vocabulary's end are common
 * in small models that keep the defaults, and never match a token. */
static sifr_status read_token_id(const config_reader *r, const char *key, int64_t fallback,
                                 int64_t *out) {
    if (!json_object_get(r->json, key)) return *out = fallback, SIFR_OK;
    return read_int(r, key, NULL, -1, -1, LIMIT_ID, out);
}

static sifr_status read_eos(const config_reader *r, int64_t fallback, formats_model_config *out) {
    const json_t *list = json_object_get(r->json, "eos_token_id");
    if (!json_is_array(list)) {
        BASE_TRY(read_token_id(r, "eos_token_id", fallback, &out->eos_token_ids[0]));
        out->eos_count = out->eos_token_ids[0] >= 0;
        return SIFR_OK;
    }
    if (json_array_size(list) > FORMATS_EOS_LIMIT) {
        return base_fail(r->error, SIFR_USAGE, "%s: \"eos_token_id\" has %zu ids, at most %d work",
                         r->name, json_array_size(list), FORMATS_EOS_LIMIT);
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *id = json_array_get(list, i);
        int64_t value = json_is_integer(id) ? (int64_t)json_integer_value(id) : -1;
        if (value < 0 || value > LIMIT_ID) {
            return base_fail(r->error, SIFR_USAGE,
                             "%s: \"eos_token_id\" must hold whole numbers in 0 … %d", r->name,
                             LIMIT_ID);
        }
        out->eos_token_ids[out->eos_count++] = value;
    }
    return SIFR_OK;
}

static sifr_status refuse(const config_reader *r, const char *key, const char *why) {
    char *text = json_dumps(json_object_get(r->json, key), JSON_ENCODE_ANY | JSON_COMPACT);
    sifr_status status =
        base_fail(r->error, SIFR_USAGE, "%s: \"%s\": %.60s is not supported yet: %s", r->name, key,
                  text ? text : "this", why);
    free(text);
    return status;
}

typedef enum config_harmless {
    ONLY_FALSE, /* the value that does not change the mathematics */
    ONLY_TRUE,
    ONLY_ONE,
    ONLY_NULL, /* or absent, false, or empty */
} config_harmless;

/* Keys that change the mathematics, with the only value that is built; null is as good as absent.
 * Many are of other families (Granite, MiniCPM, Cohere, Gemma, MPT, GPT-NeoX, DeepSeek …): whoever
 * puts one into a config of ours means it. */
static const struct {
    const char *key;
    config_harmless value;
    const char *why;
} mathematics[] = {
    {"scale_attn_weights", ONLY_TRUE, "attention is always scaled by 1/sqrt(head_dim)"},
    {"scale_attn_by_inverse_layer_idx", ONLY_FALSE, "attention is scaled alike in every layer"},
    {"reorder_and_upcast_attn", ONLY_FALSE, "attention has one order of operations"},
    {"add_cross_attention", ONLY_FALSE, "only stand-alone decoders are supported"},
    {"is_encoder_decoder", ONLY_FALSE, "only stand-alone decoders are supported"},
    {"is_causal", ONLY_TRUE, "attention is always causal"},
    {"use_bidirectional_attention", ONLY_FALSE, "attention is always causal"},
    {"pretraining_tp", ONLY_ONE, "set it to 1, which gives the same results"},
    {"partial_rotary_factor", ONLY_ONE, "rotary positions always apply to the whole head"},
    {"quantization_config", ONLY_NULL, "train from weights in F32, BF16 or F16"},
    {"pruned_heads", ONLY_NULL, "every layer has all its heads"},
    {"attn_logit_softcapping", ONLY_NULL, "scores are not capped"},
    {"final_logit_softcapping", ONLY_NULL, "logits are not capped"},
    {"no_rope_layers", ONLY_NULL, "every layer has rotary positions"},
    {"num_local_experts", ONLY_NULL, "there are no mixtures of experts"},
    {"num_experts", ONLY_NULL, "there are no mixtures of experts"},
    {"n_routed_experts", ONLY_NULL, "there are no mixtures of experts"},
    {"embedding_multiplier", ONLY_ONE, "embeddings are not scaled"},
    {"embedding_scale", ONLY_ONE, "embeddings are not scaled"},
    {"scale_emb", ONLY_ONE, "embeddings are not scaled"},
    {"scale_embedding", ONLY_FALSE, "embeddings are not scaled"},
    {"residual_multiplier", ONLY_ONE, "what a layer adds is not scaled"},
    {"scale_depth", ONLY_NULL, "what a layer adds is not scaled"},
    {"logit_scale", ONLY_ONE, "logits are not scaled"},
    {"logits_scaling", ONLY_ONE, "logits are not scaled"},
    {"lm_head_multiplier", ONLY_ONE, "logits are not scaled"},
    {"key_multiplier", ONLY_ONE, "keys are not scaled"},
    {"attn_scale", ONLY_NULL, "attention is always scaled by 1/sqrt(head_dim)"},
    {"attn_temperature_tuning", ONLY_NULL, "attention is always scaled by 1/sqrt(head_dim)"},
    {"alibi", ONLY_FALSE, "scores have no bias by distance"},
    {"use_alibi", ONLY_FALSE, "scores have no bias by distance"},
    {"clip_qkv", ONLY_NULL, "queries, keys and values are not clipped"},
    {"attn_config", ONLY_NULL, "attention has no settings of its own"},
    {"logit_soft_cap", ONLY_NULL, "logits are not capped"},
    {"use_qk_norm", ONLY_FALSE, "queries and keys are not normalised"},
    {"qk_norm", ONLY_FALSE, "queries and keys are not normalised"},
    {"qk_layernorm", ONLY_FALSE, "queries and keys are not normalised"},
    {"use_parallel_residual", ONLY_FALSE, "attention and MLP follow each other"},
    {"parallel_attn", ONLY_FALSE, "attention and MLP follow each other"},
    {"rotary_pct", ONLY_ONE, "rotary positions always apply to the whole head"},
    {"kv_lora_rank", ONLY_NULL, "keys and values have full weights"},
    {"q_lora_rank", ONLY_NULL, "queries have full weights"},
};

static bool is_harmless(const json_t *value, config_harmless harmless) {
    switch (harmless) {
    case ONLY_FALSE:
        return json_is_false(value);
    case ONLY_TRUE:
        return json_is_true(value);
    case ONLY_ONE:
        return json_is_number(value) && json_number_value(value) == 1.0;
    case ONLY_NULL:
        break;
    }
    if (json_is_false(value)) return true;
    return (json_is_object(value) || json_is_array(value)) && !json_object_size(value) &&
           !json_array_size(value);
}

static sifr_status check_mathematics(const config_reader *r) {
    for (size_t i = 0; i < sizeof mathematics / sizeof *mathematics; i++) {
        const json_t *value = member(r->json, mathematics[i].key);
        if (value && !is_harmless(value, mathematics[i].value)) {
            return refuse(r, mathematics[i].key, mathematics[i].why);
        }
    }
    if (member(r->json, "sliding_window") &&
        !json_is_false(json_object_get(r->json, "use_sliding_window"))) {
        return refuse(r, "sliding_window", "attention always covers the whole sequence");
    }
    const json_t *layers = member(r->json, "layer_types");
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const char *type = json_string_value(json_array_get(layers, i));
        if (!type || strcmp(type, "full_attention") != 0) {
            return refuse(r, "layer_types", "every layer has full attention");
        }
    }
    return SIFR_OK;
}

static sifr_status check_architecture(const config_reader *r, const char *type) {
    static const char *const known[][2] = {
        {"gpt2", "GPT2LMHeadModel"},   {"gpt2", "GPT2Model"},   {"llama", "LlamaForCausalLM"},
        {"llama", "LLaMAForCausalLM"}, {"llama", "LlamaModel"},
    };
    const json_t *list = member(r->json, "architectures");
    if (list && !json_is_array(list)) {
        return base_fail(r->error, SIFR_USAGE, "%s: \"architectures\" must be a list of names",
                         r->name);
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *given = json_string_value(json_array_get(list, i));
        bool found = false;
        for (size_t k = 0; given && k < sizeof known / sizeof *known; k++) {
            found |= !strcmp(known[k][0], type) && !strcmp(known[k][1], given);
        }
        if (!found) {
            return base_fail(
                r->error, SIFR_USAGE,
                "%s: \"architectures\" names %.80s, which is not supported for model_type "
                "\"%s\" (supported: %s)",
                r->name, given ? given : "something that is not a string", type,
                !strcmp(type, "gpt2") ? "GPT2LMHeadModel" : "LlamaForCausalLM");
        }
    }
    return SIFR_OK;
}

static sifr_status read_activation(const config_reader *r, const char *key, const char *fallback,
                                   formats_activation *out) {
    static const struct {
        const char *key, *name;
        formats_activation activation;
    } known[] = {
        {"activation_function", "gelu_new", FORMATS_GELU_TANH},
        {"activation_function", "gelu_pytorch_tanh", FORMATS_GELU_TANH},
        {"activation_function", "gelu_fast", FORMATS_GELU_TANH},
        {"activation_function", "gelu", FORMATS_GELU_ERF},
        {"hidden_act", "silu", FORMATS_SILU},
        {"hidden_act", "swish", FORMATS_SILU},
    };
    const char *name;
    BASE_TRY(base_json_string(r->json, key, fallback, &name, r->name, r->error));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!strcmp(known[i].key, key) && !strcmp(known[i].name, name)) {
            return *out = known[i].activation, SIFR_OK;
        }
    }
    return refuse(r, key,
                  !strcmp(key, "hidden_act") ? "supported: silu"
                                             : "supported: gelu_new, gelu_pytorch_tanh, gelu");
}

/* Rope scaling stands in "rope_scaling" (transformers 4) or "rope_parameters" (5); the base in the
 * latter or at the top. */
static sifr_status read_rope(const config_reader *r, formats_model_config *out) {
    const char *key = "rope_scaling";
    const json_t *rope = member(r->json, key), *newer = member(r->json, "rope_parameters");
    if (rope && newer && !json_equal(rope, newer)) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"rope_scaling\" and \"rope_parameters\" differ: remove one",
                         r->name);
    }
    if (newer) rope = newer, key = "rope_parameters";
    if (rope && !json_is_object(rope)) {
        return base_fail(r->error, SIFR_USAGE, "%s: \"%s\" must be an object", r->name, key);
    }
    bool both = member(r->json, "rope_theta") && member(rope, "rope_theta");
    BASE_TRY(read_double(r, "rope_theta", 10000, 1, 1e15, false, &out->rope_theta));
    double top = out->rope_theta;
    BASE_TRY(read_double_of(r, rope, "rope_theta", top, 1, 1e15, false, &out->rope_theta));
    if (both && top != out->rope_theta) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"rope_theta\" is %g and \"%s.rope_theta\" is %g: remove one",
                         r->name, top, key, out->rope_theta);
    }
    const char *older_type, *type;
    BASE_TRY(base_json_string(rope, "type", "default", &older_type, r->name, r->error));
    BASE_TRY(base_json_string(rope, "rope_type", older_type, &type, r->name, r->error));
    if (member(rope, "type") && strcmp(type, older_type) != 0) {
        return base_fail(r->error, SIFR_USAGE, "%s: \"%s\" has two types, %.40s and %.40s", r->name,
                         key, type, older_type);
    }
    const json_t *part = member(rope, "partial_rotary_factor");
    if (part && !is_harmless(part, ONLY_ONE)) {
        return refuse(r, key,
                      "rotary positions always apply to the whole head (partial_rotary_factor 1)");
    }
    out->rope_factor = 1;
    if (!strcmp(type, "default")) return SIFR_OK;
    bool llama3 = !strcmp(type, "llama3");
    if (!llama3 && strcmp(type, "linear") != 0) {
        return refuse(r, key, "supported rope types: default, linear, llama3");
    }
    out->rope_kind = llama3 ? FORMATS_ROPE_LLAMA3 : FORMATS_ROPE_LINEAR;
    static const char *const needed[] = {"factor", "low_freq_factor", "high_freq_factor"};
    for (int i = 0; i < (llama3 ? 3 : 1); i++) {
        if (!member(rope, needed[i])) {
            return base_fail(r->error, SIFR_USAGE, "%s: \"%s\" of type %s lacks \"%s\"", r->name,
                             key, type, needed[i]);
        }
    }
    BASE_TRY(read_double_of(r, rope, "factor", 1, 1, 1e6, false, &out->rope_factor));
    if (!llama3) return SIFR_OK;
    BASE_TRY(read_double_of(r, rope, "low_freq_factor", 1, 1e-6, 1e6, false,
                            &out->rope_low_freq_factor));
    BASE_TRY(read_double_of(r, rope, "high_freq_factor", 4, 1e-6, 1e6, false,
                            &out->rope_high_freq_factor));
    if (out->rope_high_freq_factor <= out->rope_low_freq_factor) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"%s\": high_freq_factor %g must be more than low_freq_factor %g",
                         r->name, key, out->rope_high_freq_factor, out->rope_low_freq_factor);
    }
    static const char original[] = "original_max_position_embeddings";
    const json_t *holder = member(r->json, original) ? r->json : rope;
    return read_double_of(r, holder, original, (double)out->max_position_embeddings, 1, LIMIT_ID,
                          false, &out->rope_original_max_position);
}

static sifr_status read_gpt2(const config_reader *r, formats_model_config *out) {
    BASE_TRY(read_int(r, "vocab_size", NULL, 50257, 1, LIMIT_ID, &out->vocab_size));
    BASE_TRY(read_int(r, "n_embd", "hidden_size", 768, 1, LIMIT_WIDTH, &out->hidden_size));
    BASE_TRY(
        read_int(r, "n_layer", "num_hidden_layers", 12, 1, LIMIT_LAYERS, &out->num_hidden_layers));
    BASE_TRY(read_int(r, "n_head", "num_attention_heads", 12, 1, LIMIT_HEADS,
                      &out->num_attention_heads));
    BASE_TRY(read_int(r, "n_positions", "max_position_embeddings", 1024, 1, LIMIT_ID,
                      &out->max_position_embeddings));
    BASE_TRY(read_int(r, "n_inner", NULL, 4 * out->hidden_size, 1, LIMIT_INNER,
                      &out->intermediate_size));
    BASE_TRY(read_double(r, "layer_norm_epsilon", 1e-5, 1e-30, 1, false, &out->norm_eps));
    BASE_TRY(read_double(r, "embd_pdrop", 0.1, 0, 1, true, &out->embedding_dropout));
    BASE_TRY(read_double(r, "resid_pdrop", 0.1, 0, 1, true, &out->residual_dropout));
    BASE_TRY(read_double(r, "attn_pdrop", 0.1, 0, 1, true, &out->attention_dropout));
    BASE_TRY(read_activation(r, "activation_function", "gelu_new", &out->activation));
    BASE_TRY(base_json_bool(r->json, "tie_word_embeddings", true, &out->tie_word_embeddings,
                            r->name, r->error));
    BASE_TRY(read_token_id(r, "bos_token_id", 50256, &out->bos_token_id));
    BASE_TRY(read_eos(r, 50256, out));
    out->num_key_value_heads = out->num_attention_heads;
    out->attention_bias = out->mlp_bias = true;
    out->rope_factor = 1;
    return SIFR_OK;
}

static sifr_status read_llama(const config_reader *r, formats_model_config *out) {
    BASE_TRY(read_int(r, "vocab_size", NULL, 32000, 1, LIMIT_ID, &out->vocab_size));
    BASE_TRY(read_int(r, "hidden_size", NULL, 4096, 1, LIMIT_WIDTH, &out->hidden_size));
    BASE_TRY(read_int(r, "num_hidden_layers", NULL, 32, 1, LIMIT_LAYERS, &out->num_hidden_layers));
    BASE_TRY(
        read_int(r, "num_attention_heads", NULL, 32, 1, LIMIT_HEADS, &out->num_attention_heads));
    BASE_TRY(read_int(r, "num_key_value_heads", NULL, out->num_attention_heads, 1, LIMIT_HEADS,
                      &out->num_key_value_heads));
    BASE_TRY(
        read_int(r, "intermediate_size", NULL, 11008, 1, LIMIT_INNER, &out->intermediate_size));
    BASE_TRY(read_int(r, "max_position_embeddings", NULL, 2048, 1, LIMIT_ID,
                      &out->max_position_embeddings));
    BASE_TRY(read_double(r, "rms_norm_eps", 1e-6, 1e-30, 1, false, &out->norm_eps));
    BASE_TRY(read_double(r, "attention_dropout", 0, 0, 1, true, &out->attention_dropout));
    BASE_TRY(read_activation(r, "hidden_act", "silu", &out->activation));
    BASE_TRY(base_json_bool(r->json, "tie_word_embeddings", false, &out->tie_word_embeddings,
                            r->name, r->error));
    BASE_TRY(
        base_json_bool(r->json, "attention_bias", false, &out->attention_bias, r->name, r->error));
    BASE_TRY(base_json_bool(r->json, "mlp_bias", false, &out->mlp_bias, r->name, r->error));
    BASE_TRY(read_token_id(r, "bos_token_id", 1, &out->bos_token_id));
    BASE_TRY(read_eos(r, 2, out));
    if (out->num_key_value_heads > out->num_attention_heads ||
        out->num_attention_heads % out->num_key_value_heads) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"num_attention_heads\" %lld is no multiple of "
                         "\"num_key_value_heads\" %lld",
                         r->name, (long long)out->num_attention_heads,
                         (long long)out->num_key_value_heads);
    }
    return read_rope(r, out);
}

static sifr_status read_heads(const config_reader *r, bool rotary, formats_model_config *out) {
    if (out->hidden_size % out->num_attention_heads) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: the hidden size %lld is no multiple of the %lld attention heads",
                         r->name, (long long)out->hidden_size, (long long)out->num_attention_heads);
    }
    int64_t natural = out->hidden_size / out->num_attention_heads;
    out->head_dim = natural;
    if (!rotary) return SIFR_OK; /* GPT-2 has no key for it */
    BASE_TRY(read_int(r, "head_dim", NULL, natural, 1, LIMIT_HEADS, &out->head_dim));
    if (out->head_dim % 2) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: a head of %lld elements cannot have rotary positions, which turn "
                         "pairs: an even \"head_dim\" is needed",
                         r->name, (long long)out->head_dim);
    }
    if (out->head_dim * out->num_attention_heads > LIMIT_INNER) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: %lld heads of %lld elements are more than %lld together", r->name,
                         (long long)out->num_attention_heads, (long long)out->head_dim,
                         (long long)LIMIT_INNER);
    }
    return SIFR_OK;
}

/* Scales of other families are accepted if they have the value that our families always use. */
static sifr_status check_scales(const config_reader *r, const formats_model_config *c) {
    const struct {
        const char *key;
        double neutral;
        const char *why;
    } scales[] = {
        {"attention_multiplier", 1 / sqrt((double)c->head_dim),
         "attention is always scaled by 1/sqrt(head_dim)"},
        {"query_pre_attn_scalar", (double)c->head_dim,
         "attention is always scaled by 1/sqrt(head_dim)"},
        {"rotary_dim", (double)c->head_dim, "rotary positions always apply to the whole head"},
        {"dim_model_base", (double)c->hidden_size, "logits are not scaled"},
    };
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        const json_t *value = member(r->json, scales[i].key);
        double number = json_is_number(value) ? json_number_value(value) : NAN;
        if (value && !(fabs(number - scales[i].neutral) <= 1e-6 * scales[i].neutral))
            return refuse(r, scales[i].key, scales[i].why);
    }
    return SIFR_OK;
}

static sifr_status read_config(const config_reader *r, formats_model_config *out) {
    const char *type;
    if (!json_is_object(r->json)) {
        return base_fail(r->error, SIFR_USAGE, "%s: must be a JSON object", r->name);
    }
    BASE_TRY(base_json_string(r->json, "model_type", NULL, &type, r->name, r->error));
    bool llama = type && !strcmp(type, "llama");
    if (!llama && !(type && !strcmp(type, "gpt2"))) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"model_type\" %s%.60s%s; supported are \"gpt2\" and \"llama\"",
                         r->name, type ? "is \"" : "is missing", type ? type : "",
                         type ? "\"" : "");
    }
    strcpy(out->model_type, type);
    BASE_TRY(check_architecture(r, type));
    BASE_TRY(check_mathematics(r));
    BASE_TRY(llama ? read_llama(r, out) : read_gpt2(r, out));
    BASE_TRY(read_heads(r, llama, out));
    BASE_TRY(check_scales(r, out));
    BASE_TRY(read_double(r, "initializer_range", 0.02, 0, 1, false, &out->initializer_range));
    return read_token_id(r, "pad_token_id", -1, &out->pad_token_id);
}

sifr_status formats_model_config_parse(const char *text, size_t size, const char *name,
                                       formats_model_config *out, sifr_error *error) {
    json_t *json;
    *out = (formats_model_config){0};
    BASE_TRY(base_json_parse(text, size, name, &json, error));
    sifr_status status = read_config(&(config_reader){json, name, error}, out);
    json_decref(json);
    return status;
}

sifr_status formats_model_config_load(const char *path, formats_model_config *out,
                                      sifr_error *error) {
    char file[BASE_PATH_LENGTH], *text;
    size_t size;
    if (base_is_directory(path)) {
        BASE_TRY(base_path_join(file, path, "config.json", error));
        path = file;
    }
    BASE_TRY(base_read_file(path, CONFIG_FILE_LIMIT, &text, &size, error));
    sifr_status status = formats_model_config_parse(text, size, path, out, error);
    free(text);
    return status;
}

const char *formats_activation_name(formats_activation activation) {
    static const char *const names[] = {"gelu_new", "gelu", "silu"};
    return names[activation];
}

const char *formats_rope_kind_name(formats_rope_kind kind) {
    static const char *const names[] = {"default", "linear", "llama3"};
    return names[kind];
}

/* Keys of config.json that change the mathematics: each architecture reads its own, and those of
 * other architectures are refused by name. */
#include <math.h>
#include <string.h>

#include "model/model_reader.h"
#include "model/registry.h"

typedef enum model_harmless {
    ONLY_FALSE, /* the value that does not change the mathematics */
    ONLY_TRUE,
    ONLY_ONE,
    ONLY_NULL, /* or absent, false, or empty */
} model_harmless;

/* Keys that change the mathematics, with the only value that is built; null is as good as absent.
 * Many are of other families (Granite, MiniCPM, Cohere, Gemma, MPT, GPT-NeoX, DeepSeek …): whoever
 * puts one into a config of ours means it. */
static const struct {
    const char *key;
    model_harmless value;
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
    {"alibi", ONLY_FALSE, "only model_type bloom has a bias by distance (ALiBi)"},
    {"use_alibi", ONLY_FALSE, "only model_type bloom has a bias by distance (ALiBi)"},
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

static bool is_harmless(const json_t *value, model_harmless harmless) {
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

bool model_reads(const model_reader *r, const char *key) {
    for (const char *const *at = r->architecture->keys; at && *at; at++) {
        if (!strcmp(*at, key)) return true;
    }
    return false;
}

sifr_status model_check_keys(const model_reader *r) {
    for (size_t i = 0; i < sizeof mathematics / sizeof *mathematics; i++) {
        if (model_reads(r, mathematics[i].key)) continue;
        const json_t *value = model_member(r->json, mathematics[i].key);
        if (value && !is_harmless(value, mathematics[i].value)) {
            return model_refuse(r, mathematics[i].key, mathematics[i].why);
        }
    }
    if (!model_reads(r, "sliding_window") && model_member(r->json, "sliding_window") &&
        !json_is_false(json_object_get(r->json, "use_sliding_window"))) {
        return model_refuse(r, "sliding_window", "attention always covers the whole sequence");
    }
    if (model_reads(r, "layer_types")) return SIFR_OK;
    const json_t *layers = model_member(r->json, "layer_types");
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const char *type = json_string_value(json_array_get(layers, i));
        if (!type || strcmp(type, "full_attention") != 0) {
            return model_refuse(r, "layer_types", "every layer has full attention");
        }
    }
    return SIFR_OK;
}

/* Scales of other families are accepted if they have the value that our families always use. */
sifr_status model_check_scales(const model_reader *r, const model_config *c) {
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
        if (model_reads(r, scales[i].key)) continue;
        const json_t *value = model_member(r->json, scales[i].key);
        double number = json_is_number(value) ? json_number_value(value) : NAN;
        if (value && !(fabs(number - scales[i].neutral) <= 1e-6 * scales[i].neutral))
            return model_refuse(r, scales[i].key, scales[i].why);
    }
    return SIFR_OK;
}

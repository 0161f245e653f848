/* Gemma 2 (Gemma Team 2024) as transformers' Gemma2ForCausalLM has it: Gemma with norms on both
 * sides of attention and MLP, every other layer with a window, caps on scores and logits, and a
 * scale of the scores of its own. VaultGemma (Google 2025), VaultGemmaForCausalLM, is the same
 * without the norms behind attention and MLP. */
#include <math.h>

#include "model/architectures/gemma.h"

sifr_status gemma_read_scores(const model_reader *r, model_config *out) {
    double scalar;
    BASE_TRY(model_read_double(r, "query_pre_attn_scalar", 256, 1e-6, 1e9, false, &scalar));
    out->attention_scale = 1 / sqrt(scalar);
    return SIFR_OK;
}

sifr_status gemma_read_cap(const model_reader *r, const char *key, double fallback, double *out) {
    if (json_is_null(json_object_get(r->json, key))) return *out = 0, SIFR_OK;
    if (!model_member(r->json, key)) return *out = fallback, SIFR_OK;
    return model_read_double(r, key, 1, 1e-6, 1e9, false, out);
}

sifr_value gemma_block(const decoder *d, sifr_value x, decoder_block attention) {
    sifr_value a = attention(d, decoder_norm(d, x, "input_layernorm"));
    sifr_value h = decoder_add(d, x, decoder_norm(d, a, "post_attention_layernorm"));
    sifr_value m = decoder_mlp(d, decoder_norm(d, h, "pre_feedforward_layernorm"));
    return decoder_add(d, h, decoder_norm(d, m, "post_feedforward_layernorm"));
}

static sifr_status read_gemma2(const model_reader *r, model_config *out) {
    gemma_defaults(out);
    out->hidden_size = 2304, out->intermediate_size = 9216, out->num_hidden_layers = 26;
    out->num_attention_heads = 8, out->num_key_value_heads = 4;
    BASE_TRY(decoder_read(r, out));
    BASE_TRY(gemma_read(r, "hidden_activation", out));
    BASE_TRY(gemma_read_scores(r, out));
    BASE_TRY(gemma_read_cap(r, "attn_logit_softcapping", 50, &out->attention_softcap));
    BASE_TRY(gemma_read_cap(r, "final_logit_softcapping", 30, &out->logit_softcap));
    return decoder_read_windows(r, 2, out);
}

static sifr_value block(const decoder *d, sifr_value x) {
    return gemma_block(d, x, decoder_attention);
}

static sifr_value vault_block(const decoder *d, sifr_value x) {
    sifr_value n = decoder_norm(d, x, "input_layernorm");
    sifr_value h = decoder_add(d, x, decoder_attention(d, n));
    return decoder_add(d, h, decoder_mlp(d, decoder_norm(d, h, "pre_feedforward_layernorm")));
}

static void build_vault(sifr_model *model, const model_config *config) {
    decoder_build(model, config, vault_block);
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, block);
}

const model_architecture model_architecture_gemma2 = {
    .model_type = "gemma2",
    .classes = DECODER_CLASSES("Gemma2"),
    .keys = (const char *const[]){"query_pre_attn_scalar", "attn_logit_softcapping",
                                  "final_logit_softcapping", "sliding_window", "layer_types", NULL},
    .read = read_gemma2,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

const model_architecture model_architecture_vaultgemma = {
    .model_type = "vaultgemma",
    .classes = (const model_class[]){{"VaultGemmaForCausalLM", MODEL_NEXT_TOKEN},
                                     {"VaultGemmaModel", MODEL_NEXT_TOKEN},
                                     {0}},
    .keys = (const char *const[]){"query_pre_attn_scalar", "attn_logit_softcapping",
                                  "final_logit_softcapping", "sliding_window", "layer_types", NULL},
    .read = read_gemma2,
    .build = build_vault,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

/* GLM-4 dense, of 2024 and of 0414 (Zhipu AI 2024, 2025), as transformers' GlmForCausalLM and
 * Glm4ForCausalLM have it: gate and up in one product, and rotary positions that rotate neighbours
 * in half of each head; the second has norms on both sides of attention and MLP. */
#include "model/architectures/decoder.h"

static sifr_status read_glm(const model_reader *r, model_config *out) {
    static const int64_t ends[] = {151329, 151336, 151338};
    out->vocab_size = 151552, out->hidden_size = 4096, out->intermediate_size = 13696;
    out->num_hidden_layers = 40, out->num_attention_heads = 32, out->num_key_value_heads = 2;
    out->head_dim = 128, out->max_position_embeddings = 131072;
    out->norm_eps = 1.5625e-7;
    out->rope.theta = 10000, out->rope.interleaved = true;
    out->pad_token_id = 151329;
    BASE_TRY(decoder_read_rotary_part(r, 0.5, out));
    BASE_TRY(decoder_read(r, out));
    for (int i = 0; i < 3 && !model_member(r->json, "eos_token_id"); i++)
        out->eos_token_ids[i] = ends[i], out->eos_count = i + 1;
    BASE_TRY(model_read_bool(r, "attention_bias", true, &out->attention_bias));
    return decoder_read_gate(r, out);
}

static sifr_value glm_block(const decoder *d, sifr_value x) {
    sifr_value n = decoder_norm(d, x, "input_layernorm");
    sifr_value h = decoder_add(d, x, decoder_attention(d, n));
    n = decoder_norm(d, h, "post_attention_layernorm");
    return decoder_add(d, h, decoder_fused_mlp(d, n));
}

static void build_glm(sifr_model *model, const model_config *config) {
    decoder_build(model, config, glm_block);
}

static sifr_value block(const decoder *d, sifr_value x) {
    sifr_value a = decoder_attention(d, decoder_norm(d, x, "input_layernorm"));
    sifr_value h = decoder_add(d, x, decoder_norm(d, a, "post_self_attn_layernorm"));
    sifr_value m = decoder_fused_mlp(d, decoder_norm(d, h, "post_attention_layernorm"));
    return decoder_add(d, h, decoder_norm(d, m, "post_mlp_layernorm"));
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, block);
}

const model_architecture model_architecture_glm4 = {
    .model_type = "glm4",
    .classes = DECODER_CLASSES("Glm4"),
    .keys = (const char *const[]){"partial_rotary_factor", NULL},
    .read = read_glm,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

const model_architecture model_architecture_glm = {
    .model_type = "glm",
    .classes = DECODER_CLASSES("Glm"),
    .keys = (const char *const[]){"partial_rotary_factor", NULL},
    .read = read_glm,
    .build = build_glm,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

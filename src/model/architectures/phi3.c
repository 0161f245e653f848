/* Phi-3, 3.5, 4 and 4-mini (Abdin et al. 2024) as transformers' Phi3ForCausalLM has them: q, k and
 * v in one product, gate and up in another, and longrope. */
#include "model/architectures/decoder.h"

static sifr_status read_phi3(const model_reader *r, model_config *out) {
    out->vocab_size = 32064, out->hidden_size = 3072, out->intermediate_size = 8192;
    out->num_hidden_layers = out->num_attention_heads = 32;
    out->max_position_embeddings = 4096;
    out->norm_eps = 1e-5, out->rope.theta = 10000;
    out->rope.original_max_position = 4096, out->rope.phi3 = true;
    out->bos_token_id = 1, out->pad_token_id = out->eos_token_ids[0] = 32000, out->eos_count = 1;
    BASE_TRY(model_read_double(r, "partial_rotary_factor", 1, 1e-6, 1, false, &out->rotary_part));
    BASE_TRY(decoder_read(r, out));
    if (out->rope.kind != MODEL_ROPE_DEFAULT && out->rope.kind != MODEL_ROPE_LONGROPE) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: phi3 has rope types default and longrope, not %s", r->name,
                         model_rope_kind_name((model_rope_kind)out->rope.kind));
    }
    BASE_TRY(model_read_double(r, "resid_pdrop", 0, 0, 1, true, &out->residual_dropout));
    BASE_TRY(model_read_window(r, 0, out));
    decoder_set_windows(out, 0);
    return decoder_read_gate(r, out);
}

static sifr_value attention(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    int64_t heads = c->num_attention_heads + 2 * c->num_key_value_heads;
    sifr_value qkv =
        decoder_linear(d, x, "self_attn.qkv_proj", false, c->hidden_size, heads * c->head_dim);
    return decoder_attend(d, decoder_split(d, qkv), "self_attn.o_proj");
}

static sifr_value block(const decoder *d, sifr_value x) {
    sifr_value n = decoder_norm(d, x, "input_layernorm");
    sifr_value h = decoder_add(d, x, attention(d, n));
    n = decoder_norm(d, h, "post_attention_layernorm");
    return decoder_add(d, h, decoder_fused_mlp(d, n));
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, block);
}

const model_architecture model_architecture_phi3 = {
    .model_type = "phi3",
    .classes = DECODER_CLASSES("Phi3"),
    .keys = (const char *const[]){"sliding_window", "partial_rotary_factor", NULL},
    .read = read_phi3,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

/* Phi-1, 1.5 and 2 (Microsoft 2023) as transformers' PhiForCausalLM has them: one layer norm, whose
 * result attention and MLP both read, biases everywhere, of the logits as well, and rotary
 * positions in a part of each head. */
#include "model/architectures/decoder.h"

static const decoder_names names = {.embedding = "model.embed_tokens.weight",
                                    .layers = "model.layers",
                                    .norm = "model.final_layernorm",
                                    .head = "lm_head.weight",
                                    .head_bias = "lm_head.bias"};

/* qk_layernorm: layer norms of each query and key, whose weights its heads share. */
static sifr_status read_phi(const model_reader *r, model_config *out) {
    out->vocab_size = 51200, out->hidden_size = 2048, out->intermediate_size = 8192;
    out->num_hidden_layers = 24, out->num_attention_heads = 32;
    out->max_position_embeddings = 2048;
    out->norm = MODEL_LAYER_NORM, out->norm_eps = 1e-5, out->rope.theta = 10000;
    out->bos_token_id = 1, out->eos_token_ids[0] = 2, out->eos_count = 1;
    out->attention_bias = out->output_bias = out->mlp_bias = true;
    BASE_TRY(decoder_read_rotary_part(r, 0.5, out));
    BASE_TRY(decoder_read(r, out));
    BASE_TRY(decoder_read_layer_eps(r, out));
    BASE_TRY(model_read_bool(r, "qk_layernorm", false, &out->head_norms));
    if (out->head_norms) BASE_TRY(decoder_check_width(r, out));
    BASE_TRY(model_read_double(r, "resid_pdrop", 0, 0, 1, true, &out->residual_dropout));
    BASE_TRY(model_read_double(r, "embd_pdrop", 0, 0, 1, true, &out->embedding_dropout));
    return decoder_read_activation(r, MODEL_GELU_TANH, out);
}

static sifr_value attention(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    int64_t heads = c->num_attention_heads, kv_heads = c->num_key_value_heads;
    decoder_heads h = decoder_project(d, x);
    if (c->head_norms) {
        h.q = decoder_group_norm(d, h.q, "self_attn.q_layernorm", heads, c->head_dim);
        h.k = decoder_group_norm(d, h.k, "self_attn.k_layernorm", kv_heads, c->head_dim);
    }
    return decoder_attend(d, h, "self_attn.dense");
}

static sifr_value block(const decoder *d, sifr_value x) {
    sifr_value n = decoder_norm(d, x, "input_layernorm");
    sifr_value h = decoder_add(d, x, attention(d, n));
    return decoder_add(d, h, decoder_plain_mlp(d, n, "mlp.fc1", "mlp.fc2"));
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build_named(model, config, &names, block);
}

const model_architecture model_architecture_phi = {
    .model_type = "phi",
    .classes = DECODER_CLASSES("Phi"),
    .keys = (const char *const[]){"partial_rotary_factor", "qk_layernorm", NULL},
    .read = read_phi,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

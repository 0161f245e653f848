/* nanochat (Karpathy 2025) as transformers' NanoChatForCausalLM has it: root-mean-square norms
 * without weights, of the embedding too and of queries and keys behind their rotation, which goes
 * the other way than Llama's, and an MLP without a gate, which squares what its relu lets
 * through. */
#include "model/architectures/gemma.h"

static sifr_status read_nanochat(const model_reader *r, model_config *out) {
    out->vocab_size = 50304, out->hidden_size = 768, out->intermediate_size = 8192;
    out->num_hidden_layers = 12, out->num_attention_heads = 6;
    out->max_position_embeddings = 2048;
    out->norm = MODEL_RMS_NORM_BARE, out->norm_eps = 1e-6, out->rope.theta = 10000;
    out->pad_token_id = 1, out->bos_token_id = 0;
    out->eos_token_ids[0] = 1, out->eos_count = 1;
    BASE_TRY(decoder_read(r, out));
    BASE_TRY(decoder_check_width(r, out));
    if (out->rope.kind != MODEL_ROPE_DEFAULT)
        return model_refuse(r, "rope_parameters", "supported rope types of nanochat: default");
    out->rope.factor = -1;
    BASE_TRY(model_read_bool(r, "attention_bias", false, &out->attention_bias));
    out->output_bias = out->attention_bias;
    BASE_TRY(gemma_read_cap(r, "final_logit_softcapping", 15, &out->logit_softcap));
    return decoder_read_activation(r, MODEL_RELU_SQUARED, out);
}

static sifr_value attention(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    decoder_heads h = decoder_rotate(d, decoder_project(d, x));
    h.q = decoder_group_norm(d, h.q, "self_attn.q_norm", c->num_attention_heads, c->head_dim);
    h.k = decoder_group_norm(d, h.k, "self_attn.k_norm", c->num_key_value_heads, c->head_dim);
    return decoder_attend_rotated(d, h, "self_attn.o_proj");
}

static sifr_value block(const decoder *d, sifr_value x) {
    if (!d->layer) x = decoder_norm(d, x, "embedding");
    sifr_value n = decoder_norm(d, x, "input_layernorm");
    sifr_value h = decoder_add(d, x, attention(d, n));
    n = decoder_norm(d, h, "post_attention_layernorm");
    return decoder_add(d, h, decoder_plain_mlp(d, n, "mlp.fc1", "mlp.fc2"));
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, block);
}

const model_architecture model_architecture_nanochat = {
    .model_type = "nanochat",
    .classes = (const model_class[]){{"NanoChatForCausalLM", MODEL_NEXT_TOKEN},
                                     {"NanoChatModel", MODEL_NEXT_TOKEN},
                                     {0}},
    .keys = (const char *const[]){"final_logit_softcapping", NULL},
    .read = read_nanochat,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

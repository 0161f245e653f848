/* OLMo 1 (Groeneveld et al. 2024) as transformers' OlmoForCausalLM has it: Llama with layer norms
 * that have no weights, and queries, keys and values that are clipped. */
#include "model/architectures/decoder.h"

static sifr_status read_clip(const model_reader *r, model_config *out) {
    if (!model_member(r->json, "clip_qkv")) return SIFR_OK;
    return model_read_double(r, "clip_qkv", 0, 1e-6, 1e9, false, &out->qkv_limit);
}

static sifr_status read_olmo(const model_reader *r, model_config *out) {
    out->vocab_size = 50304, out->hidden_size = 4096, out->intermediate_size = 11008;
    out->num_hidden_layers = out->num_attention_heads = 32;
    out->max_position_embeddings = 2048;
    out->norm = MODEL_LAYER_NORM_BARE, out->norm_eps = 1e-5, out->rope.theta = 10000;
    out->pad_token_id = 1, out->eos_token_ids[0] = 50279, out->eos_count = 1;
    BASE_TRY(decoder_read(r, out));
    out->norm_eps = 1e-5; /* no key of the class */
    BASE_TRY(model_read_bool(r, "attention_bias", false, &out->attention_bias));
    out->output_bias = out->attention_bias;
    BASE_TRY(read_clip(r, out));
    return decoder_read_gate(r, out);
}

static sifr_value attention(const decoder *d, sifr_value x) {
    double limit = d->config->qkv_limit;
    decoder_heads h = decoder_project(d, x);
    if (limit != 0) {
        h.q = sifr_clip(d->model, h.q, limit);
        h.k = sifr_clip(d->model, h.k, limit);
        h.v = sifr_clip(d->model, h.v, limit);
    }
    return decoder_attend(d, h, "self_attn.o_proj");
}

static sifr_value block(const decoder *d, sifr_value x) {
    sifr_value n = decoder_norm(d, x, "input_layernorm");
    sifr_value h = decoder_add(d, x, attention(d, n));
    n = decoder_norm(d, h, "post_attention_layernorm");
    return decoder_add(d, h, decoder_mlp(d, n));
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, block);
}

const model_architecture model_architecture_olmo = {
    .model_type = "olmo",
    .classes = (const model_class[]){{"OlmoForCausalLM", MODEL_NEXT_TOKEN},
                                     {"OlmoModel", MODEL_NEXT_TOKEN},
                                     {"OlmoForSequenceClassification", MODEL_SEQUENCE_CLASSES},
                                     {0}},
    .keys = (const char *const[]){"clip_qkv", NULL},
    .read = read_olmo,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

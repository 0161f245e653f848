/* OLMo 2 and 3 (Team OLMo 2025) as transformers' Olmo2ForCausalLM and Olmo3ForCausalLM have them:
 * norms behind attention and MLP instead of before them, and norms of all queries and of all keys
 * together. OLMo 3 has windows in three layers of four, with rotary positions of their own. */
#include "model/architectures/decoder.h"

static void set_defaults(model_config *out) {
    out->vocab_size = 50304, out->hidden_size = 4096, out->intermediate_size = 11008;
    out->num_hidden_layers = out->num_attention_heads = 32;
    out->max_position_embeddings = 2048;
    out->norm_eps = 1e-5;
    out->pad_token_id = 1, out->eos_token_ids[0] = 50279, out->eos_count = 1;
}

static sifr_status read_rest(const model_reader *r, model_config *out) {
    BASE_TRY(model_read_bool(r, "attention_bias", false, &out->attention_bias));
    out->output_bias = out->attention_bias;
    return decoder_read_gate(r, out);
}

static sifr_status read_olmo2(const model_reader *r, model_config *out) {
    set_defaults(out);
    out->rope.theta = 10000;
    BASE_TRY(decoder_read(r, out));
    return read_rest(r, out);
}

static sifr_status read_olmo3(const model_reader *r, model_config *out) {
    set_defaults(out);
    out->rope.theta = out->local_rope.theta = 500000;
    BASE_TRY(decoder_read_keys(r, out));
    BASE_TRY(decoder_read_windows(r, 4, out));
    BASE_TRY(model_read_layer_ropes(r, NULL, out));
    return read_rest(r, out);
}

static sifr_value attention(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    decoder_heads h = decoder_project(d, x);
    h.q = decoder_group_norm(d, h.q, "self_attn.q_norm", 1, c->num_attention_heads * c->head_dim);
    h.k = decoder_group_norm(d, h.k, "self_attn.k_norm", 1, c->num_key_value_heads * c->head_dim);
    return decoder_attend(d, h, "self_attn.o_proj");
}

static sifr_value block(const decoder *d, sifr_value x) {
    sifr_value a = decoder_norm(d, attention(d, x), "post_attention_layernorm");
    sifr_value h = decoder_add(d, x, a);
    return decoder_add(d, h, decoder_norm(d, decoder_mlp(d, h), "post_feedforward_layernorm"));
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, block);
}

const model_architecture model_architecture_olmo2 = {
    .model_type = "olmo2",
    .classes = (const model_class[]){{"Olmo2ForCausalLM", MODEL_NEXT_TOKEN},
                                     {"Olmo2Model", MODEL_NEXT_TOKEN},
                                     {"Olmo2ForSequenceClassification", MODEL_SEQUENCE_CLASSES},
                                     {0}},
    .read = read_olmo2,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

const model_architecture model_architecture_olmo3 = {
    .model_type = "olmo3",
    .classes = (const model_class[]){{"Olmo3ForCausalLM", MODEL_NEXT_TOKEN},
                                     {"Olmo3Model", MODEL_NEXT_TOKEN},
                                     {"Olmo3ForSequenceClassification", MODEL_SEQUENCE_CLASSES},
                                     {0}},
    .keys = (const char *const[]){"sliding_window", "layer_types", NULL},
    .read = read_olmo3,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

/* Hunyuan dense (Tencent 2025) as transformers' HunYuanDenseV1ForCausalLM has it: Llama with norms
 * of each query and key behind their rotation. */
#include "model/architectures/decoder.h"

/* Keys of Hunyuan's other models, which published folders of this one have as well. */
static sifr_status check_others(const model_reader *r) {
    bool normed, biased;
    int64_t experts;
    BASE_TRY(model_read_bool(r, "use_qk_norm", true, &normed));
    if (!normed) return model_refuse(r, "use_qk_norm", "queries and keys are normalised");
    BASE_TRY(model_read_bool(r, "mlp_bias", false, &biased));
    if (biased) return model_refuse(r, "mlp_bias", "the MLP has no biases");
    BASE_TRY(model_read_int(r, "num_experts", NULL, 1, 0, MODEL_LIMIT_ID, &experts));
    if (experts > 1) return model_refuse(r, "num_experts", "there are no mixtures of experts");
    return SIFR_OK;
}

static sifr_status read_hunyuan_v1_dense(const model_reader *r, model_config *out) {
    out->vocab_size = 290943, out->hidden_size = 4096, out->intermediate_size = 11008;
    out->num_hidden_layers = out->num_attention_heads = 32;
    out->max_position_embeddings = 2048;
    out->norm_eps = 1e-5, out->rope.theta = 10000;
    out->pad_token_id = 0, out->bos_token_id = 1, out->eos_token_ids[0] = 2, out->eos_count = 1;
    BASE_TRY(decoder_read(r, out));
    BASE_TRY(model_read_bool(r, "attention_bias", false, &out->attention_bias));
    out->output_bias = out->attention_bias;
    BASE_TRY(check_others(r));
    return decoder_read_gate(r, out);
}

static sifr_value attention(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    int64_t heads = c->num_attention_heads, kv_heads = c->num_key_value_heads;
    decoder_heads h = decoder_rotate(d, decoder_project(d, x));
    h.q = decoder_group_norm(d, h.q, "self_attn.query_layernorm", heads, c->head_dim);
    h.k = decoder_group_norm(d, h.k, "self_attn.key_layernorm", kv_heads, c->head_dim);
    return decoder_attend_rotated(d, h, "self_attn.o_proj");
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

const model_architecture model_architecture_hunyuan_v1_dense = {
    .model_type = "hunyuan_v1_dense",
    .classes =
        (const model_class[]){{"HunYuanDenseV1ForCausalLM", MODEL_NEXT_TOKEN},
                              {"HunYuanDenseV1Model", MODEL_NEXT_TOKEN},
                              {"HunYuanDenseV1ForSequenceClassification", MODEL_SEQUENCE_CLASSES},
                              {0}},
    .keys = (const char *const[]){"use_qk_norm", "num_experts", "alpha", NULL},
    .read = read_hunyuan_v1_dense,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

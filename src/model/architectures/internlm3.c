/* InternLM 3 (Shanghai AI Laboratory 2025), which transformers runs as LlamaForCausalLM with a
 * config of its own; published folders name the class of their own code. */
#include "model/architectures/decoder.h"

/* A key and the name that it has in published folders. */
static sifr_status read_bias(const model_reader *r, const char *key, const char *older, bool *out) {
    bool newer;
    BASE_TRY(model_read_bool(r, key, false, &newer));
    BASE_TRY(model_read_bool(r, older, newer, out));
    if (*out == newer || !model_member(r->json, key)) return SIFR_OK;
    return base_fail(r->error, SIFR_USAGE,
                     "%s: \"%s\" is %s but \"%s\", the same thing, is not: remove one", r->name,
                     key, newer ? "true" : "false", older);
}

static sifr_status read_biases(const model_reader *r, model_config *out) {
    BASE_TRY(read_bias(r, "attention_bias", "qkv_bias", &out->attention_bias));
    BASE_TRY(read_bias(r, "mlp_bias", "bias", &out->mlp_bias));
    out->output_bias = out->attention_bias;
    if (out->attention_bias == out->mlp_bias) return SIFR_OK;
    return base_fail(r->error, SIFR_USAGE,
                     "%s: \"qkv_bias\" and \"bias\" differ: internlm3 has biases everywhere or "
                     "nowhere",
                     r->name);
}

static sifr_status read_internlm3(const model_reader *r, model_config *out) {
    out->vocab_size = 128512, out->hidden_size = 4096, out->intermediate_size = 10240;
    out->num_hidden_layers = 48, out->num_attention_heads = 32, out->num_key_value_heads = 2;
    out->head_dim = 128, out->max_position_embeddings = 32768;
    out->norm_eps = 1e-5, out->rope.theta = 10000;
    out->pad_token_id = 2, out->bos_token_id = 1, out->eos_token_ids[0] = 2, out->eos_count = 1;
    BASE_TRY(decoder_read(r, out));
    BASE_TRY(read_biases(r, out));
    return decoder_read_gate(r, out);
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, decoder_plain_block);
}

const model_architecture model_architecture_internlm3 = {
    .model_type = "internlm3",
    .classes = (const model_class[]){{"InternLM3ForCausalLM", MODEL_NEXT_TOKEN},
                                     {"LlamaForCausalLM", MODEL_NEXT_TOKEN},
                                     {"InternLM3Model", MODEL_NEXT_TOKEN},
                                     {"LlamaModel", MODEL_NEXT_TOKEN},
                                     {0}},
    .read = read_internlm3,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

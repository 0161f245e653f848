/* Qwen 3 (Qwen Team 2025) as transformers' Qwen3ForCausalLM has it: each head of q and k is normed
 * before its rotation. */
#include "model/architectures/decoder.h"

static sifr_status read_qwen3(const model_reader *r, model_config *out) {
    out->vocab_size = 151936, out->hidden_size = 4096, out->intermediate_size = 22016;
    out->num_hidden_layers = out->num_attention_heads = out->num_key_value_heads = 32;
    out->head_dim = 128;
    out->max_position_embeddings = 32768;
    out->norm_eps = 1e-6, out->rope.theta = 10000;
    BASE_TRY(decoder_read(r, out));
    BASE_TRY(model_read_bool(r, "attention_bias", false, &out->attention_bias));
    out->output_bias = out->attention_bias;
    BASE_TRY(decoder_read_qwen_windows(r, out));
    return decoder_read_gate(r, out);
}

static sifr_value block(const decoder *d, sifr_value x) {
    sifr_value n = decoder_norm(d, x, "input_layernorm");
    sifr_value h = decoder_add(d, x, decoder_normed_attention(d, n));
    n = decoder_norm(d, h, "post_attention_layernorm");
    return decoder_add(d, h, decoder_mlp(d, n));
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, block);
}

const model_architecture model_architecture_qwen3 = {
    .model_type = "qwen3",
    .classes = DECODER_CLASSES("Qwen3"),
    .keys = (const char *const[]){"sliding_window", "layer_types", NULL},
    .read = read_qwen3,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

/* Qwen 2 and 2.5 (Qwen Team 2024) as transformers' Qwen2ForCausalLM has them: Llama with biases on
 * q, k and v, and a window in the upper layers where it is asked for. */
#include "model/architectures/decoder.h"

static sifr_status read_qwen2(const model_reader *r, model_config *out) {
    out->vocab_size = 151936, out->hidden_size = 4096, out->intermediate_size = 22016;
    out->num_hidden_layers = out->num_attention_heads = out->num_key_value_heads = 32;
    out->max_position_embeddings = 32768;
    out->norm_eps = 1e-6, out->rope.theta = 10000;
    out->attention_bias = true;
    BASE_TRY(decoder_read(r, out));
    BASE_TRY(decoder_read_qwen_windows(r, out));
    return decoder_read_gate(r, out);
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, decoder_plain_block);
}

const model_architecture model_architecture_qwen2 = {
    .model_type = "qwen2",
    .classes = DECODER_CLASSES("Qwen2"),
    .keys = (const char *const[]){"sliding_window", "layer_types", NULL},
    .read = read_qwen2,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

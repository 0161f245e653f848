/* Nemotron 3 and 4, and Minitron (NVIDIA 2024), as transformers' NemotronForCausalLM has them:
 * layer norms that multiply by 1 + weight, an MLP without a gate, which squares what its relu lets
 * through, and rotary positions in a part of each head. */
#include "model/architectures/decoder.h"

/* The class does not read "rope_percent", and fails where num_key_value_heads is absent. */
static sifr_status read_nemotron(const model_reader *r, model_config *out) {
    out->vocab_size = 256000, out->hidden_size = 6144, out->intermediate_size = 24576;
    out->num_hidden_layers = 32, out->num_attention_heads = 48;
    out->max_position_embeddings = 4096;
    out->norm = MODEL_LAYER_NORM_PLUS_ONE, out->norm_eps = 1e-5, out->rope.theta = 10000;
    out->initializer_range = 0.0134;
    out->bos_token_id = 2, out->eos_token_ids[0] = 3, out->eos_count = 1;
    BASE_TRY(decoder_read_rotary_part(r, 0.5, out));
    BASE_TRY(decoder_read(r, out));
    BASE_TRY(model_read_double(r, "norm_eps", 1e-5, 1e-30, 1, false, &out->norm_eps));
    BASE_TRY(model_read_bool(r, "attention_bias", false, &out->attention_bias));
    out->output_bias = out->attention_bias;
    BASE_TRY(model_read_bool(r, "mlp_bias", false, &out->mlp_bias));
    return decoder_read_activation(r, MODEL_RELU_SQUARED, out);
}

static sifr_value block(const decoder *d, sifr_value x) {
    sifr_value n = decoder_norm(d, x, "input_layernorm");
    sifr_value h = decoder_add(d, x, decoder_attention(d, n));
    n = decoder_norm(d, h, "post_attention_layernorm");
    return decoder_add(d, h, decoder_plain_mlp(d, n, "mlp.up_proj", "mlp.down_proj"));
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, block);
}

const model_architecture model_architecture_nemotron = {
    .model_type = "nemotron",
    .classes = DECODER_CLASSES("Nemotron"),
    .keys = (const char *const[]){"partial_rotary_factor", NULL},
    .read = read_nemotron,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

/* StarCoder2 (Lozhkov et al. 2024) as transformers' Starcoder2ForCausalLM has it: layer norms,
 * biases and an MLP without a gate. */
#include "model/architectures/decoder.h"

static sifr_status read_starcoder2(const model_reader *r, model_config *out) {
    out->vocab_size = 49152, out->hidden_size = 3072, out->intermediate_size = 12288;
    out->num_hidden_layers = 30, out->num_attention_heads = 24, out->num_key_value_heads = 2;
    out->max_position_embeddings = 4096;
    out->norm = MODEL_LAYER_NORM, out->norm_eps = 1e-5, out->rope.theta = 10000;
    out->tie_word_embeddings = true;
    out->initializer_range = 0.018042;
    out->bos_token_id = out->eos_token_ids[0] = 50256, out->eos_count = 1;
    BASE_TRY(decoder_read(r, out));
    BASE_TRY(model_read_double(r, "norm_epsilon", 1e-5, 1e-30, 1, false, &out->norm_eps));
    BASE_TRY(model_read_bool(r, "use_bias", true, &out->attention_bias));
    out->output_bias = out->mlp_bias = out->attention_bias;
    BASE_TRY(model_read_double(r, "residual_dropout", 0, 0, 1, true, &out->residual_dropout));
    BASE_TRY(model_read_double(r, "embedding_dropout", 0, 0, 1, true, &out->embedding_dropout));
    BASE_TRY(model_read_window(r, 0, out));
    decoder_set_windows(out, 0);
    return model_read_activation(r, "hidden_act",
                                 MODEL_ONE_OF(MODEL_GELU_TANH) | MODEL_ONE_OF(MODEL_GELU_ERF),
                                 MODEL_GELU_TANH, &out->activation);
}

static sifr_value block(const decoder *d, sifr_value x) {
    sifr_value n = decoder_norm(d, x, "input_layernorm");
    sifr_value h = decoder_add(d, x, decoder_attention(d, n));
    n = decoder_norm(d, h, "post_attention_layernorm");
    return decoder_add(d, h, decoder_plain_mlp(d, n, "mlp.c_fc", "mlp.c_proj"));
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, block);
}

const model_architecture model_architecture_starcoder2 = {
    .model_type = "starcoder2",
    .classes = DECODER_CLASSES("Starcoder2"),
    .keys = (const char *const[]){"sliding_window", NULL},
    .read = read_starcoder2,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

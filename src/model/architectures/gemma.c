/* Gemma (Gemma Team 2024) as transformers' GemmaForCausalLM has it: norms that multiply by
 * 1 + weight, embeddings times sqrt(hidden_size), GeGLU, heads of a size of their own. */
#include "model/architectures/gemma.h"

#include <math.h>

void gemma_defaults(model_config *out) {
    out->vocab_size = 256000, out->head_dim = 256;
    out->max_position_embeddings = 8192;
    out->norm = MODEL_RMS_NORM_PLUS_ONE, out->norm_eps = 1e-6;
    out->rope.theta = 10000;
    out->tie_word_embeddings = true;
    out->pad_token_id = 0, out->bos_token_id = 2, out->eos_token_ids[0] = 1, out->eos_count = 1;
}

sifr_status gemma_read(const model_reader *r, const char *activation, model_config *out) {
    BASE_TRY(model_read_bool(r, "attention_bias", false, &out->attention_bias));
    out->output_bias = out->attention_bias;
    out->embedding_scale = sqrt((double)out->hidden_size), out->embedding_scale_rounded = true;
    return model_read_activation(r, activation,
                                 MODEL_ONE_OF(MODEL_GELU_TANH) | MODEL_ONE_OF(MODEL_GELU_ERF) |
                                     MODEL_ONE_OF(MODEL_SILU),
                                 MODEL_GELU_TANH, &out->activation);
}

static sifr_status read_gemma(const model_reader *r, model_config *out) {
    gemma_defaults(out);
    out->hidden_size = 3072, out->intermediate_size = 24576, out->num_hidden_layers = 28;
    out->num_attention_heads = out->num_key_value_heads = 16;
    BASE_TRY(decoder_read(r, out));
    BASE_TRY(gemma_read(r, "hidden_act", out));
    /* The first folders say "gelu" and mean the approximation. */
    if (out->activation == MODEL_GELU_ERF) out->activation = MODEL_GELU_TANH;
    return SIFR_OK;
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, decoder_plain_block);
}

const model_architecture model_architecture_gemma = {
    .model_type = "gemma",
    .classes = DECODER_CLASSES("Gemma"),
    .read = read_gemma,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

/* Granite (IBM 2024) as transformers' GraniteForCausalLM has it: Llama with multipliers of the
 * embeddings, the scores and what a layer adds, and a divisor of the logits. */
#include "model/architectures/decoder.h"

static sifr_status read_multiplier(const model_reader *r, const char *key, double *out) {
    return model_read_double(r, key, 1, 1e-9, 1e9, false, out);
}

static sifr_status read_granite(const model_reader *r, model_config *out) {
    double divisor;
    out->vocab_size = 32000, out->hidden_size = 4096, out->intermediate_size = 11008;
    out->num_hidden_layers = out->num_attention_heads = 32;
    out->max_position_embeddings = 2048;
    out->norm_eps = 1e-6, out->rope.theta = 10000;
    out->bos_token_id = 1, out->eos_token_ids[0] = 2, out->eos_count = 1;
    BASE_TRY(decoder_read(r, out));
    BASE_TRY(model_read_bool(r, "attention_bias", false, &out->attention_bias));
    out->output_bias = out->attention_bias;
    BASE_TRY(model_read_bool(r, "mlp_bias", false, &out->mlp_bias));
    BASE_TRY(read_multiplier(r, "embedding_multiplier", &out->embedding_scale));
    BASE_TRY(read_multiplier(r, "attention_multiplier", &out->attention_scale));
    BASE_TRY(read_multiplier(r, "residual_multiplier", &out->residual_scale));
    BASE_TRY(read_multiplier(r, "logits_scaling", &divisor));
    out->logit_scale = 1 / divisor;
    return decoder_read_gate(r, out);
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, decoder_plain_block);
}

const model_architecture model_architecture_granite = {
    .model_type = "granite",
    .classes = (const model_class[]){{"GraniteForCausalLM", MODEL_NEXT_TOKEN},
                                     {"GraniteModel", MODEL_NEXT_TOKEN},
                                     {0}},
    .keys = (const char *const[]){"embedding_multiplier", "attention_multiplier",
                                  "residual_multiplier", "logits_scaling", NULL},
    .read = read_granite,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

/* Llama 2 and 3 (Touvron et al. 2023; Llama Team 2024) as transformers' LlamaForCausalLM has them:
 * grouped-query attention, rotary embedding with its scalings, SwiGLU, tied or untied head. */
#include "model/architectures/decoder.h"

static sifr_status read_llama(const model_reader *r, model_config *out) {
    out->vocab_size = 32000, out->hidden_size = 4096, out->intermediate_size = 11008;
    out->num_hidden_layers = out->num_attention_heads = 32;
    out->max_position_embeddings = 2048;
    out->norm_eps = 1e-6, out->rope.theta = 10000;
    out->bos_token_id = 1, out->eos_token_ids[0] = 2, out->eos_count = 1;
    BASE_TRY(decoder_read(r, out));
    BASE_TRY(model_read_bool(r, "attention_bias", false, &out->attention_bias));
    out->output_bias = out->attention_bias;
    BASE_TRY(model_read_bool(r, "mlp_bias", false, &out->mlp_bias));
    return model_read_activation(r, "hidden_act", MODEL_ONE_OF(MODEL_SILU), MODEL_SILU,
                                 &out->activation);
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, decoder_plain_block);
}

const model_architecture model_architecture_llama = {
    .model_type = "llama",
    .classes = (const model_class[]){{"LlamaForCausalLM", MODEL_NEXT_TOKEN},
                                     {"LLaMAForCausalLM", MODEL_NEXT_TOKEN},
                                     {"LlamaModel", MODEL_NEXT_TOKEN},
                                     {"LlamaForSequenceClassification", MODEL_SEQUENCE_CLASSES},
                                     {"LlamaForTokenClassification", MODEL_TOKEN_CLASSES},
                                     {0}},
    .read = read_llama,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

/* ERNIE 4.5 dense (Baidu 2025) as transformers' Ernie4_5ForCausalLM has it: Llama with rotary
 * positions that rotate neighbours, and biases everywhere or nowhere. */
#include "model/architectures/decoder.h"

static sifr_status read_ernie4_5(const model_reader *r, model_config *out) {
    out->vocab_size = 103424, out->hidden_size = 1024, out->intermediate_size = 3072;
    out->num_hidden_layers = 18, out->num_attention_heads = 16, out->num_key_value_heads = 2;
    out->head_dim = 128, out->max_position_embeddings = 131072;
    out->norm_eps = 1e-5;
    out->rope.theta = 500000, out->rope.interleaved = true;
    out->tie_word_embeddings = true;
    out->pad_token_id = 0, out->bos_token_id = 1, out->eos_token_ids[0] = 2, out->eos_count = 1;
    BASE_TRY(decoder_read(r, out));
    if (out->attention_dropout > 0)
        return model_refuse(r, "attention_dropout", "ernie4_5 has no dropout");
    BASE_TRY(model_read_bool(r, "use_bias", false, &out->attention_bias));
    out->output_bias = out->mlp_bias = out->attention_bias;
    return decoder_read_gate(r, out);
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, decoder_plain_block);
}

const model_architecture model_architecture_ernie4_5 = {
    .model_type = "ernie4_5",
    .classes = (const model_class[]){{"Ernie4_5ForCausalLM", MODEL_NEXT_TOKEN},
                                     {"Ernie4_5Model", MODEL_NEXT_TOKEN},
                                     {0}},
    .read = read_ernie4_5,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

/* Seed-OSS (ByteDance Seed 2025) as transformers' SeedOssForCausalLM has it: Llama with biases of
 * queries, keys and values, and dropout that is on unless the folder says 0. */
#include "model/architectures/decoder.h"

static sifr_status read_seed_oss(const model_reader *r, model_config *out) {
    out->vocab_size = 155136, out->hidden_size = 4096, out->intermediate_size = 27648;
    out->num_hidden_layers = 64, out->num_attention_heads = 80, out->num_key_value_heads = 8;
    out->head_dim = 128, out->max_position_embeddings = 524288;
    out->norm_eps = 1e-6, out->rope.theta = 10000;
    out->attention_dropout = 0.1;
    out->pad_token_id = 1, out->bos_token_id = 0, out->eos_token_ids[0] = 2, out->eos_count = 1;
    BASE_TRY(decoder_read(r, out));
    BASE_TRY(model_read_bool(r, "attention_bias", true, &out->attention_bias));
    BASE_TRY(model_read_bool(r, "attention_out_bias", false, &out->output_bias));
    BASE_TRY(model_read_bool(r, "mlp_bias", false, &out->mlp_bias));
    BASE_TRY(model_read_double(r, "residual_dropout", 0.1, 0, 1, true, &out->residual_dropout));
    return decoder_read_gate(r, out);
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, decoder_plain_block);
}

const model_architecture model_architecture_seed_oss = {
    .model_type = "seed_oss",
    .classes = DECODER_CLASSES("SeedOss"),
    .read = read_seed_oss,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

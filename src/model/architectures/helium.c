/* Helium (Kyutai 2025) as transformers' HeliumForCausalLM has it: Llama with rotary positions that
 * rotate neighbours. */
#include "model/architectures/decoder.h"

static sifr_status read_helium(const model_reader *r, model_config *out) {
    out->vocab_size = 48000, out->hidden_size = 2560, out->intermediate_size = 7040;
    out->num_hidden_layers = 24, out->num_attention_heads = out->num_key_value_heads = 20;
    out->head_dim = 128, out->max_position_embeddings = 4096;
    out->norm_eps = 1e-8;
    out->rope.theta = 100000, out->rope.interleaved = true;
    out->pad_token_id = 3, out->bos_token_id = 1, out->eos_token_ids[0] = 2, out->eos_count = 1;
    BASE_TRY(decoder_read(r, out));
    BASE_TRY(decoder_check_width(r, out));
    BASE_TRY(model_read_bool(r, "attention_bias", false, &out->attention_bias));
    BASE_TRY(model_read_bool(r, "mlp_bias", false, &out->mlp_bias));
    return decoder_read_gate(r, out);
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, decoder_plain_block);
}

const model_architecture model_architecture_helium = {
    .model_type = "helium",
    .classes = DECODER_CLASSES("Helium"),
    .read = read_helium,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

/* Mistral 7B (Jiang et al. 2023) as transformers' MistralForCausalLM has it: Llama with a window in
 * every layer. */
#include "model/architectures/decoder.h"

static sifr_status read_mistral(const model_reader *r, model_config *out) {
    out->vocab_size = 32000, out->hidden_size = 4096, out->intermediate_size = 14336;
    out->num_hidden_layers = out->num_attention_heads = 32, out->num_key_value_heads = 8;
    out->max_position_embeddings = 131072;
    out->norm_eps = 1e-6, out->rope.theta = 10000;
    out->bos_token_id = 1, out->eos_token_ids[0] = 2, out->eos_count = 1;
    BASE_TRY(decoder_read(r, out));
    BASE_TRY(model_read_window(r, 4096, out));
    decoder_set_windows(out, 0);
    return decoder_read_gate(r, out);
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, decoder_plain_block);
}

const model_architecture model_architecture_mistral = {
    .model_type = "mistral",
    .classes = DECODER_CLASSES("Mistral"),
    .keys = (const char *const[]){"sliding_window", NULL},
    .read = read_mistral,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

/* Ministral (2024) and Ministral 3 (2025) of Mistral AI as transformers' MinistralForCausalLM and
 * Ministral3ForCausalLM have them: Llama, the first with windows in some layers, the second with
 * yarn and queries that grow with their position. */
#include "model/architectures/decoder.h"

static sifr_status read_ministral(const model_reader *r, model_config *out) {
    out->vocab_size = 32000, out->hidden_size = 4096, out->intermediate_size = 14336;
    out->num_hidden_layers = out->num_attention_heads = 32, out->num_key_value_heads = 8;
    out->max_position_embeddings = 131072;
    out->norm_eps = 1e-6, out->rope.theta = 10000;
    out->bos_token_id = 1, out->eos_token_ids[0] = 2, out->eos_count = 1;
    BASE_TRY(decoder_read(r, out));
    BASE_TRY(model_read_window(r, 4096, out));
    decoder_set_windows(out, 0);
    BASE_TRY(model_read_layer_types(r, out));
    return decoder_read_gate(r, out);
}

/* The class's own rope_parameters. */
static void set_default_rope(model_config *out) {
    model_rope *rope = &out->rope;
    rope->kind = MODEL_ROPE_YARN, rope->truncate = true;
    rope->theta = 1e6, rope->factor = 16;
    rope->original_max_position = 16384;
    rope->beta_fast = 32, rope->beta_slow = 1;
    rope->attention_factor = 1; /* mscale and mscale_all_dim are equal */
    rope->query_beta = 0.1;
}

static sifr_status read_ministral3(const model_reader *r, model_config *out) {
    out->vocab_size = 131072, out->hidden_size = 4096, out->intermediate_size = 14336;
    out->num_hidden_layers = 34, out->num_attention_heads = 32, out->num_key_value_heads = 8;
    out->head_dim = 128;
    out->max_position_embeddings = 262144;
    out->norm_eps = 1e-5, out->rope.theta = 10000;
    out->bos_token_id = 1, out->eos_token_ids[0] = 2, out->eos_count = 1;
    out->pad_token_id = 11;
    BASE_TRY(decoder_read(r, out));
    bool given = model_member(r->json, "rope_parameters") || model_member(r->json, "rope_scaling");
    if (!given) set_default_rope(out);
    BASE_TRY(model_read_window(r, 0, out));
    decoder_set_windows(out, 0);
    return decoder_read_gate(r, out);
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, decoder_plain_block);
}

const model_architecture model_architecture_ministral = {
    .model_type = "ministral",
    .classes = DECODER_CLASSES("Ministral"),
    .keys = (const char *const[]){"sliding_window", "layer_types", NULL},
    .read = read_ministral,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

const model_architecture model_architecture_ministral3 = {
    .model_type = "ministral3",
    .classes = DECODER_CLASSES("Ministral3"),
    .keys = (const char *const[]){"sliding_window", "llama_4_scaling_beta", NULL},
    .read = read_ministral3,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

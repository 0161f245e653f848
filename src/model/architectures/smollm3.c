/* SmolLM3 (Bakouch et al. 2025) as transformers' SmolLM3ForCausalLM has it: Llama, and some layers
 * have no rotary positions. */
#include "model/architectures/decoder.h"

/* "no_rope_layers": despite its name, 1 means that the layer has rotary positions. */
static sifr_status read_no_rope(const model_reader *r, model_config *out) {
    const json_t *list = model_member(r->json, "no_rope_layers");
    int64_t interval, layers = out->num_hidden_layers;
    BASE_TRY(model_read_int(r, "no_rope_layer_interval", NULL, 4, 1, MODEL_LIMIT_ID, &interval));
    if (list && (!json_is_array(list) || (int64_t)json_array_size(list) < layers)) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"no_rope_layers\" must be a list of at least %lld numbers, one for "
                         "each layer",
                         r->name, (long long)layers);
    }
    for (int64_t i = 0; i < layers; i++) {
        const json_t *given = list ? json_array_get(list, (size_t)i) : NULL;
        int64_t has_rope = given ? json_integer_value(given) : (i + 1) % interval != 0;
        if (given && (!json_is_integer(given) || (has_rope != 0 && has_rope != 1)))
            return model_refuse(r, "no_rope_layers", "each must be 0 or 1");
        if (!has_rope) out->layers[i] |= MODEL_LAYER_NO_ROPE;
    }
    return SIFR_OK;
}

static sifr_status read_smollm3(const model_reader *r, model_config *out) {
    bool windows;
    out->vocab_size = 128256, out->hidden_size = 2048, out->intermediate_size = 11008;
    out->num_hidden_layers = 36, out->num_attention_heads = 16, out->num_key_value_heads = 4;
    out->max_position_embeddings = 32768;
    out->norm_eps = 1e-6, out->rope.theta = 2e6;
    out->tie_word_embeddings = true;
    out->bos_token_id = 128000, out->eos_token_ids[0] = 128001, out->eos_count = 1;
    out->pad_token_id = 128004;
    BASE_TRY(decoder_read(r, out));
    BASE_TRY(model_read_bool(r, "attention_bias", false, &out->attention_bias));
    out->output_bias = out->attention_bias;
    BASE_TRY(model_read_bool(r, "mlp_bias", false, &out->mlp_bias));
    BASE_TRY(read_no_rope(r, out));
    BASE_TRY(model_read_window(r, 0, out));
    BASE_TRY(model_read_bool(r, "use_sliding_window", false, &windows));
    for (int64_t i = 0; i < out->num_hidden_layers; i++) {
        if (windows && out->sliding_window && out->layers[i] & MODEL_LAYER_NO_ROPE)
            out->layers[i] |= MODEL_LAYER_WINDOW;
    }
    BASE_TRY(model_read_layer_types(r, out));
    return decoder_read_gate(r, out);
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, decoder_plain_block);
}

const model_architecture model_architecture_smollm3 = {
    .model_type = "smollm3",
    .classes = DECODER_CLASSES("SmolLM3"),
    /* Published folders have a pretraining_tp of 2, which nothing reads. */
    .keys = (const char *const[]){"sliding_window", "layer_types", "no_rope_layers",
                                  "pretraining_tp", NULL},
    .read = read_smollm3,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

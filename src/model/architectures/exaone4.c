/* EXAONE 4.0 (LG AI Research 2025) as transformers' Exaone4ForCausalLM has it: norms behind
 * attention and MLP, norms of each query and key, and, where layers have windows, no rotary
 * positions in the others. */
#include "model/architectures/decoder.h"

/* Which layers have a window where "layer_types" does not say: all but each n-th. */
static sifr_status read_period(const model_reader *r, const model_config *c, int64_t *out) {
    static const char key[] = "sliding_window_pattern";
    *out = 1;
    if (!c->sliding_window || model_member(r->json, "layer_types")) return SIFR_OK;
    if (json_is_string(json_object_get(r->json, key)))
        return model_refuse(r, key, "give the layers' types by name, in \"layer_types\"");
    return model_read_int(r, key, NULL, 4, 1, MODEL_LIMIT_LAYERS, out);
}

static sifr_status read_windows(const model_reader *r, model_config *out) {
    int64_t period;
    BASE_TRY(model_read_window(r, 4096, out));
    BASE_TRY(read_period(r, out, &period));
    BASE_TRY(decoder_read_windows(r, period, out));
    for (int64_t i = 0; i < out->num_hidden_layers && out->sliding_window; i++) {
        if (!(out->layers[i] & MODEL_LAYER_WINDOW)) out->layers[i] |= MODEL_LAYER_NO_ROPE;
    }
    return SIFR_OK;
}

static sifr_status read_exaone4(const model_reader *r, model_config *out) {
    out->vocab_size = 102400, out->hidden_size = 4096, out->intermediate_size = 16384;
    out->num_hidden_layers = out->num_attention_heads = out->num_key_value_heads = 32;
    out->max_position_embeddings = 2048;
    out->norm_eps = 1e-5, out->rope.theta = 10000;
    out->bos_token_id = 0, out->eos_token_ids[0] = 2, out->eos_count = 1;
    BASE_TRY(decoder_read(r, out));
    BASE_TRY(read_windows(r, out));
    return decoder_read_gate(r, out);
}

static sifr_value block(const decoder *d, sifr_value x) {
    sifr_value a = decoder_norm(d, decoder_normed_attention(d, x), "post_attention_layernorm");
    sifr_value h = decoder_add(d, x, a);
    return decoder_add(d, h, decoder_norm(d, decoder_mlp(d, h), "post_feedforward_layernorm"));
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, block);
}

const model_architecture model_architecture_exaone4 = {
    .model_type = "exaone4",
    .classes = DECODER_CLASSES("Exaone4"),
    .keys = (const char *const[]){"sliding_window", "layer_types", NULL},
    .read = read_exaone4,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

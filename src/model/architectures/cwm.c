/* CWM (FAIR 2025) as transformers' CwmForCausalLM has it: Llama 3 with windows in three layers of
 * four. */
#include "model/architectures/decoder.h"

/* The class's own rope_parameters. */
static void set_default_rope(model_config *out) {
    model_rope *rope = &out->rope;
    rope->kind = MODEL_ROPE_LLAMA3;
    rope->theta = 1e6, rope->factor = 16;
    rope->low_freq_factor = 1, rope->high_freq_factor = 4;
    rope->original_max_position = 8192;
}

/* The first layer of four attends to all. */
static sifr_status read_windows(const model_reader *r, model_config *out) {
    BASE_TRY(model_read_window(r, 8192, out));
    for (int64_t i = 0; i < out->num_hidden_layers; i++)
        out->layers[i] = i % 4 ? MODEL_LAYER_WINDOW : 0;
    BASE_TRY(model_read_layer_types(r, out));
    return decoder_check_windows(r, out);
}

static sifr_status read_cwm(const model_reader *r, model_config *out) {
    static const int64_t ends[] = {128001, 128008, 128009};
    out->vocab_size = 128256, out->hidden_size = 6144, out->intermediate_size = 21504;
    out->num_hidden_layers = 64, out->num_attention_heads = 48, out->num_key_value_heads = 8;
    out->head_dim = 128, out->max_position_embeddings = 131072;
    out->norm_eps = 1e-5, out->rope.theta = 1e6;
    out->bos_token_id = 128000;
    BASE_TRY(decoder_read(r, out));
    bool given = model_member(r->json, "rope_parameters") || model_member(r->json, "rope_scaling");
    if (!given) set_default_rope(out);
    for (int i = 0; i < 3 && !model_member(r->json, "eos_token_id"); i++)
        out->eos_token_ids[i] = ends[i], out->eos_count = i + 1;
    BASE_TRY(read_windows(r, out));
    BASE_TRY(model_read_bool(r, "mlp_bias", false, &out->mlp_bias));
    return decoder_read_gate(r, out);
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, decoder_plain_block);
}

const model_architecture model_architecture_cwm = {
    .model_type = "cwm",
    .classes = (const model_class[]){{"CwmForCausalLM", MODEL_NEXT_TOKEN},
                                     {"CwmModel", MODEL_NEXT_TOKEN},
                                     {0}},
    .keys = (const char *const[]){"sliding_window", "layer_types", NULL},
    .read = read_cwm,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

/* Gemma 3 (Gemma Team 2025) as transformers' Gemma3ForCausalLM has it, the text model alone: Gemma
 * 2 with norms of each query and key, and rotary positions of their own in layers with a window. */
#include "model/architectures/gemma.h"

static sifr_status read_gemma3(const model_reader *r, model_config *out) {
    int64_t period;
    gemma_defaults(out);
    out->vocab_size = 262208, out->hidden_size = 2304, out->intermediate_size = 9216;
    out->num_hidden_layers = 26, out->num_attention_heads = 8, out->num_key_value_heads = 4;
    out->max_position_embeddings = 131072;
    out->rope.theta = 1e6, out->local_rope.theta = 1e4;
    BASE_TRY(decoder_read_keys(r, out));
    BASE_TRY(gemma_read(r, "hidden_activation", out));
    BASE_TRY(gemma_read_scores(r, out));
    /* attn_logit_softcapping has no effect in transformers: it is refused. */
    BASE_TRY(gemma_read_cap(r, "final_logit_softcapping", 0, &out->logit_softcap));
    BASE_TRY(model_read_int(r, "sliding_window_pattern", NULL, 6, 1, MODEL_LIMIT_LAYERS, &period));
    BASE_TRY(decoder_read_windows(r, period, out));
    return model_read_layer_ropes(r, "rope_local_base_freq", out);
}

static sifr_value block(const decoder *d, sifr_value x) {
    return gemma_block(d, x, decoder_normed_attention);
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, block);
}

const model_architecture model_architecture_gemma3_text = {
    .model_type = "gemma3_text",
    .classes =
        (const model_class[]){{"Gemma3ForCausalLM", MODEL_NEXT_TOKEN},
                              {"Gemma3TextModel", MODEL_NEXT_TOKEN},
                              {"Gemma3TextForSequenceClassification", MODEL_SEQUENCE_CLASSES},
                              {0}},
    .keys = (const char *const[]){"query_pre_attn_scalar", "final_logit_softcapping",
                                  "sliding_window", "layer_types", NULL},
    .read = read_gemma3,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

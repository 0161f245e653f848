/* Command R (Cohere 2024) and Command R7B and A (Cohere 2025) as transformers' CohereForCausalLM
 * and Cohere2ForCausalLM have them: one layer norm, whose result attention and MLP both read,
 * rotary positions that rotate neighbours, and a scale of the logits. The second has windows, and
 * no rotary positions in the layers without one. */
#include <stdio.h>

#include "model/architectures/decoder.h"

static sifr_status read_common(const model_reader *r, model_config *out) {
    out->vocab_size = 256000, out->hidden_size = 8192, out->intermediate_size = 22528;
    out->num_hidden_layers = 40, out->num_attention_heads = 64;
    out->max_position_embeddings = 8192;
    out->norm = MODEL_LAYER_NORM_PLAIN, out->norm_eps = 1e-5;
    out->rope.interleaved = true;
    out->tie_word_embeddings = true;
    out->pad_token_id = 0, out->bos_token_id = 5;
    out->eos_token_ids[0] = 255001, out->eos_count = 1;
    BASE_TRY(decoder_read(r, out));
    BASE_TRY(decoder_read_layer_eps(r, out));
    BASE_TRY(model_read_bool(r, "attention_bias", false, &out->attention_bias));
    out->output_bias = out->attention_bias;
    BASE_TRY(model_read_double(r, "logit_scale", 0.0625, 1e-9, 1e9, false, &out->logit_scale));
    return decoder_read_gate(r, out);
}

static sifr_status read_cohere(const model_reader *r, model_config *out) {
    out->rope.theta = 500000;
    BASE_TRY(model_read_bool(r, "use_qk_norm", false, &out->head_norms));
    return read_common(r, out);
}

static sifr_status read_cohere2(const model_reader *r, model_config *out) {
    int64_t period;
    out->rope.theta = 10000;
    BASE_TRY(read_common(r, out));
    BASE_TRY(decoder_check_width(r, out));
    BASE_TRY(model_read_int(r, "sliding_window_pattern", NULL, 4, 1, MODEL_LIMIT_LAYERS, &period));
    BASE_TRY(decoder_read_windows(r, period, out));
    for (int64_t i = 0; i < out->num_hidden_layers; i++) {
        if (!(out->layers[i] & MODEL_LAYER_WINDOW)) out->layers[i] |= MODEL_LAYER_NO_ROPE;
    }
    return SIFR_OK;
}

/* A layer norm of each head, whose weights are its own. */
static sifr_value head_norm(const decoder *d, sifr_value x, const char *name, int64_t heads) {
    const model_config *c = d->config;
    char text[MODEL_NAME_LENGTH];
    snprintf(text, sizeof text, "%s.%lld.self_attn.%s.weight", d->names->layers,
             (long long)d->layer, name);
    sifr_weight scale = sifr_weight_matrix(d->model, text, heads, c->head_dim, SIFR_INIT_ONE, 0);
    return sifr_layer_norm(
        d->model, (sifr_norm_args){.x = x, .scale = scale, .epsilon = c->norm_eps, .heads = heads});
}

static sifr_value attention(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    decoder_heads h = decoder_project(d, x);
    if (c->head_norms) {
        h.q = head_norm(d, h.q, "q_norm", c->num_attention_heads);
        h.k = head_norm(d, h.k, "k_norm", c->num_key_value_heads);
    }
    return decoder_attend(d, h, "self_attn.o_proj");
}

static sifr_value block(const decoder *d, sifr_value x) {
    sifr_value n = decoder_norm(d, x, "input_layernorm");
    sifr_value h = decoder_add(d, x, attention(d, n));
    return decoder_add(d, h, decoder_mlp(d, n));
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, block);
}

const model_architecture model_architecture_cohere = {
    .model_type = "cohere",
    .classes = (const model_class[]){{"CohereForCausalLM", MODEL_NEXT_TOKEN},
                                     {"CohereModel", MODEL_NEXT_TOKEN},
                                     {0}},
    .keys = (const char *const[]){"logit_scale", "use_qk_norm", NULL},
    .read = read_cohere,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

const model_architecture model_architecture_cohere2 = {
    .model_type = "cohere2",
    .classes = (const model_class[]){{"Cohere2ForCausalLM", MODEL_NEXT_TOKEN},
                                     {"Cohere2Model", MODEL_NEXT_TOKEN},
                                     {0}},
    .keys = (const char *const[]){"logit_scale", "sliding_window", "layer_types", NULL},
    .read = read_cohere2,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

/* LFM2 (Liquid AI 2025) as transformers' Lfm2ForCausalLM has it: most layers have a gated short
 * convolution in place of attention. */
#include <stdio.h>
#include <string.h>

#include "model/architectures/decoder.h"

/* "block_ff_dim" goes before "intermediate_size", and unless "block_auto_adjust_ff_dim" is false
 * the MLP has two thirds of it, times a factor, up to a multiple. */
static sifr_status read_inner(const model_reader *r, model_config *out) {
    bool adjusts;
    int64_t multiple, size;
    double factor;
    BASE_TRY(model_read_int(r, "block_ff_dim", NULL, out->intermediate_size, 1, MODEL_LIMIT_INNER,
                            &size));
    BASE_TRY(model_read_bool(r, "block_auto_adjust_ff_dim", true, &adjusts));
    BASE_TRY(model_read_int(r, "block_multiple_of", NULL, 256, 1, MODEL_LIMIT_INNER, &multiple));
    BASE_TRY(model_read_double(r, "block_ffn_dim_multiplier", 1, 0, 1e3, false, &factor));
    if (adjusts) {
        size = (int64_t)(factor * (double)(2 * size / 3));
        size = (size + multiple - 1) / multiple * multiple;
    }
    out->intermediate_size = size;
    if (size >= 1 && size <= MODEL_LIMIT_INNER) return SIFR_OK;
    return base_fail(r->error, SIFR_USAGE,
                     "%s: \"block_ff_dim\" (or \"intermediate_size\"), "
                     "\"block_ffn_dim_multiplier\" and \"block_multiple_of\" make an MLP of %lld, "
                     "which must be 1 to %lld",
                     r->name, (long long)size, (long long)MODEL_LIMIT_INNER);
}

/* "full_attn_idxs", the layers with attention, where "layer_types" is absent: all if it is absent,
 * too. */
static sifr_status read_indices(const model_reader *r, model_config *out) {
    const json_t *list = model_member(r->json, "full_attn_idxs");
    if (list && !json_is_array(list))
        return model_refuse(r, "full_attn_idxs", "it must be a list of numbers of layers");
    for (int64_t i = 0; list && i < out->num_hidden_layers; i++)
        out->layers[i] |= MODEL_LAYER_CONVOLUTION;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *index = json_array_get(list, i);
        int64_t layer = json_integer_value(index);
        if (!json_is_integer(index) || layer < 0 || layer >= out->num_hidden_layers)
            return model_refuse(r, "full_attn_idxs", "each must be the number of a layer");
        out->layers[layer] &= (uint8_t)~MODEL_LAYER_CONVOLUTION;
    }
    return SIFR_OK;
}

static sifr_status read_layers(const model_reader *r, model_config *out) {
    const json_t *list = model_member(r->json, "layer_types");
    if (!list) return read_indices(r, out);
    if (!json_is_array(list) || (int64_t)json_array_size(list) != out->num_hidden_layers)
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"layer_types\" must be a list of %lld names, one for each layer",
                         r->name, (long long)out->num_hidden_layers);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *type = json_string_value(json_array_get(list, i));
        bool convolves = type && !strcmp(type, "conv");
        if (!convolves && (!type || strcmp(type, "full_attention") != 0))
            return base_fail(r->error, SIFR_USAGE,
                             "%s: \"layer_types\" names %.60s, which is not supported (supported: "
                             "conv, full_attention)",
                             r->name, type ? type : "something that is not a string");
        if (convolves) out->layers[i] |= MODEL_LAYER_CONVOLUTION;
    }
    return SIFR_OK;
}

static sifr_status read_lfm2(const model_reader *r, model_config *out) {
    out->vocab_size = 65536, out->hidden_size = 2560, out->intermediate_size = 12288;
    out->num_hidden_layers = out->num_attention_heads = 32, out->num_key_value_heads = 8;
    out->max_position_embeddings = 128000;
    out->norm_eps = 1e-5, out->rope.theta = 1e6;
    out->tie_word_embeddings = true;
    out->bos_token_id = 1, out->eos_token_ids[0] = 2, out->eos_count = 1;
    out->pad_token_id = 0;
    out->activation = MODEL_SILU;
    BASE_TRY(decoder_read(r, out));
    out->attention_dropout = 0; /* the class has none */
    BASE_TRY(model_read_double(r, "norm_eps", 1e-5, 1e-30, 1, false, &out->norm_eps));
    BASE_TRY(
        model_read_bool(r, "tie_embedding", out->tie_word_embeddings, &out->tie_word_embeddings));
    BASE_TRY(read_inner(r, out));
    BASE_TRY(read_layers(r, out));
    BASE_TRY(model_read_bool(r, "conv_bias", false, &out->convolution_bias));
    return model_read_int(r, "conv_L_cache", NULL, 3, 2, MODEL_LIMIT_TAPS, &out->convolution_size);
}

static sifr_value convolve(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    const char *layers = d->names->layers;
    char text[MODEL_NAME_LENGTH];
    snprintf(text, sizeof text, "%s.%lld.conv.conv.weight", layers, (long long)d->layer);
    sifr_short_conv_args args = {.x = x};
    args.weight = sifr_weight_kernel(d->model, text, c->hidden_size, 1, c->convolution_size,
                                     SIFR_INIT_NORMAL, c->initializer_range);
    snprintf(text, sizeof text, "%s.%lld.conv.conv.bias", layers, (long long)d->layer);
    if (c->convolution_bias)
        args.bias = sifr_weight_vector(d->model, text, c->hidden_size, SIFR_INIT_ZERO);
    return sifr_short_conv(d->model, args);
}

/* One gate before the convolution and one behind it. */
static sifr_value mix(const decoder *d, sifr_value x) {
    int64_t width = d->config->hidden_size;
    bool biased = d->config->convolution_bias;
    sifr_value three = decoder_linear(d, x, "conv.in_proj", biased, width, 3 * width);
    sifr_value before = sifr_slice(d->model, three, 0, width);
    sifr_value behind = sifr_slice(d->model, three, width, width);
    sifr_value in = sifr_slice(d->model, three, 2 * width, width);
    sifr_value y = convolve(d, sifr_multiply(d->model, before, in));
    return decoder_linear(d, sifr_multiply(d->model, behind, y), "conv.out_proj", biased, width,
                          width);
}

static sifr_value attend(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    decoder_heads h = decoder_project(d, x);
    h.q = decoder_group_norm(d, h.q, "self_attn.q_layernorm", c->num_attention_heads, c->head_dim);
    h.k = decoder_group_norm(d, h.k, "self_attn.k_layernorm", c->num_key_value_heads, c->head_dim);
    return decoder_attend(d, h, "self_attn.out_proj");
}

static sifr_value mlp(const decoder *d, sifr_value x) {
    int64_t width = d->config->hidden_size, inner = d->config->intermediate_size;
    sifr_value gate = decoder_linear(d, x, "feed_forward.w1", false, width, inner);
    sifr_value up = decoder_linear(d, x, "feed_forward.w3", false, width, inner);
    return decoder_linear(d, sifr_silu_gate(d->model, gate, up), "feed_forward.w2", false, inner,
                          width);
}

static sifr_value block(const decoder *d, sifr_value x) {
    bool convolves = d->config->layers[d->layer] & MODEL_LAYER_CONVOLUTION;
    sifr_value n = decoder_norm(d, x, "operator_norm");
    sifr_value h = decoder_add(d, x, convolves ? mix(d, n) : attend(d, n));
    return decoder_add(d, h, mlp(d, decoder_norm(d, h, "ffn_norm")));
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build_body(model, config, "embedding_norm", block);
}

const model_architecture model_architecture_lfm2 = {
    .model_type = "lfm2",
    .classes = (const model_class[]){{"Lfm2ForCausalLM", MODEL_NEXT_TOKEN},
                                     {"Lfm2Model", MODEL_NEXT_TOKEN},
                                     {0}},
    .keys = (const char *const[]){"layer_types", NULL},
    .read = read_lfm2,
    .build = build,
    .prefix = "",
    .ignored = {".rotary_emb.inv_freq"},
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

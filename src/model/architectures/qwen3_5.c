/* Qwen 3.5 and the dense models of 3.6 (Qwen Team 2026) as transformers' Qwen3_5ForCausalLM has
 * them: most layers have linear attention by the gated delta rule, behind a short convolution; the
 * others have attention whose result is gated. */
#include <stdio.h>
#include <string.h>

#include "model/architectures/activate.h"
#include "model/architectures/decoder.h"

/* "layer_types"; absent: each "full_attention_interval"th layer has full attention. */
static sifr_status read_layers(const model_reader *r, model_config *out) {
    const json_t *list = model_member(r->json, "layer_types");
    int64_t interval;
    BASE_TRY(
        model_read_int(r, "full_attention_interval", NULL, 4, 1, MODEL_LIMIT_LAYERS, &interval));
    if (list && (!json_is_array(list) || (int64_t)json_array_size(list) != out->num_hidden_layers))
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"layer_types\" must be a list of %lld names, one for each layer",
                         r->name, (long long)out->num_hidden_layers);
    for (int64_t i = 0; i < out->num_hidden_layers; i++) {
        const char *type = json_string_value(json_array_get(list, (size_t)i));
        bool linear = list ? type && !strcmp(type, "linear_attention") : (i + 1) % interval != 0;
        if (list && !linear && (!type || strcmp(type, "full_attention") != 0))
            return base_fail(r->error, SIFR_USAGE,
                             "%s: \"layer_types\" names %.60s, which is not supported (supported: "
                             "linear_attention, full_attention)",
                             r->name, type ? type : "something that is not a string");
        if (linear) out->layers[i] |= MODEL_LAYER_LINEAR;
    }
    return SIFR_OK;
}

static sifr_status read_linear(const model_reader *r, model_config *out) {
    model_linear_heads *l = &out->linear;
    const struct {
        const char *key;
        int64_t fallback, *at;
    } sizes[] = {{"linear_num_key_heads", 16, &l->keys},
                 {"linear_num_value_heads", 32, &l->values},
                 {"linear_key_head_dim", 128, &l->key_dim},
                 {"linear_value_head_dim", 128, &l->value_dim}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        BASE_TRY(model_read_int(r, sizes[i].key, NULL, sizes[i].fallback, 1, MODEL_LIMIT_HEADS,
                                sizes[i].at));
    BASE_TRY(model_read_int(r, "linear_conv_kernel_dim", NULL, 4, 2, MODEL_LIMIT_TAPS,
                            &out->convolution_size));
    if (l->values % l->keys)
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"linear_num_value_heads\" %lld is no multiple of "
                         "\"linear_num_key_heads\" %lld",
                         r->name, (long long)l->values, (long long)l->keys);
    if (l->keys * l->key_dim <= MODEL_LIMIT_INNER && l->values * l->value_dim <= MODEL_LIMIT_INNER)
        return SIFR_OK;
    return base_fail(r->error, SIFR_USAGE,
                     "%s: heads of linear attention have %lld and %lld elements together, more "
                     "than %lld (\"linear_num_key_heads\", \"linear_key_head_dim\", "
                     "\"linear_num_value_heads\", \"linear_value_head_dim\")",
                     r->name, (long long)(l->keys * l->key_dim),
                     (long long)(l->values * l->value_dim), (long long)MODEL_LIMIT_INNER);
}

static sifr_status read_qwen3_5(const model_reader *r, model_config *out) {
    bool gated;
    out->vocab_size = 248320, out->hidden_size = 4096, out->intermediate_size = 12288;
    out->num_hidden_layers = 32, out->num_attention_heads = 16, out->num_key_value_heads = 4;
    out->head_dim = 256;
    out->max_position_embeddings = 32768;
    out->norm = MODEL_RMS_NORM_PLUS_ONE;
    out->norm_eps = 1e-6, out->rope.theta = 10000;
    BASE_TRY(decoder_read_rotary_part(r, 0.25, out));
    BASE_TRY(decoder_read(r, out));
    BASE_TRY(model_read_bool(r, "attention_bias", false, &out->attention_bias));
    out->output_bias = out->attention_bias;
    BASE_TRY(model_read_bool(r, "attn_output_gate", true, &gated));
    if (!gated) return model_refuse(r, "attn_output_gate", "the result of attention is gated");
    BASE_TRY(read_layers(r, out));
    BASE_TRY(read_linear(r, out));
    return model_read_activation(r, "hidden_act", MODEL_ONE_OF(MODEL_SILU), MODEL_SILU,
                                 &out->activation);
}

static const char *name_of(const decoder *d, const char *name, char text[MODEL_NAME_LENGTH]) {
    snprintf(text, MODEL_NAME_LENGTH, "%s.%lld.linear_attn.%s", d->names->layers,
             (long long)d->layer, name);
    return text;
}

/* q, k and v beside each other, each column with its last tokens. */
static sifr_value convolve(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    char text[MODEL_NAME_LENGTH];
    int64_t columns =
        2 * c->linear.keys * c->linear.key_dim + c->linear.values * c->linear.value_dim;
    x = decoder_linear(d, x, "linear_attn.in_proj_qkv", false, c->hidden_size, columns);
    sifr_short_conv_args args = {.x = x};
    args.weight = sifr_weight_kernel(d->model, name_of(d, "conv1d.weight", text), columns, 1,
                                     c->convolution_size, SIFR_INIT_NORMAL, c->initializer_range);
    return model_activate(d->model, sifr_short_conv(d->model, args), c->activation);
}

static sifr_value linear_attention(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    const model_linear_heads *l = &c->linear;
    char text[MODEL_NAME_LENGTH];
    int64_t width = c->hidden_size, keys = l->keys * l->key_dim, values = l->values * l->value_dim;
    sifr_value qkv = convolve(d, x);
    sifr_value z = decoder_linear(d, x, "linear_attn.in_proj_z", false, width, values);
    sifr_delta_args args = {.q = sifr_slice(d->model, qkv, 0, keys),
                            .k = sifr_slice(d->model, qkv, keys, keys),
                            .v = sifr_slice(d->model, qkv, 2 * keys, values),
                            .key_heads = l->keys,
                            .value_heads = l->values};
    args.share = decoder_linear(d, x, "linear_attn.in_proj_b", false, width, l->values);
    args.time = decoder_linear(d, x, "linear_attn.in_proj_a", false, width, l->values);
    args.bias = sifr_weight_vector(d->model, name_of(d, "dt_bias", text), l->values, SIFR_INIT_ONE);
    args.rate = sifr_weight_vector(d->model, name_of(d, "A_log", text), l->values, SIFR_INIT_LOG);
    /* Unlike the others this norm multiplies by its weight. */
    sifr_norm_args norm = {.x = sifr_delta(d->model, args), .epsilon = c->norm_eps};
    norm.heads = l->values;
    norm.scale =
        sifr_weight_vector(d->model, name_of(d, "norm.weight", text), l->value_dim, SIFR_INIT_ONE);
    sifr_value y = sifr_silu_gate(d->model, z, sifr_rms_norm(d->model, norm));
    return decoder_linear(d, y, "linear_attn.out_proj", false, values, width);
}

/* Each head of q_proj is a query and a gate. */
static sifr_value attention(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    int64_t width = c->hidden_size, q = c->num_attention_heads * c->head_dim;
    int64_t kv = c->num_key_value_heads * c->head_dim;
    bool biased = c->attention_bias;
    sifr_value both = decoder_linear(d, x, "self_attn.q_proj", biased, width, 2 * q);
    both = sifr_split_qkv(d->model, both, c->num_attention_heads, 2);
    sifr_value gate = sifr_slice(d->model, both, q, q);
    decoder_heads h = {.q = sifr_slice(d->model, both, 0, q)};
    h.k = decoder_linear(d, x, "self_attn.k_proj", biased, width, kv);
    h.v = decoder_linear(d, x, "self_attn.v_proj", biased, width, kv);
    h.q = decoder_group_norm(d, h.q, "self_attn.q_norm", c->num_attention_heads, c->head_dim);
    h.k = decoder_group_norm(d, h.k, "self_attn.k_norm", c->num_key_value_heads, c->head_dim);
    h = decoder_rotate(d, h);
    sifr_attention_args a = {.q = h.q,
                             .k = h.k,
                             .v = h.v,
                             .heads = c->num_attention_heads,
                             .kv_heads = c->num_key_value_heads,
                             .dropout = c->attention_dropout};
    sifr_value y = sifr_sigmoid_gate(d->model, gate, sifr_attention(d->model, a));
    return decoder_linear(d, y, "self_attn.o_proj", c->output_bias, q, width);
}

static sifr_value block(const decoder *d, sifr_value x) {
    bool linear = d->config->layers[d->layer] & MODEL_LAYER_LINEAR;
    sifr_value n = decoder_norm(d, x, "input_layernorm");
    sifr_value h = decoder_add(d, x, linear ? linear_attention(d, n) : attention(d, n));
    n = decoder_norm(d, h, "post_attention_layernorm");
    return decoder_add(d, h, decoder_mlp(d, n));
}

static void build(sifr_model *model, const model_config *config) {
    decoder_build(model, config, block);
}

const model_architecture model_architecture_qwen3_5_text = {
    .model_type = "qwen3_5_text",
    .classes = (const model_class[]){{"Qwen3_5ForCausalLM", MODEL_NEXT_TOKEN},
                                     {"Qwen3_5TextModel", MODEL_NEXT_TOKEN},
                                     {0}},
    .keys = (const char *const[]){"layer_types", "partial_rotary_factor", "mrope_section", NULL},
    .read = read_qwen3_5,
    .build = build,
    .prefix = "",
    .head = "lm_head.weight",
    .embedding = "model.embed_tokens.weight",
};

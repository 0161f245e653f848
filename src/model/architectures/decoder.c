#include "model/architectures/decoder.h"

#include <stdio.h>

#include "base/checked.h"
#include "model/architectures/activate.h"

sifr_status decoder_check_heads(const model_reader *r, const model_config *c) {
    if (c->num_key_value_heads > c->num_attention_heads ||
        c->num_attention_heads % c->num_key_value_heads) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"num_attention_heads\" %lld is no multiple of "
                         "\"num_key_value_heads\" %lld",
                         r->name, (long long)c->num_attention_heads,
                         (long long)c->num_key_value_heads);
    }
    if (c->head_dim % 2) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: a head of %lld elements cannot have rotary positions, which turn "
                         "pairs: an even \"head_dim\" is needed",
                         r->name, (long long)c->head_dim);
    }
    if (c->head_dim * c->num_attention_heads > MODEL_LIMIT_INNER) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: %lld heads of %lld elements are more than %lld together", r->name,
                         (long long)c->num_attention_heads, (long long)c->head_dim,
                         (long long)MODEL_LIMIT_INNER);
    }
    return SIFR_OK;
}

static sifr_status read_heads(const model_reader *r, model_config *out) {
    int64_t fallback = out->num_key_value_heads;
    bool null = json_is_null(json_object_get(r->json, "num_key_value_heads"));
    if (!fallback || null) fallback = out->num_attention_heads;
    BASE_TRY(model_read_int(r, "num_key_value_heads", NULL, fallback, 1, MODEL_LIMIT_HEADS,
                            &out->num_key_value_heads));
    if (json_is_null(json_object_get(r->json, "head_dim"))) out->head_dim = 0;
    bool natural = !out->head_dim && !model_member(r->json, "head_dim");
    if (natural && out->hidden_size % out->num_attention_heads) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: the hidden size %lld is no multiple of the %lld attention heads",
                         r->name, (long long)out->hidden_size, (long long)out->num_attention_heads);
    }
    if (!out->head_dim)
        out->head_dim = base_max_i64(out->hidden_size / out->num_attention_heads, 1);
    BASE_TRY(
        model_read_int(r, "head_dim", NULL, out->head_dim, 1, MODEL_LIMIT_HEADS, &out->head_dim));
    return decoder_check_heads(r, out);
}

sifr_status decoder_read_keys(const model_reader *r, model_config *out) {
    const struct {
        const char *key;
        int64_t most, *at;
    } sizes[] = {
        {"vocab_size", MODEL_LIMIT_ID, &out->vocab_size},
        {"hidden_size", MODEL_LIMIT_WIDTH, &out->hidden_size},
        {"num_hidden_layers", MODEL_LIMIT_LAYERS, &out->num_hidden_layers},
        {"num_attention_heads", MODEL_LIMIT_HEADS, &out->num_attention_heads},
        {"intermediate_size", MODEL_LIMIT_INNER, &out->intermediate_size},
        {"max_position_embeddings", MODEL_LIMIT_ID, &out->max_position_embeddings},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        BASE_TRY(
            model_read_int(r, sizes[i].key, NULL, *sizes[i].at, 1, sizes[i].most, sizes[i].at));
    }
    BASE_TRY(read_heads(r, out));
    BASE_TRY(model_read_double(r, "rms_norm_eps", out->norm_eps, 1e-30, 1, false, &out->norm_eps));
    BASE_TRY(model_read_double(r, "attention_dropout", out->attention_dropout, 0, 1, true,
                               &out->attention_dropout));
    BASE_TRY(model_read_bool(r, "tie_word_embeddings", out->tie_word_embeddings,
                             &out->tie_word_embeddings));
    BASE_TRY(label_head_read(r, out));
    BASE_TRY(model_read_token_id(r, "bos_token_id", out->bos_token_id, &out->bos_token_id));
    return model_read_eos(r, out->eos_count ? out->eos_token_ids[0] : -1, out);
}

sifr_status decoder_read(const model_reader *r, model_config *out) {
    BASE_TRY(decoder_read_keys(r, out));
    return model_read_rope(r, out);
}

sifr_status decoder_read_rotary_part(const model_reader *r, double fallback, model_config *out) {
    static const char key[] = "partial_rotary_factor";
    if (json_is_null(json_object_get(r->json, key))) fallback = 1;
    return model_read_double(r, key, fallback, 1e-6, 1, false, &out->rotary_part);
}

sifr_status decoder_read_gate(const model_reader *r, model_config *out) {
    unsigned known =
        MODEL_ONE_OF(MODEL_SILU) | MODEL_ONE_OF(MODEL_GELU_TANH) | MODEL_ONE_OF(MODEL_GELU_ERF);
    return model_read_activation(r, "hidden_act", known, MODEL_SILU, &out->activation);
}

sifr_status decoder_read_activation(const model_reader *r, model_activation_kind fallback,
                                    model_config *out) {
    unsigned known = MODEL_ONE_OF(MODEL_SILU) | MODEL_ONE_OF(MODEL_GELU_TANH) |
                     MODEL_ONE_OF(MODEL_GELU_ERF) | MODEL_ONE_OF(MODEL_RELU) |
                     MODEL_ONE_OF(MODEL_RELU_SQUARED);
    return model_read_activation(r, "hidden_act", known, fallback, &out->activation);
}

sifr_status decoder_read_layer_eps(const model_reader *r, model_config *out) {
    return model_read_double(r, "layer_norm_eps", 1e-5, 1e-30, 1, false, &out->norm_eps);
}

sifr_status decoder_check_width(const model_reader *r, const model_config *out) {
    if (out->head_dim * out->num_attention_heads == out->hidden_size) return SIFR_OK;
    return base_fail(
        r->error, SIFR_USAGE,
        "%s: \"head_dim\" is %lld, but %s has hidden_size / num_attention_heads = %lld "
        "/ %lld alone: remove \"head_dim\"",
        r->name, (long long)out->head_dim, r->architecture->model_type, (long long)out->hidden_size,
        (long long)out->num_attention_heads);
}

void decoder_set_windows(model_config *config, int64_t first) {
    if (!config->sliding_window) return;
    for (int64_t i = first; i < config->num_hidden_layers; i++)
        config->layers[i] |= MODEL_LAYER_WINDOW;
}

sifr_status decoder_check_windows(const model_reader *r, const model_config *c) {
    for (int64_t i = 0; i < c->num_hidden_layers && !c->sliding_window; i++) {
        if (c->layers[i] & MODEL_LAYER_WINDOW) {
            return base_fail(r->error, SIFR_USAGE,
                             "%s: \"sliding_window\" is null, but layer %lld has a window", r->name,
                             (long long)i);
        }
    }
    return SIFR_OK;
}

sifr_status decoder_read_windows(const model_reader *r, int64_t period, model_config *out) {
    BASE_TRY(model_read_window(r, 4096, out));
    for (int64_t i = 0; i < out->num_hidden_layers; i++)
        out->layers[i] = (i + 1) % period ? MODEL_LAYER_WINDOW : 0;
    BASE_TRY(model_read_layer_types(r, out));
    return decoder_check_windows(r, out);
}

sifr_status decoder_read_qwen_windows(const model_reader *r, model_config *out) {
    bool windows;
    int64_t first;
    BASE_TRY(model_read_bool(r, "use_sliding_window", false, &windows));
    BASE_TRY(model_read_int(r, "max_window_layers", NULL, 28, 0, MODEL_LIMIT_ID, &first));
    BASE_TRY(model_read_window(r, 4096, out));
    if (!windows) out->sliding_window = 0;
    decoder_set_windows(out, first);
    return model_read_layer_types(r, out);
}

/* A norm whose weights are NAME.weight and NAME.bias. */
static sifr_value add_norm(const decoder *d, sifr_value x, const char *name, int64_t groups,
                           int64_t columns) {
    const model_config *c = d->config;
    char text[MODEL_NAME_LENGTH + 8];
    bool layer = c->norm >= MODEL_LAYER_NORM;
    bool plus_one = c->norm == MODEL_RMS_NORM_PLUS_ONE || c->norm == MODEL_LAYER_NORM_PLUS_ONE;
    sifr_norm_args args = {.x = x, .epsilon = c->norm_eps, .plus_one = plus_one, .heads = groups};
    if (c->norm == MODEL_RMS_NORM_BARE) return sifr_rms_norm(d->model, args);
    if (c->norm == MODEL_LAYER_NORM_BARE) return sifr_layer_norm(d->model, args);
    snprintf(text, sizeof text, "%s.weight", name);
    /* transformers begins with 1 in Nemotron's as well. */
    bool zero = c->norm == MODEL_RMS_NORM_PLUS_ONE;
    args.scale = sifr_weight_vector(d->model, text, columns, zero ? SIFR_INIT_ZERO : SIFR_INIT_ONE);
    if (!layer) return sifr_rms_norm(d->model, args);
    if (c->norm == MODEL_LAYER_NORM_PLAIN) return sifr_layer_norm(d->model, args);
    snprintf(text, sizeof text, "%s.bias", name);
    args.bias = sifr_weight_vector(d->model, text, columns, SIFR_INIT_ZERO);
    return sifr_layer_norm(d->model, args);
}

sifr_value decoder_group_norm(const decoder *d, sifr_value x, const char *name, int64_t groups,
                              int64_t columns) {
    char text[MODEL_NAME_LENGTH];
    snprintf(text, sizeof text, "%s.%lld.%s", d->names->layers, (long long)d->layer, name);
    return add_norm(d, x, text, groups, columns);
}

sifr_value decoder_norm(const decoder *d, sifr_value x, const char *name) {
    return decoder_group_norm(d, x, name, 1, d->config->hidden_size);
}

sifr_value decoder_linear(const decoder *d, sifr_value x, const char *name, bool biased,
                          int64_t from, int64_t to) {
    const char *layers = d->names->layers;
    char text[MODEL_NAME_LENGTH];
    snprintf(text, sizeof text, "%s.%lld.%s.weight", layers, (long long)d->layer, name);
    sifr_weight w = sifr_weight_matrix(d->model, text, to, from, SIFR_INIT_NORMAL,
                                       d->config->initializer_range);
    if (!biased) return sifr_linear(d->model, x, w, SIFR_NO_WEIGHT);
    snprintf(text, sizeof text, "%s.%lld.%s.bias", layers, (long long)d->layer, name);
    return sifr_linear(d->model, x, w, sifr_weight_vector(d->model, text, to, SIFR_INIT_ZERO));
}

static sifr_value scale(const decoder *d, sifr_value x, double factor, bool rounded) {
    if (factor == 0) return x;
    return sifr_scale(d->model,
                      (sifr_scale_args){.x = x, .factor = factor, .round_factor = rounded});
}

sifr_value decoder_add(const decoder *d, sifr_value x, sifr_value part) {
    part = sifr_dropout(d->model, part, d->config->residual_dropout);
    return sifr_add(d->model, x, scale(d, part, d->config->residual_scale, false));
}

decoder_heads decoder_project(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    int64_t width = c->hidden_size, q = c->num_attention_heads * c->head_dim;
    int64_t kv = c->num_key_value_heads * c->head_dim;
    bool biased = c->attention_bias;
    decoder_heads heads;
    heads.q = decoder_linear(d, x, "self_attn.q_proj", biased, width, q);
    heads.k = decoder_linear(d, x, "self_attn.k_proj", biased, width, kv);
    heads.v = decoder_linear(d, x, "self_attn.v_proj", biased, width, kv);
    return heads;
}

decoder_heads decoder_split(const decoder *d, sifr_value qkv) {
    const model_config *c = d->config;
    int64_t q = c->num_attention_heads * c->head_dim, kv = c->num_key_value_heads * c->head_dim;
    decoder_heads heads;
    heads.q = sifr_slice(d->model, qkv, 0, q);
    heads.k = sifr_slice(d->model, qkv, q, kv);
    heads.v = sifr_slice(d->model, qkv, q + kv, kv);
    return heads;
}

/* query_beta is for queries alone. */
static sifr_value rotate(const decoder *d, sifr_value x, bool is_query) {
    const model_config *c = d->config;
    if (c->layers[d->layer] & MODEL_LAYER_NO_ROPE) return x;
    model_rope rule = c->layers[d->layer] & MODEL_LAYER_LOCAL_ROPE ? c->local_rope : c->rope;
    if (!is_query) rule.query_beta = 0;
    return model_rotate(d->model, x, c->head_dim, &rule);
}

decoder_heads decoder_rotate(const decoder *d, decoder_heads heads) {
    heads.q = rotate(d, heads.q, true);
    if (heads.k.id) heads.k = rotate(d, heads.k, false);
    return heads;
}

sifr_value decoder_attend_rotated(const decoder *d, decoder_heads heads, const char *output) {
    const model_config *c = d->config;
    sifr_attention_args a = {.q = heads.q,
                             .k = heads.k,
                             .v = heads.v,
                             .heads = c->num_attention_heads,
                             .kv_heads = c->num_key_value_heads,
                             .dropout = c->attention_dropout,
                             .scale = c->attention_scale,
                             .softcap = c->attention_softcap,
                             .alibi = c->attention_alibi};
    if (c->layers[d->layer] & MODEL_LAYER_WINDOW) a.window = c->sliding_window;
    return decoder_linear(d, sifr_attention(d->model, a), output, c->output_bias,
                          c->num_attention_heads * c->head_dim, c->hidden_size);
}

sifr_value decoder_attend(const decoder *d, decoder_heads heads, const char *output) {
    return decoder_attend_rotated(d, decoder_rotate(d, heads), output);
}

sifr_value decoder_attention(const decoder *d, sifr_value x) {
    return decoder_attend(d, decoder_project(d, x), "self_attn.o_proj");
}

sifr_value decoder_normed_attention(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    decoder_heads h = decoder_project(d, x);
    h.q = decoder_group_norm(d, h.q, "self_attn.q_norm", c->num_attention_heads, c->head_dim);
    h.k = decoder_group_norm(d, h.k, "self_attn.k_norm", c->num_key_value_heads, c->head_dim);
    return decoder_attend(d, h, "self_attn.o_proj");
}

sifr_value decoder_gate(const decoder *d, sifr_value gate, sifr_value up) {
    model_activation_kind kind = d->config->activation;
    if (kind == MODEL_SILU) return sifr_silu_gate(d->model, gate, up);
    return sifr_gelu_gate(d->model, gate, up, kind == MODEL_GELU_ERF);
}

static sifr_value finish_mlp(const decoder *d, sifr_value gate, sifr_value up) {
    const model_config *c = d->config;
    return decoder_linear(d, decoder_gate(d, gate, up), "mlp.down_proj", c->mlp_bias,
                          c->intermediate_size, c->hidden_size);
}

sifr_value decoder_mlp(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    int64_t width = c->hidden_size, inner = c->intermediate_size;
    sifr_value gate = decoder_linear(d, x, "mlp.gate_proj", c->mlp_bias, width, inner);
    sifr_value up = decoder_linear(d, x, "mlp.up_proj", c->mlp_bias, width, inner);
    return finish_mlp(d, gate, up);
}

sifr_value decoder_fused_mlp(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    int64_t inner = c->intermediate_size;
    sifr_value both =
        decoder_linear(d, x, "mlp.gate_up_proj", c->mlp_bias, c->hidden_size, 2 * inner);
    sifr_value gate = sifr_slice(d->model, both, 0, inner);
    return finish_mlp(d, gate, sifr_slice(d->model, both, inner, inner));
}

sifr_value decoder_plain_mlp(const decoder *d, sifr_value x, const char *up, const char *down) {
    const model_config *c = d->config;
    int64_t width = c->hidden_size, inner = c->intermediate_size;
    sifr_value y = decoder_linear(d, x, up, c->mlp_bias, width, inner);
    y = model_activate(d->model, y, c->activation);
    return decoder_linear(d, y, down, c->mlp_bias, inner, width);
}

sifr_value decoder_plain_block(const decoder *d, sifr_value x) {
    sifr_value n = decoder_norm(d, x, "input_layernorm");
    sifr_value h = decoder_add(d, x, decoder_attention(d, n));
    n = decoder_norm(d, h, "post_attention_layernorm");
    return decoder_add(d, h, decoder_mlp(d, n));
}

static sifr_weight matrix(const decoder *d, const char *name, int64_t rows, int64_t columns) {
    return sifr_weight_matrix(d->model, name, rows, columns, SIFR_INIT_NORMAL,
                              d->config->initializer_range);
}

static sifr_weight table(const decoder *d, const char *name) {
    const model_config *c = d->config;
    return matrix(d, name, c->vocab_size, c->word_size ? c->word_size : c->hidden_size);
}

/* The embedding in hidden_size columns, and what stands at each position. */
static sifr_value place(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    if (c->word_size) {
        sifr_weight w = matrix(d, d->names->before, c->hidden_size, c->word_size);
        x = sifr_linear(d->model, x, w, SIFR_NO_WEIGHT);
    }
    if (d->names->embedded) x = add_norm(d, x, d->names->embedded, 1, c->hidden_size);
    if (!d->names->positions) return x;
    sifr_weight all = matrix(d, d->names->positions, c->max_position_embeddings, c->hidden_size);
    sifr_embedding_args places = {
        .ids = sifr_positions(d->model), .table = all, .first = c->first_position};
    return sifr_add(d->model, x, sifr_embedding(d->model, places));
}

static sifr_value leave(const decoder *d, sifr_value x) {
    const model_config *c = d->config;
    if (d->names->norm) x = add_norm(d, x, d->names->norm, 1, c->hidden_size);
    if (!c->word_size) return x;
    sifr_weight w = matrix(d, d->names->after, c->word_size, c->hidden_size);
    return sifr_linear(d->model, x, w, SIFR_NO_WEIGHT);
}

static void build(sifr_model *model, const model_config *c, const decoder_names *names,
                  const decoder_family *family) {
    decoder d = {model, c, names, 0, family->handed};

    sifr_unit(model, "embedding");
    sifr_weight words = table(&d, names->embedding);
    bool padded = c->pad_token_id >= 0 && !names->unpadded;
    sifr_value x = sifr_embedding(model, (sifr_embedding_args){.ids = sifr_tokens(model),
                                                               .table = words,
                                                               .padded = padded,
                                                               .padding = c->pad_token_id});
    x = scale(&d, x, c->embedding_scale, c->embedding_scale_rounded);
    x = sifr_dropout(model, place(&d, x), c->embedding_dropout);
    if (family->before) x = family->before(&d, x);

    for (d.layer = 0; d.layer < c->num_hidden_layers; d.layer++) {
        char name[MODEL_NAME_LENGTH];
        sifr_unit(model, model_name(name, "layers.%d", d.layer));
        x = family->block(&d, x);
    }

    sifr_unit(model, "head");
    x = leave(&d, x);
    if (model_task_labelled(c->task)) {
        label_head_of_decoder(model, c, x, names->tokens ? names->tokens : "score");
        return;
    }
    sifr_weight head = c->tie_word_embeddings ? words : table(&d, names->head);
    sifr_weight bias = SIFR_NO_WEIGHT;
    if (names->head_bias)
        bias = sifr_weight_vector(model, names->head_bias, c->vocab_size, SIFR_INIT_ZERO);
    sifr_head_loss(model, (sifr_head_args){.x = x,
                                           .weight = head,
                                           .bias = bias,
                                           .scale = c->logit_scale,
                                           .softcap = c->logit_softcap});
}

void decoder_build_named(sifr_model *model, const model_config *config, const decoder_names *names,
                         decoder_block block) {
    build(model, config, names, &(decoder_family){.block = block});
}

static void build_body(sifr_model *model, const model_config *config, const char *last,
                       const decoder_family *family) {
    char embedding[64], layers[64], norm[64];
    const char *body = config->multimodal ? config->multimodal->body : "model.";
    snprintf(embedding, sizeof embedding, "%sembed_tokens.weight", body);
    snprintf(layers, sizeof layers, "%slayers", body);
    snprintf(norm, sizeof norm, "%s%s", body, last);
    const decoder_names names = {
        .embedding = embedding, .layers = layers, .norm = norm, .head = "lm_head.weight"};
    build(model, config, &names, family);
}

void decoder_build_body(sifr_model *model, const model_config *config, const char *last,
                        decoder_block block) {
    build_body(model, config, last, &(decoder_family){.block = block});
}

void decoder_build_family(sifr_model *model, const model_config *config,
                          const decoder_family *family) {
    build_body(model, config, "norm", family);
}

void decoder_build(sifr_model *model, const model_config *config, decoder_block block) {
    decoder_build_body(model, config, "norm", block);
}

#include "model/architectures/encoder.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "model/architectures/activate.h"
#include "model/architectures/label_head.h"
#include "model/builder.h"

/* --- keys --- */

sifr_status encoder_check(const model_reader *r, model_config *out) {
    const char *const decoding[] = {"is_decoder", "is_causal"};
    for (size_t i = 0; i < sizeof decoding / sizeof *decoding; i++) {
        bool on;
        BASE_TRY(model_read_bool(r, decoding[i], false, &on));
        if (on) return model_refuse(r, decoding[i], "attention of encoders sees both directions");
    }
    const char *positions;
    BASE_TRY(base_json_string(r->json, "position_embedding_type", "absolute", &positions, r->name,
                              r->error));
    if (strcmp(positions, "absolute") != 0) {
        return model_refuse(r, "position_embedding_type", "positions are \"absolute\"");
    }
    if (out->hidden_size % out->num_attention_heads) {
        return base_fail(r->error, SIFR_USAGE,
                         "%s: the hidden size %lld is no multiple of the %lld attention heads",
                         r->name, (long long)out->hidden_size, (long long)out->num_attention_heads);
    }
    out->head_dim = out->hidden_size / out->num_attention_heads;
    out->num_key_value_heads = out->num_attention_heads;
    BASE_TRY(model_read_bool(r, "tie_word_embeddings", true, &out->tie_word_embeddings));
    BASE_TRY(model_read_token_id(r, "pad_token_id", out->pad_token_id, &out->pad_token_id));
    BASE_TRY(model_read_token_id(r, "bos_token_id", out->bos_token_id, &out->bos_token_id));
    return model_read_eos(r, out->eos_count ? out->eos_token_ids[0] : -1, out);
}

sifr_status encoder_read_activation(const model_reader *r, const char *key,
                                    model_activation_kind *out) {
    return model_read_activation(r, key, ~0u, MODEL_GELU_ERF, out);
}

sifr_status encoder_read(const model_reader *r, model_config *out) {
    const struct {
        const char *key;
        int64_t fallback, most, *at;
    } sizes[] = {
        {"vocab_size", 30522, MODEL_LIMIT_ID, &out->vocab_size},
        {"hidden_size", 768, MODEL_LIMIT_WIDTH, &out->hidden_size},
        {"num_hidden_layers", 12, MODEL_LIMIT_LAYERS, &out->num_hidden_layers},
        {"num_attention_heads", 12, MODEL_LIMIT_HEADS, &out->num_attention_heads},
        {"intermediate_size", 3072, MODEL_LIMIT_INNER, &out->intermediate_size},
        {"max_position_embeddings", 512, MODEL_LIMIT_ID, &out->max_position_embeddings},
        {"type_vocab_size", 2, MODEL_LIMIT_ID, &out->type_vocab_size},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t fallback = *sizes[i].at ? *sizes[i].at : sizes[i].fallback;
        BASE_TRY(model_read_int(r, sizes[i].key, NULL, fallback, 1, sizes[i].most, sizes[i].at));
    }
    out->norm = MODEL_LAYER_NORM;
    BASE_TRY(model_read_double(r, "layer_norm_eps", 1e-12, 1e-30, 1, false, &out->norm_eps));
    double *dropout = &out->residual_dropout;
    BASE_TRY(model_read_double(r, "hidden_dropout_prob", 0.1, 0, 1, true, dropout));
    out->embedding_dropout = out->attention_output_dropout = *dropout;
    BASE_TRY(
        model_read_double(r, "classifier_dropout", *dropout, 0, 1, true, &out->classifier_dropout));
    BASE_TRY(model_read_double(r, "attention_probs_dropout_prob", 0.1, 0, 1, true,
                               &out->attention_dropout));
    BASE_TRY(encoder_read_activation(r, "hidden_act", &out->activation));
    out->head_activation = out->activation;
    out->attention_bias = out->output_bias = out->mlp_bias = true;
    out->head_bias = out->decoder_bias = true;
    out->rope.factor = 1;
    return encoder_check(r, out);
}

/* --- parts --- */

static const char *full_name(const encoder *e, const char *name, const char *part,
                             char out[MODEL_NAME_LENGTH]) {
    if (e->layer < 0) {
        snprintf(out, MODEL_NAME_LENGTH, "%s%s", name, part);
    } else {
        snprintf(out, MODEL_NAME_LENGTH, "%s.%lld.%s%s", e->names->layers, (long long)e->layer,
                 name, part);
    }
    return out;
}

static sifr_weight matrix_of(const encoder *e, const char *name, int64_t rows, int64_t columns,
                             double deviation) {
    const model_config *c = e->config;
    char text[MODEL_NAME_LENGTH];
    sifr_weight w = sifr_weight_matrix(e->model, full_name(e, name, ".weight", text), rows, columns,
                                       SIFR_INIT_NORMAL, deviation);
    if (c->initializer_cutoff > 0) model_truncate(e->model, w, c->initializer_cutoff);
    return w;
}

static sifr_weight matrix(const encoder *e, const char *name, int64_t rows, int64_t columns) {
    return matrix_of(e, name, rows, columns, e->config->initializer_range);
}

static double out_deviation(const encoder *e) {
    return e->out_deviation == 0 ? e->config->initializer_range : e->out_deviation;
}

static sifr_value linear(const encoder *e, sifr_value x, const char *name, bool biased,
                         sifr_weight w, int64_t to) {
    char text[MODEL_NAME_LENGTH];
    sifr_weight bias = SIFR_NO_WEIGHT;
    if (biased)
        bias = sifr_weight_vector(e->model, full_name(e, name, ".bias", text), to, SIFR_INIT_ZERO);
    return sifr_linear(e->model, x, w, bias);
}

sifr_value encoder_linear(const encoder *e, sifr_value x, const char *name, bool biased,
                          int64_t from, int64_t to) {
    return linear(e, x, name, biased, matrix(e, name, to, from), to);
}

sifr_value encoder_linear_out(const encoder *e, sifr_value x, const char *name, bool biased,
                              int64_t from, int64_t to) {
    return linear(e, x, name, biased, matrix_of(e, name, to, from, out_deviation(e)), to);
}

sifr_value encoder_norm(const encoder *e, sifr_value x, const char *name) {
    const model_config *c = e->config;
    char text[MODEL_NAME_LENGTH];
    sifr_norm_args args = {.x = x, .epsilon = c->norm_eps};
    full_name(e, name, ".weight", text);
    args.scale = sifr_weight_vector(e->model, text, c->hidden_size, SIFR_INIT_ONE);
    if (c->norm == MODEL_LAYER_NORM_PLAIN) return sifr_layer_norm(e->model, args);
    full_name(e, name, ".bias", text);
    args.bias = sifr_weight_vector(e->model, text, c->hidden_size, SIFR_INIT_ZERO);
    return sifr_layer_norm(e->model, args);
}

sifr_value encoder_words(encoder *e) {
    const model_config *c = e->config;
    e->words = matrix(e, e->names->words, c->vocab_size, c->hidden_size);
    sifr_value x = sifr_embedding(e->model, (sifr_embedding_args){.ids = sifr_tokens(e->model),
                                                                  .table = e->words,
                                                                  .padded = c->pad_token_id >= 0,
                                                                  .padding = c->pad_token_id});
    if (c->initializer_cutoff > 0) model_truncate(e->model, e->words, c->initializer_cutoff);
    return x;
}

sifr_value encoder_embedding(encoder *e) {
    const model_config *c = e->config;
    sifr_value x = encoder_words(e);
    if (c->type_vocab_size) {
        sifr_embedding_args types = {
            .ids = sifr_input_value(e->model, SIFR_TOKEN_TYPES),
            .table = matrix(e, e->names->types, c->type_vocab_size, c->hidden_size)};
        x = sifr_add(e->model, x, sifr_embedding(e->model, types));
    }
    int64_t rows = c->max_position_embeddings, first = c->first_position;
    sifr_embedding_args positions = {.ids = sifr_positions(e->model),
                                     .table = matrix(e, e->names->positions, rows, c->hidden_size),
                                     .first = first,
                                     .padded = first > 0, /* the row before them */
                                     .padding = first - 1};
    x = sifr_add(e->model, x, sifr_embedding(e->model, positions));
    return sifr_dropout(e->model, encoder_norm(e, x, e->names->embedding_norm),
                        c->embedding_dropout);
}

sifr_value encoder_attend(const encoder *e, sifr_value q, sifr_value k, sifr_value v) {
    const model_config *c = e->config;
    bool local = c->layers[e->layer] & MODEL_LAYER_WINDOW;
    return sifr_attention(
        e->model, (sifr_attention_args){.q = q,
                                        .k = k,
                                        .v = v,
                                        .heads = c->num_attention_heads,
                                        .kv_heads = c->num_attention_heads,
                                        .dropout = c->attention_dropout,
                                        .window = local ? c->sliding_window : 0,
                                        .bidirectional = true,
                                        .segments = sifr_input_value(e->model, SIFR_SEGMENTS)});
}

/* norm(x + dropout(part)) */
static sifr_value add_norm(const encoder *e, sifr_value x, sifr_value part, double dropout,
                           const char *norm) {
    part = sifr_dropout(e->model, part, dropout);
    return encoder_norm(e, sifr_add(e->model, x, part), norm);
}

sifr_value encoder_plain_block(const encoder *e, sifr_value x) {
    const model_config *c = e->config;
    const encoder_names *n = e->names;
    int64_t width = c->hidden_size, inner = c->intermediate_size;
    sifr_value q = encoder_linear(e, x, n->query, true, width, width);
    sifr_value k = encoder_linear(e, x, n->key, true, width, width);
    sifr_value v = encoder_linear(e, x, n->value, true, width, width);
    sifr_value a = encoder_linear(e, encoder_attend(e, q, k, v), n->output, true, width, width);
    sifr_value h = add_norm(e, x, a, c->attention_output_dropout, n->attention_norm);
    sifr_value m = encoder_linear(e, h, n->inner, true, width, inner);
    m = encoder_linear(e, model_activate(e->model, m, c->activation), n->outer, true, inner, width);
    return add_norm(e, h, m, c->residual_dropout, n->output_norm);
}

sifr_value encoder_layers(encoder *e, sifr_value x, encoder_part block) {
    for (e->layer = 0; e->layer < e->config->num_hidden_layers; e->layer++) {
        char name[MODEL_NAME_LENGTH];
        sifr_unit(e->model, model_name(name, "layers.%d", e->layer));
        x = block(e, x);
    }
    e->layer = -1;
    return x;
}

sifr_value encoder_transform(const encoder *e, sifr_value x) {
    const model_config *c = e->config;
    const encoder_names *n = e->names;
    x = encoder_linear_out(e, x, n->transform, c->head_bias, c->hidden_size, c->hidden_size);
    return encoder_norm(e, model_activate(e->model, x, c->head_activation), n->transform_norm);
}

/* Logits of all words: a product with their table, or with a weight of its own. */
static void masked_words(const encoder *e, sifr_value x) {
    const model_config *c = e->config;
    char text[MODEL_NAME_LENGTH];
    sifr_head_args head = {.x = encoder_transform(e, x), .weight = e->words};
    const char *bias = e->names->bias, *decoder = e->names->decoder;
    if (!c->tie_word_embeddings) {
        head.weight = matrix_of(e, decoder, c->vocab_size, c->hidden_size, out_deviation(e));
        bias = full_name(e, decoder, ".bias", text);
    }
    if (c->decoder_bias)
        head.bias = sifr_weight_vector(e->model, bias, c->vocab_size, SIFR_INIT_ZERO);
    sifr_head_loss(e->model, head);
}

static void labels(const encoder *e, sifr_value x) {
    const model_config *c = e->config;
    const encoder_names *n = e->names;
    bool sequence = c->task == MODEL_SEQUENCE_CLASSES;
    if (sequence || n->both_pool) x = n->pool(e, x);
    x = sifr_dropout(e->model, x, c->classifier_dropout);
    label_head(e->model, c, x, sequence && n->classifier ? n->classifier : "classifier", true);
}

void encoder_head(encoder *e, sifr_value x) {
    sifr_unit(e->model, "head");
    if (e->names->final_norm) x = encoder_norm(e, x, e->names->final_norm);
    (model_task_labelled(e->config->task) ? labels : masked_words)(e, x);
}

void encoder_build(sifr_model *model, const model_config *config, const encoder_names *names) {
    encoder e = {.model = model, .config = config, .names = names, .layer = -1};
    sifr_unit(model, "embedding");
    sifr_value x = encoder_embedding(&e);
    encoder_head(&e, encoder_layers(&e, x, encoder_plain_block));
}

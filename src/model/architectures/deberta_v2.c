/* DeBERTa v2 and v3 (He et al. 2021) as transformers' DebertaV2 classes have it: BERT's blocks with
 * scores by relative position. The tables of positions are rows of one embedding, normalised once
 * and multiplied in every layer. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "model/architectures/activate.h"
#include "model/architectures/encoder.h"
#include "model/architectures/label_head.h"

/* --- keys --- */

static sifr_status read_sizes(const model_reader *r, model_config *out) {
    const struct {
        const char *key;
        int64_t fallback, least, most, *at;
    } sizes[] = {
        {"vocab_size", 128100, 1, MODEL_LIMIT_ID, &out->vocab_size},
        {"hidden_size", 1536, 1, MODEL_LIMIT_WIDTH, &out->hidden_size},
        {"num_hidden_layers", 24, 1, MODEL_LIMIT_LAYERS, &out->num_hidden_layers},
        {"num_attention_heads", 24, 1, MODEL_LIMIT_HEADS, &out->num_attention_heads},
        {"intermediate_size", 6144, 1, MODEL_LIMIT_INNER, &out->intermediate_size},
        {"max_position_embeddings", 512, 1, MODEL_LIMIT_ID, &out->max_position_embeddings},
        {"type_vocab_size", 0, 0, MODEL_LIMIT_ID, &out->type_vocab_size},
        {"conv_kernel_size", 0, 0, DEVICE_MOST_NEIGHBOURS, &out->deberta.convolution},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        BASE_TRY(model_read_int(r, sizes[i].key, NULL, sizes[i].fallback, sizes[i].least,
                                sizes[i].most, sizes[i].at));
    }
    return model_read_int(r, "embedding_size", NULL, out->hidden_size, 1, MODEL_LIMIT_WIDTH,
                          &out->deberta.embedding_size);
}

/* One name of "pos_att_type", which need not end with a zero. */
static sifr_status read_kind(const model_reader *r, const char *name, size_t length,
                             model_deberta *out) {
    static const char *const kinds[] = {"c2p", "p2c", "none", ""};
    bool *const on[] = {&out->by_query, &out->by_key};
    while (length && *name == ' ') name++, length--;
    while (length && name[length - 1] == ' ') length--;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strlen(kinds[i]) != length || strncasecmp(kinds[i], name, length) != 0) continue;
        if (i < 2) *on[i] = true;
        return SIFR_OK;
    }
    return base_fail(r->error, SIFR_USAGE,
                     "%s: \"pos_att_type\": \"%.*s\" is not supported yet (supported: c2p, p2c)",
                     r->name, length < 40 ? (int)length : 40, name);
}

/* A list of names, or a text with "|" between them. */
static sifr_status read_kinds(const model_reader *r, model_deberta *out) {
    const json_t *kinds = model_member(r->json, "pos_att_type");
    const char *text = json_string_value(kinds);
    if (!kinds) return SIFR_OK;
    if (!text && !json_is_array(kinds))
        return model_refuse(r, "pos_att_type", "it is a text or a list of texts");
    for (size_t i = 0; i < json_array_size(kinds); i++) {
        const char *name = json_string_value(json_array_get(kinds, i));
        if (!name) return model_refuse(r, "pos_att_type", "it is a text or a list of texts");
        BASE_TRY(read_kind(r, name, strlen(name), out));
    }
    while (text) {
        const char *end = strchr(text, '|');
        BASE_TRY(read_kind(r, text, end ? (size_t)(end - text) : strlen(text), out));
        text = end ? end + 1 : NULL;
    }
    return SIFR_OK;
}

/* The table has rows for distances of both signs: buckets of each, or all up to the largest. */
static sifr_status read_distances(const model_reader *r, const model_config *c,
                                  model_deberta *out) {
    BASE_TRY(model_read_int(r, "max_relative_positions", NULL, -1, -1, MODEL_LIMIT_ID / 2,
                            &out->most_distance));
    if (out->most_distance < 1) out->most_distance = c->max_position_embeddings;
    BASE_TRY(
        model_read_int(r, "position_buckets", NULL, -1, -1, MODEL_LIMIT_ID / 2, &out->buckets));
    if (out->buckets < 0) out->buckets = 0;
    out->rows = 2 * (out->buckets ? out->buckets : out->most_distance);
    if (out->buckets && (out->buckets < 2 || out->most_distance - 1 <= out->buckets / 2))
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"position_buckets\": %lld must be at least 2, and half of it below "
                         "the largest distance %lld (max_relative_positions - 1)",
                         r->name, (long long)out->buckets, (long long)out->most_distance - 1);
    const char *norm;
    BASE_TRY(base_json_string(r->json, "norm_rel_ebd", "none", &norm, r->name, r->error));
    out->normalised = strcasestr(norm, "layer_norm") != NULL;
    BASE_TRY(model_read_bool(r, "share_att_key", false, &out->shared));
    if (!out->by_query && !out->by_key)
        return model_refuse(r, "relative_attention",
                            "without \"pos_att_type\" nothing reads the "
                            "relative positions");
    return SIFR_OK;
}

static sifr_status read_positions(const model_reader *r, model_config *out) {
    model_deberta *d = &out->deberta;
    bool relative;
    BASE_TRY(model_read_bool(r, "relative_attention", false, &relative));
    BASE_TRY(model_read_bool(r, "position_biased_input", true, &d->position_table));
    BASE_TRY(read_kinds(r, d));
    int terms = 1 + d->by_query + d->by_key; /* also where no distance is read */
    out->attention_scale = 1 / sqrt((double)out->head_dim * terms);
    if (relative) return read_distances(r, out, d);
    d->by_query = d->by_key = false;
    return SIFR_OK;
}

static sifr_status read_convolution(const model_reader *r, model_config *out) {
    int64_t groups;
    if (!out->deberta.convolution) return SIFR_OK;
    BASE_TRY(model_read_int(r, "conv_groups", NULL, 1, 1, MODEL_LIMIT_WIDTH, &groups));
    if (groups != 1) return model_refuse(r, "conv_groups", "a convolution has one group");
    if (out->deberta.convolution % 2 == 0)
        return model_refuse(r, "conv_kernel_size", "a convolution has an odd size");
    return model_read_activation(r, "conv_act", ~MODEL_ONE_OF(MODEL_XIELU), MODEL_TANH,
                                 &out->deberta.conv_activation);
}

static sifr_status read_head(const model_reader *r, model_config *out) {
    model_deberta *d = &out->deberta;
    int64_t width;
    BASE_TRY(model_read_bool(r, "legacy", true, &d->legacy_head));
    BASE_TRY(model_read_int(r, "pooler_hidden_size", NULL, out->hidden_size, 1, MODEL_LIMIT_WIDTH,
                            &width));
    if (width != out->hidden_size)
        return model_refuse(r, "pooler_hidden_size", "the pooler has the model's width");
    BASE_TRY(model_read_double(r, "pooler_dropout", 0, 0, 1, true, &d->pooler_dropout));
    BASE_TRY(
        model_read_activation(r, "pooler_hidden_act", ~0u, MODEL_GELU_ERF, &d->pooler_activation));
    out->classifier_dropout = out->residual_dropout;
    if (out->task == MODEL_SEQUENCE_CLASSES)
        BASE_TRY(model_read_double(r, "cls_dropout", out->residual_dropout, 0, 1, true,
                                   &out->classifier_dropout));
    if (!d->legacy_head && d->embedding_size != out->hidden_size)
        return model_refuse(r, "embedding_size",
                            "a head that is not \"legacy\" has the model's "
                            "width");
    return SIFR_OK;
}

static sifr_status read_deberta(const model_reader *r, model_config *out) {
    int64_t head_dim;
    out->pad_token_id = 0;
    BASE_TRY(read_sizes(r, out));
    out->norm = MODEL_LAYER_NORM;
    BASE_TRY(model_read_double(r, "layer_norm_eps", 1e-7, 1e-30, 1, false, &out->norm_eps));
    double *dropout = &out->residual_dropout;
    BASE_TRY(model_read_double(r, "hidden_dropout_prob", 0.1, 0, 1, true, dropout));
    out->embedding_dropout = out->attention_output_dropout = *dropout;
    BASE_TRY(model_read_double(r, "attention_probs_dropout_prob", 0.1, 0, 1, true,
                               &out->attention_dropout));
    BASE_TRY(encoder_read_activation(r, "hidden_act", &out->activation));
    out->rope.factor = 1;
    BASE_TRY(encoder_check(r, out));
    BASE_TRY(model_read_int(r, "attention_head_size", NULL, out->head_dim, 1, MODEL_LIMIT_WIDTH,
                            &head_dim));
    if (head_dim != out->head_dim)
        return model_refuse(r, "attention_head_size", "heads divide the hidden size");
    BASE_TRY(read_positions(r, out));
    BASE_TRY(read_convolution(r, out));
    return read_head(r, out);
}

/* --- building --- */

typedef struct deberta {
    encoder e;
    sifr_value relative; /* rows of all distances, or none */
} deberta;

static sifr_weight weight(const deberta *d, const char *name, int64_t rows, int64_t columns) {
    return sifr_weight_matrix(d->e.model, name, rows, columns, SIFR_INIT_NORMAL,
                              d->e.config->initializer_range);
}

/* A product of a layer, which may have several uses. */
typedef struct deberta_linear {
    sifr_weight weight, bias;
} deberta_linear;

static deberta_linear projection(const deberta *d, const char *name) {
    char text[MODEL_NAME_LENGTH];
    int64_t width = d->e.config->hidden_size;
    snprintf(text, sizeof text, "deberta.encoder.layer.%lld.attention.self.%s.weight",
             (long long)d->e.layer, name);
    deberta_linear out = {.weight = weight(d, text, width, width)};
    snprintf(text, sizeof text, "deberta.encoder.layer.%lld.attention.self.%s.bias",
             (long long)d->e.layer, name);
    out.bias = sifr_weight_vector(d->e.model, text, width, SIFR_INIT_ZERO);
    return out;
}

static sifr_value project(const deberta *d, sifr_value x, deberta_linear by) {
    return sifr_linear(d->e.model, x, by.weight, by.bias);
}

static sifr_value attend(const deberta *d, sifr_value x) {
    const model_config *c = d->e.config;
    const model_deberta *own = &c->deberta;
    sifr_model *model = d->e.model;
    deberta_linear query = projection(d, "query_proj"), key = projection(d, "key_proj");
    sifr_attention_args args = {.q = project(d, x, query),
                                .k = project(d, x, key),
                                .v = project(d, x, projection(d, "value_proj")),
                                .heads = c->num_attention_heads,
                                .kv_heads = c->num_attention_heads,
                                .dropout = c->attention_dropout,
                                .scale = c->attention_scale,
                                .bidirectional = true,
                                .segments = sifr_input_value(model, SIFR_SEGMENTS),
                                .buckets = own->buckets,
                                .most_distance = own->most_distance};
    if (!d->relative.id) return sifr_attention(model, args);
    sifr_value relative = sifr_dropout(model, d->relative, c->residual_dropout);
    if (own->by_query) {
        if (!own->shared) key = projection(d, "pos_key_proj");
        args.position_keys = project(d, relative, key);
    }
    if (own->by_key) {
        if (!own->shared) query = projection(d, "pos_query_proj");
        args.position_queries = project(d, relative, query);
    }
    return sifr_attention(model, args);
}

/* norm(x + dropout(part)) */
static sifr_value add_norm(const deberta *d, sifr_value x, sifr_value part, const char *norm) {
    part = sifr_dropout(d->e.model, part, d->e.config->residual_dropout);
    return encoder_norm(&d->e, sifr_add(d->e.model, x, part), norm);
}

static sifr_value block(const deberta *d, sifr_value x) {
    const model_config *c = d->e.config;
    int64_t width = c->hidden_size, inner = c->intermediate_size;
    sifr_value a =
        encoder_linear(&d->e, attend(d, x), "attention.output.dense", true, width, width);
    sifr_value h = add_norm(d, x, a, "attention.output.LayerNorm");
    sifr_value m = encoder_linear(&d->e, h, "intermediate.dense", true, width, inner);
    m = model_activate(d->e.model, m, c->activation);
    return add_norm(d, h, encoder_linear(&d->e, m, "output.dense", true, inner, width),
                    "output.LayerNorm");
}

/* Adds to the output of the first block a convolution of what that block read. */
static sifr_value convolve(const deberta *d, sifr_value x, sifr_value out) {
    const model_config *c = d->e.config;
    sifr_model *model = d->e.model;
    int64_t width = c->hidden_size, size = c->deberta.convolution;
    sifr_weight w = sifr_weight_kernel(model, "deberta.encoder.conv.conv.weight", width, width,
                                       size, SIFR_INIT_NORMAL, c->initializer_range);
    sifr_weight bias =
        sifr_weight_vector(model, "deberta.encoder.conv.conv.bias", width, SIFR_INIT_ZERO);
    sifr_unfold_args near = {
        .x = x, .size = size, .segments = sifr_input_value(model, SIFR_SEGMENTS)};
    sifr_value y = sifr_linear(model, sifr_unfold(model, near), w, bias);
    y = model_activate(d->e.model, sifr_dropout(model, y, c->residual_dropout),
                       c->deberta.conv_activation);
    encoder outside = d->e;
    outside.layer = -1;
    return encoder_norm(&outside, sifr_add(model, out, y), "deberta.encoder.conv.LayerNorm");
}

static sifr_value layers(deberta *d, sifr_value x) {
    encoder *e = &d->e;
    for (e->layer = 0; e->layer < e->config->num_hidden_layers; e->layer++) {
        char name[MODEL_NAME_LENGTH];
        sifr_unit(e->model, model_name(name, "layers.%d", e->layer));
        sifr_value y = block(d, x);
        if (e->layer == 0 && e->config->deberta.convolution) y = convolve(d, x, y);
        x = y;
    }
    e->layer = -1;
    return x;
}

static sifr_value embed(deberta *d) {
    const model_config *c = d->e.config;
    sifr_model *model = d->e.model;
    int64_t width = c->deberta.embedding_size;
    d->e.words = weight(d, "deberta.embeddings.word_embeddings.weight", c->vocab_size, width);
    sifr_value x = sifr_embedding(model, (sifr_embedding_args){.ids = sifr_tokens(model),
                                                               .table = d->e.words,
                                                               .padded = c->pad_token_id >= 0,
                                                               .padding = c->pad_token_id});
    if (c->deberta.position_table) {
        sifr_embedding_args positions = {
            .ids = sifr_positions(model),
            .table = weight(d, "deberta.embeddings.position_embeddings.weight",
                            c->max_position_embeddings, width)};
        x = sifr_add(model, x, sifr_embedding(model, positions));
    }
    if (c->type_vocab_size) {
        sifr_embedding_args types = {
            .ids = sifr_input_value(model, SIFR_TOKEN_TYPES),
            .table = weight(d, "deberta.embeddings.token_type_embeddings.weight",
                            c->type_vocab_size, width)};
        x = sifr_add(model, x, sifr_embedding(model, types));
    }
    if (width != c->hidden_size)
        x = encoder_linear(&d->e, x, "deberta.embeddings.embed_proj", false, width, c->hidden_size);
    x = encoder_norm(&d->e, x, "deberta.embeddings.LayerNorm");
    return sifr_dropout(model, x, c->embedding_dropout);
}

/* The rows of distances; every layer reads them. */
static sifr_value relative_rows(const deberta *d) {
    const model_deberta *own = &d->e.config->deberta;
    if (!own->rows) return SIFR_NO_VALUE;
    sifr_value rows = sifr_rows(d->e.model, weight(d, "deberta.encoder.rel_embeddings.weight",
                                                   own->rows, d->e.config->hidden_size));
    return own->normalised ? encoder_norm(&d->e, rows, "deberta.encoder.LayerNorm") : rows;
}

/* A norm of so many columns, outside of the layers. */
static sifr_value norm_of(const deberta *d, sifr_value x, const char *name, int64_t columns) {
    char text[MODEL_NAME_LENGTH + 8];
    sifr_norm_args args = {.x = x, .epsilon = d->e.config->norm_eps};
    snprintf(text, sizeof text, "%s.weight", name);
    args.scale = sifr_weight_vector(d->e.model, text, columns, SIFR_INIT_ONE);
    snprintf(text, sizeof text, "%s.bias", name);
    args.bias = sifr_weight_vector(d->e.model, text, columns, SIFR_INIT_ZERO);
    return sifr_layer_norm(d->e.model, args);
}

/* Logits of all words. A head that is not "legacy" always multiplies with their table. */
static void masked_words(const deberta *d, sifr_value x, const char *name, bool tied) {
    const model_config *c = d->e.config;
    int64_t width = c->deberta.embedding_size;
    char text[MODEL_NAME_LENGTH];
    bool legacy = c->deberta.legacy_head;
    snprintf(text, sizeof text, "%s%s", name, legacy ? ".transform.dense" : ".dense");
    x = encoder_linear(&d->e, x, text, true, c->hidden_size, width);
    x = model_activate(d->e.model, x, c->activation);
    snprintf(text, sizeof text, "%s%s", name, legacy ? ".transform.LayerNorm" : ".LayerNorm");
    sifr_head_args head = {.x = norm_of(d, x, text, width), .weight = d->e.words};
    if (!tied) {
        snprintf(text, sizeof text, "%s.decoder.weight", name);
        head.weight = weight(d, text, c->vocab_size, width);
    }
    snprintf(text, sizeof text, "%s%s", name, tied ? ".bias" : ".decoder.bias");
    head.bias = sifr_weight_vector(d->e.model, text, c->vocab_size, SIFR_INIT_ZERO);
    sifr_head_loss(d->e.model, head);
}

static void add_head(const deberta *d, sifr_value x) {
    const model_config *c = d->e.config;
    sifr_model *model = d->e.model;
    sifr_unit(model, "head");
    if (c->task == MODEL_MASKED_TOKEN) {
        bool legacy = c->deberta.legacy_head;
        masked_words(d, x, legacy ? "cls.predictions" : "lm_predictions.lm_head",
                     c->tie_word_embeddings || !legacy);
        return;
    }
    if (c->task == MODEL_SEQUENCE_CLASSES) {
        x = sifr_dropout(model, x, c->deberta.pooler_dropout);
        x = encoder_linear(&d->e, x, "pooler.dense", true, c->hidden_size, c->hidden_size);
        x = model_activate(d->e.model, x, c->deberta.pooler_activation);
    }
    label_head(model, c, sifr_dropout(model, x, c->classifier_dropout), "classifier", true);
}

static void build(sifr_model *model, const model_config *config) {
    static const encoder_names names = {.layers = "deberta.encoder.layer"};
    deberta d = {.e = {.model = model, .config = config, .names = &names, .layer = -1}};
    sifr_unit(model, "embedding");
    sifr_value x = embed(&d);
    d.relative = relative_rows(&d);
    add_head(&d, layers(&d, x));
}

const model_architecture model_architecture_deberta_v2 = {
    .model_type = "deberta-v2",
    .classes = ENCODER_CLASSES("DebertaV2"),
    .encoder = true,
    .keys = (const char *const[]){"is_causal", NULL},
    .read = read_deberta,
    .build = build,
    .prefix = "deberta.",
    .ignored = {".position_ids", ".decoder.bias"},
    .head = "cls.predictions.decoder.weight",
    .embedding = "deberta.embeddings.word_embeddings.weight",
};

/* Per-layer inputs of Gemma 4, as transformers' Gemma4TextModel has them. Those of all layers are
 * one product, and one row of a table. The table is the largest weight of the model, so it has a
 * unit to itself: nothing but its rows is gathered to choose rows of it. Each layer's columns are
 * a value of their own, which crosses to the stage of its layer alone. */
#include "model/architectures/gemma4_inputs.h"

#include <math.h>
#include <stdio.h>

/* Ids that are no row of the table fail in transformers. */
static sifr_status check_words(const model_reader *r, const model_config *c) {
    if (c->layer_input_words >= c->vocab_size) return SIFR_OK;
    return base_fail(r->error, SIFR_USAGE,
                     "%s: \"vocab_size_per_layer_input\" is %lld, below \"vocab_size\" %lld: each "
                     "token needs a row of the layers' own embedding",
                     r->name, (long long)c->layer_input_words, (long long)c->vocab_size);
}

sifr_status gemma4_read_inputs(const model_reader *r, int64_t size, model_config *out) {
    static const char key[] = "hidden_size_per_layer_input";
    bool unified = size == 0; /* whose class has no such inputs */
    BASE_TRY(model_read_int(r, key, NULL, size, 0, MODEL_LIMIT_WIDTH, &out->layer_input_size));
    if (!out->layer_input_size) return SIFR_OK;
    if (unified)
        return model_refuse(r, key,
                            "this model_type has no embedding of its own for each layer, as E2B "
                            "and E4B (gemma4_text) have it");
    BASE_TRY(model_read_int(r, "vocab_size_per_layer_input", NULL, 262144, 1, MODEL_LIMIT_ID,
                            &out->layer_input_words));
    if (out->layer_input_size * out->num_hidden_layers > MODEL_LIMIT_INNER)
        return base_fail(r->error, SIFR_USAGE,
                         "%s: \"%s\" %lld of %lld layers are more than %lld columns", r->name, key,
                         (long long)out->layer_input_size, (long long)out->num_hidden_layers,
                         (long long)MODEL_LIMIT_INNER);
    return check_words(r, out);
}

static const char *name_of(const decoder *d, const char *rest, char out[MODEL_NAME_LENGTH]) {
    const formats_multimodal *kind = d->config->multimodal;
    snprintf(out, MODEL_NAME_LENGTH, "%s%s.weight", kind ? kind->body : "model.", rest);
    return out;
}

static sifr_value scale(const decoder *d, sifr_value x, double factor, bool rounded) {
    return sifr_scale(d->model,
                      (sifr_scale_args){.x = x, .factor = factor, .round_factor = rounded});
}

static sifr_value choose_rows(const decoder *d, int64_t columns) {
    const model_config *c = d->config;
    char name[MODEL_NAME_LENGTH];
    sifr_weight table =
        sifr_weight_matrix(d->model, name_of(d, "embed_tokens_per_layer", name),
                           c->layer_input_words, columns, SIFR_INIT_NORMAL, c->initializer_range);
    sifr_value y = sifr_embedding(d->model, (sifr_embedding_args){.ids = sifr_tokens(d->model),
                                                                  .table = table,
                                                                  .padded = c->pad_token_id >= 0,
                                                                  .padding = c->pad_token_id});
    return scale(d, y, sqrt((double)c->layer_input_size), true);
}

/* norm(W x / sqrt(hidden_size)), each layer's columns by themselves. */
static sifr_value project(const decoder *d, sifr_value x, int64_t columns) {
    const model_config *c = d->config;
    char name[MODEL_NAME_LENGTH];
    sifr_weight w =
        sifr_weight_matrix(d->model, name_of(d, "per_layer_model_projection", name), columns,
                           c->hidden_size, SIFR_INIT_NORMAL, c->initializer_range);
    sifr_value y = sifr_linear(d->model, x, w, SIFR_NO_WEIGHT);
    y = scale(d, y, 1 / sqrt((double)c->hidden_size), false);
    w = sifr_weight_vector(d->model, name_of(d, "per_layer_projection_norm", name),
                           c->layer_input_size, SIFR_INIT_ONE);
    return sifr_rms_norm(
        d->model, (sifr_norm_args){
                      .x = y, .scale = w, .epsilon = c->norm_eps, .heads = c->num_hidden_layers});
}

sifr_value gemma4_make_inputs(const decoder *d, sifr_value x) {
    gemma4_handed *handed = d->handed;
    int64_t size = d->config->layer_input_size, layers = d->config->num_hidden_layers;
    if (!size) return x;
    sifr_unit(d->model, "per_layer_embedding");
    sifr_value rows = choose_rows(d, layers * size);
    sifr_unit(d->model, "per_layer_inputs");
    sifr_value all = sifr_add(d->model, project(d, x, layers * size), rows);
    for (int64_t i = 0; i < layers; i++)
        handed->inputs[i] = scale(d, sifr_slice(d->model, all, i * size, size), sqrt(0.5), false);
    return x;
}

sifr_value gemma4_add_input(const decoder *d, sifr_value x) {
    const gemma4_handed *handed = d->handed;
    int64_t width = d->config->hidden_size, size = d->config->layer_input_size;
    if (!size) return x;
    sifr_value y = decoder_linear(d, x, "per_layer_input_gate", false, width, size);
    y = decoder_gate(d, y, handed->inputs[d->layer]);
    y = decoder_linear(d, y, "per_layer_projection", false, size, width);
    return decoder_add(d, x, decoder_norm(d, y, "post_per_layer_input_norm"));
}

#include "model/architectures/label_head.h"

#include <stdio.h>

#include "model/builder.h"

void label_head(sifr_model *model, const model_config *c, sifr_value x, const char *name,
                bool biased) {
    char text[MODEL_NAME_LENGTH];
    const model_value *in = model_activation(model, x, "head");
    if (!in) return;
    snprintf(text, sizeof text, "%s.weight", name);
    sifr_weight bias = SIFR_NO_WEIGHT;
    double deviation = c->label_range == 0 ? c->initializer_range : c->label_range;
    sifr_weight weight =
        sifr_weight_matrix(model, text, c->num_labels, in->columns, SIFR_INIT_NORMAL, deviation);
    if (c->initializer_cutoff > 0) model_truncate(model, weight, c->initializer_cutoff);
    if (biased) {
        snprintf(text, sizeof text, "%s.bias", name);
        bias = sifr_weight_vector(model, text, c->num_labels, SIFR_INIT_ZERO);
    }
    if (c->task == MODEL_TOKEN_CLASSES || c->problem == MODEL_SINGLE_LABEL) {
        sifr_head_loss(model, (sifr_head_args){.x = x, .weight = weight, .bias = bias});
        return;
    }
    sifr_value targets = sifr_targets(model, c->num_labels);
    (c->problem == MODEL_REGRESSION ? sifr_head_regression : sifr_head_multilabel)(
        model, (sifr_head_targets_args){x, targets, weight, bias});
}

void label_head_of_decoder(sifr_model *model, const model_config *c, sifr_value x,
                           const char *name) {
    bool tokens = c->task == MODEL_TOKEN_CLASSES;
    if (tokens) x = sifr_dropout(model, x, c->classifier_dropout);
    label_head(model, c, x, tokens ? name : "score", tokens);
}

sifr_status label_head_read(const model_reader *r, model_config *out) {
    double fallback;
    bool biased;
    if (out->task != MODEL_TOKEN_CLASSES) return SIFR_OK;
    BASE_TRY(model_read_double(r, "hidden_dropout", 0.1, 0, 1, true, &fallback));
    BASE_TRY(
        model_read_double(r, "classifier_dropout", fallback, 0, 1, true, &out->classifier_dropout));
    BASE_TRY(model_read_bool(r, "token_classification_bias", true, &biased));
    if (biased) return SIFR_OK;
    return model_refuse(r, "token_classification_bias", "a head for tokens has a bias");
}

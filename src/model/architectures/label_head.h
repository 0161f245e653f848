/* The heads of models whose task has labels (config->num_labels of them). */
#ifndef MODEL_LABEL_HEAD_H
#define MODEL_LABEL_HEAD_H

#include "model/registry.h"

/* Ends a model with a product of x whose weights are NAME.weight and, if it is biased, NAME.bias,
 * and the loss that the config's task and problem ask for. Dropout before it is the caller's. */
void label_head(sifr_model *model, const model_config *config, sifr_value x, const char *name,
                bool biased);

/* What decoders have: "score" for a sequence, and for each token the head `name` behind dropout. */
void label_head_of_decoder(sifr_model *model, const model_config *config, sifr_value x,
                           const char *name);

/* "classifier_dropout" of decoders; null: "hidden_dropout", and where that is null too 0.1. */
sifr_status label_head_read(const model_reader *r, model_config *out) SIFR_MUST_CHECK;

#endif

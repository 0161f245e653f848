/* The head's loss of pairs of answers: sifr_prefer. */
#include <math.h>

#include "base/inside.h"
#include "model/builder.h"

static void complete_pairs(device_attributes *attributes, const model_extent *extent) {
    attributes->head.length = extent->length;
}

static int targets(const model_node *node, int64_t columns, int64_t classes,
                   model_target_rule rules[MODEL_TARGET_RULES]) {
    (void)classes;
    if (node->attributes.head.preference == SIFR_PREFERENCE_ORPO)
        rules[0] = (model_target_rule){columns, 0, 1, true, "1 of the answer or 0 of the prompt"};
    else
        rules[0] = (model_target_rule){columns, -INFINITY, MODEL_MOST_LOG_PROBABILITY, false,
                                       "the logarithm of a probability"};
    return 1;
}

static const model_op op = {
    .name = "head_preference",
    .forward = DEVICE_HEAD_PREFERENCE,
    .backward = DEVICE_HEAD_PREFERENCE_BACKWARD,
    .keep = MODEL_KEEP_X0 | MODEL_KEEP_X1 | MODEL_KEEP_X2 | MODEL_KEEP_W0 | MODEL_KEEP_W1,
    .gradients = 1,
    .complete = complete_pairs,
    .operations = model_head_operations,
    .layout = MODEL_LAYOUT_WORDS,
    .statistics = DEVICE_HEAD_STATISTICS,
    .backward_factor = 3, /* or 4: beyond one chunk of labels logits are made twice */
    .makes_loss = true,
    .logits = DEVICE_HEAD_LOGITS,
    .row_numbers = 1 << 1, /* the labels */
    .targets = targets,
};

static void check(sifr_model *model, const model_objective *objective) {
    sifr_preference loss = objective->pairs.loss;
    double beta = objective->pairs.beta;
    if (loss < SIFR_PREFERENCE_NONE || loss > SIFR_PREFERENCE_ORPO || !isfinite((float)beta) ||
        beta <= 0)
        MODEL_WRONG(model, "sifr_prefer: loss %d, beta %g", (int)loss, beta);
}

static void complete(sifr_model *model, int64_t classes, model_node *node) {
    (void)classes;
    node->x[2] = model_index(sifr_targets(model, 1));
    node->attributes.head.preference = model->objective.pairs.loss;
    node->attributes.head.beta = (float)model->objective.pairs.beta;
}

const model_objective_row model_objective_pairs = {.name = "preference",
                                                   .call = "sifr_prefer",
                                                   .op = &op,
                                                   .loss_columns = 2,
                                                   .pairs = true,
                                                   .check = check,
                                                   .complete = complete};

void sifr_prefer(sifr_model *model, sifr_preference loss, double beta) {
    BASE_ENTER_VOID(model);
    model_objective objective = {.row = &model_objective_pairs, .pairs = {loss, beta}};
    if (loss == SIFR_PREFERENCE_NONE) check(model, &objective), objective.row = NULL;
    model_learn(model, &objective);
}

/* The head's loss with another model's distribution beside the labels: sifr_distil. */
#include <math.h>

#include "base/inside.h"
#include "model/builder.h"

static int targets(const model_node *node, int64_t columns, int64_t classes,
                   model_target_rule rules[MODEL_TARGET_RULES]) {
    (void)node;
    rules[0] =
        (model_target_rule){columns / 2, 0, (double)(classes - 1), true, "an id of the vocabulary"};
    rules[1] = (model_target_rule){columns / 2, -INFINITY, MODEL_MOST_LOG_PROBABILITY, false,
                                   "the logarithm of a probability"};
    return 2;
}

static const model_op op = {
    .name = "head_distil",
    .forward = DEVICE_HEAD_LOSS,
    .backward = DEVICE_HEAD_DISTIL_BACKWARD,
    .keep = MODEL_KEEP_X0 | MODEL_KEEP_X1 | MODEL_KEEP_X2 | MODEL_KEEP_W0 | MODEL_KEEP_W1,
    .gradients = 1,
    .operations = model_product_operations,
    .backward_factor = 3,
    .makes_loss = true,
    .logits = DEVICE_HEAD_LOGITS,
    .row_numbers = 1 << 1, /* the labels */
    .targets = targets,
};

static void check(sifr_model *model, const model_objective *objective) {
    const sifr_distil_args *args = &objective->distil;
    if (args->words < 1 || !isfinite((float)args->temperature) || args->temperature <= 0 ||
        !(args->weight >= 0 && args->weight <= 1))
        MODEL_WRONG(model, "sifr_distil: %lld words, temperature %g, weight %g",
                    (long long)args->words, args->temperature, args->weight);
}

static void complete(sifr_model *model, int64_t classes, model_node *node) {
    const sifr_distil_args *args = &model->objective.distil;
    if (args->words > classes)
        MODEL_WRONG(model, "unit %s: head_distil: %lld words of %lld", model_unit_name(model),
                    (long long)args->words, (long long)classes);
    node->x[2] = model_index(sifr_targets(model, 2 * args->words));
    node->attributes.head.temperature = (float)args->temperature;
    node->attributes.head.weight = (float)args->weight;
}

const model_objective_row model_objective_distil = {.name = "distill",
                                                    .call = "sifr_distil",
                                                    .op = &op,
                                                    .loss_columns = 1,
                                                    .evaluates_labels = true,
                                                    .check = check,
                                                    .complete = complete};

void sifr_distil(sifr_model *model, sifr_distil_args args) {
    BASE_ENTER_VOID(model);
    model_learn(model, &(model_objective){.row = &model_objective_distil, .distil = args});
}

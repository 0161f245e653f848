/* The head with a loss of the caller's: sifr_own_loss. */
#include "base/inside.h"
#include "model/builder.h"

static const model_op op = {
    .name = "own_loss",
    .forward = DEVICE_OWN_LOSS,
    .backward = DEVICE_OWN_LOSS_BACKWARD,
    .keep = MODEL_KEEP_X0 | MODEL_KEEP_X1 | MODEL_KEEP_W0 | MODEL_KEEP_W1,
    .gradients = 1,
    .operations = model_product_operations,
    .backward_factor = 3,
    .makes_loss = true,
    .logits = DEVICE_HEAD_LOGITS,
    .row_numbers = 1 << 1, /* the labels */
};

static void check(sifr_model *model, const model_objective *objective) {
    if (objective->own.memory < 0)
        MODEL_WRONG(model, "sifr_own_loss: memory %lld; give 0 or more bytes",
                    (long long)objective->own.memory);
}

static void complete(sifr_model *model, int64_t classes, model_node *node) {
    (void)classes;
    node->attributes.head.own = &model->objective.own;
}

const model_objective_row model_objective_own = {.name = "own_loss",
                                                 .call = "sifr_own_loss",
                                                 .op = &op,
                                                 .loss_columns = 1,
                                                 .calls = true,
                                                 .check = check,
                                                 .complete = complete};

void sifr_own_loss(sifr_model *model, sifr_own_loss_args args) {
    BASE_ENTER_VOID(model);
    if (!args.loss) MODEL_WRONG(model, "sifr_own_loss: loss is NULL; give a function");
    if (args.memory == 0) args.memory = SIFR_OWN_LOSS_MEMORY;
    model_learn(model, &(model_objective){.row = &model_objective_own, .own = args});
}

/* Heads whose targets are numbers: regression, and several labels at once. */
#include "model/builder.h"

#include "base/inside.h"

const model_op model_op_head_regression = {
    .name = "head_regression",
    .forward = DEVICE_HEAD_REGRESSION,
    .backward = DEVICE_HEAD_REGRESSION_BACKWARD,
    .keep = MODEL_KEEP_X0 | MODEL_KEEP_X1 | MODEL_KEEP_W0 | MODEL_KEEP_W1,
    .gradients = 1,
    .operations = model_product_operations,
    .backward_factor = 3,
    .makes_loss = true,
    .logits = DEVICE_HEAD_LOGITS,
};

static int label_targets(const model_node *node, int64_t columns, int64_t classes,
                         model_target_rule rules[MODEL_TARGET_RULES]) {
    (void)node, (void)classes;
    rules[0] = (model_target_rule){columns, 0, 1, false, "the probability of a label"};
    return 1;
}

const model_op model_op_head_multilabel = {
    .name = "head_multilabel",
    .forward = DEVICE_HEAD_MULTILABEL,
    .backward = DEVICE_HEAD_MULTILABEL_BACKWARD,
    .keep = MODEL_KEEP_X0 | MODEL_KEEP_X1 | MODEL_KEEP_W0 | MODEL_KEEP_W1,
    .gradients = 1,
    .operations = model_product_operations,
    .backward_factor = 3,
    .makes_loss = true,
    .logits = DEVICE_HEAD_LOGITS,
    .targets = label_targets,
};

static void add_head(sifr_model *model, const model_op *op, sifr_head_targets_args args) {
    const model_value *in = model_activation(model, args.x, op->name);
    const model_weight *w = in ? model_weight_of(model, args.weight, op->name) : NULL;
    if (!w || !model_vector_fits(model, args.bias, w->rows, op->name)) return;
    if (w->columns != in->columns) {
        MODEL_WRONG(model, "unit %s: %s: %s takes %lld columns, its input has %lld",
                    model_unit_name(model), op->name, w->name, (long long)w->columns,
                    (long long)in->columns);
        return;
    }
    const model_objective_row *asked = model->objective.row;
    if (asked)
        MODEL_WRONG(
            model,
            "unit %s: %s: %s was called before, whose model ends with sifr_head_loss; leave "
            "one of them out",
            model_unit_name(model), op->name, asked->call);
    int32_t targets = model_index(args.targets);
    if (targets < 0 || (size_t)targets >= model->value_count) {
        MODEL_WRONG(model, "unit %s: %s: the targets are missing", model_unit_name(model),
                    op->name);
        return;
    }
    const model_value *wanted = &model->values[targets];
    if (wanted->kind != MODEL_VALUE_TARGETS || wanted->columns != w->rows) {
        MODEL_WRONG(model, "unit %s: %s: the targets must be sifr_targets of %lld columns",
                    model_unit_name(model), op->name, (long long)w->rows);
        return;
    }
    model_node node = model_make_node(op);
    node.x[0] = model_index(args.x);
    node.x[1] = targets;
    node.w[0] = model_weight_index(args.weight);
    node.w[1] = model_weight_index(args.bias);
    model_add_node(model, node, MODEL_VALUE_LOSS, 1);
}

void sifr_head_regression(sifr_model *model, sifr_head_targets_args args) {
    BASE_ENTER_VOID(model);
    add_head(model, &model_op_head_regression, args);
}

void sifr_head_multilabel(sifr_model *model, sifr_head_targets_args args) {
    BASE_ENTER_VOID(model);
    add_head(model, &model_op_head_multilabel, args);
}

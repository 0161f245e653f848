/* The head and its cross entropy, the last op of a model. */
#include "model/builder.h"

const model_op model_op_head_loss = {
    .name = "head_loss",
    .forward = DEVICE_HEAD_LOSS,
    .backward = DEVICE_HEAD_LOSS_BACKWARD,
    .keep = MODEL_KEEP_X0 | MODEL_KEEP_X1 | MODEL_KEEP_W0,
    .gradients = 1,
    .operations = model_product_operations,
    .backward_factor = 3, /* of dx, of dw, and the forward product: it makes the loss as well */
    .makes_loss = true,
    .logits = DEVICE_LINEAR,
    .row_numbers = 1 << 1, /* the labels */
};

void sifr_head_loss(sifr_model *model, sifr_head_args args) {
    const model_value *in = model_activation(model, args.x, "head_loss");
    const model_weight *head = in ? model_weight_of(model, args.weight, "head_loss") : NULL;
    if (!head) return;
    if (head->columns != in->columns) {
        MODEL_WRONG(model, "unit %s: head_loss: %s takes %lld columns, its input has %lld",
                    model_unit_name(model), head->name, (long long)head->columns,
                    (long long)in->columns);
        return;
    }
    model_node node = model_make_node(&model_op_head_loss);
    node.x[0] = model_index(args.x);
    node.x[1] = model_index(sifr_labels(model));
    node.w[0] = model_weight_index(args.weight);
    model_add_node(model, node, MODEL_VALUE_LOSS, 1);
}

/* The head and its cross entropy, the last op of a model. */
#include <math.h>

#include "base/inside.h"
#include "model/builder.h"

const model_op model_op_head_loss = {
    .name = "head_loss",
    .forward = DEVICE_HEAD_LOSS,
    .backward = DEVICE_HEAD_LOSS_BACKWARD,
    .keep = MODEL_KEEP_X0 | MODEL_KEEP_X1 | MODEL_KEEP_W0 | MODEL_KEEP_W1,
    .gradients = 1,
    .operations = model_head_operations,
    .backward_factor = 3, /* of dx, of dw, and the forward product: it makes the loss as well */
    .makes_loss = true,
    .logits = DEVICE_HEAD_LOGITS,
    .row_numbers = 1 << 1, /* the labels */
    .contexts = MODEL_CONTEXTS_ROWS,
    .layout = MODEL_LAYOUT_WORDS,
    .statistics = DEVICE_HEAD_STATISTICS,
};

void sifr_head_loss(sifr_model *model, sifr_head_args args) {
    BASE_ENTER_VOID(model);
    const model_value *in = model_activation(model, args.x, "head_loss");
    const model_weight *head = in ? model_weight_of(model, args.weight, "head_loss") : NULL;
    if (!head) return;
    if (head->columns != in->columns) {
        MODEL_WRONG(model, "unit %s: head_loss: %s takes %lld columns, its input has %lld",
                    model_unit_name(model), head->name, (long long)head->columns,
                    (long long)in->columns);
        return;
    }
    if (!model_vector_fits(model, args.bias, head->rows, "head_loss")) return;
    if (!isfinite((float)args.scale) || !isfinite((float)args.softcap) || args.softcap < 0) {
        MODEL_WRONG(model, "unit %s: head_loss: scale %g, softcap %g", model_unit_name(model),
                    args.scale, args.softcap);
        return;
    }
    int64_t words = head->rows;
    model_node node = model_make_node(&model_op_head_loss);
    node.x[0] = model_index(args.x);
    node.x[1] = model_index(sifr_labels(model));
    node.w[0] = model_weight_index(args.weight);
    node.w[1] = model_weight_index(args.bias);
    node.attributes.head.scale = (float)args.scale;
    node.attributes.head.softcap = (float)args.softcap;
    const model_objective_row *row = model->objective.row;
    if (row) {
        node.op = row->op;
        row->complete(model, words, &node);
    }
    model_add_node(model, node, MODEL_VALUE_LOSS, row ? row->loss_columns : 1);
}

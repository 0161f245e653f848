/* The head and its cross entropy, the last op of a model. */
#include <math.h>

#include "model/builder.h"

const model_op model_op_head_loss = {
    .name = "head_loss",
    .forward = DEVICE_HEAD_LOSS,
    .backward = DEVICE_HEAD_LOSS_BACKWARD,
    .keep = MODEL_KEEP_X0 | MODEL_KEEP_X1 | MODEL_KEEP_W0 | MODEL_KEEP_W1,
    .gradients = 1,
    .operations = model_product_operations,
    .backward_factor = 3, /* of dx, of dw, and the forward product: it makes the loss as well */
    .makes_loss = true,
    .logits = DEVICE_HEAD_LOGITS,
    .row_numbers = 1 << 1, /* the labels */
};

static void complete_pairs(device_attributes *attributes, const model_extent *extent) {
    attributes->head.length = extent->length;
}

/* Losses of pairs of answers: sifr_prefer. */
const model_op model_op_head_preference = {
    .name = "head_preference",
    .forward = DEVICE_HEAD_PREFERENCE,
    .backward = DEVICE_HEAD_PREFERENCE_BACKWARD,
    .keep = MODEL_KEEP_X0 | MODEL_KEEP_X1 | MODEL_KEEP_X2 | MODEL_KEEP_W0 | MODEL_KEEP_W1,
    .gradients = 1,
    .complete = complete_pairs,
    .operations = model_product_operations,
    .backward_factor = 3, /* or 4: beyond one chunk of labels logits are made twice */
    .makes_loss = true,
    .logits = DEVICE_HEAD_LOGITS,
    .row_numbers = 1 << 1,
};

/* Another model's distribution beside the labels: sifr_distil. */
const model_op model_op_head_distil = {
    .name = "head_distil",
    .forward = DEVICE_HEAD_LOSS,
    .backward = DEVICE_HEAD_DISTIL_BACKWARD,
    .keep = MODEL_KEEP_X0 | MODEL_KEEP_X1 | MODEL_KEEP_X2 | MODEL_KEEP_W0 | MODEL_KEEP_W1,
    .gradients = 1,
    .operations = model_product_operations,
    .backward_factor = 3,
    .makes_loss = true,
    .logits = DEVICE_HEAD_LOGITS,
    .row_numbers = 1 << 1,
};

_Static_assert((int)SIFR_PREFERENCE_SIGMOID == (int)DEVICE_PREFER_SIGMOID &&
                   (int)SIFR_PREFERENCE_ORPO == (int)DEVICE_PREFER_ORPO,
               "the builder's losses are the device's");

/* What is learned beside the labels, if anything. Returns the columns of the loss. */
static int64_t add_task(sifr_model *model, int64_t words, model_node *node) {
    if (model->preference) {
        node->op = &model_op_head_preference;
        node->x[2] = model_index(sifr_targets(model, 1));
        node->attributes.head.preference = (device_preference)model->preference;
        node->attributes.head.beta = (float)model->beta;
        return 2;
    }
    if (!model->distil.words) return 1;
    if (model->distil.words > words)
        MODEL_WRONG(model, "unit %s: head_distil: %lld words of %lld", model_unit_name(model),
                    (long long)model->distil.words, (long long)words);
    node->op = &model_op_head_distil;
    node->x[2] = model_index(sifr_targets(model, 2 * model->distil.words));
    node->attributes.head.temperature = (float)model->distil.temperature;
    node->attributes.head.weight = (float)model->distil.weight;
    return 1;
}

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
    if (!model_vector_fits(model, args.bias, head->rows, "head_loss")) return;
    if (!isfinite(args.scale) || !isfinite(args.softcap) || args.softcap < 0) {
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
    int64_t columns = add_task(model, words, &node);
    model_add_node(model, node, MODEL_VALUE_LOSS, columns);
}

/* A product with a weight, and a bias. Calls of models are in model/adapted_linear.c, where an
 * adapter may join them. */
#include "model/builder.h"
#include "model/lora.h"

static void note_whole(device_attributes *attributes, const model_extent *extent) {
    attributes->linear.whole = extent->whole;
}

const model_op model_op_linear = {
    .name = "linear",
    .forward = DEVICE_LINEAR,
    .backward = DEVICE_LINEAR_BACKWARD,
    .keep = MODEL_KEEP_X0 | MODEL_KEEP_W0,
    .x_for_weights = true,
    .gradients = 1,
    .accumulates = true,
    .splits = true,
    .operations = model_product_operations,
    .backward_factor = 2, /* of dx and of dw */
    .by_row = true,
    .layout = MODEL_LAYOUT_PRODUCT,
    .complete = note_whole,
};

sifr_value model_product(sifr_model *model, sifr_value x, sifr_weight weight, bool transposed) {
    const model_weight *w = model_weight_of(model, weight, "linear");
    if (!w) return SIFR_NO_VALUE;
    model_node node = model_make_node(&model_op_linear);
    node.x[0] = model_index(x);
    node.w[0] = model_weight_index(weight);
    node.attributes.linear.transposed = transposed;
    return model_add_node(model, node, MODEL_VALUE_ACTIVATION, transposed ? w->columns : w->rows);
}

/* The activation of GPT-2. */
#include "model/builder.h"

const model_op model_op_gelu = {
    .name = "gelu",
    .forward = DEVICE_GELU,
    .backward = DEVICE_GELU_BACKWARD,
    .keep = MODEL_KEEP_X0,
    .gradients = 1,
    .by_row = true,
};

sifr_value sifr_gelu(sifr_model *model, sifr_value x, bool exact) {
    const model_value *in = model_activation(model, x, "gelu");
    if (!in) return SIFR_NO_VALUE;
    model_node node = model_make_node(&model_op_gelu);
    node.x[0] = model_index(x);
    node.attributes.gelu.exact = exact;
    return model_add_node(model, node, MODEL_VALUE_ACTIVATION, in->columns);
}

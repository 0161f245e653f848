/* Activations, element by element. */
#include <math.h>

#include "base/inside.h"
#include "model/builder.h"

const model_op model_op_gelu = {
    .name = "gelu",
    .forward = DEVICE_GELU,
    .backward = DEVICE_GELU_BACKWARD,
    .keep = MODEL_KEEP_X0,
    .gradients = 1,
    .by_row = true,
    .layout = MODEL_LAYOUT_PARTS,
};

const model_op model_op_tanh = {
    .name = "tanh",
    .forward = DEVICE_TANH,
    .backward = DEVICE_TANH_BACKWARD,
    .keep = MODEL_KEEP_X0,
    .gradients = 1,
    .accumulates = true,
    .by_row = true,
    .layout = MODEL_LAYOUT_PARTS,
};

const model_op model_op_relu = {
    .name = "relu",
    .forward = DEVICE_RELU,
    .backward = DEVICE_RELU_BACKWARD,
    .keep = MODEL_KEEP_X0,
    .gradients = 1,
    .accumulates = true,
    .by_row = true,
    .layout = MODEL_LAYOUT_PARTS,
};

const model_op model_op_swish = {
    .name = "swish",
    .forward = DEVICE_SWISH,
    .backward = DEVICE_SWISH_BACKWARD,
    .keep = MODEL_KEEP_X0,
    .gradients = 1,
    .accumulates = true,
    .by_row = true,
    .layout = MODEL_LAYOUT_PARTS,
};

const model_op model_op_clip = {
    .name = "clip",
    .forward = DEVICE_CLIP,
    .backward = DEVICE_CLIP_BACKWARD,
    .keep = MODEL_KEEP_X0,
    .gradients = 1,
    .accumulates = true,
    .by_row = true,
    .layout = MODEL_LAYOUT_PARTS,
};

static sifr_value add_activation(sifr_model *model, model_node node, sifr_value x) {
    const model_value *in = model_activation(model, x, node.op->name);
    if (!in) return SIFR_NO_VALUE;
    node.x[0] = model_index(x);
    return model_add_node(model, node, MODEL_VALUE_ACTIVATION, in->columns);
}

sifr_value sifr_gelu(sifr_model *model, sifr_value x, bool exact) {
    BASE_ENTER_OR((sifr_value){0}, model);
    model_node node = model_make_node(&model_op_gelu);
    node.attributes.gelu.exact = exact;
    return add_activation(model, node, x);
}

sifr_value sifr_tanh(sifr_model *model, sifr_value x) {
    BASE_ENTER_OR((sifr_value){0}, model);
    return add_activation(model, model_make_node(&model_op_tanh), x);
}

sifr_value sifr_relu(sifr_model *model, sifr_value x, bool squared) {
    BASE_ENTER_OR((sifr_value){0}, model);
    model_node node = model_make_node(&model_op_relu);
    node.attributes.relu.squared = squared;
    return add_activation(model, node, x);
}

sifr_value sifr_swish(sifr_model *model, sifr_value x, double slope) {
    BASE_ENTER_OR((sifr_value){0}, model);
    if (!isfinite((float)slope)) {
        MODEL_WRONG(model, "unit %s: swish: slope %g", model_unit_name(model), slope);
        return SIFR_NO_VALUE;
    }
    model_node node = model_make_node(&model_op_swish);
    node.attributes.swish.slope = (float)slope;
    return add_activation(model, node, x);
}

sifr_value sifr_clip(sifr_model *model, sifr_value x, double limit) {
    BASE_ENTER_OR((sifr_value){0}, model);
    if (!(limit > 0) || !isfinite((float)limit)) {
        MODEL_WRONG(model, "unit %s: clip: limit %g", model_unit_name(model), limit);
        return SIFR_NO_VALUE;
    }
    model_node node = model_make_node(&model_op_clip);
    node.attributes.clip.limit = (float)limit;
    return add_activation(model, node, x);
}

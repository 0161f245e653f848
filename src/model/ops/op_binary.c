/* Ops on two values of one shape, element by element. */
#include "model/builder.h"

#include "base/inside.h"

const model_op model_op_silu_gate = {
    .name = "silu_gate",
    .forward = DEVICE_SILU_GATE,
    .backward = DEVICE_SILU_GATE_BACKWARD,
    .keep = MODEL_KEEP_X0 | MODEL_KEEP_X1,
    .gradients = 3,
    .by_row = true,
    .layout = MODEL_LAYOUT_PARTS,
};

const model_op model_op_sigmoid_gate = {
    .name = "sigmoid_gate",
    .forward = DEVICE_SIGMOID_GATE,
    .backward = DEVICE_SIGMOID_GATE_BACKWARD,
    .keep = MODEL_KEEP_X0 | MODEL_KEEP_X1,
    .gradients = 3,
    .by_row = true,
    .layout = MODEL_LAYOUT_PARTS,
};

const model_op model_op_gelu_gate = {
    .name = "gelu_gate",
    .forward = DEVICE_GELU_GATE,
    .backward = DEVICE_GELU_GATE_BACKWARD,
    .keep = MODEL_KEEP_X0 | MODEL_KEEP_X1,
    .gradients = 3,
    .by_row = true,
    .layout = MODEL_LAYOUT_PARTS,
};

const model_op model_op_add = {
    .name = "add",
    .forward = DEVICE_ADD,
    .backward = DEVICE_KERNELS,
    .gradients = 3,
    .in_place = true,
    .by_row = true,
    .layout = MODEL_LAYOUT_PARTS,
    .shares_gradient = true,
};

const model_op model_op_multiply = {
    .name = "multiply",
    .forward = DEVICE_MULTIPLY,
    .backward = DEVICE_MULTIPLY_BACKWARD,
    .keep = MODEL_KEEP_X0 | MODEL_KEEP_X1,
    .gradients = 3,
    .by_row = true,
    .layout = MODEL_LAYOUT_PARTS,
};

static sifr_value add_binary(sifr_model *model, model_node node, sifr_value a, sifr_value b) {
    const char *name = node.op->name;
    const model_value *left = model_activation(model, a, name),
                      *right = model_activation(model, b, name);
    if (!left || !right) return SIFR_NO_VALUE;
    if (left->columns != right->columns) {
        MODEL_WRONG(model, "unit %s: %s: %lld and %lld columns", model_unit_name(model), name,
                    (long long)left->columns, (long long)right->columns);
        return SIFR_NO_VALUE;
    }
    node.x[0] = model_index(a);
    node.x[1] = model_index(b);
    return model_add_node(model, node, MODEL_VALUE_ACTIVATION, left->columns);
}

sifr_value sifr_silu_gate(sifr_model *model, sifr_value gate, sifr_value up) {
    BASE_ENTER_OR((sifr_value){0}, model);
    return add_binary(model, model_make_node(&model_op_silu_gate), gate, up);
}

sifr_value sifr_sigmoid_gate(sifr_model *model, sifr_value gate, sifr_value up) {
    BASE_ENTER_OR((sifr_value){0}, model);
    return add_binary(model, model_make_node(&model_op_sigmoid_gate), gate, up);
}

sifr_value sifr_gelu_gate(sifr_model *model, sifr_value gate, sifr_value up, bool exact) {
    BASE_ENTER_OR((sifr_value){0}, model);
    model_node node = model_make_node(&model_op_gelu_gate);
    node.attributes.gelu.exact = exact;
    return add_binary(model, node, gate, up);
}

sifr_value sifr_add(sifr_model *model, sifr_value a, sifr_value b) {
    BASE_ENTER_OR((sifr_value){0}, model);
    return add_binary(model, model_make_node(&model_op_add), a, b);
}

sifr_value sifr_multiply(sifr_model *model, sifr_value a, sifr_value b) {
    BASE_ENTER_OR((sifr_value){0}, model);
    return add_binary(model, model_make_node(&model_op_multiply), a, b);
}

/* Layer norm and root-mean-square norm of each row: one shape rule. */
#include "model/builder.h"

static void saved_norm(const model_node *node, int64_t tokens, int64_t *rows, int64_t *columns) {
    *rows = tokens;
    *columns = node->op == &model_op_layer_norm ? 2 : 1;
}

const model_op model_op_layer_norm = {
    .name = "layer_norm",
    .forward = DEVICE_LAYER_NORM,
    .backward = DEVICE_LAYER_NORM_BACKWARD,
    .keep = MODEL_KEEP_X0 | MODEL_KEEP_W0 | MODEL_KEEP_SAVED,
    .gradients = 1,
    .accumulates = true,
    .saved = saved_norm,
    .by_row = true,
};

const model_op model_op_rms_norm = {
    .name = "rms_norm",
    .forward = DEVICE_RMS_NORM,
    .backward = DEVICE_RMS_NORM_BACKWARD,
    .keep = MODEL_KEEP_X0 | MODEL_KEEP_W0 | MODEL_KEEP_SAVED,
    .gradients = 1,
    .accumulates = true,
    .saved = saved_norm,
    .by_row = true,
};

static sifr_value add_norm(sifr_model *model, const model_op *op, sifr_value x, sifr_weight scale,
                           sifr_weight bias, double epsilon) {
    const char *name = op->name;
    const model_value *in = model_activation(model, x, name);
    if (!in || !model_weight_of(model, scale, name)) return MODEL_NO_VALUE;
    if (!model_vector_fits(model, scale, in->columns, name)) return MODEL_NO_VALUE;
    if (!model_vector_fits(model, bias, in->columns, name)) return MODEL_NO_VALUE;
    if (!(epsilon >= 0 && epsilon < 1)) {
        MODEL_WRONG(model, "unit %s: %s: epsilon %g", model_unit_name(model), name, epsilon);
        return MODEL_NO_VALUE;
    }
    model_node node = model_make_node(op);
    node.x[0] = x.id;
    node.w[0] = scale.id;
    node.w[1] = bias.id;
    node.attributes.norm.epsilon = (float)epsilon;
    return model_add_node(model, node, MODEL_VALUE_ACTIVATION, in->columns);
}

sifr_value sifr_layer_norm(sifr_model *model, sifr_value x, sifr_weight scale, sifr_weight bias,
                           double epsilon) {
    return add_norm(model, &model_op_layer_norm, x, scale, bias, epsilon);
}

sifr_value sifr_rms_norm(sifr_model *model, sifr_value x, sifr_weight scale, double epsilon) {
    return add_norm(model, &model_op_rms_norm, x, scale, SIFR_NO_WEIGHT, epsilon);
}

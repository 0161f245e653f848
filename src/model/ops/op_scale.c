/* A product with one number, or with a weight that is one. */
#include <math.h>

#include "base/inside.h"
#include "model/builder.h"

const model_op model_op_scale = {
    .name = "scale",
    .forward = DEVICE_SCALE,
    .backward = DEVICE_SCALE_BACKWARD,
    .gradients = 1,
    .accumulates = true,
    .in_place = true,
    .backward_in_place = true,
    .by_row = true,
    .layout = MODEL_LAYOUT_PARTS,
};

const model_op model_op_scale_by = {
    .name = "scale_by",
    .forward = DEVICE_SCALE_BY,
    .backward = DEVICE_SCALE_BY_BACKWARD,
    .keep = MODEL_KEEP_W0,
    .gradients = 1,
    .accumulates = true,
    .in_place = true,
    .backward_in_place = true,
    .by_row = true,
};

sifr_value sifr_scale(sifr_model *model, sifr_scale_args args) {
    BASE_ENTER_OR((sifr_value){0}, model);
    const model_value *in = model_activation(model, args.x, "scale");
    if (!in) return SIFR_NO_VALUE;
    if (!isfinite((float)args.factor)) {
        MODEL_WRONG(model, "unit %s: scale: factor %g", model_unit_name(model), args.factor);
        return SIFR_NO_VALUE;
    }
    if (args.factor == 1) return args.x;
    model_node node = model_make_node(&model_op_scale);
    node.x[0] = model_index(args.x);
    node.attributes.scale.factor = (float)args.factor;
    node.attributes.scale.round_factor = args.round_factor;
    return model_add_node(model, node, MODEL_VALUE_ACTIVATION, in->columns);
}

sifr_value sifr_scale_by(sifr_model *model, sifr_value x, sifr_weight factor) {
    BASE_ENTER_OR((sifr_value){0}, model);
    const model_value *in = model_activation(model, x, "scale_by");
    if (!in || !model_weight_of(model, factor, "scale_by")) return SIFR_NO_VALUE;
    if (!model_vector_fits(model, factor, 1, "scale_by")) return SIFR_NO_VALUE;
    model_weight *w = &model->weights[model_weight_index(factor)];
    w->constant = w->frozen = true;
    model_node node = model_make_node(&model_op_scale_by);
    node.x[0] = model_index(x);
    node.w[0] = model_weight_index(factor);
    return model_add_node(model, node, MODEL_VALUE_ACTIVATION, in->columns);
}

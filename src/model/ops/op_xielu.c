/* An activation with weights of its own. */
#include <math.h>

#include "base/inside.h"
#include "model/builder.h"

/* All columns go through the same two. */
static model_shared shared_weights(const sifr_model *model, const model_node *node) {
    (void)model;
    (void)node;
    return MODEL_SHARED_WHOLE;
}

const model_op model_op_xielu = {
    .name = "xielu",
    .forward = DEVICE_XIELU,
    .backward = DEVICE_XIELU_BACKWARD,
    .keep = MODEL_KEEP_X0 | MODEL_KEEP_W0 | MODEL_KEEP_W1,
    .gradients = 1,
    .accumulates = true,
    .splits = true,
    .by_row = true,
    .layout = MODEL_LAYOUT_PARTS,
    .shares = shared_weights,
};

sifr_value sifr_xielu(sifr_model *model, sifr_xielu_args args) {
    BASE_ENTER_OR((sifr_value){0}, model);
    const model_value *in = model_activation(model, args.x, "xielu");
    if (!in || !model_weight_of(model, args.positive, "xielu") ||
        !model_weight_of(model, args.negative, "xielu") ||
        !model_vector_fits(model, args.positive, 1, "xielu") ||
        !model_vector_fits(model, args.negative, 1, "xielu"))
        return SIFR_NO_VALUE;
    if (!isfinite((float)args.beta) || !(args.epsilon <= 0) || !isfinite((float)args.epsilon)) {
        MODEL_WRONG(model,
                    "unit %s: xielu: beta %g and epsilon %g must be finite, and epsilon not above "
                    "0",
                    model_unit_name(model), args.beta, args.epsilon);
        return SIFR_NO_VALUE;
    }
    model_node node = model_make_node(&model_op_xielu);
    node.x[0] = model_index(args.x);
    node.w[0] = model_weight_index(args.positive);
    node.w[1] = model_weight_index(args.negative);
    node.attributes.xielu.beta = (float)args.beta;
    node.attributes.xielu.epsilon = (float)args.epsilon;
    return model_add_node(model, node, MODEL_VALUE_ACTIVATION, in->columns);
}

/* Rotary position embedding. */
#include <math.h>

#include "model/builder.h"

const model_op model_op_rope = {
    .name = "rope",
    .forward = DEVICE_ROPE,
    .backward = DEVICE_ROPE_BACKWARD,
    .keep = MODEL_KEEP_X1 | MODEL_KEEP_X2,
    .gradients = 1,
    .in_place = true,
    .backward_in_place = true,
    .by_row = true,
};

sifr_value sifr_rope(sifr_model *model, sifr_rope_args args) {
    const model_value *in = model_activation(model, args.x, "rope");
    if (!in) return SIFR_NO_VALUE;
    int64_t columns = in->columns, head_dim = args.head_dim;
    if (head_dim < 2 || columns % head_dim) {
        MODEL_WRONG(model, "unit %s: rope: heads of %lld do not divide %lld columns",
                    model_unit_name(model), (long long)head_dim, (long long)columns);
        return SIFR_NO_VALUE;
    }
    int64_t rotary_dim = args.rotary_dim ? args.rotary_dim : head_dim;
    if (rotary_dim < 2 || rotary_dim % 2 || rotary_dim > head_dim) {
        MODEL_WRONG(model, "unit %s: rope: %lld elements of heads of %lld cannot turn in pairs",
                    model_unit_name(model), (long long)rotary_dim, (long long)head_dim);
        return SIFR_NO_VALUE;
    }
    double scale = args.scale == 0 ? 1 : args.scale;
    if (!isfinite(scale)) {
        MODEL_WRONG(model, "unit %s: rope: scale %g", model_unit_name(model), scale);
        return SIFR_NO_VALUE;
    }
    model_node node = model_make_node(&model_op_rope);
    node.x[0] = model_index(args.x);
    node.x[1] = model_index(sifr_positions(model));
    node.x[2] = model_add_table(model, rotary_dim, args.frequencies, scale);
    node.attributes.rope.heads = (int32_t)(columns / head_dim);
    node.attributes.rope.head_dim = (int32_t)head_dim;
    node.attributes.rope.rotary_dim = (int32_t)rotary_dim;
    node.attributes.rope.interleaved = args.interleaved;
    return model_add_node(model, node, MODEL_VALUE_ACTIVATION, columns);
}

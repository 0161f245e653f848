/* Columns in another order. */
#include "model/builder.h"

const model_op model_op_regroup = {
    .name = "regroup",
    .forward = DEVICE_REGROUP,
    .backward = DEVICE_REGROUP_BACKWARD,
    .gradients = 1,
    .accumulates = true,
    .by_row = true,
};

sifr_value sifr_regroup(sifr_model *model, sifr_value x, int64_t groups, int64_t parts) {
    const model_value *in = model_activation(model, x, "regroup");
    if (!in) return SIFR_NO_VALUE;
    bool fits = groups >= 1 && parts >= 1 && groups <= in->columns && parts <= in->columns &&
                in->columns % (groups * parts) == 0;
    if (!fits) {
        MODEL_WRONG(model, "unit %s: regroup: %lld groups of %lld parts do not divide %lld columns",
                    model_unit_name(model), (long long)groups, (long long)parts,
                    (long long)in->columns);
        return SIFR_NO_VALUE;
    }
    model_node node = model_make_node(&model_op_regroup);
    node.x[0] = model_index(x);
    node.attributes.regroup.groups = (int32_t)groups;
    node.attributes.regroup.parts = (int32_t)parts;
    return model_add_node(model, node, MODEL_VALUE_ACTIVATION, in->columns);
}

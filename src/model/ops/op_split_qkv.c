/* Columns in another order. */
#include "model/builder.h"

#include "base/inside.h"

/* A part has some of the groups, with all their parts; what is read of its output must be one of
 * these, which has the same groups. */
static int64_t blocks_of(const sifr_model *model, const model_node *node, bool common) {
    int64_t width = model->values[node->y].columns / node->attributes.split_qkv.parts;
    (void)common;
    for (size_t v = 0; v < model->value_count; v++) {
        const model_value *value = &model->values[v];
        if (value->base != node->y) continue;
        if (value->columns != width || value->first % width) return 0;
    }
    return node->attributes.split_qkv.groups;
}

static void divide_groups(const sifr_model *model, model_node *node, const model_share *share) {
    (void)model;
    node->attributes.split_qkv.groups =
        (int32_t)(node->attributes.split_qkv.groups / share->blocks * share->room);
}

const model_op model_op_split_qkv = {
    .name = "split_qkv",
    .forward = DEVICE_SPLIT_QKV,
    .backward = DEVICE_SPLIT_QKV_BACKWARD,
    .gradients = 1,
    .accumulates = true,
    .by_row = true,
    .layout = MODEL_LAYOUT_PARTS,
    .blocks = blocks_of,
    .divide = divide_groups,
};

sifr_value sifr_split_qkv(sifr_model *model, sifr_value x, int64_t groups, int64_t parts) {
    BASE_ENTER_OR((sifr_value){0}, model);
    const model_value *in = model_activation(model, x, "split_qkv");
    if (!in) return SIFR_NO_VALUE;
    bool fits = groups >= 1 && parts >= 1 && groups <= in->columns && parts <= in->columns &&
                in->columns % (groups * parts) == 0;
    if (!fits) {
        MODEL_WRONG(
            model, "unit %s: split_qkv: %lld groups of %lld parts do not divide %lld columns",
            model_unit_name(model), (long long)groups, (long long)parts, (long long)in->columns);
        return SIFR_NO_VALUE;
    }
    model_node node = model_make_node(&model_op_split_qkv);
    node.x[0] = model_index(x);
    node.attributes.split_qkv.groups = (int32_t)groups;
    node.attributes.split_qkv.parts = (int32_t)parts;
    return model_add_node(model, node, MODEL_VALUE_ACTIVATION, in->columns);
}

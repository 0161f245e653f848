/* Dropout by counter. */
#include "model/builder.h"

#include "base/inside.h"
#include "model/shard.h"

static int64_t blocks_of(const sifr_model *model, const model_node *node, bool common) {
    (void)common;
    return model_is_sliced(model, node->y) ? 0 : model->values[node->y].columns;
}

/* Numbers are those of the whole value. */
static void divide_columns(const sifr_model *model, model_node *node, const model_share *share) {
    device_dropout_attributes *a = &node->attributes.dropout;
    a->whole = model->values[node->y].columns;
    a->first = a->whole / share->blocks * share->first;
}

const model_op model_op_dropout = {
    .name = "dropout",
    .forward = DEVICE_DROPOUT,
    .backward = DEVICE_DROPOUT_BACKWARD,
    .gradients = 1,
    .in_place = true,
    .backward_in_place = true,
    .by_row = true,
    .counts_elements = true,
    .layout = MODEL_LAYOUT_PARTS,
    .blocks = blocks_of,
    .divide = divide_columns,
};

sifr_value sifr_dropout(sifr_model *model, sifr_value x, double probability) {
    BASE_ENTER_OR((sifr_value){0}, model);
    const model_value *in = model_activation(model, x, "dropout");
    if (!in) return SIFR_NO_VALUE;
    if (!(probability >= 0 && probability < 1)) {
        MODEL_WRONG(model, "unit %s: dropout: probability %g", model_unit_name(model), probability);
        return SIFR_NO_VALUE;
    }
    if (probability == 0) return x;
    model_node node = model_make_node(&model_op_dropout);
    node.x[0] = model_index(x);
    node.attributes.dropout.probability = (float)probability;
    return model_add_node(model, node, MODEL_VALUE_ACTIVATION, in->columns);
}

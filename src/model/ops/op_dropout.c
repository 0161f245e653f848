/* Dropout by counter. */
#include "model/builder.h"

#include "base/inside.h"
#include "model/shard.h"

/* Numbers are those of the whole value. */
static bool divide_columns(const sifr_model *model, model_node *node, int32_t parts,
                           int32_t place) {
    device_dropout_attributes *a = &node->attributes.dropout;
    if (model_is_sliced(model, node->y)) return false;
    a->whole = model->values[node->y].columns;
    a->first = a->whole / parts * place;
    return true;
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

/* The rows of a weight as a value, whatever the number of tokens. */
#include "model/builder.h"

#include "base/inside.h"

const model_op model_op_rows = {
    .name = "rows",
    .forward = DEVICE_ROWS,
    .backward = DEVICE_ROWS_BACKWARD,
    .makes_rows = true,
};

sifr_value sifr_rows(sifr_model *model, sifr_weight table) {
    BASE_ENTER_OR((sifr_value){0}, model);
    const model_weight *w = model_weight_of(model, table, "rows");
    if (!w) return SIFR_NO_VALUE;
    model_node node = model_make_node(&model_op_rows);
    node.w[0] = model_weight_index(table);
    return model_add_node(model, node, MODEL_VALUE_ACTIVATION, w->columns);
}

/* Rows of a table, chosen by tokens or positions. */
#include "model/builder.h"

#include "base/inside.h"

/* Forward reads the rows that are chosen: no more than there are, nor than are written. Backward
 * clears its whole gradient of the table. */
static double rows_not_chosen(const device_call *call) {
    double table = model_matrix_bytes(&call->w[0]), chosen = model_matrix_bytes(&call->y);
    return table > chosen ? table - chosen : 0;
}

static int64_t first_row(const device_attributes *attributes) {
    return attributes->embedding.first;
}

const model_op model_op_embedding = {
    .name = "embedding",
    .forward = DEVICE_EMBEDDING,
    .backward = DEVICE_EMBEDDING_BACKWARD,
    .keep = MODEL_KEEP_X0,
    /* Not by_row: its backward adds to rows of the table as they come, not by chunks of tokens. */
    .untouched = rows_not_chosen,
    .contexts = MODEL_CONTEXTS_ROWS,
    .layout = MODEL_LAYOUT_WORDS,
    .row_numbers = 1 << 0,
    .first_row = first_row,
};

sifr_value sifr_embedding(sifr_model *model, sifr_embedding_args args) {
    BASE_ENTER_OR((sifr_value){0}, model);
    const model_weight *w = model_weight_of(model, args.table, "embedding");
    if (!w) return SIFR_NO_VALUE;
    int32_t ids = model_index(args.ids), table = model_weight_index(args.table);
    bool known = ids >= 0 && (size_t)ids < model->value_count &&
                 model->values[ids].kind == MODEL_VALUE_INPUT;
    if (!known) {
        MODEL_WRONG(model, "unit %s: embedding: ids must be an input", model_unit_name(model));
        return SIFR_NO_VALUE;
    }
    if (args.first < 0 || args.first >= w->rows || args.first > INT32_MAX) {
        MODEL_WRONG(model, "unit %s: embedding: id 0 is row %lld of %s, which has %lld",
                    model_unit_name(model), (long long)args.first, w->name, (long long)w->rows);
        return SIFR_NO_VALUE;
    }
    model_node node = model_make_node(&model_op_embedding);
    node.x[0] = ids;
    node.w[0] = table;
    node.attributes.embedding.first = (int32_t)args.first;
    if (args.padded && args.padding >= 0 && args.padding < w->rows) {
        node.attributes.embedding.padded = true;
        node.attributes.embedding.padding = (int32_t)args.padding;
        model->weights[table].has_zero_row = true;
        model->weights[table].zero_row = args.padding;
    }
    return model_add_node(model, node, MODEL_VALUE_ACTIVATION, w->columns);
}

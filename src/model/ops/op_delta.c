/* The gated delta rule of linear attention. */
#include "model/builder.h"

#include "base/inside.h"
#include "device/delta_order.h"

static void note_extent(device_attributes *attributes, const model_extent *extent) {
    attributes->delta.sequences = extent->sequences;
    attributes->delta.length = extent->length;
}

/* A state for each value head. */
static void state_rows(const sifr_model *model, const model_node *node, int64_t *rows,
                       int64_t *columns) {
    const device_delta_attributes *a = &node->attributes.delta;
    *rows = model->values[node->x[0]].columns / a->key_heads * a->value_heads;
    *columns = model->values[node->y].columns / a->value_heads;
}

/* Of a token and value head: three products with the state, and half of the chunk's pairs in four
 * more; `full` counts all pairs. A token of generation has the first alone. */
static double delta_operations(const device_call *call, bool full) {
    const device_delta_attributes *a = &call->attributes.delta;
    const device_matrix *y = call->dy.dtype != BASE_NONE ? &call->dy : &call->y;
    double keys = (double)call->x[0].columns / a->key_heads;
    double values = (double)y->columns / a->value_heads;
    double pairs = call->kernel == DEVICE_DELTA_CACHED ? 0 : full ? DELTA_CHUNK : DELTA_CHUNK / 2.0;
    return (double)y->rows * a->value_heads * (6 * keys * values + 4 * pairs * (keys + values));
}

const model_op model_op_delta = {
    .name = "delta",
    .forward = DEVICE_DELTA,
    .backward = DEVICE_DELTA_BACKWARD,
    .keep = MODEL_KEEP_X0 | MODEL_KEEP_X1 | MODEL_KEEP_X2 | MODEL_KEEP_X3 | MODEL_KEEP_X4 |
            MODEL_KEEP_X5 | MODEL_KEEP_W0 | MODEL_KEEP_W1,
    .gradients = 31,
    .makes_all = true,
    .operations = delta_operations,
    .backward_factor = 3.2, /* states and updates again, then seven products with states */
    .complete = note_extent,
    .state = state_rows,
    .fp32_state = true,
    .positions = 5,
    .cached = DEVICE_DELTA_CACHED,
    /* Not by_row: a state goes from each row to the next. */
};

static bool heads_fit(sifr_model *model, const sifr_delta_args *args) {
    sifr_value of[] = {args->q, args->k, args->v, args->time, args->share};
    int64_t columns[5], keys = args->key_heads, values = args->value_heads;
    for (int i = 0; i < 5; i++) {
        const model_value *value = model_activation(model, of[i], "delta");
        if (!value) return false;
        columns[i] = value->columns;
    }
    if (keys >= 1 && values >= 1 && values <= INT32_MAX && values % keys == 0 &&
        columns[0] % keys == 0 && columns[1] == columns[0] && columns[2] % values == 0 &&
        columns[3] == values && columns[4] == values)
        return true;
    MODEL_WRONG(
        model,
        "unit %s: delta: %lld key heads and %lld value heads do not fit columns %lld, %lld, "
        "%lld, %lld, %lld",
        model_unit_name(model), (long long)keys, (long long)values, (long long)columns[0],
        (long long)columns[1], (long long)columns[2], (long long)columns[3], (long long)columns[4]);
    return false;
}

sifr_value sifr_delta(sifr_model *model, sifr_delta_args args) {
    BASE_ENTER_OR((sifr_value){0}, model);
    args.segments = model_segments(model, args.segments);
    if (!heads_fit(model, &args)) return SIFR_NO_VALUE;
    if (!model_weight_of(model, args.rate, "delta") || !model_weight_of(model, args.bias, "delta"))
        return SIFR_NO_VALUE;
    if (!model_vector_fits(model, args.rate, args.value_heads, "delta") ||
        !model_vector_fits(model, args.bias, args.value_heads, "delta"))
        return SIFR_NO_VALUE;
    if (args.segments.id && !model_is_input(model, args.segments)) {
        MODEL_WRONG(model, "unit %s: delta: segments must be an input of whole numbers",
                    model_unit_name(model));
        return SIFR_NO_VALUE;
    }
    model_node node = model_make_node(&model_op_delta);
    node.x[0] = model_index(args.q);
    node.x[1] = model_index(args.k);
    node.x[2] = model_index(args.v);
    node.x[3] = model_index(args.time);
    node.x[4] = model_index(args.share);
    node.x[5] = model_index(args.segments);
    node.w[0] = model_weight_index(args.rate);
    node.w[1] = model_weight_index(args.bias);
    node.attributes.delta.key_heads = (int32_t)args.key_heads;
    node.attributes.delta.value_heads = (int32_t)args.value_heads;
    int64_t columns = model->values[node.x[2]].columns;
    return model_add_node(model, node, MODEL_VALUE_ACTIVATION, columns);
}

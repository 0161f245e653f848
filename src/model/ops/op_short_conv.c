/* A convolution of each column over its last tokens, as LFM2 and linear attention have it. */
#include "model/builder.h"

#include "base/inside.h"

static void note_extent(device_attributes *attributes, const model_extent *extent) {
    attributes->short_conv.length = extent->length;
    attributes->short_conv.sequences = extent->sequences;
}

/* Of a sequence: the inputs of the tokens before the next one. */
static void state_rows(const sifr_model *model, const model_node *node, int64_t *rows,
                       int64_t *columns) {
    const model_weight *weight = &model->weights[node->w[0]];
    *rows = weight->columns - 1;
    *columns = weight->rows;
}

const model_op model_op_short_conv = {
    .name = "short_conv",
    .forward = DEVICE_SHORT_CONV,
    .backward = DEVICE_SHORT_CONV_BACKWARD,
    .keep = MODEL_KEEP_X0 | MODEL_KEEP_X1 | MODEL_KEEP_W0,
    .x_for_weights = true,
    .gradients = 1,
    .accumulates = true,
    .splits = true,
    .complete = note_extent,
    .state = state_rows,
    .positions = 1,
    .cached = DEVICE_SHORT_CONV_CACHED,
    .contexts = MODEL_CONTEXTS_HALO,
    /* Not by_row: the first row of a tile has taps before it. */
};

sifr_value sifr_short_conv(sifr_model *model, sifr_short_conv_args args) {
    BASE_ENTER_OR((sifr_value){0}, model);
    args.segments = model_segments(model, args.segments);
    const model_value *in = model_activation(model, args.x, "short_conv");
    const model_weight *weight = model_weight_of(model, args.weight, "short_conv");
    if (!in || !weight) return SIFR_NO_VALUE;
    bool fits =
        weight->rows == in->columns && weight->columns >= 2 && weight->columns <= DEVICE_MOST_TAPS;
    if (!fits) {
        MODEL_WRONG(model,
                    "unit %s: short_conv: %s has %lld x %lld elements; expected %lld rows of 2 to "
                    "%d taps",
                    model_unit_name(model), weight->name, (long long)weight->rows,
                    (long long)weight->columns, (long long)in->columns, DEVICE_MOST_TAPS);
        return SIFR_NO_VALUE;
    }
    if (!model_vector_fits(model, args.bias, in->columns, "short_conv")) return SIFR_NO_VALUE;
    if (args.segments.id && !model_is_input(model, args.segments)) {
        MODEL_WRONG(model, "unit %s: short_conv: segments must be an input of whole numbers",
                    model_unit_name(model));
        return SIFR_NO_VALUE;
    }
    model_node node = model_make_node(&model_op_short_conv);
    node.x[0] = model_index(args.x);
    node.x[1] = model_index(args.segments);
    node.w[0] = model_weight_index(args.weight);
    node.w[1] = model_weight_index(args.bias);
    return model_add_node(model, node, MODEL_VALUE_ACTIVATION, in->columns);
}

/* Each row beside its neighbours: what a product makes a convolution over tokens of. */
#include "model/builder.h"

#include "base/inside.h"

static void note_length(device_attributes *attributes, const model_extent *extent) {
    attributes->unfold.length = extent->length;
}

const model_op model_op_unfold = {
    .name = "unfold",
    .forward = DEVICE_UNFOLD,
    .backward = DEVICE_UNFOLD_BACKWARD,
    .keep = MODEL_KEEP_X1,
    .gradients = 1,
    .accumulates = true,
    .complete = note_length,
    /* Not by_row: the first row of a tile has neighbours before it. */
};

sifr_value sifr_unfold(sifr_model *model, sifr_unfold_args args) {
    BASE_ENTER_OR((sifr_value){0}, model);
    int64_t size = args.size;
    args.segments = model_segments(model, args.segments);
    const model_value *in = model_activation(model, args.x, "unfold");
    if (!in) return SIFR_NO_VALUE;
    bool fits = size >= 1 && size <= DEVICE_MOST_NEIGHBOURS && size % 2 == 1;
    if (!fits || in->columns > INT32_MAX / size) {
        MODEL_WRONG(model, "unit %s: unfold: %lld of %lld columns; expected an odd number to %d",
                    model_unit_name(model), (long long)size, (long long)in->columns,
                    DEVICE_MOST_NEIGHBOURS);
        return SIFR_NO_VALUE;
    }
    if (args.segments.id && !model_is_input(model, args.segments)) {
        MODEL_WRONG(model, "unit %s: unfold: segments must be an input of whole numbers",
                    model_unit_name(model));
        return SIFR_NO_VALUE;
    }
    model_node node = model_make_node(&model_op_unfold);
    node.x[0] = model_index(args.x);
    node.x[1] = model_index(args.segments);
    node.attributes.unfold.size = (int32_t)size;
    return model_add_node(model, node, MODEL_VALUE_ACTIVATION, size * in->columns);
}

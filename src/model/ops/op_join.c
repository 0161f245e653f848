/* Values beside each other. */
#include "base/inside.h"
#include "model/builder.h"

const model_op model_op_join = {
    .name = "join",
    .forward = DEVICE_JOIN,
    .backward = DEVICE_JOIN_BACKWARD,
    .gradients = (1 << DEVICE_MOST_JOINED) - 1,
    .accumulates = true,
    .by_row = true,
};

sifr_value sifr_join(sifr_model *model, const sifr_value *values, int64_t count) {
    BASE_ENTER_OR((sifr_value){0}, model, values);
    model_node node = model_make_node(&model_op_join);
    int64_t end = 0;
    if (count < 2 || count > DEVICE_MOST_JOINED) {
        MODEL_WRONG(model, "unit %s: join: %lld values, but 2 to %d can be joined",
                    model_unit_name(model), (long long)count, DEVICE_MOST_JOINED);
        return SIFR_NO_VALUE;
    }
    for (int64_t i = 0; i < count; i++) {
        const model_value *in = model_activation(model, values[i], "join");
        if (!in) return SIFR_NO_VALUE;
        node.x[i] = model_index(values[i]);
        node.attributes.join.end[i] = end += in->columns;
    }
    return model_add_node(model, node, MODEL_VALUE_ACTIVATION, end);
}

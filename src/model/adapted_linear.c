/* A product with a weight and a bias in a description, and its adapter, where it gets one. */
#include "base/inside.h"
#include "model/builder.h"
#include "model/lora.h"

static sifr_value add_linear(sifr_model *model, sifr_value x, sifr_weight weight, sifr_weight bias,
                             bool transposed) {
    const model_value *in = model_activation(model, x, "linear");
    const model_weight *w = in ? model_weight_of(model, weight, "linear") : NULL;
    if (!w) return SIFR_NO_VALUE;
    int64_t from = transposed ? w->rows : w->columns, to = transposed ? w->columns : w->rows;
    if (in->columns != from) {
        MODEL_WRONG(model, "unit %s: linear: %s takes %lld columns, its input has %lld",
                    model_unit_name(model), w->name, (long long)from, (long long)in->columns);
        return SIFR_NO_VALUE;
    }
    if (!model_vector_fits(model, bias, to, "linear")) return SIFR_NO_VALUE;
    model_node node = model_make_node(&model_op_linear);
    node.x[0] = model_index(x);
    node.w[0] = model_weight_index(weight);
    node.w[1] = model_weight_index(bias);
    node.attributes.linear.transposed = transposed;
    if (model_adapt_adds_bias(model, weight)) node.w[1] = -1;
    sifr_value y = model_add_node(model, node, MODEL_VALUE_ACTIVATION, to);
    return model_adapt(model, x, weight, bias, y, transposed);
}

sifr_value sifr_linear(sifr_model *model, sifr_value x, sifr_weight w, sifr_weight bias) {
    BASE_ENTER_OR((sifr_value){0}, model);
    return add_linear(model, x, w, bias, false);
}

sifr_value sifr_conv1d(sifr_model *model, sifr_value x, sifr_weight w, sifr_weight bias) {
    BASE_ENTER_OR((sifr_value){0}, model);
    return add_linear(model, x, w, bias, true);
}

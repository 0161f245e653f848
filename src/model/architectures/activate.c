#include "model/architectures/activate.h"

#include "base/assert.h"

sifr_value model_activate(sifr_model *model, sifr_value x, model_activation_kind kind) {
    switch (kind) {
    case MODEL_GELU_TANH:
    case MODEL_GELU_ERF:
        return sifr_gelu(model, x, kind == MODEL_GELU_ERF);
    case MODEL_SILU:
    case MODEL_QUICK_GELU:
        return sifr_swish(model, x, kind == MODEL_SILU ? 1 : 1.702);
    case MODEL_RELU:
    case MODEL_RELU_SQUARED:
        return sifr_relu(model, x, kind == MODEL_RELU_SQUARED);
    case MODEL_TANH:
    case MODEL_XIELU: /* no reader but that of its family, which adds it, takes it */
        break;
    }
    base_assert(kind == MODEL_TANH);
    return sifr_tanh(model, x);
}

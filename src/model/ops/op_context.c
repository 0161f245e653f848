/* Where rows of a run of tokens become whole sequences of some heads, and back, or of all keys and
 * values, or get rows before them, among context ranks. No model is built with these:
 * model/context.h adds them to a rank's part of it. */
#include "model/description.h"

/* Before attention. */
const model_op model_op_context_heads = {
    .name = "context_heads",
    .forward = DEVICE_KERNELS,
    .backward = DEVICE_KERNELS,
    .gradients = 1,
    .exchanges = MODEL_EXCHANGE_TO_HEADS,
};

/* Behind it. */
const model_op model_op_context_rows = {
    .name = "context_rows",
    .forward = DEVICE_KERNELS,
    .backward = DEVICE_KERNELS,
    .gradients = 1,
    .exchanges = MODEL_EXCHANGE_TO_ROWS,
};

/* Of keys or values, before attention of a rank's own queries. */
const model_op model_op_context_keys = {
    .name = "context_keys",
    .forward = DEVICE_KERNELS,
    .backward = DEVICE_KERNELS,
    .gradients = 1,
    .exchanges = MODEL_EXCHANGE_GATHER,
};

/* Before a convolution. */
const model_op model_op_context_halo = {
    .name = "context_halo",
    .forward = DEVICE_KERNELS,
    .backward = DEVICE_KERNELS,
    .gradients = 1,
    .exchanges = MODEL_EXCHANGE_TO_HALO,
};

/* Behind it. */
const model_op model_op_context_inner = {
    .name = "context_inner",
    .forward = DEVICE_KERNELS,
    .backward = DEVICE_KERNELS,
    .gradients = 1,
    .exchanges = MODEL_EXCHANGE_OFF_HALO,
};

/* Where a value of one layout becomes one of another among tensor ranks. No model is built with
 * these: model/shard.h adds them to a rank's part of it. */
#include "model/description.h"

/* Behind a product whose inputs are cut. */
const model_op model_op_tensor_sum = {
    .name = "tensor_sum",
    .forward = DEVICE_KERNELS,
    .backward = DEVICE_KERNELS,
    .gradients = 1,
    .in_place = true,
    .shares_gradient = true,
    .sums = true,
};

/* Before products whose outputs are cut: each rank makes a part of their input's gradient. */
const model_op model_op_tensor_entry = {
    .name = "tensor_entry",
    .forward = DEVICE_KERNELS,
    .backward = DEVICE_KERNELS,
    .gradients = 1,
    .in_place = true,
    .shares_gradient = true,
    .sums_gradient = true,
};

/* With the residual stream cut by rows, these stand for both (shard_rows.h). */
const model_op model_op_rows_sum = {
    .name = "rows_sum",
    .forward = DEVICE_KERNELS,
    .backward = DEVICE_KERNELS,
    .gradients = 1,
    .moves = MODEL_ROWS_SUM,
};

const model_op model_op_rows_enter = {
    .name = "rows_enter",
    .forward = DEVICE_KERNELS,
    .backward = DEVICE_KERNELS,
    .gradients = 1,
    .moves = MODEL_ROWS_ENTER,
};

const model_op model_op_rows_gather = {
    .name = "rows_gather",
    .forward = DEVICE_KERNELS,
    .backward = DEVICE_KERNELS,
    .gradients = 1,
    .moves = MODEL_ROWS_GATHER,
};

const model_op model_op_rows_take = {
    .name = "rows_take",
    .forward = DEVICE_KERNELS,
    .backward = DEVICE_KERNELS,
    .gradients = 1,
    .moves = MODEL_ROWS_TAKE,
};

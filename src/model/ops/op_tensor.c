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

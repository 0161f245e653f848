#include "device/cuda/vector/cuda_optimizer.h"

#include "device/cuda/cuda_launch.h"
#include "device/cuda/vector/optimizer_arguments.h"
#include "device/cuda/vector/packs_arguments.h"

static adam_vector vector_of(const device_matrix *m) {
    return m->dtype == BASE_NONE ? (adam_vector){0} : (adam_vector){m->data, (int32_t)m->dtype};
}

sifr_status cuda_run_adam(device *dev, const device_call *call, sifr_error *error) {
    enum { EACH = PACK * PACK_THREADS * ADAM_PACKS };
    adam_arguments arguments = {
        .gradient = vector_of(&call->x[0]),
        .states = {[ADAM_WEIGHTS] = vector_of(&call->w[0]),
                   [ADAM_MOMENT1] = vector_of(&call->saved[0]),
                   [ADAM_MOMENT2] = vector_of(&call->saved[1])},
        .copy = vector_of(&call->w[1]),
        .count = call->x[0].columns,
        .element = (uint64_t)call->attributes.element,
        .step = call->step,
        .epsilon = call->attributes.adam.epsilon,
        .weight_decay = call->attributes.adam.weight_decay,
        .decoupled = call->attributes.adam.decoupled,
    };
    cuda_launch launch = {.kernel = cuda_kernel_adam,
                          .blocks = {(arguments.count + EACH - 1) / EACH, 1, 1},
                          .threads = PACK_THREADS,
                          .arguments = &arguments};
    return cuda_launch_kernel(dev, &launch, error);
}

sifr_status cuda_run_square_sums(device *dev, const device_call *call, sifr_error *error) {
    enum { EACH = SQUARE_THREADS / SQUARE_LANES };
    const device_matrix *x = &call->x[0];
    squares_arguments arguments = {x->data, x->columns, call->y.data};
    cuda_launch launch = {.kernel = x->dtype == BASE_FP32   ? cuda_kernel_square_sums_fp32
                                    : x->dtype == BASE_BF16 ? cuda_kernel_square_sums_bf16
                                                            : cuda_kernel_square_sums_fp16,
                          .blocks = {(call->y.columns + EACH - 1) / EACH, 1, 1},
                          .threads = SQUARE_THREADS,
                          .arguments = &arguments};
    return cuda_launch_kernel(dev, &launch, error);
}

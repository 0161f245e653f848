#include "device/cuda/vector/cuda_optimizer.h"

#include "device/cuda/cuda_launch.h"
#include "device/cuda/vector/optimizer_arguments.h"
#include "device/cuda/vector/packs_arguments.h"

static update_operand operand_of(const device_matrix *m) {
    return m->dtype == BASE_NONE ? (update_operand){0}
                                 : (update_operand){.data = m->data, .type = (int32_t)m->dtype};
}

static const cuda_kernel kernels[DEVICE_UPDATES] = {
    [DEVICE_UPDATE_NUMBER(DEVICE_ADAM)] = cuda_kernel_adam,
    [DEVICE_UPDATE_NUMBER(DEVICE_AMSGRAD)] = cuda_kernel_amsgrad,
    [DEVICE_UPDATE_NUMBER(DEVICE_SGD)] = cuda_kernel_sgd,
    [DEVICE_UPDATE_NUMBER(DEVICE_MOMENTUM)] = cuda_kernel_momentum,
    [DEVICE_UPDATE_NUMBER(DEVICE_ADAGRAD)] = cuda_kernel_adagrad,
    [DEVICE_UPDATE_NUMBER(DEVICE_LION)] = cuda_kernel_lion,
    [DEVICE_UPDATE_NUMBER(DEVICE_SCHEDULE_FREE)] = cuda_kernel_schedule_free,
    [DEVICE_UPDATE_NUMBER(DEVICE_ADAM_8BIT)] = cuda_kernel_adam_8bit};

sifr_status cuda_run_update(device *dev, const device_call *call, sifr_error *error) {
    enum { EACH = PACK * PACK_THREADS * UPDATE_PACKS };
    update_arguments arguments = {
        .gradient = operand_of(&call->x[0]),
        .kinds[0] = operand_of(&call->w[0]),
        .copy = operand_of(&call->w[1]),
        .count = call->x[0].columns,
        .element = (uint64_t)call->attributes.element,
        .step = call->step,
        .epsilon = call->attributes.update.epsilon,
        .weight_decay = call->attributes.update.weight_decay,
        .lr_scale = call->attributes.update.lr_scale,
        .decoupled = call->attributes.update.decoupled,
        .nesterov = call->attributes.update.nesterov,
    };
    int states = device_update_states(call->kernel);
    for (int i = 0; i < states; i++) arguments.kinds[1 + i] = operand_of(&call->saved[i]);
    if (call->attributes.update.averages) arguments.average = call->saved[states].data;
    cuda_launch launch = {.kernel = kernels[DEVICE_UPDATE_NUMBER(call->kernel)],
                          .blocks = {(arguments.count + EACH - 1) / EACH, 1, 1},
                          .threads = PACK_THREADS,
                          .arguments = &arguments};
    return cuda_launch_kernel(dev, &launch, error);
}

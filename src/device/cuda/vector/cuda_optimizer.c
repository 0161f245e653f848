#include "device/cuda/vector/cuda_optimizer.h"

#include "device/check/operands.h"
#include "device/cuda/cuda_launch.h"
#include "device/cuda/vector/optimizer_arguments.h"
#include "device/cuda/vector/packs_arguments.h"

static update_operand operand_of(const device_matrix *m) {
    return m->dtype == BASE_NONE ? (update_operand){0}
                                 : (update_operand){.data = m->data, .type = (int32_t)m->dtype};
}

static const cuda_kernel kernels[DEVICE_UPDATES] = {
#define DEVICE_UPDATE(NAME, name, ...) [DEVICE_UPDATE_##NAME] = cuda_kernel_##name,
#define DEVICE_UPDATE_CPU(...)
#include "device/kernels.def"
};

static sifr_status launch_update(device *dev, const device_call *call, const float *trust,
                                 sifr_error *error) {
    enum { EACH = PACK * PACK_THREADS * UPDATE_PACKS };
    update_arguments arguments = {
        .gradient = operand_of(&call->x[0]),
        .kinds[0] = operand_of(&call->w[0]),
        .copy = operand_of(&call->w[1]),
        .sums = call->kernel == DEVICE_LAMB_BEGIN ? call->y.data : NULL,
        .trust = trust,
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

sifr_status cuda_run_update(device *dev, const device_call *call, sifr_error *error) {
    return launch_update(dev, call, NULL, error);
}

sifr_status cuda_prepare_lamb(device *dev, device_call *call, sifr_error *error) {
    (void)dev, (void)error;
    call->scratch_bytes = 0;
    device_reserve(&call->scratch_bytes, sizeof(float));
    return SIFR_OK;
}

sifr_status cuda_run_lamb(device *dev, const device_call *call, sifr_error *error) {
    lamb_trust_arguments arguments = {.sums = call->x[1].data,
                                      .trust = call->scratch,
                                      .parts = call->x[1].rows,
                                      .stride = call->x[1].stride,
                                      .least = call->attributes.update.min_coeff,
                                      .most = call->attributes.update.max_coeff};
    cuda_launch launch = {.kernel = cuda_kernel_lamb_trust,
                          .blocks = {1, 1, 1},
                          .threads = LAMB_TRUST_THREADS,
                          .arguments = &arguments};
    BASE_TRY(cuda_launch_kernel(dev, &launch, error));
    return launch_update(dev, call, arguments.trust, error);
}

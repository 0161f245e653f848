#include "device/cuda/head/cuda_head_preference.h"

#include "device/cuda/head/cuda_head_run.h"

sifr_status cuda_run_head_preference(device *dev, const device_call *call, sifr_error *error) {
    cuda_head_plan p = cuda_head_plan_of(dev, call);
    int64_t pair = 2 * call->attributes.head.length;
    head_pairs_arguments arguments = {
        .labels = call->x[1].data,
        .entropies = cuda_head_at(call, p.at_entropies),
        .numbers = call->x[2].data,
        .losses = call->y.data,
        .log_probabilities = (float *)call->y.data + call->y.stride,
        .weights = cuda_head_at(call, p.at_weights),
        .rows = p.rows,
        .length = call->attributes.head.length,
        .labels_stride = call->x[1].stride,
        .numbers_stride = call->x[2].stride,
        .preference = (int32_t)call->attributes.head.preference,
        .beta = call->attributes.head.beta,
    };
    cuda_launch pairs = {.kernel = cuda_kernel_head_pairs,
                         .blocks = {(p.rows + pair - 1) / pair, 1, 1},
                         .threads = HEAD_PAIR_THREADS,
                         .arguments = &arguments};
    BASE_TRY(cuda_head_losses(dev, call, &p, error));
    BASE_TRY(cuda_launch_kernel(dev, &pairs, error));
    return p.backward ? cuda_head_gradients(dev, call, &p, error) : SIFR_OK;
}

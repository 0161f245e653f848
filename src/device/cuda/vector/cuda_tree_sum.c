#include "device/cuda/vector/cuda_tree_sum.h"

#include "device/cuda/vector/packs_arguments.h"
#include "device/cuda/vector/tree_sum_arguments.h"

static cuda_kernel kernel_of(const device_sum *sum) {
    bool wide = sum->sum == BASE_FP32;
    if (sum->type == BASE_FP32) return cuda_kernel_tree_sum_fp32;
    if (sum->type == BASE_BF16)
        return wide ? cuda_kernel_tree_sum_bf16_fp32 : cuda_kernel_tree_sum_bf16;
    return wide ? cuda_kernel_tree_sum_fp16_fp32 : cuda_kernel_tree_sum_fp16;
}

sifr_status cuda_start_sum(device *dev, device_queue queue, const device_sum *sum,
                           sifr_error *error) {
    enum { EACH = PACK * PACK_THREADS };
    tree_sum_arguments arguments = {.run = sum->count, .elements = sum->elements, .out = sum->out};
    while (arguments.run % 2 == 0) {
        arguments.run /= 2;
        arguments.levels++;
    }
    for (int32_t i = 0; i < sum->count; i++) arguments.slices[i] = sum->slices[i];
    cuda_launch launch = {.kernel = kernel_of(sum),
                          .queue = queue,
                          .blocks = {(sum->elements + EACH - 1) / EACH, 1, 1},
                          .threads = PACK_THREADS,
                          .arguments = &arguments};
    return cuda_launch_kernel(dev, &launch, error);
}

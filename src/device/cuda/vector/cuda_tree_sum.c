#include "device/cuda/vector/cuda_tree_sum.h"

#include "device/cuda/vector/packs_arguments.h"

sifr_status cuda_tree_sum(base_dtype type, base_dtype sum, const void *const *slices, int32_t count,
                          int64_t elements, void *out, tree_sum_arguments *arguments,
                          cuda_launch *launch, sifr_error *error) {
    enum { EACH = PACK * PACK_THREADS };
    bool wide = type != BASE_FP32 && sum == BASE_FP32;
    if (count < 1 || count > TREE_SLICES)
        return base_fail(error, SIFR_USAGE, "sum of %d slices on a GPU: at most %d", count,
                         TREE_SLICES);
    *arguments = (tree_sum_arguments){.run = count, .elements = elements, .out = out};
    while (arguments->run % 2 == 0) {
        arguments->run /= 2;
        arguments->levels++;
    }
    for (int32_t i = 0; i < count; i++) arguments->slices[i] = slices[i];
    *launch = (cuda_launch){.kernel = type == BASE_FP32   ? cuda_kernel_tree_sum_fp32
                                      : type == BASE_BF16 ? wide ? cuda_kernel_tree_sum_bf16_fp32
                                                                 : cuda_kernel_tree_sum_bf16
                                      : wide              ? cuda_kernel_tree_sum_fp16_fp32
                                                          : cuda_kernel_tree_sum_fp16,
                            .blocks = {(elements + EACH - 1) / EACH, 1, 1},
                            .threads = PACK_THREADS,
                            .arguments = arguments};
    return SIFR_OK;
}

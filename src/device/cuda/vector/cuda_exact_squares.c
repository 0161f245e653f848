#include "device/cuda/vector/cuda_exact_squares.h"

sifr_status cuda_exact_squares(device *dev, base_dtype type, const void *x, int64_t count,
                               base_exact_sum *sum, sifr_error *error) {
    exact_squares_arguments arguments = {x, count, sum};
    cuda_launch launch = {.kernel = type == BASE_FP32   ? cuda_kernel_exact_squares_fp32
                                    : type == BASE_BF16 ? cuda_kernel_exact_squares_bf16
                                                        : cuda_kernel_exact_squares_fp16,
                          .blocks = {(count + EXACT_EACH - 1) / EXACT_EACH, 1, 1},
                          .threads = EXACT_THREADS,
                          .arguments = &arguments};
    return cuda_launch_kernel(dev, &launch, error);
}

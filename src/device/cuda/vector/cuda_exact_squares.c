#include "device/cuda/vector/cuda_exact_squares.h"

#include "device/cuda/cuda_launch.h"
#include "device/cuda/vector/exact_squares_arguments.h"

sifr_status cuda_run_exact_squares(device *dev, const device_call *call, sifr_error *error) {
    const device_matrix *x = &call->x[0];
    exact_squares_arguments arguments = {x->data, x->columns, call->y.data};
    cuda_launch launch = {.kernel = x->dtype == BASE_FP32   ? cuda_kernel_exact_squares_fp32
                                    : x->dtype == BASE_BF16 ? cuda_kernel_exact_squares_bf16
                                                            : cuda_kernel_exact_squares_fp16,
                          .blocks = {(x->columns + EXACT_EACH - 1) / EXACT_EACH, 1, 1},
                          .threads = EXACT_THREADS,
                          .arguments = &arguments};
    return cuda_launch_kernel(dev, &launch, error);
}

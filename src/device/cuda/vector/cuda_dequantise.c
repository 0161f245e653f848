#include "device/cuda/vector/cuda_dequantise.h"

#include "device/cuda/vector/dequantise_arguments.h"
#include "device/cuda/vector/row_launch.h"

sifr_status cuda_run_dequantise(device *dev, const device_call *call, sifr_error *error) {
    const device_matrix *x = &call->x[0], *y = &call->y;
    dequantise_arguments arguments = {
        .records = x->data,
        .to = y->data,
        .stride = x->stride,
        .doubled = x->columns == BASE_NF4_DOUBLED,
        .wide = (uintptr_t)x->data % 4 == 0 && x->stride % 4 == 0,
    };
    cuda_launch launch = {.kernel = cuda_kernel_of(cuda_kernel_dequantise_fp32, y->dtype),
                          .blocks = {x->rows, 1, 1},
                          .threads = DEQUANTISE_THREADS,
                          .arguments = &arguments};
    return cuda_launch_kernel(dev, &launch, error);
}

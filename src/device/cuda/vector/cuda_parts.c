#include "device/cuda/vector/cuda_parts.h"

#include "device/cuda/vector/parts_arguments.h"

sifr_status cuda_add_parts(device *dev, const float *parts, int64_t count, int64_t length,
                           const device_matrix *to, bool add, sifr_error *error) {
    if (to->dtype == BASE_NONE) return SIFR_OK;
    parts_arguments arguments = {.parts = parts,
                                 .to = to->data,
                                 .count = count,
                                 .length = length,
                                 .elements = to->rows * to->columns,
                                 .columns = to->columns,
                                 .to_stride = to->stride,
                                 .add = add};
    cuda_launch launch = {
        .kernel = cuda_kernel_add_parts,
        .blocks = {(arguments.elements + PARTS_COLUMNS - 1) / PARTS_COLUMNS, 1, 1},
        .threads = PARTS_THREADS,
        .arguments = &arguments};
    return cuda_launch_kernel(dev, &launch, error);
}

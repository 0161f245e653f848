#include "device/cuda/product/cuda_column_sums.h"

#include "base/checked.h"
#include "device/cuda/cuda_launch.h"

static int64_t parts_of(int64_t rows) {
    return (rows + COLUMN_SUMS_ROWS - 1) / COLUMN_SUMS_ROWS;
}

static int64_t blocks_of(int64_t columns) {
    return (columns + COLUMN_SUMS_THREADS - 1) / COLUMN_SUMS_THREADS;
}

int64_t cuda_column_sums_bytes(int64_t rows, int64_t columns) {
    return parts_of(rows) * columns * (int64_t)sizeof(float);
}

static cuda_kernel kernel_of(base_dtype dtype) {
    if (dtype == BASE_FP32) return cuda_kernel_column_sums_fp32;
    return dtype == BASE_BF16 ? cuda_kernel_column_sums_bf16 : cuda_kernel_column_sums_fp16;
}

sifr_status cuda_column_totals(device *dev, const column_totals_arguments *arguments,
                               sifr_error *error) {
    cuda_launch launch = {.kernel = cuda_kernel_column_totals,
                          .blocks = {blocks_of(arguments->columns), 1, 1},
                          .threads = COLUMN_SUMS_THREADS,
                          .arguments = arguments};
    return cuda_launch_kernel(dev, &launch, error);
}

sifr_status cuda_column_sums(device *dev, const device_matrix *from, int64_t chunk, float *parts,
                             float *to, bool accumulate, sifr_error *error) {
    column_sums_arguments sums = {.from = from->data,
                                  .parts = parts,
                                  .rows = from->rows,
                                  .columns = from->columns,
                                  .stride = from->stride};
    cuda_launch launch = {.kernel = kernel_of(from->dtype),
                          .blocks = {blocks_of(from->columns), parts_of(from->rows), 1},
                          .threads = COLUMN_SUMS_THREADS,
                          .arguments = &sums};
    BASE_TRY(cuda_launch_kernel(dev, &launch, error));
    column_totals_arguments totals = {.parts = parts,
                                      .to = to,
                                      .parts_count = parts_of(from->rows),
                                      .columns = from->columns,
                                      .chunk = chunk / COLUMN_SUMS_ROWS,
                                      .accumulate = accumulate};
    return cuda_column_totals(dev, &totals, error);
}

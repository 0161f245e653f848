#include "device/cuda/vector/cuda_clear.h"

#include "device/cuda/vector/clear_arguments.h"

enum { THREADS = 256, EACH = 16, MOST_ROWS = 65535 };

sifr_status cuda_run_clear(device *dev, const device_call *call, sifr_error *error) {
    const device_matrix *y = &call->y;
    bool dense = y->stride == y->columns; /* one row, with no ends of rows in it */
    int64_t size = base_dtype_bytes(y->dtype), all = dense ? 1 : y->rows;
    int64_t bytes = (dense ? y->rows : 1) * y->columns * size;
    for (int64_t row = 0; row < all; row += MOST_ROWS) {
        int64_t rows = all - row < MOST_ROWS ? all - row : MOST_ROWS;
        clear_arguments arguments = {.y = (unsigned char *)y->data + row * y->stride * size,
                                     .rows = rows,
                                     .bytes = bytes,
                                     .stride = y->stride * size};
        cuda_launch launch = {.kernel = cuda_kernel_clear,
                              .blocks = {(bytes + THREADS * EACH - 1) / (THREADS * EACH), rows, 1},
                              .threads = THREADS,
                              .arguments = &arguments};
        BASE_TRY(cuda_launch_kernel(dev, &launch, error));
    }
    return SIFR_OK;
}

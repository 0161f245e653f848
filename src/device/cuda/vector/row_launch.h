/* What the host's sides of kernels on rows share. */
#ifndef CUDA_ROW_LAUNCH_H
#define CUDA_ROW_LAUNCH_H

#include "base/checked.h"
#include "device/cuda/cuda_launch.h"

enum { ROW_LAUNCH_PIECE = 8 }; /* ROW_PIECE of the kernels */

/* The kernel for a type: kernel_list.h has the three of a kernel one after the other. */
static inline cuda_kernel cuda_kernel_of(cuda_kernel fp32, base_dtype dtype) {
    return (cuda_kernel)((int)fp32 + (dtype == BASE_BF16 ? 1 : dtype == BASE_FP16 ? 2 : 0));
}

/* Whether pieces of its rows, counted from their starts, are aligned to 16 bytes; a matrix that is
 * not there does not matter. */
static inline bool cuda_rows_wide(const device_matrix *m) {
    int64_t size = base_dtype_bytes(m->dtype);
    return m->dtype == BASE_NONE ||
           ((uintptr_t)m->data % 16 == 0 && (m->rows == 1 || m->stride * size % 16 == 0));
}

static inline uint32_t cuda_row_pieces(int64_t columns) {
    return (uint32_t)((columns + ROW_LAUNCH_PIECE - 1) / ROW_LAUNCH_PIECE);
}

/* A grid of one thread a piece: place_of_thread in row_pieces.h. */
static inline sifr_status cuda_launch_pieces(device *dev, cuda_kernel kernel, int64_t pieces,
                                             int64_t threads, const void *arguments,
                                             sifr_error *error) {
    cuda_launch launch = {.kernel = kernel,
                          .blocks = {(pieces + threads - 1) / threads, 1, 1},
                          .threads = (uint32_t)threads,
                          .arguments = arguments};
    return cuda_launch_kernel(dev, &launch, error);
}

#endif

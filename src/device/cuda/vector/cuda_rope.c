#include "device/cuda/vector/cuda_rope.h"

#include "device/cuda/vector/rope_arguments.h"
#include "device/cuda/vector/row_launch.h"

sifr_status cuda_run_rope(device *dev, const device_call *call, sifr_error *error) {
    bool back = call->kernel == DEVICE_ROPE_BACKWARD, add = back && call->accumulate[0];
    const device_matrix *from = back ? &call->dy : &call->x[0], *table = &call->x[2];
    const device_matrix *to = back ? &call->dx[0] : &call->y;
    int64_t dim = call->attributes.rope.head_dim, half = table->columns / 2;
    uint32_t rotated = cuda_row_pieces(half), staying = cuda_row_pieces(dim - 2 * half);
    if (from->data == to->data && !add) staying = 0; /* they are there */
    rope_arguments arguments = {.from = from->data,
                                .positions = call->x[1].data,
                                .table = table->data,
                                .to = to->data,
                                .rows = from->rows,
                                .from_stride = from->stride,
                                .to_stride = to->stride,
                                .positions_stride = call->x[1].stride,
                                .table_stride = table->stride,
                                .heads = (uint32_t)call->attributes.rope.heads,
                                .head_dim = (uint32_t)dim,
                                .half = (uint32_t)half,
                                .rotated_pieces = rotated,
                                .head_pieces = rotated + staying,
                                .interleaved = call->attributes.rope.interleaved,
                                .wide = cuda_rows_wide(from) && cuda_rows_wide(to) &&
                                        cuda_rows_wide(table) && dim % ROW_LAUNCH_PIECE == 0 &&
                                        half % ROW_LAUNCH_PIECE == 0,
                                .back = back,
                                .add = add};
    return cuda_launch_pieces(dev, cuda_kernel_of(cuda_kernel_rope_fp32, from->dtype),
                              from->rows * arguments.heads * arguments.head_pieces, ROPE_THREADS,
                              &arguments, error);
}

#include "device/cuda/vector/cuda_moves.h"

#include "device/cuda/vector/moves_arguments.h"
#include "device/cuda/vector/row_launch.h"

/* Copies rows of w0 to y in the widest units that fit both. */
static sifr_status gather(device *dev, const device_call *call, const int32_t *ids,
                          int64_t ids_stride, int32_t first, sifr_error *error) {
    const device_matrix *table = &call->w[0], *y = &call->y;
    int64_t size = base_dtype_bytes(y->dtype), unit = size;
    if (cuda_rows_wide(table) && cuda_rows_wide(y) && y->columns * size % 16 == 0) unit = 16;
    gather_arguments arguments = {.table = table->data,
                                  .ids = ids,
                                  .to = y->data,
                                  .rows = y->rows,
                                  .ids_stride = ids_stride,
                                  .table_stride = table->stride * size / unit,
                                  .to_stride = y->stride * size / unit,
                                  .units = (uint32_t)(y->columns * size / unit),
                                  .first = first};
    cuda_kernel kernel = unit == 16  ? cuda_kernel_gather_16
                         : unit == 4 ? cuda_kernel_gather_4
                                     : cuda_kernel_gather_2;
    return cuda_launch_pieces(dev, kernel, y->rows * arguments.units, MOVES_THREADS, &arguments,
                              error);
}

sifr_status cuda_run_embedding(device *dev, const device_call *call, sifr_error *error) {
    return gather(dev, call, call->x[0].data, call->x[0].stride, call->attributes.embedding.first,
                  error);
}

sifr_status cuda_run_rows(device *dev, const device_call *call, sifr_error *error) {
    return gather(dev, call, NULL, 0, 0, error);
}

sifr_status cuda_run_rows_backward(device *dev, const device_call *call, sifr_error *error) {
    const device_matrix *dy = &call->dy, *dw = &call->dw[0];
    row_gradient_arguments arguments = {.from = dy->data,
                                        .to = dw->data,
                                        .rows = dy->rows,
                                        .columns = dy->columns,
                                        .from_stride = dy->stride,
                                        .to_stride = dw->stride,
                                        .pieces = cuda_row_pieces(dy->columns),
                                        .wide = cuda_rows_wide(dy) && cuda_rows_wide(dw),
                                        .add = call->accumulate_dw};
    return cuda_launch_pieces(dev, cuda_kernel_of(cuda_kernel_row_gradient_fp32, dy->dtype),
                              dy->rows * arguments.pieces, MOVES_THREADS, &arguments, error);
}

sifr_status cuda_run_split_qkv(device *dev, const device_call *call, sifr_error *error) {
    bool back = call->kernel == DEVICE_SPLIT_QKV_BACKWARD;
    const device_matrix *from = back ? &call->dy : &call->x[0];
    const device_matrix *to = back ? &call->dx[0] : &call->y;
    int64_t runs = (int64_t)call->attributes.split_qkv.groups * call->attributes.split_qkv.parts;
    int64_t width = from->columns / runs;
    split_qkv_arguments arguments = {.from = from->data,
                                     .to = to->data,
                                     .rows = from->rows,
                                     .width = width,
                                     .from_stride = from->stride,
                                     .to_stride = to->stride,
                                     .groups = (uint32_t)call->attributes.split_qkv.groups,
                                     .parts = (uint32_t)call->attributes.split_qkv.parts,
                                     .run_pieces = cuda_row_pieces(width),
                                     .wide = cuda_rows_wide(from) && cuda_rows_wide(to) &&
                                             width % ROW_LAUNCH_PIECE == 0,
                                     .back = back,
                                     .add = back && call->accumulate[0]};
    return cuda_launch_pieces(dev, cuda_kernel_of(cuda_kernel_split_qkv_fp32, from->dtype),
                              from->rows * runs * arguments.run_pieces, MOVES_THREADS, &arguments,
                              error);
}

sifr_status cuda_run_unfold(device *dev, const device_call *call, sifr_error *error) {
    bool back = call->kernel == DEVICE_UNFOLD_BACKWARD;
    const device_matrix *from = back ? &call->dy : &call->x[0], *segments = &call->x[1];
    const device_matrix *to = back ? &call->dx[0] : &call->y;
    unfold_arguments arguments = {.from = from->data,
                                  .segments = segments->dtype == BASE_NONE ? NULL : segments->data,
                                  .to = to->data,
                                  .columns = back ? to->columns : from->columns,
                                  .length = call->attributes.unfold.length,
                                  .from_stride = from->stride,
                                  .to_stride = to->stride,
                                  .segments_stride = segments->stride,
                                  .size = call->attributes.unfold.size,
                                  .add = back && call->accumulate[0]};
    cuda_launch launch = {
        .kernel = cuda_kernel_of(back ? cuda_kernel_unfold_backward_fp32 : cuda_kernel_unfold_fp32,
                                 from->dtype),
        .blocks = {from->rows, 1, 1},
        .threads = MOVES_THREADS,
        .arguments = &arguments,
    };
    return cuda_launch_kernel(dev, &launch, error);
}

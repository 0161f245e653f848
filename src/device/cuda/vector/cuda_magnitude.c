#include "device/cuda/vector/cuda_magnitude.h"

#include "device/cuda/vector/magnitude_arguments.h"
#include "device/cuda/vector/packs_arguments.h"
#include "device/cuda/vector/row_launch.h"

static sifr_status find_norms(device *dev, const device_call *call, sifr_error *error) {
    const device_matrix *w = &call->w[0], *a = &call->x[1], *b = &call->x[2];
    magnitude_norms_arguments arguments = {
        .w = w->data,
        .a = a->data,
        .b = b->data,
        .norms = call->saved[0].data,
        .in = a->columns,
        .out = b->rows,
        .rank = a->rows,
        .w_stride = w->stride,
        .a_stride = a->stride,
        .b_stride = b->stride,
        .scale = call->attributes.magnitude.scale,
        .transposed = call->attributes.magnitude.transposed,
        .wide = cuda_rows_wide(w) && cuda_rows_wide(a),
    };
    cuda_launch launch = {.kernel = cuda_kernel_of(cuda_kernel_magnitude_norms_fp32, w->dtype),
                          .blocks = {(b->rows + NORMS_EACH - 1) / NORMS_EACH, 1, 1},
                          .threads = NORMS_WARPS * MAGNITUDE_LANES,
                          .arguments = &arguments};
    return cuda_launch_kernel(dev, &launch, error);
}

static sifr_status scale_rows(device *dev, const device_call *call, const device_matrix *from,
                              const device_matrix *to, bool add, sifr_error *error) {
    const device_matrix *m = &call->w[1], *bias = &call->x[3];
    magnitude_scale_arguments arguments = {
        .from = from->data,
        .magnitudes = m->data,
        .bias = bias->dtype == BASE_NONE || to != &call->y ? NULL : bias->data,
        .norms = call->saved[0].data,
        .to = to->data,
        .rows = from->rows,
        .columns = from->columns,
        .from_stride = from->stride,
        .to_stride = to->stride,
        .add = add,
    };
    int64_t groups = (from->rows + MAGNITUDE_ROWS - 1) / MAGNITUDE_ROWS;
    int64_t packs = (from->columns + PACK - 1) / PACK;
    return cuda_launch_pieces(dev, cuda_kernel_of(cuda_kernel_magnitude_scale_fp32, from->dtype),
                              groups * packs, PACK_THREADS, &arguments, error);
}

static sifr_status sum_columns(device *dev, const device_call *call, sifr_error *error) {
    const device_matrix *x = &call->x[0], *dy = &call->dy;
    magnitude_sums_arguments arguments = {.x = x->data,
                                          .dy = dy->data,
                                          .norms = call->saved[0].data,
                                          .to = call->dw[1].data,
                                          .rows = x->rows,
                                          .columns = x->columns,
                                          .x_stride = x->stride,
                                          .dy_stride = dy->stride,
                                          .add = call->accumulate_dw};
    cuda_launch launch = {
        .kernel = cuda_kernel_of(cuda_kernel_magnitude_sums_fp32, x->dtype),
        .blocks = {(x->columns + MAGNITUDE_COLUMNS - 1) / MAGNITUDE_COLUMNS, 1, 1},
        .threads = MAGNITUDE_WARPS * MAGNITUDE_COLUMNS,
        .arguments = &arguments};
    return cuda_launch_kernel(dev, &launch, error);
}

sifr_status cuda_run_magnitude(device *dev, const device_call *call, sifr_error *error) {
    BASE_TRY(find_norms(dev, call, error));
    return scale_rows(dev, call, &call->x[0], &call->y, false, error);
}

sifr_status cuda_run_magnitude_backward(device *dev, const device_call *call, sifr_error *error) {
    if (call->dx[0].dtype != BASE_NONE)
        BASE_TRY(scale_rows(dev, call, &call->dy, &call->dx[0], call->accumulate[0], error));
    return call->dw[1].dtype == BASE_NONE ? SIFR_OK : sum_columns(dev, call, error);
}

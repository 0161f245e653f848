#include "device/cuda/head/cuda_head_targets.h"

#include "device/check/operands.h"
#include "device/cuda/head/targets_arguments.h"
#include "device/cuda/vector/cuda_parts.h"
#include "device/cuda/vector/row_launch.h"

/* Rows of a chunk; the fewest rows of a slice of a chunk; the most bytes of slices' parts, unless
 * it is one slice. All fix the order of sums. */
enum { CHUNK_ROWS = 2048, SLICE_ROWS = 64, PART_BYTES = 16 << 20 };

static bool is_backward(const device_call *call) {
    return call->kernel == DEVICE_HEAD_REGRESSION_BACKWARD ||
           call->kernel == DEVICE_HEAD_MULTILABEL_BACKWARD;
}

static int64_t part_length(const device_call *call) {
    return call->w[0].rows * (call->w[0].columns + 1);
}

static int64_t slices_of(const device_call *call) {
    int64_t rows = base_min_i64(CHUNK_ROWS, call->x[0].rows);
    int64_t most = PART_BYTES / (int64_t)sizeof(float) / part_length(call);
    return base_max_i64(1, base_min_i64(most, (rows + SLICE_ROWS - 1) / SLICE_ROWS));
}

typedef struct targets_places {
    int64_t gradients, parts, bytes;
} targets_places;

static targets_places places_of(const device_call *call) {
    targets_places places = {0};
    int64_t rows = base_min_i64(CHUNK_ROWS, call->x[0].rows), size = (int64_t)sizeof(float);
    if (!is_backward(call)) return places;
    places.gradients = device_reserve(&places.bytes, rows * call->w[0].rows * size);
    places.parts = device_reserve(&places.bytes, slices_of(call) * part_length(call) * size);
    return places;
}

sifr_status cuda_prepare_head_targets(device *dev, device_call *call, sifr_error *error) {
    (void)dev;
    (void)error;
    call->scratch_bytes = places_of(call).bytes;
    return SIFR_OK;
}

/* Rows first ... of a call. */
typedef struct targets_chunk {
    device *dev;
    const device_call *call;
    int64_t first, rows;
    const float *targets;
    float *gradients, *parts;
} targets_chunk;

static const void *row_of(const device_matrix *m, int64_t row) {
    return (const char *)m->data + row * m->stride * base_dtype_bytes(m->dtype);
}

static sifr_status run_losses(const targets_chunk *c, sifr_error *error) {
    const device_matrix *x = &c->call->x[0], *w = &c->call->w[0], *bias = &c->call->w[1];
    device_kernel kernel = c->call->kernel;
    targets_arguments arguments = {.x = row_of(x, c->first),
                                   .w = w->data,
                                   .bias = bias->dtype == BASE_NONE ? NULL : bias->data,
                                   .targets = c->targets,
                                   .step = c->call->step,
                                   .loss = (float *)c->call->y.data + c->first * c->call->y.stride,
                                   .gradients = c->gradients,
                                   .rows = c->rows,
                                   .width = x->columns,
                                   .columns = w->rows,
                                   .x_stride = x->stride,
                                   .w_stride = w->stride,
                                   .targets_stride = c->call->x[1].stride,
                                   .loss_stride = c->call->y.stride,
                                   .multilabel = kernel == DEVICE_HEAD_MULTILABEL ||
                                                 kernel == DEVICE_HEAD_MULTILABEL_BACKWARD,
                                   .wide = cuda_rows_wide(x) && cuda_rows_wide(w)};
    cuda_launch launch = {.kernel = cuda_kernel_of(cuda_kernel_targets_rows_fp32, x->dtype),
                          .blocks = {(c->rows + TARGETS_WARPS - 1) / TARGETS_WARPS, 1, 1},
                          .threads = TARGETS_THREADS,
                          .arguments = &arguments};
    return cuda_launch_kernel(c->dev, &launch, error);
}

static sifr_status run_dx(const targets_chunk *c, sifr_error *error) {
    const device_matrix *w = &c->call->w[0], *dx = &c->call->dx[0];
    if (dx->dtype == BASE_NONE) return SIFR_OK;
    targets_dx_arguments arguments = {.w = w->data,
                                      .targets = c->targets,
                                      .gradients = c->gradients,
                                      .dx = (char *)dx->data +
                                            c->first * dx->stride * base_dtype_bytes(dx->dtype),
                                      .rows = c->rows,
                                      .width = dx->columns,
                                      .columns = w->rows,
                                      .w_stride = w->stride,
                                      .targets_stride = c->call->x[1].stride,
                                      .dx_stride = dx->stride,
                                      .pieces = cuda_row_pieces(dx->columns),
                                      .wide = cuda_rows_wide(dx) && cuda_rows_wide(w),
                                      .add = c->call->accumulate[0]};
    return cuda_launch_pieces(c->dev, cuda_kernel_of(cuda_kernel_targets_dx_fp32, dx->dtype),
                              c->rows * arguments.pieces, TARGETS_THREADS, &arguments, error);
}

static sifr_status run_dw(const targets_chunk *c, sifr_error *error) {
    const device_matrix *x = &c->call->x[0], *dw = c->call->dw;
    int64_t columns = c->call->w[0].rows, each_tile = TARGETS_THREADS * ROW_LAUNCH_PIECE;
    int64_t slices = slices_of(c->call), tiles = (x->columns + each_tile - 1) / each_tile;
    bool add = c->call->accumulate_dw || c->first > 0;
    if (dw[0].dtype == BASE_NONE && dw[1].dtype == BASE_NONE) return SIFR_OK;
    targets_dw_arguments arguments = {.x = row_of(x, c->first),
                                      .targets = c->targets,
                                      .gradients = c->gradients,
                                      .parts = c->parts,
                                      .rows = c->rows,
                                      .each = (c->rows + slices - 1) / slices,
                                      .width = x->columns,
                                      .columns = columns,
                                      .x_stride = x->stride,
                                      .targets_stride = c->call->x[1].stride,
                                      .tiles = (uint32_t)tiles,
                                      .wide = cuda_rows_wide(x),
                                      .wants_dw = dw[0].dtype != BASE_NONE};
    cuda_launch launch = {.kernel = cuda_kernel_of(cuda_kernel_targets_dw_fp32, x->dtype),
                          .blocks = {columns * tiles, slices, 1},
                          .threads = TARGETS_THREADS,
                          .arguments = &arguments};
    BASE_TRY(cuda_launch_kernel(c->dev, &launch, error));
    int64_t length = part_length(c->call);
    BASE_TRY(cuda_add_parts(c->dev, c->parts, slices, length, &dw[0], add, error));
    return cuda_add_parts(c->dev, c->parts + columns * x->columns, slices, length, &dw[1], add,
                          error);
}

sifr_status cuda_run_head_targets(device *dev, const device_call *call, sifr_error *error) {
    targets_places places = places_of(call);
    bool backward = is_backward(call);
    targets_chunk c = {.dev = dev, .call = call};
    if (backward) {
        c.gradients = (float *)(void *)((char *)call->scratch + places.gradients);
        c.parts = (float *)(void *)((char *)call->scratch + places.parts);
    }
    for (; c.first < call->x[0].rows; c.first += CHUNK_ROWS) {
        c.rows = base_min_i64(CHUNK_ROWS, call->x[0].rows - c.first);
        c.targets = row_of(&call->x[1], c.first);
        BASE_TRY(run_losses(&c, error));
        if (!backward) continue;
        BASE_TRY(run_dx(&c, error));
        BASE_TRY(run_dw(&c, error));
    }
    return SIFR_OK;
}

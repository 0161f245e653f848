#include "device/cuda/vector/cuda_norm.h"

#include "device/cuda/vector/cuda_parts.h"
#include "device/cuda/vector/norm_arguments.h"
#include "device/cuda/vector/row_launch.h"

/* How units are spread over warps and blocks. */
typedef struct norm_layout {
    int64_t groups, columns, units;
    bool few; /* columns: a warp has a unit, else a block */
} norm_layout;

static norm_layout layout_of(const device_call *call) {
    int64_t columns = device_norm_columns(call), groups = call->x[0].columns / columns;
    return (norm_layout){groups, columns, call->x[0].rows * groups, columns <= NORM_FEW};
}

static uint32_t warps_of(const norm_layout *layout) {
    return layout->few ? 1 : NORM_WARPS;
}

/* Groups begin at multiples of their columns. */
static bool is_wide(const device_matrix *m, const norm_layout *layout) {
    return cuda_rows_wide(m) && (layout->groups == 1 || layout->columns % ROW_LAUNCH_PIECE == 0);
}

/* A weight that is missing reads as 0. */
static bool adds_one(const device_call *call) {
    return call->attributes.norm.plus_one || call->w[0].dtype == BASE_NONE;
}

static void take_columns(device_matrix *m, int64_t group, int64_t columns) {
    if (m->dtype == BASE_NONE) return;
    m->data = (char *)m->data + group * columns * base_dtype_bytes(m->dtype);
    m->columns = columns;
}

static void take_row(device_matrix *m, int64_t row) {
    if (m->dtype == BASE_NONE) return;
    m->data = (char *)m->data + row * m->stride * base_dtype_bytes(m->dtype);
    m->rows = 1;
}

/* The call of a group whose weights are its own: a norm of whole rows. */
static device_call call_of_group(const device_call *call, int64_t group) {
    device_call one = *call;
    int64_t columns = device_norm_columns(call);
    device_matrix *values[] = {&one.x[0], &one.y, &one.dy, &one.dx[0]};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        take_columns(values[i], group, columns);
    take_columns(&one.saved[0], group, call->saved[0].columns / call->attributes.norm.groups);
    for (int w = 0; w < 2; w++) {
        take_row(&one.w[w], group);
        take_row(&one.dw[w], group);
    }
    one.attributes.norm.groups = 1;
    return one;
}

typedef sifr_status (*norm_run)(device *dev, const device_call *call, sifr_error *error);

/* One after the other where each group has weights of its own. */
static sifr_status run_groups(device *dev, const device_call *call, norm_run run,
                              sifr_error *error) {
    if (call->w[0].rows <= 1) return run(dev, call, error);
    for (int64_t g = 0; g < call->w[0].rows; g++) {
        device_call one = call_of_group(call, g);
        BASE_TRY(run(dev, &one, error));
    }
    return SIFR_OK;
}

static sifr_status run_norm(device *dev, const device_call *call, sifr_error *error) {
    const device_matrix *x = &call->x[0], *y = &call->y, *bias = &call->w[1];
    norm_layout layout = layout_of(call);
    norm_arguments arguments = {.x = x->data,
                                .w = call->w[0].data,
                                .bias = bias->dtype == BASE_NONE ? NULL : bias->data,
                                .y = y->data,
                                .saved = call->saved[0].data,
                                .units = layout.units,
                                .groups = layout.groups,
                                .columns = layout.columns,
                                .x_stride = x->stride,
                                .y_stride = y->stride,
                                .saved_stride = call->saved[0].stride,
                                .epsilon = call->attributes.norm.epsilon,
                                .warps = warps_of(&layout),
                                .layer = call->kernel == DEVICE_LAYER_NORM,
                                .plus_one = adds_one(call),
                                .wide = is_wide(x, &layout) && is_wide(y, &layout) &&
                                        cuda_rows_wide(&call->w[0]) && cuda_rows_wide(bias)};
    int64_t blocks = layout.few ? (layout.units + NORM_WARPS - 1) / NORM_WARPS : layout.units;
    cuda_launch launch = {.kernel = cuda_kernel_of(cuda_kernel_norm_fp32, x->dtype),
                          .blocks = {blocks, 1, 1},
                          .threads = NORM_THREADS,
                          .arguments = &arguments};
    return cuda_launch_kernel(dev, &launch, error);
}

sifr_status cuda_run_norm(device *dev, const device_call *call, sifr_error *error) {
    return run_groups(dev, call, run_norm, error);
}

/* Weight gradients that are wanted: none, that of w0, or that of w0 and the bias. */
static uint32_t gradients_of(const device_call *call) {
    if (call->dw[1].dtype != BASE_NONE) return 2;
    return call->dw[0].dtype != BASE_NONE ? 1 : 0;
}

static int64_t units_of_block(const norm_layout *layout) {
    return NORM_UNITS * (layout->few ? NORM_WARPS : 1);
}

static int64_t backward_blocks(const norm_layout *layout) {
    int64_t units = units_of_block(layout);
    return (layout->units + units - 1) / units;
}

sifr_status cuda_prepare_norm_backward(device *dev, device_call *call, sifr_error *error) {
    device_call one = call->w[0].rows > 1 ? call_of_group(call, 0) : *call;
    norm_layout layout = layout_of(&one);
    (void)dev;
    (void)error;
    call->scratch_bytes =
        backward_blocks(&layout) * gradients_of(call) * layout.columns * (int64_t)sizeof(float);
    return SIFR_OK;
}

/* Launches with the weight gradients of as many columns as fit at a time. The first one writes
 * dx. */
static sifr_status launch_backward(device *dev, const device_call *call,
                                   norm_backward_arguments *arguments, sifr_error *error) {
    norm_layout layout = layout_of(call);
    int64_t whole = base_ceil_to(layout.columns, ROW_LAUNCH_PIECE), most = whole;
    uint32_t holders = layout.few ? NORM_WARPS : 1;
    if (arguments->gradients > 0)
        most = NORM_HELD / (holders * arguments->gradients) / ROW_LAUNCH_PIECE * ROW_LAUNCH_PIECE;
    for (int64_t first = 0; first < whole; first += most) {
        arguments->first = first;
        arguments->held = arguments->gradients > 0 ? base_min_i64(most, whole - first) : 0;
        int64_t floats = (int64_t)holders * arguments->gradients * arguments->held;
        cuda_launch launch = {.kernel =
                                  cuda_kernel_of(cuda_kernel_norm_backward_fp32, call->x[0].dtype),
                              .blocks = {backward_blocks(&layout), 1, 1},
                              .threads = NORM_THREADS,
                              .shared_bytes = (uint32_t)(floats * (int64_t)sizeof(float)),
                              .arguments = arguments};
        BASE_TRY(cuda_launch_kernel(dev, &launch, error));
        arguments->dx = NULL;
    }
    return SIFR_OK;
}

/* By chunks of tokens, so that tiles do not change the order. A chunk has whole blocks. */
static sifr_status add_weights(device *dev, const device_call *call, const float *parts,
                               sifr_error *error) {
    norm_layout layout = layout_of(call);
    int64_t length = gradients_of(call) * layout.columns, blocks = backward_blocks(&layout);
    int64_t most = device_token_chunk(dev) * layout.groups / units_of_block(&layout);
    for (int64_t first = 0; first < blocks; first += most) {
        int64_t count = base_min_i64(most, blocks - first);
        for (uint32_t w = 0; w < gradients_of(call); w++)
            BASE_TRY(cuda_add_parts(dev, parts + first * length + w * layout.columns, count, length,
                                    &call->dw[w], first > 0 || call->accumulate_dw, error));
    }
    return SIFR_OK;
}

static sifr_status run_norm_backward(device *dev, const device_call *call, sifr_error *error) {
    const device_matrix *x = &call->x[0], *dy = &call->dy, *dx = &call->dx[0];
    norm_layout layout = layout_of(call);
    norm_backward_arguments arguments = {.x = x->data,
                                         .w = call->w[0].data,
                                         .dy = dy->data,
                                         .saved = call->saved[0].data,
                                         .dx = dx->dtype == BASE_NONE ? NULL : dx->data,
                                         .parts = call->scratch,
                                         .units = layout.units,
                                         .groups = layout.groups,
                                         .columns = layout.columns,
                                         .x_stride = x->stride,
                                         .dy_stride = dy->stride,
                                         .dx_stride = dx->stride,
                                         .saved_stride = call->saved[0].stride,
                                         .warps = warps_of(&layout),
                                         .gradients = gradients_of(call),
                                         .layer = call->kernel == DEVICE_LAYER_NORM_BACKWARD,
                                         .plus_one = adds_one(call),
                                         .wide = is_wide(x, &layout) && is_wide(dy, &layout) &&
                                                 is_wide(dx, &layout) &&
                                                 cuda_rows_wide(&call->w[0]),
                                         .add = call->accumulate[0]};
    if (!arguments.dx && arguments.gradients == 0) return SIFR_OK;
    BASE_TRY(launch_backward(dev, call, &arguments, error));
    return add_weights(dev, call, arguments.parts, error);
}

sifr_status cuda_run_norm_backward(device *dev, const device_call *call, sifr_error *error) {
    return run_groups(dev, call, run_norm_backward, error);
}

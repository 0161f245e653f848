#include "device/cpu/head/head_targets.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "device/check/operands.h"
#include "device/cpu/head/head_loss.h"
#include "device/cpu/head/kernels_loss.h"

enum { ROW_TILE = 4, WIDTH_TILE = 512 };

static bool is_backward(const device_call *call) {
    return call->kernel == DEVICE_HEAD_REGRESSION_BACKWARD ||
           call->kernel == DEVICE_HEAD_MULTILABEL_BACKWARD;
}

static int64_t chunk_of(const device_call *call) {
    return base_min_i64(CPU_LOSS_ROWS, call->x[0].rows);
}

sifr_status cpu_prepare_head_targets(device *dev, device_call *call, sifr_error *error) {
    int64_t rows = call->x[0].rows, columns = call->w[0].rows, bytes = 0;
    (void)dev;
    (void)error;
    device_reserve(&bytes, rows * (int64_t)sizeof(int32_t));
    device_reserve(&bytes, chunk_of(call) * columns * (int64_t)sizeof(float));
    call->scratch_bytes = bytes;
    return SIFR_OK;
}

/* Lists the rows with a target, and clears the results of the others. */
static int64_t list_rows(const device_call *call, int32_t *rows) {
    const device_matrix *targets = &call->x[1], *dx = &call->dx[0];
    int64_t count = 0, element = base_dtype_bytes(dx->dtype);
    for (int64_t r = 0; r < targets->rows; r++) {
        if (!isnan(((const float *)targets->data)[r * targets->stride])) {
            rows[count++] = (int32_t)r;
            continue;
        }
        ((float *)call->y.data)[r * call->y.stride] = 0.0f;
        if (is_backward(call) && dx->dtype != BASE_NONE && !call->accumulate[0])
            memset((char *)dx->data + r * dx->stride * element, 0, (size_t)(dx->columns * element));
    }
    return count;
}

typedef struct targets_run {
    cpu_targets chunk;
    const cpu_loss_kernels *kernels;
} targets_run;

static void rows_task(void *context, int64_t task, int thread) {
    (void)thread;
    const targets_run *run = context;
    int64_t first = task * ROW_TILE;
    run->kernels->targets_rows(&run->chunk, first,
                               base_min_i64(ROW_TILE, run->chunk.count - first));
}

static int64_t width_tiles(const device_call *call) {
    return (call->x[0].columns + WIDTH_TILE - 1) / WIDTH_TILE;
}

static void weights_task(void *context, int64_t task, int thread) {
    (void)thread;
    const targets_run *run = context;
    const device_call *call = run->chunk.call;
    int64_t tiles = width_tiles(call), at = task % tiles * WIDTH_TILE;
    run->kernels->targets_weights(&run->chunk, task / tiles, at,
                                  base_min_i64(WIDTH_TILE, call->x[0].columns - at));
}

sifr_status cpu_run_head_targets(device *dev, const device_call *call, sifr_error *error) {
    int32_t *rows = call->scratch;
    int64_t count = list_rows(call, rows), gradients = 0, chunk = chunk_of(call);
    (void)error;
    device_reserve(&gradients, call->x[0].rows * (int64_t)sizeof(int32_t));
    targets_run run = {.kernels = cpu_of(dev)->set->loss,
                       .chunk = {.call = call,
                                 .gradients = (float *)(void *)((char *)call->scratch + gradients),
                                 .multilabel = call->kernel == DEVICE_HEAD_MULTILABEL ||
                                               call->kernel == DEVICE_HEAD_MULTILABEL_BACKWARD,
                                 .backward = is_backward(call),
                                 .add = call->accumulate_dw}};
    for (int64_t first = 0; first == 0 || first < count; first += chunk) { /* no rows: dw is 0 */
        run.chunk.rows = rows + first;
        run.chunk.count = base_min_i64(chunk, count - first);
        host_parallel(dev->team, (run.chunk.count + ROW_TILE - 1) / ROW_TILE, rows_task, &run);
        if (run.chunk.backward)
            host_parallel(dev->team, call->w[0].rows * width_tiles(call), weights_task, &run);
        run.chunk.add = true;
    }
    return SIFR_OK;
}

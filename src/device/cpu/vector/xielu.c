/* Cuts xIELU into tiles of rows, and adds the gradients of its weights. */
#include "device/cpu/vector/xielu.h"

#include <math.h>

#include "base/checked.h"
#include "base/half.h"
#include "device/cpu/kernels.h"
#include "device/xielu_order.h"

enum { ROWS = 32 };

typedef struct xielu_job {
    void (*kernel)(const cpu_part *part);
    const device_call *call;
    int64_t rows, step;
    float *sums; /* two for each tile; NULL: none */
} xielu_job;

static void run_tile(void *argument, int64_t tile, int thread) {
    const xielu_job *job = argument;
    int64_t first = tile * job->step;
    cpu_part part = {job->call, first, base_min_i64(job->step, job->rows - first), NULL};
    (void)thread;
    if (job->sums) part.sums = job->sums + 2 * tile;
    job->kernel(&part);
}

static int64_t run_tiles(device *dev, const device_call *call, int64_t step, float *sums) {
    xielu_job job = {cpu_of(dev)->set->vectors->xielu, call, call->x[0].rows, step, sums};
    int64_t tiles = (job.rows + step - 1) / step;
    host_parallel(dev->team, tiles, run_tile, &job);
    return tiles;
}

static bool sums_weights(const device_call *call) {
    return call->dw[0].dtype != BASE_NONE || call->dw[1].dtype != BASE_NONE;
}

sifr_status cpu_prepare_xielu_backward(device *dev, device_call *call, sifr_error *error) {
    int64_t tiles = (call->x[0].rows + XIELU_PART - 1) / XIELU_PART;
    (void)dev;
    (void)error;
    call->scratch_bytes = sums_weights(call) ? tiles * 2 * (int64_t)sizeof(float) : 0;
    return SIFR_OK;
}

sifr_status cpu_run_xielu(device *dev, const device_call *call, sifr_error *error) {
    (void)error;
    run_tiles(dev, call, ROWS, NULL);
    return SIFR_OK;
}

static float value_of(const device_matrix *w) {
    if (w->dtype == BASE_BF16) return base_bf16_to_float(*(const uint16_t *)w->data);
    if (w->dtype == BASE_FP16) return base_half_to_float(*(const uint16_t *)w->data);
    return *(const float *)w->data;
}

/* softplus' */
static float slope_at(const device_matrix *w) {
    return (float)(1 / (1 + exp(-(double)value_of(w))));
}

/* Each tile's sum is multiplied before it is added, so that tiles of calls add up alike. */
static void add_sums(const device_call *call, int64_t tiles) {
    const float *sums = call->scratch;
    for (int i = 0; i < 2; i++) {
        if (call->dw[i].dtype == BASE_NONE) continue;
        float *dw = call->dw[i].data, slope = slope_at(&call->w[i]);
        float sum = call->accumulate_dw ? *dw : 0.0f;
        for (int64_t t = 0; t < tiles; t++) sum += slope * sums[2 * t + i];
        *dw = sum;
    }
}

sifr_status cpu_run_xielu_backward(device *dev, const device_call *call, sifr_error *error) {
    bool sums = sums_weights(call);
    (void)error;
    int64_t tiles = run_tiles(dev, call, XIELU_PART, sums ? call->scratch : NULL);
    if (sums) add_sums(call, tiles);
    return SIFR_OK;
}

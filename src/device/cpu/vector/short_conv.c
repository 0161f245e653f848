/* Cuts short convolutions into tiles: of rows, and of columns where tokens are added. */
#include "device/cpu/vector/short_conv.h"

#include "base/checked.h"
#include "device/cpu/kernels.h"
#include "device/cpu/positions.h"

typedef struct conv_job {
    void (*kernel)(const cpu_part *part);
    const device_call *call;
    int64_t total, step;
} conv_job;

static void run_tile(void *argument, int64_t tile, int thread) {
    const conv_job *job = argument;
    int64_t first = tile * job->step;
    cpu_part part = {job->call, first, base_min_i64(job->step, job->total - first), NULL};
    (void)thread;
    job->kernel(&part);
}

static void run_tiles(device *dev, conv_job job) {
    host_parallel(dev->team, (job.total + job.step - 1) / job.step, run_tile, &job);
}

/* A tile turns the weights first, which takes as long as some four rows. */
enum { ROWS = 64, COLUMNS = 64 };

static const cpu_kernels *kernels_of(const device *dev) {
    return cpu_of(dev)->set->vectors;
}

sifr_status cpu_run_short_conv(device *dev, const device_call *call, sifr_error *error) {
    (void)error;
    run_tiles(dev, (conv_job){.kernel = kernels_of(dev)->short_conv,
                              .call = call,
                              .total = call->y.rows,
                              .step = ROWS});
    return SIFR_OK;
}

sifr_status cpu_run_short_conv_backward(device *dev, const device_call *call, sifr_error *error) {
    (void)error;
    if (call->dx[0].dtype != BASE_NONE)
        run_tiles(dev, (conv_job){.kernel = kernels_of(dev)->short_conv,
                                  .call = call,
                                  .total = call->dy.rows,
                                  .step = ROWS});
    if (call->dw[0].dtype != BASE_NONE || call->dw[1].dtype != BASE_NONE)
        run_tiles(dev, (conv_job){.kernel = kernels_of(dev)->short_conv_weights,
                                  .call = call,
                                  .total = call->dy.columns,
                                  .step = COLUMNS});
    return SIFR_OK;
}

sifr_status cpu_run_short_conv_cached(device *dev, const device_call *call, sifr_error *error) {
    bool together = call->attributes.short_conv.sequences == 1;
    BASE_TRY(cpu_check_positions(call, &call->x[1], together, error));
    run_tiles(dev, (conv_job){.kernel = kernels_of(dev)->short_conv_cached,
                              .call = call,
                              .total = call->x[0].rows,
                              .step = ROWS});
    /* All rows have read the state. */
    run_tiles(dev, (conv_job){.kernel = kernels_of(dev)->short_conv_state,
                              .call = call,
                              .total = call->x[0].columns,
                              .step = 8 * COLUMNS});
    return SIFR_OK;
}

#include "device/cpu/vector/exact_squares.h"

#include "base/checked.h"
#include "device/cpu/cpu.h"

enum { TILE = 1 << 16 };

typedef struct squares_job {
    const cpu_kernels *kernels;
    const device_matrix *x;
    base_exact_sum *sum;
} squares_job;

static void run_tile(void *argument, int64_t tile, int thread) {
    const squares_job *job = argument;
    int64_t first = tile * TILE;
    base_exact_sum own = {0};
    (void)thread;
    job->kernels->exact_squares(job->x, first, base_min_i64(TILE, job->x->columns - first), &own);
    base_exact_settle(&own);
    exact_merge_parallel(job->sum, &own);
}

sifr_status cpu_run_exact_squares(device *dev, const device_call *call, sifr_error *error) {
    const device_matrix *x = &call->x[0];
    squares_job job = {cpu_of(dev)->set->vectors, x, call->y.data};
    (void)error;
    host_parallel(dev->team, (x->columns + TILE - 1) / TILE, run_tile, &job);
    base_exact_settle(job.sum);
    return SIFR_OK;
}

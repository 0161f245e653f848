#include "device/cpu/delta/delta.h"

#include "device/check/operands.h"
#include "device/cpu/positions.h"

typedef struct delta_run {
    const device_call *call;
    const cpu_delta_kernels *kernels;
    int64_t floats; /* of scratch, per thread */
    double *sums;   /* behind it: for each sequence and value head two */
} delta_run;

static bool is_backward(const device_call *call) {
    return call->kernel == DEVICE_DELTA_BACKWARD;
}

static int64_t thread_bytes(const device *dev, const device_call *call) {
    return cpu_of(dev)->set->delta->floats(call) * device_threads(dev) * (int64_t)sizeof(float);
}

sifr_status cpu_prepare_delta(device *dev, device_call *call, sifr_error *error) {
    const device_delta_attributes *a = &call->attributes.delta;
    (void)error;
    int64_t sums = is_backward(call) ? 2 * a->sequences * a->value_heads : 0;
    call->scratch_bytes =
        thread_bytes(dev, call) + base_ceil_to(sums * (int64_t)sizeof(double), 64);
    return SIFR_OK;
}

sifr_status cpu_prepare_delta_cached(device *dev, device_call *call, sifr_error *error) {
    (void)error;
    call->scratch_bytes = thread_bytes(dev, call);
    return SIFR_OK;
}

static void run_head(void *context, int64_t task, int thread) {
    const delta_run *run = context;
    const device_delta_attributes *a = &run->call->attributes.delta;
    cpu_delta d = {.call = run->call,
                   .sequence = task / a->key_heads,
                   .head = task % a->key_heads,
                   .scratch = (float *)run->call->scratch + thread * run->floats};
    if (!is_backward(run->call)) {
        run->kernels->forward(&d);
        return;
    }
    int64_t group = a->value_heads / a->key_heads;
    d.sums = run->sums + 2 * (d.sequence * a->value_heads + d.head * group);
    run->kernels->backward(&d);
}

/* dw0 and dw1 from the sums of sequences, in order. */
static void add_sums(const delta_run *run) {
    const device_call *call = run->call;
    const device_delta_attributes *a = &call->attributes.delta;
    for (int i = 0; i < 2; i++) {
        float *to = call->dw[i].data;
        for (int64_t h = 0; h < a->value_heads && call->dw[i].dtype != BASE_NONE; h++) {
            double sum = 0;
            for (int64_t s = 0; s < a->sequences; s++)
                sum += run->sums[2 * (s * a->value_heads + h) + i];
            to[h] = call->accumulate_dw ? to[h] + (float)sum : (float)sum;
        }
    }
}

static delta_run describe(const device *dev, const device_call *call) {
    const cpu_delta_kernels *kernels = cpu_of(dev)->set->delta;
    return (delta_run){.call = call,
                       .kernels = kernels,
                       .floats = kernels->floats(call),
                       .sums = (double *)(void *)((char *)call->scratch + thread_bytes(dev, call))};
}

sifr_status cpu_run_delta(device *dev, const device_call *call, sifr_error *error) {
    const device_delta_attributes *a = &call->attributes.delta;
    delta_run run = describe(dev, call);
    (void)error;
    host_parallel(dev->team, a->sequences * a->key_heads, run_head, &run);
    if (is_backward(call)) add_sums(&run);
    return SIFR_OK;
}

static void run_step(void *context, int64_t task, int thread) {
    const delta_run *run = context;
    int64_t heads = run->call->attributes.delta.value_heads;
    cpu_delta d = {.call = run->call,
                   .sequence = task / heads,
                   .head = task % heads,
                   .scratch = (float *)run->call->scratch + thread * run->floats};
    run->kernels->step(&d);
}

sifr_status cpu_run_delta_cached(device *dev, const device_call *call, sifr_error *error) {
    const device_delta_attributes *a = &call->attributes.delta;
    delta_run run = describe(dev, call);
    BASE_TRY(cpu_check_positions(call, &call->x[5], a->sequences == 1, error));
    host_parallel(dev->team, a->sequences * a->value_heads, run_step, &run);
    return SIFR_OK;
}

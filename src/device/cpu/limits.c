#include "device/cpu/limits.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "device/cpu/cpu.h"

typedef struct limit_job {
    float (*loop)(int64_t rounds);
    int64_t rounds;
    const cpu_limit_kernels *kernels;
    float *a, *b, *c;
    int64_t count;
    volatile float sink;
} limit_job;

static void run_loop(void *argument, int64_t tile, int thread) {
    limit_job *job = argument;
    float result = job->loop(job->rounds);
    (void)thread;
    if (tile == 0) job->sink = result;
}

/* Operations per second of all threads together: the best of a few short runs. */
static double measure_loop(device *dev, float (*loop)(int64_t), double operations) {
    enum { RUNS = 4 };
    limit_job job = {.loop = loop, .rounds = 20000};
    int threads = device_threads(dev);
    double best = 0;
    for (int run = 0; run < RUNS; run++) {
        double start = base_seconds();
        host_parallel(dev->team, threads, run_loop, &job);
        double seconds = base_seconds() - start;
        double rate = operations * (double)job.rounds * threads / seconds;
        if (rate > best) best = rate;
        if (seconds < 2e-3) job.rounds *= 4;
    }
    return best;
}

enum { TRIAD_TILE = 1 << 16 };

static void run_triad(void *argument, int64_t tile, int thread) {
    const limit_job *job = argument;
    int64_t first = tile * TRIAD_TILE;
    base_assert(first < job->count);
    (void)thread;
    job->kernels->triad(job->a + first, job->b + first, job->c + first,
                        base_min_i64(TRIAD_TILE, job->count - first));
}

sifr_status cpu_measure(device *dev, void *memory, int64_t bytes, device_limits *out,
                        sifr_error *error) {
    const cpu_limit_kernels *kernels = cpu_of(dev)->set->limits;
    void *own = NULL;
    if (!memory) BASE_TRY(device_take(dev, bytes, &own, error));
    float *values = memory ? memory : own;
    int64_t count = base_min_i64(bytes, DEVICE_MEASURE_BYTES) / (3 * (int64_t)sizeof(float));
    count = count / 16 * 16; /* whole vectors */
    limit_job job = {.kernels = kernels,
                     .a = values,
                     .b = values + count,
                     .c = values + 2 * count,
                     .count = count};
    *out = (device_limits){0};
    for (int run = 0; run < 3; run++) {
        double start = base_seconds();
        host_parallel(dev->team, (count + TRIAD_TILE - 1) / TRIAD_TILE, run_triad, &job);
        double rate = 3.0 * (double)count * sizeof(float) / (base_seconds() - start);
        if (rate > out->bytes) out->bytes = rate;
    }
    if (own) device_give(dev, own, bytes);
    out->fp32_operations = measure_loop(dev, kernels->multiply_add, kernels->operations);
    out->bf16_operations = kernels->dot_bf16
                               ? measure_loop(dev, kernels->dot_bf16, kernels->operations_bf16)
                               : out->fp32_operations;
    return SIFR_OK;
}

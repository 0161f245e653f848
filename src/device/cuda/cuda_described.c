/* A GPU that need not be there: plans can be made for it, since the CUDA kernels size their scratch
 * by shapes alone. It has no memory and runs nothing. */
#include "device/cuda/cuda_described.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/heap.h"
#include "device/cuda/cuda_dispatch.h"
#include "device/cuda/cuda_launch.h"

typedef struct described_device {
    cuda_base base;
    device_description gpu;
} described_device;

static const described_device *described_of(const device *dev) {
    return (const described_device *)(const void *)dev;
}

static void close_described(device *dev) {
    host_team_free(dev->team);
    free(dev);
}

static const char *isa(const device *dev) {
    (void)dev;
    return "cuda";
}

static void describe(const device *dev, char *out, size_t size) {
    const device_description *gpu = &described_of(dev)->gpu;
    int used = snprintf(out, size, "cuda, described");
    if (gpu->compute_capability && used < (int)size)
        used += snprintf(out + used, size - (size_t)used, ", compute capability %d.%d",
                         gpu->compute_capability / 10, gpu->compute_capability % 10);
    if (gpu->multiprocessors && used < (int)size)
        snprintf(out + used, size - (size_t)used, ", %d multiprocessors", gpu->multiprocessors);
}

static sifr_status refuse(const char *what, sifr_error *error) {
    return base_fail(error, SIFR_USAGE,
                     "%s: this GPU is only described; steps can be planned for it, and nothing "
                     "runs on it",
                     what);
}

static sifr_status run(device *dev, const device_call *call, sifr_error *error) {
    (void)dev;
    return refuse(device_kernel_name(call->kernel), error);
}

static sifr_status launch(device *dev, const cuda_launch *launch, sifr_error *error) {
    (void)dev;
    return refuse(cuda_kernel_name(launch->kernel), error);
}

static sifr_status measure(device *dev, void *memory, int64_t bytes, device_limits *out,
                           sifr_error *error) {
    (void)dev, (void)memory, (void)bytes, (void)out;
    return refuse("measuring the device", error);
}

static sifr_status take(device *dev, device_memory kind, int64_t bytes, void **out,
                        sifr_error *error) {
    (void)dev, (void)bytes, (void)out;
    return refuse(kind == DEVICE_HOST ? "taking host memory" : "taking device memory", error);
}

static sifr_status take_shared(device *dev, int64_t bytes, void **out, int *file,
                               sifr_error *error) {
    (void)dev, (void)bytes, (void)out, (void)file;
    return refuse("taking shared memory", error);
}

/* Nothing was taken. */
static void give(device *dev, void *block, int64_t bytes) {
    (void)dev, (void)block, (void)bytes;
}

static sifr_status copy(device *dev, void *to, const void *from, int64_t bytes, sifr_error *error) {
    (void)dev, (void)to, (void)from, (void)bytes;
    return refuse("a copy", error);
}

static device_counts count(const device *dev) {
    (void)dev;
    return (device_counts){0};
}

static const device_backend backend = {.hidden = true,
                                       .close = close_described,
                                       .isa = isa,
                                       .describe = describe,
                                       .token_chunk = cuda_token_chunk,
                                       .prepare = cuda_prepare,
                                       .run = run,
                                       .measure = measure,
                                       .take = take,
                                       .take_shared = take_shared,
                                       .give = give,
                                       .copy = copy,
                                       .count = count};

sifr_status cuda_open_described(int threads, const device_description *description, device **out,
                                sifr_error *error) {
    described_device *d;
    BASE_TRY(base_alloc(1, sizeof *d, &d, error));
    sifr_status status = host_team_create(threads, &d->base.device.team, error);
    if (status != SIFR_OK) {
        free(d);
        return status;
    }
    d->gpu = *description;
    d->base.launch = launch;
    d->base.token_chunk = CUDA_TOKEN_CHUNK;
    d->base.device.backend = &backend;
    *out = &d->base.device;
    return SIFR_OK;
}

#include <stdio.h>
#include <stdlib.h>

#include "base/heap.h"
#include "device/cuda/cuda_dispatch.h"
#include "device/cuda/vector/cuda_folds.h"
#include "device/cuda/vector/cuda_tree_sum.h"
#include "support/cuda/shim_run.h"

typedef struct shim_device {
    cuda_base base;
    device *cpu; /* for memory */
    int order;
} shim_device;

static shim_device *shim_of(const device *dev) {
    return (shim_device *)(uintptr_t)dev;
}

static void close_shim(device *dev) {
    device_close(shim_of(dev)->cpu);
    free(dev);
}

static const char *isa(const device *dev) {
    (void)dev;
    return "cuda over the shim";
}

static void describe(const device *dev, char *out, size_t size) {
    snprintf(out, size, "%s", isa(dev));
}

static sifr_status measure(device *dev, void *memory, int64_t bytes, device_limits *out,
                           sifr_error *error) {
    return device_measure(shim_of(dev)->cpu, memory, bytes, out, error);
}

static sifr_status take(device *dev, device_memory kind, int64_t bytes, void **out,
                        sifr_error *error) {
    device *cpu = shim_of(dev)->cpu;
    return kind == DEVICE_HOST ? device_take_host(cpu, bytes, out, error)
                               : device_take(cpu, bytes, out, error);
}

static sifr_status take_shared(device *dev, int64_t bytes, void **out, int *file,
                               sifr_error *error) {
    return device_take_shared(shim_of(dev)->cpu, bytes, out, file, error);
}

static void give(device *dev, void *block, int64_t bytes) {
    device_give(shim_of(dev)->cpu, block, bytes);
}

static sifr_status copy(device *dev, void *to, const void *from, int64_t bytes, sifr_error *error) {
    return device_copy(shim_of(dev)->cpu, to, from, bytes, error);
}

static sifr_status start_copy(device *dev, device_queue queue, void *to, const void *from,
                              int64_t bytes, sifr_error *error) {
    return device_start_copy(shim_of(dev)->cpu, queue, to, from, bytes, error);
}

static sifr_status launch(device *dev, const cuda_launch *launch, sifr_error *error) {
    (void)error;
    shim_run(launch, shim_of(dev)->order);
    return SIFR_OK;
}

static const device_backend backend = {.close = close_shim,
                                       .isa = isa,
                                       .describe = describe,
                                       .token_chunk = cuda_token_chunk,
                                       .prepare = cuda_prepare,
                                       .run = cuda_run,
                                       .measure = measure,
                                       .take = take,
                                       .take_shared = take_shared,
                                       .give = give,
                                       .copy = copy,
                                       .start_copy = start_copy,
                                       .fold_losses = cuda_fold_losses,
                                       .decide = cuda_decide,
                                       .start_sum = cuda_start_sum};

sifr_status device_open_shim(int order, device **out, sifr_error *error) {
    return device_open_shim_chunk(order, CUDA_TOKEN_CHUNK, out, error);
}

sifr_status device_open_shim_chunk(int order, int64_t token_chunk, device **out,
                                   sifr_error *error) {
    shim_device *shim;
    BASE_TRY(base_alloc(1, sizeof *shim, &shim, error));
    sifr_status status = device_open_cpu(1, NULL, &shim->cpu, error);
    if (status != SIFR_OK) {
        free(shim);
        return status;
    }
    shim->order = order;
    shim->base.launch = launch;
    shim->base.token_chunk = token_chunk;
    shim->base.device = (device){.backend = &backend, .team = shim->cpu->team};
    *out = &shim->base.device;
    return SIFR_OK;
}

/* A GPU as a device. */
#include "device/cuda/cuda_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/text.h"
#include "base/topology.h"
#include "device/blocks.h"
#include "device/cuda/cuda_dispatch.h"
#include "device/cuda/cuda_flags.h"
#include "device/cuda/cuda_functions.h"
#include "device/cuda/cuda_host_memory.h"
#include "device/cuda/cuda_launch.h"
#include "device/cuda/cuda_measure.h"
#include "device/cuda/cuda_queues.h"
#include "device/cuda/product/cuda_products.h"
#include "device/cuda/vector/cuda_folds.h"
#include "device/cuda/vector/cuda_tree_sum.h"

enum {
    ZERO_BYTES = 1 << 30, /* cleared at once */
    CHECK_SECONDS = 10    /* for a kernel, with `check` */
};

typedef struct cuda_device {
    cuda_base base;
    cuda_driver driver;
    cuda_gpu gpu;
    char isa[32]; /* "sm_90" */
    cuda_context context;
    bool retained;
    cuda_queues queues;
    cuda_flags flags;
    const char *host_waits;
    void (*closing)(const device *dev);
    cuda_functions functions;
    device_blocks *blocks;
    cuda_host_memory host;
    int sharers;
    bool check;
    cuda_lt lt;
    cuda_products *products; /* NULL: own kernels */
    char own_why[256];       /* ... and why */
    char notice[1200];
} cuda_device;

static cuda_device *cuda_of(const device *dev) {
    return (cuda_device *)(uintptr_t)dev;
}

static cuda_address address_of(const void *data) {
    return (cuda_address)(uintptr_t)data;
}

/* The context is a thread's own. */
static sifr_status enter(const cuda_device *cuda, sifr_error *error) {
    CUDA_TRY(&cuda->driver, error, cuCtxSetCurrent, cuda->context);
    return SIFR_OK;
}

static void close_cuda(device *dev) {
    cuda_device *cuda = cuda_of(dev);
    const cuda_driver *driver = &cuda->driver;
    if (cuda->closing) cuda->closing(dev);
    if (cuda->retained && driver->cuCtxSetCurrent(cuda->context) == CUDA_OK) {
        cuda_queues_close(driver, &cuda->queues);
        cuda_products_close(cuda->products);
        cuda_functions_unload(driver, &cuda->functions);
    }
    if (cuda->retained) driver->cuDevicePrimaryCtxRelease(cuda->gpu.handle);
    host_team_free(dev->team);
    device_blocks_free(cuda->blocks);
    cuda_host_memory_close(&cuda->host);
    free(cuda);
}

static const char *isa(const device *dev) {
    return cuda_of(dev)->isa;
}

static void describe(const device *dev, char *out, size_t size) {
    const cuda_device *cuda = cuda_of(dev);
    const cuda_gpu *gpu = &cuda->gpu;
    int used = snprintf(out, size, "cuda %d.%d, ", gpu->capability_major, gpu->capability_minor);
    if (used >= (int)size) return;
    out += used, size -= (size_t)used;
    /* These decide which algorithms cuBLASLt proposes, and so the bits. */
    if (cuda->products)
        snprintf(out, size, "cuBLASLt %d.%d.%d for %d multiprocessors", cuda->lt.major,
                 cuda->lt.minor, cuda->lt.patch, gpu->multiprocessors);
    else
        snprintf(out, size, "own products");
}

static const char *notice(const device *dev) {
    return cuda_of(dev)->notice;
}

size_t cuda_device_products(const device *dev, char *out, size_t size) {
    const cuda_products *products = cuda_of(dev)->products;
    if (size > 0) out[0] = '\0';
    return products ? cuda_products_describe(products, out, size) : 0;
}

/* Device memory, not cleared. */
static sifr_status take_raw(cuda_device *cuda, int64_t bytes, cuda_address *out,
                            sifr_error *error) {
    char need[32], have[32], whole[32];
    size_t left = 0, all = 0;
    cuda_result result = cuda->driver.cuMemAlloc(out, (size_t)bytes);
    if (result != CUDA_OUT_OF_MEMORY)
        return cuda_driver_status(&cuda->driver, result, error, "cuMemAlloc");
    (void)cuda->driver.cuMemGetInfo(&left, &all);
    return base_fail(error, SIFR_NO_MEMORY,
                     "memory: %s of the GPU are needed, and %s of its %s are free; nvidia-smi "
                     "lists the processes that hold the rest",
                     base_format_bytes((uint64_t)bytes, need),
                     base_format_bytes((uint64_t)left, have),
                     base_format_bytes((uint64_t)all, whole));
}

static cuda_result clear_block(const cuda_device *cuda, cuda_address address, int64_t bytes) {
    cuda_stream stream = cuda->queues.streams[DEVICE_COMPUTE];
    for (int64_t at = 0; at < bytes; at += ZERO_BYTES) {
        cuda_result result = cuda->driver.cuMemsetD8Async(
            address + (cuda_address)at, 0, (size_t)base_min_i64(ZERO_BYTES, bytes - at), stream);
        if (result != CUDA_OK) return result;
    }
    return cuda->driver.cuStreamSynchronize(stream);
}

/* Cleared when it returns: whoever takes a block may use it on any queue. No step takes memory, so
 * none waits here. */
static sifr_status take_device(cuda_device *cuda, int64_t bytes, void **out, sifr_error *error) {
    cuda_address address;
    BASE_TRY(take_raw(cuda, bytes, &address, error));
    cuda_result result = clear_block(cuda, address, bytes);
    if (result != CUDA_OK) {
        cuda->driver.cuMemFree(address);
        return cuda_driver_status(&cuda->driver, result, error, "clearing new memory of the GPU");
    }
    *out = (void *)(uintptr_t)address;
    return SIFR_OK;
}

static void give_back(cuda_device *cuda, void *block, device_memory kind) {
    if (kind == DEVICE_HOST)
        cuda_host_memory_give(&cuda->host, &cuda->driver, block);
    else
        cuda->driver.cuMemFree(address_of(block));
}

static sifr_status take(device *dev, device_memory kind, int64_t bytes, void **out,
                        sifr_error *error) {
    cuda_device *cuda = cuda_of(dev);
    void *block;
    BASE_TRY(enter(cuda, error));
    BASE_TRY(kind == DEVICE_HOST
                 ? cuda_host_memory_take(&cuda->host, &cuda->driver, bytes, &block, error)
                 : take_device(cuda, bytes, &block, error));
    sifr_status status = device_blocks_add(cuda->blocks, block, bytes, kind, NULL, error);
    if (status != SIFR_OK) {
        give_back(cuda, block, kind);
        return status;
    }
    *out = block;
    return SIFR_OK;
}

static sifr_status take_shared(device *dev, int64_t bytes, void **out, int *file,
                               sifr_error *error) {
    (void)dev;
    (void)bytes;
    (void)out;
    (void)file;
    return base_fail(error, SIFR_USAGE,
                     "memory of a GPU has no file: ranks share it by its handle");
}

static void give(device *dev, void *block, int64_t bytes) {
    cuda_device *cuda = cuda_of(dev);
    cuda->driver.cuCtxSetCurrent(cuda->context);
    cuda_flags_forget(&cuda->flags, block, bytes);
    give_back(cuda, block, device_blocks_remove(cuda->blocks, block));
}

/* --- memory of other processes --- */

static sifr_status share(device *dev, void *block, device_share *out, sifr_error *error) {
    cuda_device *cuda = cuda_of(dev);
    cuda_ipc_memory handle;
    _Static_assert(sizeof handle == sizeof *out, "a handle of the driver");
    BASE_TRY(enter(cuda, error));
    CUDA_TRY(&cuda->driver, error, cuIpcGetMemHandle, &handle, address_of(block));
    memcpy(out, &handle, sizeof handle);
    return SIFR_OK;
}

static sifr_status open_shared(device *dev, const device_share *share, int64_t bytes, void **out,
                               sifr_error *error) {
    cuda_device *cuda = cuda_of(dev);
    cuda_ipc_memory handle;
    cuda_address address;
    memcpy(&handle, share, sizeof handle);
    BASE_TRY(enter(cuda, error));
    CUDA_TRY(&cuda->driver, error, cuIpcOpenMemHandle, &address, handle, CUDA_IPC_PEER_ACCESS);
    *out = (void *)(uintptr_t)address;
    sifr_status status = device_blocks_add(cuda->blocks, *out, bytes, DEVICE_FOREIGN, NULL, error);
    if (status != SIFR_OK) cuda->driver.cuIpcCloseMemHandle(address);
    return status;
}

static void close_shared(device *dev, void *block, int64_t bytes) {
    cuda_device *cuda = cuda_of(dev);
    (void)bytes;
    device_blocks_remove(cuda->blocks, block);
    cuda->driver.cuCtxSetCurrent(cuda->context);
    cuda->driver.cuIpcCloseMemHandle(address_of(block));
}

/* --- queues --- */

static sifr_status mark(device *dev, device_queue queue, device_mark *out, sifr_error *error) {
    cuda_device *cuda = cuda_of(dev);
    if (queue == DEVICE_COMPUTE) cuda_flags_give(&cuda->flags, 1);
    BASE_TRY(enter(cuda, error));
    return cuda_queues_mark(&cuda->driver, &cuda->queues, queue, out, error);
}

static sifr_status follow(device *dev, device_queue queue, device_mark mark, sifr_error *error) {
    cuda_device *cuda = cuda_of(dev);
    if (!cuda_queues_waits(&cuda->queues, queue, mark)) return SIFR_OK;
    if (queue == DEVICE_COMPUTE) cuda_flags_give(&cuda->flags, 1);
    BASE_TRY(enter(cuda, error));
    return cuda_queues_wait(&cuda->driver, &cuda->queues, queue, mark, error);
}

static sifr_status finish(device *dev, device_mark mark, sifr_error *error) {
    cuda_device *cuda = cuda_of(dev);
    BASE_TRY(enter(cuda, error));
    return cuda_queues_finish(&cuda->driver, &cuda->queues, mark, error);
}

/* With `check` each kernel is finished on the host, which would wait as long. */
static sifr_status wait_flag(device *dev, const device_flag *flag, uint32_t value,
                             sifr_error *error) {
    cuda_device *cuda = cuda_of(dev);
    if (cuda->host_waits || cuda->check)
        return base_fail(error, SIFR_FAILED, "%s",
                         cuda->check ? "SIFR_DEVICE_CHECK=1" : cuda->host_waits);
    BASE_TRY(enter(cuda, error));
    return cuda_flags_add(&cuda->flags, &cuda->driver, cuda->queues.streams[DEVICE_COMPUTE], flag,
                          value, error);
}

static void times(device *dev, device_mark mark, double *begun, double *ended) {
    cuda_device *cuda = cuda_of(dev);
    *begun = *ended = 0;
    if (enter(cuda, NULL) == SIFR_OK)
        cuda_queues_times(&cuda->driver, &cuda->queues, mark, begun, ended);
}

/* Waits for all that the queue was given; an error begins with `what`. */
static sifr_status drain(const cuda_device *cuda, device_queue queue, const char *what,
                         sifr_error *error) {
    cuda_result result = cuda->driver.cuStreamSynchronize(cuda->queues.streams[queue]);
    return result == CUDA_OK ? SIFR_OK
                             : cuda_driver_status(&cuda->driver, result, error, "%s", what);
}

/* With `check`: the same, and fails where it takes too long, since a kernel that hangs would
 * otherwise never be named. */
static sifr_status finish_now(cuda_device *cuda, device_queue queue, const char *what,
                              sifr_error *error) {
    const struct timespec nap = {.tv_nsec = 50000};
    const double begun = base_seconds();
    bool reached = false;
    device_mark mark;
    sifr_status status = cuda_queues_mark(&cuda->driver, &cuda->queues, queue, &mark, NULL);
    while (status == SIFR_OK && !reached) {
        status = cuda_queues_look(&cuda->driver, &cuda->queues, mark, &reached, NULL);
        if (reached || status != SIFR_OK) break;
        if (base_seconds() - begun > CHECK_SECONDS)
            return base_fail(error, SIFR_FAILED, "%s: no end within %d s", what, CHECK_SECONDS);
        nanosleep(&nap, NULL);
    }
    return drain(cuda, queue, what, error);
}

typedef enum copy_way { COPY_IN, COPY_OUT, COPY_INSIDE } copy_way;

static sifr_status enqueue_copy(const cuda_device *cuda, device_queue queue, copy_way way, void *to,
                                const void *from, int64_t bytes, sifr_error *error) {
    cuda_stream stream = cuda->queues.streams[queue];
    size_t size = (size_t)bytes;
    BASE_TRY(enter(cuda, error));
    BASE_TRY(cuda_queues_begin(&cuda->driver, &cuda->queues, queue, error));
    switch (way) {
    case COPY_IN:
        CUDA_TRY(&cuda->driver, error, cuMemcpyHtoDAsync, address_of(to), from, size, stream);
        break;
    case COPY_OUT:
        CUDA_TRY(&cuda->driver, error, cuMemcpyDtoHAsync, to, address_of(from), size, stream);
        break;
    case COPY_INSIDE:
        CUDA_TRY(&cuda->driver, error, cuMemcpyDtoDAsync, address_of(to), address_of(from), size,
                 stream);
        break;
    }
    return SIFR_OK;
}

static sifr_status start_copy(device *dev, device_queue queue, void *to, const void *from,
                              int64_t bytes, sifr_error *error) {
    cuda_device *cuda = cuda_of(dev);
    bool in;
    if (queue == DEVICE_COMPUTE) cuda_flags_give(&cuda->flags, 1);
    if (device_blocks_hold(cuda->blocks, to, bytes) &&
        device_blocks_hold(cuda->blocks, from, bytes))
        return enqueue_copy(cuda, queue, COPY_INSIDE, to, from, bytes, error);
    BASE_TRY(device_blocks_note_copy(cuda->blocks, to, from, bytes, &in, error));
    return enqueue_copy(cuda, queue, in ? COPY_IN : COPY_OUT, to, from, bytes, error);
}

/* Not counted in `flags`, which is not for any thread: a thread has one such copy at a time. */
static sifr_status copy(device *dev, void *to, const void *from, int64_t bytes, sifr_error *error) {
    cuda_device *cuda = cuda_of(dev);
    bool in;
    BASE_TRY(device_blocks_note_copy(cuda->blocks, to, from, bytes, &in, error));
    BASE_TRY(enqueue_copy(cuda, DEVICE_COMPUTE, in ? COPY_IN : COPY_OUT, to, from, bytes, error));
    return drain(cuda, DEVICE_COMPUTE, in ? "copy to the GPU" : "copy from the GPU", error);
}

static device_counts count(const device *dev) {
    cuda_device *cuda = cuda_of(dev);
    device_counts counts = device_blocks_count(cuda->blocks);
    counts.unpinned_bytes = cuda_host_memory_plain(&cuda->host);
    return counts;
}

static void ran(const device *dev, device_ran *out) {
    cuda_device *cuda = cuda_of(dev);
    out->library_products = cuda->base.library_products;
    out->own_products = cuda->base.own_products;
    out->unpinned_bytes = cuda_host_memory_most_plain(&cuda->host);
    if (!cuda->products) {
        snprintf(out->products, sizeof out->products, "own: %.240s", cuda->own_why);
        return;
    }
    const char *lack = cuda_products_lack(cuda->products);
    snprintf(out->products, sizeof out->products, "cuBLASLt %d.%d.%d", cuda->lt.major,
             cuda->lt.minor, cuda->lt.patch);
    if (lack[0])
        snprintf(out->own_why, sizeof out->own_why, "no algorithm for %s", lack);
    else if (out->own_products)
        snprintf(out->own_why, sizeof out->own_why,
                 "those of a head with labels, or of rows that are not on 16 bytes");
}

/* cuBLASLt loads its kernels into the GPU's memory at its products, in each process, and a product
 * fails where they do not fit. How much they take is known only then: some hundreds of MB if many
 * kinds of products run, less on a small GPU, which runs fewer. */
static int64_t scratch_of_products(const cuda_device *cuda, int64_t all) {
    const int64_t most = 500000000, share = 16; /* of the whole memory */
    return cuda->products ? base_min_i64(most, all / share) : 0;
}

/* Of a full GPU not 0, which would be no limit. */
static int64_t capacity(const device *dev) {
    const cuda_device *cuda = cuda_of(dev);
    size_t left, all;
    if (enter(cuda, NULL) != SIFR_OK || cuda->driver.cuMemGetInfo(&left, &all) != CUDA_OK) return 0;
    int64_t mine = (int64_t)left / cuda->sharers - scratch_of_products(cuda, (int64_t)all);
    return base_max_i64(mine, 1);
}

static sifr_status launch_kernel(device *dev, const cuda_launch *launch, sifr_error *error) {
    cuda_device *cuda = cuda_of(dev);
    const char *name = cuda_kernel_name(launch->kernel);
    void *arguments[] = {(void *)(uintptr_t)launch->arguments};
    cuda_function function;
    BASE_TRY(
        cuda_functions_get(&cuda->driver, &cuda->gpu, &cuda->functions, launch, &function, error));
    if (launch->queue == DEVICE_COMPUTE) cuda_flags_give(&cuda->flags, 1);
    cuda_result result = cuda->driver.cuLaunchKernel(
        function, (unsigned)launch->blocks[0], (unsigned)launch->blocks[1],
        (unsigned)launch->blocks[2], launch->threads, 1, 1, launch->shared_bytes,
        cuda->queues.streams[launch->queue], arguments, NULL);
    if (result != CUDA_OK)
        return cuda_driver_status(&cuda->driver, result, error, "kernel %s", name);
    if (!cuda->check) return SIFR_OK;
    char what[96];
    snprintf(what, sizeof what, "kernel %s, finished at once (SIFR_DEVICE_CHECK)", name);
    return finish_now(cuda, launch->queue, what, error);
}

static sifr_status reserve_product(device *dev, const cuda_gemm *gemm, sifr_error *error) {
    cuda_device *cuda = cuda_of(dev);
    BASE_TRY(enter(cuda, error));
    return cuda_products_reserve(cuda->products, gemm, error);
}

static sifr_status multiply(device *dev, const cuda_gemm *gemm, bool *done, sifr_error *error) {
    cuda_device *cuda = cuda_of(dev);
    cuda_flags_give(&cuda->flags, cuda_products_calls(gemm));
    BASE_TRY(
        cuda_products_run(cuda->products, gemm, cuda->queues.streams[DEVICE_COMPUTE], done, error));
    const char *lack = cuda_products_lack(cuda->products);
    if (lack[0] && !cuda->notice[0])
        snprintf(
            cuda->notice, sizeof cuda->notice,
            "cuBLASLt %d.%d.%d has no algorithm for a product (%s): sifr's own kernel computes "
            "it, and others that lack one, more slowly (how much is not measured yet)",
            cuda->lt.major, cuda->lt.minor, cuda->lt.patch, lack);
    if (!*done || !cuda->check) return SIFR_OK;
    return finish_now(cuda, DEVICE_COMPUTE,
                      "product by cuBLASLt, finished at once (SIFR_DEVICE_CHECK)", error);
}

static sifr_status run(device *dev, const device_call *call, sifr_error *error) {
    BASE_TRY(enter(cuda_of(dev), error));
    return cuda_run(dev, call, error);
}

/* --- the numbers of a step: launches from any thread --- */

static sifr_status fold_losses(device *dev, const float *losses, int64_t rows, double *sum,
                               sifr_error *error) {
    BASE_TRY(enter(cuda_of(dev), error));
    return cuda_fold_losses(dev, losses, rows, sum, error);
}

static sifr_status decide(device *dev, const device_decision *decision, sifr_error *error) {
    BASE_TRY(enter(cuda_of(dev), error));
    return cuda_decide(dev, decision, error);
}

static sifr_status start_sum(device *dev, device_queue queue, const device_sum *sum,
                             sifr_error *error) {
    BASE_TRY(enter(cuda_of(dev), error));
    return cuda_start_sum(dev, queue, sum, error);
}

/* For libraries that give work to its streams, in its context. */
static sifr_status enter_for_library(device *dev, device_queue queue, void **stream,
                                     sifr_error *error) {
    *stream = cuda_of(dev)->queues.streams[queue];
    return enter(cuda_of(dev), error);
}

static sifr_status reached(device *dev, device_mark mark, bool *out, sifr_error *error) {
    cuda_device *cuda = cuda_of(dev);
    BASE_TRY(enter(cuda, error));
    return cuda_queues_look(&cuda->driver, &cuda->queues, mark, out, error);
}

static const device_backend backend = {.close = close_cuda,
                                       .isa = isa,
                                       .describe = describe,
                                       .token_chunk = cuda_token_chunk,
                                       .notice = notice,
                                       .prepare = cuda_prepare,
                                       .run = run,
                                       .measure = cuda_measure,
                                       .take = take,
                                       .take_shared = take_shared,
                                       .give = give,
                                       .copy = copy,
                                       .count = count,
                                       .ran = ran,
                                       .hidden = true,
                                       .share = share,
                                       .open_shared = open_shared,
                                       .close_shared = close_shared,
                                       .capacity = capacity,
                                       .start_copy = start_copy,
                                       .mark = mark,
                                       .follow = follow,
                                       .finish = finish,
                                       .wait_flag = wait_flag,
                                       .times = times,
                                       .reached = reached,
                                       .enter = enter_for_library,
                                       .fold_losses = fold_losses,
                                       .decide = decide,
                                       .start_sum = start_sum};

static void say_own_products(cuda_device *cuda, const char *why) {
    snprintf(cuda->own_why, sizeof cuda->own_why, "%.240s", why);
    snprintf(cuda->notice, sizeof cuda->notice,
             "products run with sifr's own kernels, which are slower than cuBLASLt's (how much is "
             "not measured yet): %s",
             why);
}

static sifr_status open_products(cuda_device *cuda, const cuda_options *options,
                                 sifr_error *error) {
    sifr_error why = {0};
    snprintf(cuda->own_why, sizeof cuda->own_why, "cuBLASLt was not asked for");
    if (options->lt_missing) say_own_products(cuda, options->lt_missing);
    if (!options->lt) return SIFR_OK;
    cuda->lt = *options->lt;
    sifr_status status = cuda_products_open(&cuda->lt, &cuda->products, &why);
    if (status != SIFR_OK) {
        cuda->products = NULL;
        if (options->lt_needed || status == SIFR_NO_MEMORY)
            return base_fail(error, status, "%s", why.message);
        say_own_products(cuda, why.message);
        return SIFR_OK;
    }
    cuda->base.reserve_product = reserve_product;
    cuda->base.multiply = multiply;
    return SIFR_OK;
}

static sifr_status retain(cuda_device *cuda, sifr_error *error) {
    cuda_result result = cuda->driver.cuDevicePrimaryCtxRetain(&cuda->context, cuda->gpu.handle);
    if (result == CUDA_OUT_OF_MEMORY)
        return base_fail(error, SIFR_NO_MEMORY,
                         "memory: %s (%s) has no room for this process's context, some 500 MB; "
                         "nvidia-smi lists the processes that hold its memory",
                         cuda->gpu.name, cuda->gpu.uuid);
    cuda->retained = result == CUDA_OK;
    return cuda_driver_status(&cuda->driver, result, error, "cuDevicePrimaryCtxRetain");
}

static sifr_status start(cuda_device *cuda, const cuda_options *options, sifr_error *error) {
    const cuda_driver *driver = &cuda->driver;
    int threads = options->threads ? options->threads : base_topology_threads(1);
    BASE_TRY(host_team_create(threads, &cuda->base.device.team, error));
    BASE_TRY(device_blocks_create(&cuda->blocks, error));
    BASE_TRY(cuda_driver_gpu(driver, options->gpu, &cuda->gpu, error));
    snprintf(cuda->isa, sizeof cuda->isa, "sm_%d%d", cuda->gpu.capability_major,
             cuda->gpu.capability_minor);
    BASE_TRY(retain(cuda, error));
    BASE_TRY(enter(cuda, error));
    BASE_TRY(cuda_queues_open(driver, &cuda->queues, error));
    BASE_TRY(cuda_functions_load(driver, &cuda->gpu, options->images, options->image_count,
                                 &cuda->functions, error));
    return open_products(cuda, options, error);
}

sifr_status cuda_device_open(const cuda_options *options, device **out, sifr_error *error) {
    cuda_device *cuda;
    BASE_TRY(base_alloc(1, sizeof *cuda, &cuda, error));
    cuda->driver = *options->driver;
    cuda->check = options->check;
    cuda->host_waits = options->host_waits;
    cuda->closing = options->closing;
    cuda->sharers = options->sharers > 0 ? options->sharers : 1;
    cuda->base.device.backend = &backend;
    cuda->base.launch = launch_kernel;
    cuda->base.token_chunk = options->token_chunk ? options->token_chunk : CUDA_TOKEN_CHUNK;
    cuda_host_memory_open(&cuda->host);
    sifr_status status = start(cuda, options, error);
    if (status != SIFR_OK) {
        close_cuda(&cuda->base.device);
        return status;
    }
    *out = &cuda->base.device;
    return SIFR_OK;
}

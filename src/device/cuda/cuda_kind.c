/* NVIDIA's GPUs as a kind of device: the row of kinds.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/backend.h"
#include "device/cuda/cuda_choice.h"
#include "device/cuda/cuda_described.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_libraries.h"

/* Which products the environment asks for: `why` is for device_notice, and stays with the caller.
 */
static sifr_status find_products(const cuda_driver *driver, cuda_options *options, cuda_lt *lt,
                                 sifr_error *why, sifr_error *error) {
    const char *wish = getenv("SIFR_CUDA_PRODUCTS");
    if (wish && strcmp(wish, "own") == 0) return SIFR_OK;
    options->lt_needed = wish && strcmp(wish, "cublaslt") == 0;
    if (wish && wish[0] && !options->lt_needed)
        return base_fail(error, SIFR_USAGE,
                         "SIFR_CUDA_PRODUCTS=%s: it is own (sifr's kernels) or cublaslt "
                         "(NVIDIA's library); unset it to take the library where it is found",
                         wish);
    if (cuda_lt_open(driver->version, lt, why) == SIFR_OK)
        options->lt = lt;
    else if (options->lt_needed)
        return base_fail(error, SIFR_FAILED, "SIFR_CUDA_PRODUCTS=cublaslt: %s", why->message);
    else
        options->lt_missing = why->message;
    return SIFR_OK;
}

/* Streams that share a channel of the GPU wait for each other: a transfer could stand behind the
 * wait for its own word. */
static bool has_few_channels(void) {
    const char *channels = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    return channels && atoi(channels) < 8;
}

static sifr_status find_waits(cuda_options *options, sifr_error *error) {
    const char *wish = getenv("SIFR_DEVICE_WAITS");
    if (has_few_channels()) options->host_waits = "CUDA_DEVICE_MAX_CONNECTIONS is below 8";
    if (wish && strcmp(wish, "host") == 0) options->host_waits = "SIFR_DEVICE_WAITS=host";
    if (!wish || !wish[0] || options->host_waits || strcmp(wish, "device") == 0) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "SIFR_DEVICE_WAITS=%s: it is host (the host waits for each transfer between "
                     "ranks) or device (the GPU waits, the default)",
                     wish);
}

static sifr_status find_check(cuda_options *options, sifr_error *error) {
    const char *wish = getenv("SIFR_DEVICE_CHECK");
    options->check = wish && strcmp(wish, "1") == 0;
    if (!wish || !wish[0] || options->check || strcmp(wish, "0") == 0) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "SIFR_DEVICE_CHECK=%s: it is 1 (each kernel is finished before the next, and "
                     "one that fails is named) or 0 (the default)",
                     wish);
}

/* Its instruction set is the GPU's. */
static sifr_status open_cuda(const device_place *place, int threads, const char *isa, device **out,
                             sifr_error *error) {
    cuda_choice choice;
    cuda_lt lt;
    sifr_error why = {0};
    (void)isa;
    BASE_TRY(cuda_choose(place->rank, &choice, error));
    cuda_options options = {.driver = &choice.driver,
                            .gpu = choice.index,
                            .threads = threads,
                            .sharers = place->sharers};
    BASE_TRY(find_check(&options, error));
    BASE_TRY(find_waits(&options, error));
    BASE_TRY(find_products(&choice.driver, &options, &lt, &why, error));
    return cuda_device_open(&options, out, error);
}

static device_build build(void) {
    return (device_build){.version = cuda_images_version(),
                          .targets = cuda_images_targets(),
                          .least_capability = CUDA_LEAST_CAPABILITY};
}

static device_gpu gpu_of(const cuda_gpu *gpu) {
    device_gpu out = {.capability_major = gpu->capability_major,
                      .capability_minor = gpu->capability_minor,
                      .multiprocessors = gpu->multiprocessors,
                      .memory = gpu->memory};
    memcpy(out.name, gpu->name, sizeof out.name);
    memcpy(out.uuid, gpu->uuid, sizeof out.uuid);
    memcpy(out.bus, gpu->bus, sizeof out.bus);
    return out;
}

static sifr_status choose(int32_t rank, device_found *out, sifr_error *error) {
    cuda_choice choice;
    BASE_TRY(cuda_choose(rank, &choice, error));
    *out = (device_found){.gpu = gpu_of(&choice.gpu), .index = choice.index, .count = choice.count};
    return SIFR_OK;
}

static sifr_status survey(device_driver *out, void (*each)(void *argument, const device_gpu *gpu),
                          void *argument, sifr_error *error) {
    cuda_driver driver;
    int count;
    BASE_TRY(cuda_driver_open(&driver, cuda_images_version(), error));
    out->version = driver.version;
    snprintf(out->path, sizeof out->path, "%s", driver.path);
    BASE_TRY(cuda_driver_count(&driver, &count, error));
    for (int i = 0; i < count; i++) {
        cuda_gpu gpu;
        BASE_TRY(cuda_driver_gpu(&driver, i, &gpu, error));
        const device_gpu described = gpu_of(&gpu);
        each(argument, &described);
    }
    return SIFR_OK;
}

static const char *library_name(int number) {
    return number < CUDA_LIBRARY_KINDS ? cuda_library_name((cuda_library_kind)number) : NULL;
}

static sifr_status open_library(int number, int driver, device_library *out, sifr_error *error) {
    return cuda_library_open((cuda_library_kind)number, driver, out, error);
}

const device_kind device_kind_cuda = {.open = open_cuda,
                                      .build = build,
                                      .choose = choose,
                                      .is_there = cuda_gpu_is_there,
                                      .survey = survey,
                                      .open_described = cuda_open_described,
                                      .library_name = library_name,
                                      .open_library = open_library};

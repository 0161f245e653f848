#include <stdlib.h>
#include <string.h>

#include "device/cuda/cuda_choice.h"
#include "device/cuda/cuda_device.h"

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

static sifr_status open_cuda(const device_place *place, int threads, device **out,
                             sifr_error *error) {
    cuda_choice choice;
    cuda_lt lt;
    sifr_error why = {0};
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

sifr_status device_open(sifr_device kind, const device_place *place, int threads, const char *isa,
                        device **out, sifr_error *error) {
    if (kind == SIFR_DEVICE_CUDA) return open_cuda(place, threads, out, error);
    return device_open_cpu(threads, isa, out, error);
}

#include <stdlib.h>
#include <string.h>

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

static sifr_status open_cuda(int threads, device **out, sifr_error *error) {
    cuda_driver driver;
    cuda_lt lt;
    sifr_error why = {0};
    const char *check = getenv("SIFR_DEVICE_CHECK");
    cuda_options options = {
        .driver = &driver, .threads = threads, .check = check && strcmp(check, "1") == 0};
    int version = cuda_images_version();
    if (version == 0)
        return base_fail(error, SIFR_FAILED,
                         "device cuda: this program is built without kernels for GPUs: build it "
                         "with `make CUDA=1`, or use the CPU (--device cpu)");
    BASE_TRY(cuda_driver_open(&driver, version, error));
    BASE_TRY(find_products(&driver, &options, &lt, &why, error));
    return cuda_device_open(&options, out, error);
}

sifr_status device_open(sifr_device kind, int32_t ranks, int threads, const char *isa, device **out,
                        sifr_error *error) {
    if (kind == SIFR_DEVICE_AUTO && ranks == 1 && cuda_images_version() != 0) {
        sifr_error own = {0};
        sifr_status status = open_cuda(threads, out, &own);
        if (status == SIFR_OK) return SIFR_OK;
        if (status == SIFR_USAGE) return base_fail(error, status, "%s", own.message);
    }
    if (kind != SIFR_DEVICE_CUDA) return device_open_cpu(threads, isa, out, error);
    if (ranks == 1) return open_cuda(threads, out, error);
    return base_fail(error, SIFR_USAGE,
                     "device cuda: several ranks on GPUs are not built yet: run one rank, or use "
                     "the CPU (--device cpu)");
}

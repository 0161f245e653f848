#include <stdlib.h>
#include <string.h>

#include "device/cuda/cuda_device.h"

static sifr_status open_cuda(int threads, device **out, sifr_error *error) {
    cuda_driver driver;
    const char *check = getenv("SIFR_DEVICE_CHECK");
    cuda_options options = {
        .driver = &driver, .threads = threads, .check = check && strcmp(check, "1") == 0};
    int version = cuda_images_version();
    if (version == 0)
        return base_fail(error, SIFR_FAILED,
                         "device cuda: this program is built without kernels for GPUs: build it "
                         "with `make CUDA=1`, or use the CPU (--device cpu)");
    BASE_TRY(cuda_driver_open(&driver, version, error));
    return cuda_device_open(&options, out, error);
}

sifr_status device_open(sifr_device kind, int32_t ranks, int threads, const char *isa, device **out,
                        sifr_error *error) {
    if (kind == SIFR_DEVICE_AUTO && ranks == 1 && cuda_images_version() != 0 &&
        open_cuda(threads, out, NULL) == SIFR_OK)
        return SIFR_OK;
    if (kind != SIFR_DEVICE_CUDA) return device_open_cpu(threads, isa, out, error);
    if (ranks == 1) return open_cuda(threads, out, error);
    return base_fail(error, SIFR_USAGE,
                     "device cuda: several ranks on GPUs are not built yet: run one rank, or use "
                     "the CPU (--device cpu)");
}

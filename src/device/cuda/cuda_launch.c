#include "device/cuda/cuda_launch.h"

#include "device/cuda/arguments.h"

static const struct {
    const char *name;
    size_t bytes;
} kernels[CUDA_KERNELS] = {
#define CUDA_KERNEL(name, arguments) {#name, sizeof(arguments)},
#include "device/cuda/kernel_list.h"
#undef CUDA_KERNEL
};

const char *cuda_kernel_name(cuda_kernel kernel) {
    return kernels[kernel].name;
}

size_t cuda_argument_bytes(cuda_kernel kernel) {
    return kernels[kernel].bytes;
}

int64_t cuda_token_chunk(const device *dev) {
    return ((const cuda_base *)dev)->token_chunk;
}

sifr_status cuda_launch_kernel(device *dev, const cuda_launch *launch, sifr_error *error) {
    static const int64_t most[3] = {INT32_MAX, 65535, 65535};
    for (int i = 0; i < 3; i++) {
        if (launch->blocks[i] <= 0) return SIFR_OK;
        if (launch->blocks[i] > most[i])
            return base_fail(error, SIFR_FAILED, "kernel %s: %lld blocks exceed a grid of %lld",
                             cuda_kernel_name(launch->kernel), (long long)launch->blocks[i],
                             (long long)most[i]);
    }
    return ((cuda_base *)dev)->launch(dev, launch, error);
}

#include "device/cuda/cuda_choice.h"

#include "device/cuda/cuda_images.h"

sifr_status cuda_choose(int32_t rank, cuda_choice *out, sifr_error *error) {
    int version = cuda_images_version();
    if (version == 0)
        return base_fail(error, SIFR_FAILED,
                         "this program is built without kernels for GPUs: build it with `make "
                         "CUDA=1`, or use the CPU (--device cpu)");
    BASE_TRY(cuda_driver_open(&out->driver, version, error));
    return cuda_choose_gpu(rank, out, error);
}

sifr_status cuda_choose_gpu(int32_t rank, cuda_choice *out, sifr_error *error) {
    BASE_TRY(cuda_driver_count(&out->driver, &out->count, error));
    if (out->count < 1)
        return base_fail(error, SIFR_FAILED,
                         "NVIDIA's driver is here and has no GPU for this process; nvidia-smi must "
                         "list one");
    out->index = rank % out->count;
    BASE_TRY(cuda_driver_gpu(&out->driver, out->index, &out->gpu, error));
    if (out->gpu.capability_major >= CUDA_LEAST_CAPABILITY) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s has compute capability %d.%d, and sifr's kernels need %d.0; use the CPU "
                     "(--device cpu)",
                     out->gpu.name, out->gpu.capability_major, out->gpu.capability_minor,
                     CUDA_LEAST_CAPABILITY);
}

bool cuda_gpu_is_there(void) {
    cuda_driver driver;
    int count = 0;
    return cuda_driver_open(&driver, 0, NULL) == SIFR_OK &&
           cuda_driver_count(&driver, &count, NULL) == SIFR_OK && count > 0;
}

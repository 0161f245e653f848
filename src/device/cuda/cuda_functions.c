#include "device/cuda/cuda_functions.h"

#include <stdio.h>

enum { PLAIN_SHARED = 48 << 10 }; /* more shared memory than this must be asked for, by function */

static sifr_status fail_image(const cuda_driver *driver, const cuda_gpu *gpu, cuda_result result,
                              const char *image, sifr_error *error) {
    bool kind = result == CUDA_INVALID_IMAGE || result == CUDA_NO_BINARY_FOR_GPU ||
                result == CUDA_UNSUPPORTED_PTX_VERSION;
    if (!kind) return cuda_driver_status(driver, result, error, "loading the kernels of %s", image);
    return base_fail(error, SIFR_FAILED,
                     "%s: the driver takes no kernels of this program, which was built for %s, "
                     "for its generation %d.%d (%s: error %u); install a newer driver, build with "
                     "a newer nvcc (make CUDA=1) or for this GPU (-DSIFR_CUDA_TARGETS=%d%d), or "
                     "use the CPU (--device cpu)",
                     gpu->name, cuda_images_targets(), gpu->capability_major, gpu->capability_minor,
                     image, result, gpu->capability_major, gpu->capability_minor);
}

static sifr_status find_kernel(const cuda_driver *driver, const cuda_image *image,
                               cuda_module module, cuda_kernel kernel, cuda_function *out,
                               sifr_error *error) {
    char name[128];
    snprintf(name, sizeof name, "sifr_%s", cuda_kernel_name(kernel));
    cuda_result result = driver->cuModuleGetFunction(out, module, name);
    if (result == CUDA_OK) return SIFR_OK;
    *out = NULL;
    return cuda_driver_status(driver, result, error, "kernel %s in the image %s",
                              cuda_kernel_name(kernel), image->name);
}

/* Each kernel is looked up in its own image alone: tools for debugging report every lookup that
 * fails as an error of the program. */
static sifr_status find_kernels(const cuda_driver *driver, const cuda_image *image,
                                cuda_module module, cuda_functions *out, sifr_error *error) {
    size_t count = image->kernels ? image->kernel_count : CUDA_KERNELS;
    for (size_t i = 0; i < count; i++) {
        size_t kernel = image->kernels ? image->kernels[i] : i;
        BASE_TRY(find_kernel(driver, image, module, (cuda_kernel)kernel, &out->of[kernel], error));
    }
    return SIFR_OK;
}

sifr_status cuda_functions_load(const cuda_driver *driver, const cuda_gpu *gpu,
                                const cuda_image *images, size_t count, cuda_functions *out,
                                sifr_error *error) {
    if (!images) images = cuda_images(&count);
    if (count == 0 || count > CUDA_MOST_IMAGES)
        return base_fail(error, SIFR_FAILED,
                         "this program has no kernels for GPUs: build it with `make CUDA=1`");
    for (int k = 0; k < CUDA_KERNELS; k++) out->shared[k] = PLAIN_SHARED;
    for (size_t i = 0; i < count; i++) {
        cuda_result result = driver->cuModuleLoadData(&out->modules[i], images[i].data);
        if (result != CUDA_OK) return fail_image(driver, gpu, result, images[i].name, error);
        out->module_count++;
        BASE_TRY(find_kernels(driver, &images[i], out->modules[i], out, error));
    }
    return SIFR_OK;
}

void cuda_functions_unload(const cuda_driver *driver, cuda_functions *functions) {
    for (size_t i = 0; i < functions->module_count; i++)
        driver->cuModuleUnload(functions->modules[i]);
    functions->module_count = 0;
}

static sifr_status ask_for_shared(const cuda_driver *driver, const cuda_gpu *gpu,
                                  cuda_functions *functions, const cuda_launch *launch,
                                  sifr_error *error) {
    if (launch->shared_bytes <= functions->shared[launch->kernel]) return SIFR_OK;
    if (launch->shared_bytes > (uint32_t)gpu->shared_bytes)
        return base_fail(error, SIFR_FAILED,
                         "kernel %s: needs %u bytes of shared memory, and a block of this GPU has "
                         "at most %d",
                         cuda_kernel_name(launch->kernel), launch->shared_bytes, gpu->shared_bytes);
    CUDA_TRY(driver, error, cuFuncSetAttribute, functions->of[launch->kernel],
             CUDA_FUNCTION_SHARED_BYTES, (int)launch->shared_bytes);
    functions->shared[launch->kernel] = launch->shared_bytes;
    return SIFR_OK;
}

sifr_status cuda_functions_get(const cuda_driver *driver, const cuda_gpu *gpu,
                               cuda_functions *functions, const cuda_launch *launch,
                               cuda_function *out, sifr_error *error) {
    *out = functions->of[launch->kernel];
    if (!*out)
        return base_fail(error, SIFR_FAILED, "kernel %s is not in this program",
                         cuda_kernel_name(launch->kernel));
    return ask_for_shared(driver, gpu, functions, launch, error);
}

/* One large product in bf16, by cuBLASLt and by sifr's own kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>

#include "device/cuda/cuda_libraries.h"
#include "device/look/look.h"
#include "support/cuda/fake_gpu.h"
#include "support/cuda/gpu_work.h"

static gpu_shape shape(void) {
    int64_t n = fake_gpu_is_real() ? 8192 : 64;
    return (gpu_shape){.name = "square", .rows = n, .in = n, .out = n};
}

/* Operations per second of the forward product. */
static sifr_status rate_of(device *dev, double *out, sifr_error *error) {
    const gpu_shape square = shape();
    gpu_work work;
    double seconds = 0;
    sifr_status status = gpu_work_open(&work, dev, &square, BASE_BF16, 1, error);
    if (status == SIFR_OK)
        status = gpu_work_time(&work, GPU_FORWARD, fake_gpu_is_real() ? 0.02 : 0, &seconds, error);
    if (status == SIFR_OK) *out = work.operations[GPU_FORWARD] / seconds;
    gpu_work_close(&work);
    return status;
}

static double left(look *l) {
    size_t bytes = 0, all;
    return l->driver->cuMemGetInfo(&bytes, &all) == CUDA_OK ? (double)bytes : 0;
}

/* That cuBLASLt has computed it, and how: without an algorithm sifr's own kernel would have. */
static sifr_status say_algorithm(const device *dev, char *out, size_t size, sifr_error *error) {
    if (cuda_device_products(dev, out, size) == 0)
        return base_fail(error, SIFR_FAILED, "cuBLASLt did not compute it; %s", device_notice(dev));
    out[strcspn(out, "\n")] = '\0';
    return SIFR_OK;
}

static sifr_status multiply(look *l, device *dev, const device_library *library, char *figure,
                            sifr_error *error) {
    double rate, before = left(l);
    char algorithm[300], kind[64];
    BASE_TRY(rate_of(dev, &rate, error));
    BASE_TRY(say_algorithm(dev, algorithm, sizeof algorithm, error));
    device_describe(dev, kind, sizeof kind);
    snprintf(figure, LOOK_TEXT, "%.5g TFLOP/s, %s (%.200s, %s), %s; its own memory %.2f GB",
             1e-12 * rate, kind, library->path, library->place, algorithm,
             1e-9 * (before - left(l)));
    return SIFR_OK;
}

sifr_status look_row_lt(look *l, char *figure, sifr_error *error) {
    device_library library = {.path = "played", .place = "this program"};
    device *dev;
    BASE_TRY(look_context(l, error));
    if (fake_gpu_is_real())
        BASE_TRY(cuda_library_open(CUDA_LIBRARY_LT, l->driver->version, &library, error));
    BASE_TRY(fake_gpu_open_lt(&dev, error));
    sifr_status status = multiply(l, dev, &library, figure, error);
    device_close(dev);
    return status;
}

sifr_status look_row_own(look *l, char *figure, sifr_error *error) {
    device *dev;
    double rate;
    BASE_TRY(look_context(l, error));
    BASE_TRY(fake_gpu_open(&dev, error));
    sifr_status status = rate_of(dev, &rate, error);
    device_close(dev);
    if (status == SIFR_OK) snprintf(figure, LOOK_TEXT, "%.5g TFLOP/s", 1e-12 * rate);
    return status;
}

/* In front of what finds a GPU (linked with --wrap): the program of tests/cli/test_gpu_runs.sh has
 * one that a fake driver plays, with the kernels over the shim, and a cuBLASLt that a fake plays
 * or, with SIFR_TEST_NO_CUBLASLT in the environment, none. */
#include <stdlib.h>

#include "device/cuda/cuda_device.h"
#include "support/cuda/fake_kernels.h"
#include "support/cuda/fake_lt.h"
#include "support/cuda/shim_run.h"

sifr_status __wrap_cuda_driver_open(cuda_driver *driver, int least, sifr_error *error);
const cuda_image *__wrap_cuda_images(size_t *count);
sifr_status __wrap_cuda_lt_open(int driver, cuda_lt *lt, sifr_error *error);
int __wrap_cuda_images_version(void);

/* One for the process, which ends with it: a run opens its device more than once. */
sifr_status __wrap_cuda_driver_open(cuda_driver *driver, int least, sifr_error *error) {
    static cuda_driver fake;
    static bool is_open;
    (void)least;
    if (!is_open) {
        fake_driver_options options = {0};
        options.kernels = fake_shim_kernels(SHIM_UP, &options.kernel_count);
        fake_driver_open(&options, &fake);
        is_open = true;
    }
    *driver = fake;
    return cuda_driver_start(driver, 0, error);
}

const cuda_image *__wrap_cuda_images(size_t *count) {
    static const cuda_image image = {"fake", "fake"};
    *count = 1;
    return &image;
}

sifr_status __wrap_cuda_lt_open(int driver, cuda_lt *lt, sifr_error *error) {
    static const fake_lt_trouble none;
    (void)driver;
    if (getenv("SIFR_TEST_NO_CUBLASLT"))
        return base_fail(error, SIFR_FAILED, "cuBLASLt (libcublasLt.so.13) was not found");
    fake_lt_open(&none, lt);
    return SIFR_OK;
}

int __wrap_cuda_images_version(void) {
    return 13000;
}

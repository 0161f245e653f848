/* In front of what finds a GPU (linked with --wrap): the program of tests/cli/test_gpu_runs.sh has
 * one that a fake driver plays, with the kernels over the shim. */
#include "device/cuda/cuda_device.h"
#include "support/cuda/fake_kernels.h"
#include "support/cuda/shim_run.h"

sifr_status __wrap_cuda_driver_open(cuda_driver *driver, int least, sifr_error *error);
const cuda_image *__wrap_cuda_images(size_t *count);
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

int __wrap_cuda_images_version(void) {
    return 13000;
}

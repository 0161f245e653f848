#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "support/cuda/fake_gpu.h"
#include "support/cuda/fake_kernels.h"
#include "support/cuda/shim_run.h"

static cuda_driver driver;

int fake_gpu_start(void **state) {
    fake_driver_options options = {0};
    sifr_error error;
    (void)state;
    options.kernels = fake_shim_kernels(SHIM_UP, &options.kernel_count);
    fake_driver_open(&options, &driver);
    return cuda_driver_start(&driver, 0, &error);
}

int fake_gpu_stop(void **state) {
    (void)state;
    fake_driver_close();
    return 0;
}

sifr_status fake_gpu_open(device **out, sifr_error *error) {
    static const cuda_image image = {"fake", "fake"};
    cuda_options options = {.driver = &driver, .threads = 1, .images = &image, .image_count = 1};
    return cuda_device_open(&options, out, error);
}

void fake_gpu_check_returned(void) {
    fake_driver_counts counts = fake_driver_count();
    assert_int_equal(counts.blocks, 0);
    assert_int_equal(counts.host_blocks, 0);
    assert_int_equal(counts.streams, 0);
    assert_int_equal(counts.modules, 0);
    assert_int_equal(counts.contexts, 0);
    assert_true(counts.launches > 0);
}

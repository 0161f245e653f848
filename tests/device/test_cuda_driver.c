/* Finding and starting NVIDIA's driver: messages and statuses of each failure, the list of GPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/cuda/cuda_images.h"
#include "device/cuda/cuda_launch.h"
#include "support/cuda/fake_driver.h"
#include "support/cuda/least_gpu.h"

static void assert_has(const sifr_error *error, const char *part) {
    if (!strstr(error->message, part)) fail_msg("no \"%s\" in: %s", part, error->message);
}

static cuda_driver open_fake(int devices) {
    cuda_driver driver;
    const fake_driver_options options = {.devices = devices, .memory = 80000000000u};
    fake_driver_open(&options, &driver);
    return driver;
}

static void test_gpus_are_listed(void **state) {
    (void)state;
    cuda_driver driver = open_fake(2);
    sifr_error error = {0};
    int count;
    cuda_gpu gpu;
    assert_int_equal(cuda_driver_start(&driver, 13000, &error), SIFR_OK);
    assert_int_equal(driver.version, 13000);
    assert_int_equal(cuda_driver_count(&driver, &count, &error), SIFR_OK);
    assert_int_equal(count, 2);
    assert_int_equal(cuda_driver_gpu(&driver, 1, &gpu, &error), SIFR_OK);
    assert_string_equal(gpu.name, "Fake GPU");
    assert_string_equal(gpu.uuid, "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f");
    assert_string_equal(gpu.bus, "0000:02:00.0");
    assert_int_equal(gpu.capability_major, 9);
    assert_int_equal(gpu.capability_minor, 0);
    assert_int_equal(gpu.multiprocessors, 132);
    assert_int_equal(gpu.shared_bytes, LEAST_GPU_SHARED);
    assert_int_equal(gpu.memory, 80000000000u);
    assert_int_equal(cuda_driver_gpu(&driver, 2, &gpu, &error), SIFR_FAILED);
    assert_has(&error, "cuDeviceGet: CUDA_ERROR_INVALID_DEVICE 101 (invalid device ordinal)");
    fake_driver_close();
}

static cuda_result version_12040(int *version) {
    *version = 12040;
    return CUDA_OK;
}

static cuda_result version_11080(int *version) {
    *version = 11080;
    return CUDA_OK;
}

static cuda_result version_13020(int *version) {
    *version = 13020;
    return CUDA_OK;
}

static void test_an_old_driver(void **state) {
    (void)state;
    cuda_driver driver = open_fake(1);
    sifr_error error = {0};
    driver.cuDriverGetVersion = version_12040;
    assert_int_equal(cuda_driver_start(&driver, 13000, &error), SIFR_FAILED);
    assert_has(&error, "too old: it serves CUDA 12.4, and sifr needs 13.0; install driver 580");
    /* Without kernels, or with those of an earlier toolkit, it serves. */
    assert_int_equal(cuda_driver_start(&driver, 0, &error), SIFR_OK);
    assert_int_equal(cuda_driver_start(&driver, 12080, &error), SIFR_OK);
    driver.cuDriverGetVersion = version_11080;
    assert_int_equal(cuda_driver_start(&driver, 0, &error), SIFR_FAILED);
    assert_has(&error, "it serves CUDA 11.8, and sifr needs 12.0; install driver 525");
    driver.cuDriverGetVersion = version_13020;
    assert_int_equal(cuda_driver_start(&driver, 13000, &error), SIFR_OK);
    fake_driver_close();
}

static cuda_result refuse_no_device(unsigned flags) {
    (void)flags;
    return CUDA_NO_DEVICE;
}

static cuda_result refuse_linking_library(unsigned flags) {
    (void)flags;
    return CUDA_STUB_LIBRARY;
}

static cuda_result refuse_mismatch(unsigned flags) {
    (void)flags;
    return CUDA_SYSTEM_DRIVER_MISMATCH;
}

static cuda_result refuse_unknown(unsigned flags) {
    (void)flags;
    return CUDA_UNKNOWN;
}

static void test_a_driver_that_does_not_start(void **state) {
    (void)state;
    cuda_driver driver = open_fake(1);
    sifr_error error = {0};
    unsetenv("CUDA_VISIBLE_DEVICES");
    driver.cuInit = refuse_no_device;
    assert_int_equal(cuda_driver_start(&driver, 0, &error), SIFR_FAILED);
    assert_has(&error, "sees no GPU; nvidia-smi must list one");
    setenv("CUDA_VISIBLE_DEVICES", "7", 1);
    assert_int_equal(cuda_driver_start(&driver, 0, &error), SIFR_FAILED);
    assert_has(&error, "CUDA_VISIBLE_DEVICES=\"7\"; unset it");
    unsetenv("CUDA_VISIBLE_DEVICES");
    driver.cuInit = refuse_linking_library;
    assert_int_equal(cuda_driver_start(&driver, 0, &error), SIFR_FAILED);
    assert_has(&error, "is CUDA's library for linking programs, not a driver");
    driver.cuInit = refuse_mismatch;
    assert_int_equal(cuda_driver_start(&driver, 0, &error), SIFR_FAILED);
    assert_has(&error, "restart the machine");
    driver.cuInit = refuse_unknown;
    assert_int_equal(cuda_driver_start(&driver, 0, &error), SIFR_FAILED);
    assert_has(&error, "does not start: cuInit: an unknown CUDA error 999 (no text)");
    fake_driver_close();
}

static void test_errors_become_statuses(void **state) {
    (void)state;
    cuda_driver driver = open_fake(1);
    sifr_error error = {0};
    assert_int_equal(cuda_driver_status(&driver, CUDA_OK, &error, "nothing"), SIFR_OK);
    assert_int_equal(cuda_driver_status(&driver, CUDA_OUT_OF_MEMORY, &error, "block %d", 7),
                     SIFR_NO_MEMORY);
    assert_string_equal(error.message, "block 7: CUDA_ERROR_OUT_OF_MEMORY 2 (out of memory)");
    assert_int_equal(cuda_driver_status(&driver, CUDA_ILLEGAL_ADDRESS, &error, "step"),
                     SIFR_FAILED);
    assert_has(&error, "CUDA_ERROR_ILLEGAL_ADDRESS 700");
    assert_has(&error, "start it again");
    assert_int_equal(cuda_driver_status(&driver, CUDA_INVALID_VALUE, &error, "step"), SIFR_FAILED);
    assert_null(strstr(error.message, "start it again"));
    assert_true(cuda_driver_is_lost(CUDA_LAUNCH_FAILED));
    assert_true(cuda_driver_is_lost(CUDA_ECC_UNCORRECTABLE));
    assert_true(cuda_driver_is_lost(CUDA_NVLINK_UNCORRECTABLE));
    assert_true(cuda_driver_is_lost(CUDA_CONTEXT_IS_DESTROYED));
    assert_true(cuda_driver_is_lost(CUDA_CONTAINED));
    assert_true(cuda_driver_is_lost(CUDA_TENSOR_MEMORY_LEAK));
    assert_true(cuda_driver_is_lost(CUDA_MPS_CLIENT_TERMINATED));
    assert_true(cuda_driver_is_lost(CUDA_EXTERNAL_DEVICE));
    assert_false(cuda_driver_is_lost(CUDA_LAUNCH_OUT_OF_RESOURCES));
    assert_false(cuda_driver_is_lost(CUDA_LAUNCH_TOO_LARGE));
    assert_false(cuda_driver_is_lost(CUDA_UNKNOWN));
    assert_false(cuda_driver_is_lost(CUDA_NOT_READY));
    assert_false(cuda_driver_is_lost(CUDA_OUT_OF_MEMORY));
    fake_driver_close();
}

static void test_the_system_has_one_or_says_why(void **state) {
    (void)state;
    cuda_driver driver;
    sifr_error error = {0};
    if (cuda_driver_open(&driver, 0, &error) == SIFR_OK) {
        assert_true(driver.version >= CUDA_DRIVER_LEAST);
        assert_true(driver.path[0] == '/');
        return;
    }
    assert_true(strlen(error.message) > 20);
    if (!driver.path[0]) assert_has(&error, "libcuda.so.1");
}

/* With CUDA there are kernels, and targets that they were built for; without, neither. */
static void test_images_are_fatbins(void **state) {
    (void)state;
    const uint32_t magic = 0xba55ed50;
    size_t count, kernels = 0;
    const cuda_image *images = cuda_images(&count);
    assert_int_equal(cuda_images_version() > 0, count > 0);
    assert_int_equal(strlen(cuda_images_targets()) > 1, count > 0);
    for (size_t i = 0; i < count; i++) {
        assert_true(strlen(images[i].name) > 0);
        assert_int_equal((uintptr_t)images[i].data % 64, 0);
        assert_memory_equal(images[i].data, &magic, sizeof magic);
        kernels += images[i].kernel_count;
    }
    assert_int_equal(kernels, count > 0 ? CUDA_KERNELS : 0);
    if (count == 0) print_message("built without CUDA\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpus_are_listed),
        cmocka_unit_test(test_an_old_driver),
        cmocka_unit_test(test_a_driver_that_does_not_start),
        cmocka_unit_test(test_errors_become_statuses),
        cmocka_unit_test(test_images_are_fatbins),
        cmocka_unit_test(test_the_system_has_one_or_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

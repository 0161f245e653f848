/* Kinds of devices by their rows: names, and what a kind without GPUs answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "device/kinds.h"

static void expect(sifr_status status, sifr_status wanted, const sifr_error *error,
                   const char *message) {
    assert_int_equal(status, wanted);
    assert_string_equal(error->message, message);
}

static void names(void **state) {
    (void)state;
    sifr_device kind;
    for (int i = SIFR_DEVICE_AUTO; i <= SIFR_DEVICE_CUDA; i++) {
        assert_true(device_kind_find(device_kind_name((sifr_device)i), &kind));
        assert_int_equal(kind, i);
    }
    assert_string_equal(device_kind_name(SIFR_DEVICE_CUDA), "cuda");
    assert_false(device_kind_find("tpu", &kind));
    assert_false(device_kind_find("", &kind));
}

static void no_gpu(void *argument, const device_gpu *gpu) {
    (void)argument, (void)gpu;
    fail();
}

static void cpu_is_no_gpu(void **state) {
    (void)state;
    const device_description description = {0};
    device_found found;
    device_driver driver = {.version = 7};
    device *dev;
    sifr_error error = {0};
    const device_build build = device_build_of(SIFR_DEVICE_CPU);
    assert_int_equal(build.version, 0);
    assert_string_equal(build.targets, "");
    assert_true(device_is_there(SIFR_DEVICE_CPU));
    expect(device_choose(SIFR_DEVICE_CPU, 0, &found, &error), SIFR_FAILED, &error,
           "device cpu is no kind of GPU (supported: cuda)");
    expect(device_survey(SIFR_DEVICE_CPU, &driver, no_gpu, NULL, &error), SIFR_FAILED, &error,
           "device cpu is no kind of GPU (supported: cuda)");
    assert_int_equal(driver.version, 0);
    expect(device_open_described(SIFR_DEVICE_CPU, 1, &description, &dev, &error), SIFR_USAGE,
           &error,
           "device cpu: a described device of this kind is not supported yet (supported: cuda)");
}

/* In this order `sifr doctor` lists them. */
static void libraries(void **state) {
    (void)state;
    device_library library;
    sifr_error error = {0};
    assert_string_equal(device_library_name(SIFR_DEVICE_CUDA, 0), "cuBLASLt");
    assert_string_equal(device_library_name(SIFR_DEVICE_CUDA, 1), "NCCL");
    assert_null(device_library_name(SIFR_DEVICE_CUDA, 2));
    assert_null(device_library_name(SIFR_DEVICE_CPU, 0));
    expect(device_library_open(SIFR_DEVICE_CUDA, "cuFFT", 0, &library, &error), SIFR_FAILED, &error,
           "device cuda has no library cuFFT");
    expect(device_library_open(SIFR_DEVICE_CPU, "NCCL", 0, &library, &error), SIFR_FAILED, &error,
           "device cpu has no library NCCL");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(cpu_is_no_gpu),
        cmocka_unit_test(libraries),

    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Kinds of devices by their rows: names, what a kind without GPUs answers, and what only some
 * devices can do. */
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

/* A device that cannot tell waits for the mark; only a GPU has streams for other libraries. */
static void streams_and_marks(void **state) {
    (void)state;
    const device_place place = {0};
    device *devices[2];
    sifr_error error = {0};
    assert_int_equal(device_open(SIFR_DEVICE_CPU, &place, 1, NULL, &devices[0], &error), SIFR_OK);
    assert_int_equal(device_open_queued(1, NULL, 200, 5, &devices[1], &error), SIFR_OK);
    for (int i = 0; i < 2; i++) {
        void *stream;
        bool reached = false;
        device_mark mark;
        assert_int_equal(device_mark_here(devices[i], DEVICE_EXCHANGE, &mark, &error), SIFR_OK);
        assert_int_equal(device_reached(devices[i], mark, &reached, &error), SIFR_OK);
        assert_true(reached);
        expect(device_enter(devices[i], DEVICE_EXCHANGE, &stream, &error), SIFR_FAILED, &error,
               "this device is no GPU of NVIDIA's: it has no streams for other libraries");
        device_close(devices[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(cpu_is_no_gpu),
        cmocka_unit_test(libraries),
        cmocka_unit_test(streams_and_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cuda/fake_driver.h"
#include "support/cuda/fake_gpu.h"
#include "support/cuda/fake_lt.h"
#include "support/cuda/fake_ran.h"
#include "support/cuda/fake_wishes.h"

static cuda_driver driver;

static bool is_set(const char *name, const char *to) {
    const char *value = getenv(name);
    return value && strcmp(value, to) == 0;
}

bool fake_gpu_is_real(void) {
    return is_set("SIFR_TEST_GPU", "1");
}

static bool wants_own(void) {
    return is_set("SIFR_CUDA_PRODUCTS", "own");
}

static sifr_status open_lt(cuda_lt *lt, sifr_error *error) {
    return fake_gpu_is_real() ? cuda_lt_open(driver.version, lt, error) : fake_wishes_lt(lt, error);
}

bool fake_gpu_has_lt(void) {
    cuda_lt lt;
    sifr_error error;
    if (wants_own() || open_lt(&lt, &error) == SIFR_OK) return true;
    print_message("%s\n", error.message);
    return false;
}

void fake_gpu_check_lt(void) {
    if (!fake_gpu_is_real() && !wants_own()) assert_true(fake_lt_count().products > 0);
}

sifr_status fake_gpu_begin(const cuda_driver **out, sifr_error *error) {
    *out = &driver;
    if (fake_gpu_is_real()) return cuda_driver_open(&driver, cuda_images_version(), error);
    fake_wishes_open(&driver);
    return cuda_driver_start(&driver, 0, error);
}

int fake_gpu_start(void **state) {
    const cuda_driver *begun;
    sifr_error error;
    (void)state;
    sifr_status status = fake_gpu_begin(&begun, &error);
    if (status != SIFR_OK) print_error("%s\n", error.message);
    return status;
}

/* Once, as a test that failed may not have said why: after some errors every call gives the same
 * one, while a context is there. */
static void say_lost(void) {
    static bool said;
    size_t left, all;
    sifr_error error;
    cuda_result result = driver.cuMemGetInfo ? driver.cuMemGetInfo(&left, &all) : CUDA_OK;
    if (said || !cuda_driver_is_lost(result)) return;
    said = true;
    if (cuda_driver_status(&driver, result, &error, "the GPU failed") != SIFR_OK)
        printf("%s\n", error.message);
}

static void note_closing(const device *dev) {
    say_lost();
    fake_ran_note(dev);
}

int fake_gpu_stop(void **state) {
    (void)state;
    say_lost();
    fake_ran_print();
    if (!fake_gpu_is_real()) fake_driver_close();
    return 0;
}

static sifr_status open_gpu(int64_t token_chunk, const cuda_lt *lt, device **out,
                            sifr_error *error) {
    static const cuda_image image = {.name = "fake", .data = "fake"};
    cuda_options options = {
        .driver = &driver,
        .threads = 1,
        .token_chunk = token_chunk,
        .check = is_set("SIFR_DEVICE_CHECK", "1"),
        .host_waits = is_set("SIFR_DEVICE_WAITS", "host") ? "SIFR_DEVICE_WAITS=host" : NULL,
        .closing = note_closing,
        .lt = lt,
        .lt_needed = true};
    if (!fake_gpu_is_real()) options.images = &image, options.image_count = 1;
    return cuda_device_open(&options, out, error);
}

sifr_status fake_gpu_open(device **out, sifr_error *error) {
    return open_gpu(0, NULL, out, error);
}

sifr_status fake_gpu_open_short(device **out, sifr_error *error) {
    return open_gpu(FAKE_GPU_SHORT_CHUNK, NULL, out, error);
}

sifr_status fake_gpu_open_lt(device **out, sifr_error *error) {
    cuda_lt lt;
    if (wants_own()) return open_gpu(0, NULL, out, error);
    BASE_TRY(open_lt(&lt, error));
    return open_gpu(0, &lt, out, error);
}

void fake_gpu_check_returned(void) {
    if (fake_gpu_is_real()) return;
    fake_driver_counts counts = fake_driver_count();
    assert_int_equal(counts.blocks, 0);
    assert_int_equal(counts.host_blocks, 0);
    assert_int_equal(counts.streams, 0);
    assert_int_equal(counts.modules, 0);
    assert_int_equal(counts.contexts, 0);
    assert_int_equal(counts.early_frees, 0);
    assert_true(counts.launches > 0);
}

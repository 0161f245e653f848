/* Which GPU a rank has, and what ranks find of each other's GPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "device/cuda/cuda_choice.h"
#include "engine/check/device_choice.h"
#include "support/cuda/fake_driver.h"

static void assert_has(const sifr_error *error, const char *part) {
    if (!strstr(error->message, part)) fail_msg("no \"%s\" in: %s", part, error->message);
}

static void start(int devices, cuda_choice *choice) {
    const fake_driver_options options = {.devices = devices};
    sifr_error error;
    fake_driver_open(&options, &choice->driver);
    assert_int_equal(cuda_driver_start(&choice->driver, 0, &error), SIFR_OK);
}

/* GPUs go around the ranks of a host. */
static void gpus_by_rank(void **state) {
    (void)state;
    static const int devices[] = {1, 3, 8};
    for (size_t d = 0; d < 3; d++) {
        cuda_choice choice;
        sifr_error error;
        start(devices[d], &choice);
        for (int rank = 0; rank < 9; rank++) {
            char uuid[16];
            assert_int_equal(cuda_choose_gpu(rank, &choice, &error), SIFR_OK);
            assert_int_equal(choice.count, devices[d]);
            assert_int_equal(choice.index, rank % devices[d]);
            snprintf(uuid, sizeof uuid, "GPU-%d0", rank % devices[d]);
            assert_memory_equal(choice.gpu.uuid, uuid, strlen(uuid));
        }
        fake_driver_close();
    }
}

static cuda_result count_none(int *count) {
    *count = 0;
    return CUDA_OK;
}

static int capability[2];

static cuda_result attribute(int *value, unsigned which, cuda_device_handle gpu) {
    (void)gpu;
    *value = which == CUDA_DEVICE_CAPABILITY_MAJOR   ? capability[0]
             : which == CUDA_DEVICE_CAPABILITY_MINOR ? capability[1]
                                                     : 1;
    return CUDA_OK;
}

static void no_gpu(void **state) {
    (void)state;
    cuda_choice choice;
    sifr_error error;
    start(1, &choice);
    choice.driver.cuDeviceGetAttribute = attribute;
    capability[0] = 7, capability[1] = 5;
    assert_int_equal(cuda_choose_gpu(0, &choice, &error), SIFR_FAILED);
    assert_has(&error, "Fake GPU has compute capability 7.5, and sifr's kernels need 8.0");
    capability[0] = 8, capability[1] = 0;
    assert_int_equal(cuda_choose_gpu(0, &choice, &error), SIFR_OK);
    choice.driver.cuDeviceGetCount = count_none;
    assert_int_equal(cuda_choose_gpu(0, &choice, &error), SIFR_FAILED);
    assert_has(&error, "no GPU for this process");
    fake_driver_close();
}

static void sharers(void **state) {
    (void)state;
    /* Two hosts of three ranks: the first has two GPUs, the second shows each rank its own. */
    const engine_gpu gpus[] = {{"GPU-a", "A", 8, 0}, {"GPU-b", "A", 8, 0}, {"GPU-a", "A", 8, 0},
                               {"GPU-c", "A", 8, 0}, {"GPU-d", "A", 8, 0}, {"GPU-e", "A", 8, 0}};
    static const int32_t wanted[] = {2, 1, 2, 1, 1, 1};
    sifr_error error;
    for (int32_t r = 0; r < 6; r++) assert_int_equal(engine_count_sharers(gpus, 6, r), wanted[r]);
    assert_int_equal(engine_count_sharers(gpus, 1, 0), 1);
    assert_int_equal(engine_compare_gpus(gpus, 6, &error), SIFR_OK);
}

static void kinds(void **state) {
    (void)state;
    const engine_gpu gpus[] = {{"GPU-a", "H100", 9, 0},
                               {"GPU-b", "H200", 9, 0},
                               {"GPU-c", "A100", 8, 0},
                               {"GPU-d", "A10", 8, 6}};
    sifr_error error;
    assert_int_equal(engine_compare_gpus(gpus, 2, &error), SIFR_OK);
    assert_int_equal(engine_compare_gpus(gpus, 4, &error), SIFR_USAGE);
    assert_has(&error, "rank 2 has a GPU of compute capability 8.0 (A100), and rank 0 one of 9.0 "
                       "(H100)");
    assert_int_equal(engine_compare_gpus(gpus + 2, 2, &error), SIFR_USAGE);
    assert_has(&error, "rank 1 has a GPU of compute capability 8.6 (A10)");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(gpus_by_rank), cmocka_unit_test(no_gpu),
                                       cmocka_unit_test(sharers), cmocka_unit_test(kinds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

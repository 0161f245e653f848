/* Limits that cuBLASLt's products keep, on the fake driver: how far the host goes ahead of a word,
 * and the memory that is left for its kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_flags.h"
#include "device/flag.h"
#include "support/cuda/fake_kernels.h"
#include "support/cuda/fake_lt.h"
#include "support/cuda/shim_run.h"

enum { CHUNK = 1024 };

static cuda_driver driver;
static const fake_lt_trouble none;

static int start(void **state) {
    fake_driver_options options = {0};
    sifr_error error;
    (void)state;
    options.kernels = fake_shim_kernels(SHIM_UP, &options.kernel_count);
    fake_driver_open(&options, &driver);
    return cuda_driver_start(&driver, 0, &error);
}

static int stop(void **state) {
    (void)state;
    fake_driver_close();
    return 0;
}

static device *open_lt(void) {
    static const cuda_image image = {.name = "fake", .data = "fake"};
    device *dev;
    cuda_lt lt;
    sifr_error error;
    fake_lt_open(&none, &lt);
    cuda_options options = {.driver = &driver,
                            .token_chunk = CHUNK,
                            .threads = 1,
                            .images = &image,
                            .image_count = 1,
                            .lt = &lt};
    if (cuda_device_open(&options, &dev, &error) != SIFR_OK) fail_msg("%s", error.message);
    return dev;
}

enum { FAR_CHUNKS = 20, FAR_RUNS = 3 * CUDA_AHEAD / FAR_CHUNKS };

typedef struct far_run {
    device *dev;
    device_call call;
} far_run;

static void *give_far(void *argument) {
    const far_run *far = argument;
    sifr_error error;
    for (int i = 0; i < FAR_RUNS; i++)
        if (device_run(far->dev, &far->call, &error) != SIFR_OK) abort();
    return NULL;
}

static void rest(void) {
    const struct timespec nap = {.tv_nsec = 20000000};
    nanosleep(&nap, NULL);
}

/* Each chunk of a weight gradient is a piece of work: the host stops as far behind a word that is
 * not written as with kernels. */
static void not_too_far_ahead(void **state) {
    (void)state;
    far_run far = {.dev = open_lt(), .call = {.kernel = DEVICE_LINEAR_BACKWARD}};
    const int64_t rows = FAR_CHUNKS * CHUNK, bytes = rows * 16, matrix = 64;
    pthread_t thread;
    device_flag *word;
    char *block;
    sifr_error error;
    far.call.x[0] = far.call.dy = (device_matrix){NULL, rows, 8, 8, BASE_BF16};
    far.call.w[0] = (device_matrix){NULL, 8, 8, 8, BASE_BF16};
    far.call.dw[0] = (device_matrix){NULL, 8, 8, 8, BASE_FP32};
    assert_int_equal(device_prepare(far.dev, &far.call, &error), SIFR_OK);
    int64_t all = 2 * bytes + 8 * matrix + far.call.scratch_bytes;
    assert_int_equal(device_take(far.dev, all, (void **)&block, &error), SIFR_OK);
    assert_int_equal(device_take_host(far.dev, 4, (void **)&word, &error), SIFR_OK);
    far.call.x[0].data = block, far.call.dy.data = block + bytes;
    far.call.w[0].data = block + 2 * bytes, far.call.dw[0].data = block + 2 * bytes + 2 * matrix;
    far.call.scratch = block + 2 * bytes + 8 * matrix;
    int64_t before = fake_driver_count().launches;
    assert_int_equal(device_wait_flag(far.dev, word, 1, &error), SIFR_OK);
    assert_int_equal(pthread_create(&thread, NULL, give_far, &far), 0);
    while (fake_driver_count().launches - before < CUDA_AHEAD - 2 * FAR_CHUNKS) rest();
    rest();
    assert_true(fake_driver_count().deepest <= CUDA_AHEAD);
    device_flag_set(word, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(device_finish_queue(far.dev, DEVICE_COMPUTE, &error), SIFR_OK);
    assert_int_equal(fake_lt_count().products, FAR_RUNS * FAR_CHUNKS);
    device_give(far.dev, word, 4);
    device_give(far.dev, block, all);
    device_close(far.dev);
}

/* Each of several ranks on a GPU keeps as much; a full GPU has a room, which takes nothing. */
static void capacity_of_ranks(void **state) {
    (void)state;
    enum { MEMORY = 64 << 20 };
    static const cuda_image image = {.name = "fake", .data = "fake"};
    const int64_t kept = MEMORY / 16;
    cuda_lt lt;
    cuda_options options = {
        .driver = &driver, .threads = 1, .images = &image, .image_count = 1, .lt = &lt};
    fake_lt_open(&none, &lt);
    for (options.sharers = 1; options.sharers <= 16; options.sharers *= 4) {
        device *dev;
        sifr_error error;
        fake_driver_limit(MEMORY);
        assert_int_equal(cuda_device_open(&options, &dev, &error), SIFR_OK);
        int64_t wanted = MEMORY / options.sharers - kept;
        assert_int_equal(device_capacity(dev), wanted > 0 ? wanted : 1);
        fake_driver_limit((uint64_t)80000000000);
        assert_int_equal(device_capacity(dev), 80000000000 / options.sharers - 500000000);
        device_close(dev);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(not_too_far_ahead, start, stop),
        cmocka_unit_test_setup_teardown(capacity_of_ranks, start, stop),
    };
    if (shim_skipped()) return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

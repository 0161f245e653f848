/* Products and attention again and again, beside another stream that keeps the GPU busy: the same
 * bits each time. On the fake driver in small; with SIFR_TEST_GPU=1 the shapes of models on this
 * machine's first GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "support/cuda/fake_gpu.h"
#include "support/cuda/gpu_work.h"
#include "support/cuda/shim_run.h"

static const base_dtype types[] = {BASE_BF16, BASE_FP32};

/* What makes noise: a device of its own, so a stream of its own. */
typedef struct noise {
    device *dev;
    gpu_work work;
    _Atomic bool stop;
    _Atomic int64_t rounds;
    sifr_status status; /* of the thread, once it has ended */
    sifr_error error;
    pthread_t thread;
} noise;

static void *make_noise(void *argument) {
    noise *n = argument;
    n->status = SIFR_OK;
    while (!atomic_load(&n->stop) && n->status == SIFR_OK) {
        for (int part = 0; part < GPU_PARTS && n->status == SIFR_OK; part++)
            n->status = gpu_work_run(&n->work, (gpu_part)part, &n->error);
        if (n->status == SIFR_OK) n->status = gpu_work_finish(&n->work, NULL, &n->error);
        atomic_fetch_add(&n->rounds, 1);
    }
    return NULL;
}

static void must(sifr_status status, const char *what, const sifr_error *error) {
    if (status != SIFR_OK) fail_msg("%s: %s", what, error->message);
}

static void start_noise(noise *n) {
    size_t count;
    const gpu_shape *shapes = gpu_shapes(!fake_gpu_is_real(), &count);
    must(fake_gpu_open(&n->dev, &n->error), "noise", &n->error);
    must(gpu_work_open(&n->work, n->dev, &shapes[0], BASE_BF16, 99, &n->error), "noise", &n->error);
    assert_int_equal(pthread_create(&n->thread, NULL, make_noise, n), 0);
}

static void stop_noise(noise *n) {
    atomic_store(&n->stop, true);
    assert_int_equal(pthread_join(n->thread, NULL), 0);
    must(n->status, "noise", &n->error);
    assert_true(atomic_load(&n->rounds) > 0);
    gpu_work_close(&n->work);
    device_close(n->dev);
}

/* One forward and one backward call, from cleared results. */
static void run_once(gpu_work *work, void *to, const char *name) {
    sifr_error error = {0};
    must(gpu_work_clear(work, &error), name, &error);
    for (int part = 0; part < GPU_PARTS; part++)
        must(gpu_work_run(work, (gpu_part)part, &error), name, &error);
    must(gpu_work_finish(work, to, &error), name, &error);
}

static void repeat(device *dev, const gpu_shape *shape, base_dtype type, int times) {
    sifr_error error = {0};
    gpu_work work;
    void *first, *again;
    must(gpu_work_open(&work, dev, shape, type, 1, &error), shape->name, &error);
    must(device_take_host(dev, work.result_bytes, &first, &error), shape->name, &error);
    must(device_take_host(dev, work.result_bytes, &again, &error), shape->name, &error);
    run_once(&work, first, shape->name);
    bool any = false; /* cleared results are not taken for computed ones */
    for (int64_t i = 0; i < work.result_bytes && !any; i++) any = ((const char *)first)[i] != 0;
    assert_true(any);
    for (int i = 1; i < times; i++) {
        run_once(&work, again, shape->name);
        if (memcmp(first, again, (size_t)work.result_bytes) != 0)
            fail_msg("%s, %s: run %d has other bits", shape->name, base_dtype_name(type), i + 1);
    }
    print_message("%s, %s: %d runs, the same bits\n", shape->name, base_dtype_name(type), times);
    device_give(dev, first, work.result_bytes);
    device_give(dev, again, work.result_bytes);
    gpu_work_close(&work);
}

static void same_bits_beside_noise(void **state) {
    (void)state;
    bool real = fake_gpu_is_real();
    size_t count;
    const gpu_shape *shapes = gpu_shapes(!real, &count);
    static noise other;
    device *dev;
    sifr_error error = {0};
    must(fake_gpu_open(&dev, &error), "device", &error);
    start_noise(&other);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t i = 0; i < count; i++)
            repeat(dev, &shapes[i], types[t], real ? (types[t] == BASE_BF16 ? 50 : 10) : 3);
    stop_noise(&other);
    device_close(dev);
    fake_gpu_check_returned();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits_beside_noise)};
    if (shim_skipped()) return 77;
    return cmocka_run_group_tests(tests, fake_gpu_start, fake_gpu_stop);
}

/* Products and attention again and again, beside another stream that keeps the GPU busy: the same
 * bits each time. On the fake driver in small; with SIFR_TEST_GPU=1 the shapes of models on this
 * machine's first GPU. Words: the type, bf16 or fp32, and how often; without them both types. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "support/cuda/fake_gpu.h"
#include "support/cuda/gpu_work.h"
#include "support/cuda/shim_run.h"

/* What is asked for. */
static base_dtype only = BASE_NONE; /* BASE_NONE: both types */
static int wanted_runs = 0;         /* 0: as many as there is time for */

/* A real GPU's results are some GB in all. They go to the host in pieces: while one is copied, the
 * one before is hashed. */
enum { PIECE = 8 << 20, SMALL_PIECE = 4 << 10 };

typedef struct digester {
    device *dev;
    char *pieces[2]; /* of the host, for copies */
    int64_t bytes;   /* of each */
    bool any;        /* a byte was not 0 */
} digester;

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

static void open_digester(digester *d, device *dev) {
    sifr_error error = {0};
    *d = (digester){.dev = dev, .bytes = fake_gpu_is_real() ? PIECE : SMALL_PIECE};
    for (int i = 0; i < 2; i++)
        must(device_take_host(dev, d->bytes, (void **)&d->pieces[i], &error), "pieces", &error);
}

static void close_digester(digester *d) {
    for (int i = 0; i < 2; i++) device_give(d->dev, d->pieces[i], d->bytes);
}

/* Of the results, when all that computes them has ended. */
static uint64_t digest(digester *d, const gpu_work *work) {
    const char *from = work->block + work->results;
    const int64_t count = (work->result_bytes + d->bytes - 1) / d->bytes;
    device_mark marks[2];
    uint64_t hash = 0;
    sifr_error error = {0};
    must(device_finish_queue(d->dev, DEVICE_COMPUTE, &error), "results", &error);
    for (int64_t i = 0; i <= count; i++) {
        if (i < count) {
            int64_t bytes = base_min_i64(d->bytes, work->result_bytes - i * d->bytes);
            must(device_start_copy(d->dev, DEVICE_OUT, d->pieces[i % 2], from + i * d->bytes, bytes,
                                   &error),
                 "results", &error);
            must(device_mark_here(d->dev, DEVICE_OUT, &marks[i % 2], &error), "results", &error);
        }
        if (i == 0) continue;
        const char *piece = d->pieces[(i - 1) % 2];
        int64_t bytes = base_min_i64(d->bytes, work->result_bytes - (i - 1) * d->bytes);
        must(device_finish(d->dev, marks[(i - 1) % 2], &error), "results", &error);
        hash = base_hash_seeded(piece, (size_t)bytes, hash);
        d->any = d->any || piece[0] || memcmp(piece, piece + 1, (size_t)bytes - 1) != 0;
    }
    return hash;
}

/* One forward and one backward call, from cleared results. */
static uint64_t run_once(digester *d, gpu_work *work, const char *name) {
    sifr_error error = {0};
    must(gpu_work_clear(work, &error), name, &error);
    for (int part = 0; part < GPU_PARTS; part++)
        must(gpu_work_run(work, (gpu_part)part, &error), name, &error);
    return digest(d, work);
}

/* That the digest sees one bit, in the byte `at` of the results. */
static void check_sees_a_bit(digester *d, const gpu_work *work, int64_t at) {
    sifr_error error = {0};
    char *byte = work->block + work->results + at, value;
    uint64_t before = digest(d, work);
    must(device_copy(d->dev, &value, byte, 1, &error), "a bit", &error);
    value ^= 16;
    must(device_copy(d->dev, byte, &value, 1, &error), "a bit", &error);
    assert_true(digest(d, work) != before);
}

static void repeat(device *dev, const char *by, const gpu_shape *shape, base_dtype type,
                   int times) {
    sifr_error error = {0};
    gpu_work work;
    digester d;
    must(gpu_work_open(&work, dev, shape, type, 1, &error), shape->name, &error);
    open_digester(&d, dev);
    uint64_t first = run_once(&d, &work, shape->name);
    assert_true(d.any); /* cleared results are not taken for computed ones */
    for (int i = 1; i < times; i++)
        if (run_once(&d, &work, shape->name) != first)
            fail_msg("%s, %s, %s: run %d has other bits", shape->name, base_dtype_name(type), by,
                     i + 1);
    check_sees_a_bit(&d, &work, 0);
    check_sees_a_bit(&d, &work, work.result_bytes - 1);
    print_message("%s, %s, %s: %d runs, the same bits\n", shape->name, base_dtype_name(type), by,
                  times);
    close_digester(&d);
    gpu_work_close(&work);
}

static int runs_of(base_dtype type) {
    if (wanted_runs) return wanted_runs;
    return !fake_gpu_is_real() ? 3 : type == BASE_BF16 ? 50 : 10;
}

/* Of cuBLASLt only products: the rest is computed by the same kernels. */
static void repeat_all(device *dev, bool lt) {
    static const base_dtype types[] = {BASE_BF16, BASE_FP32};
    size_t count;
    const gpu_shape *shapes = gpu_shapes(!fake_gpu_is_real(), &count);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t i = 0; i < count; i++) {
            if (only != BASE_NONE && only != types[t]) continue;
            if (lt && (shapes[i].heads || types[t] == BASE_FP32)) continue;
            repeat(dev, lt ? "cuBLASLt" : "own kernels", &shapes[i], types[t], runs_of(types[t]));
        }
}

static void same_bits_beside_noise(void **state) {
    (void)state;
    static noise other;
    const char *wish = getenv("SIFR_CUDA_PRODUCTS");
    const bool own = wish && strcmp(wish, "own") == 0, has_lt = !own && fake_gpu_has_lt();
    device *dev;
    sifr_error error = {0};
    start_noise(&other);
    for (int lt = 0; lt <= has_lt; lt++) {
        must(lt ? fake_gpu_open_lt(&dev, &error) : fake_gpu_open(&dev, &error), "device", &error);
        repeat_all(dev, lt);
        device_close(dev);
    }
    stop_noise(&other);
    fake_gpu_check_returned();
}

static bool read_words(int count, char **words) {
    if (count > 1 && strcmp(words[1], "bf16") == 0) only = BASE_BF16;
    if (count > 1 && strcmp(words[1], "fp32") == 0) only = BASE_FP32;
    if (count > 2) wanted_runs = atoi(words[2]);
    return count == 1 || (count <= 3 && only != BASE_NONE && (count == 2 || wanted_runs > 1));
}

int main(int count, char **words) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits_beside_noise)};
    if (!read_words(count, words)) {
        print_error("usage: test_gpu_repeat [bf16|fp32 [RUNS, at least 2]]\n");
        return 2;
    }
    if (shim_skipped()) return 77;
    return cmocka_run_group_tests(tests, fake_gpu_start, fake_gpu_stop);
}

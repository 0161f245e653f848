/* The team of threads: every tile once, with more threads than cores, and work that follows work;
 * what device_prepare refuses, and memory.
 * in test_asan, in test_tsan */
#include "device/host_team.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/topology.h"
#include "device/device.h"

enum { TILES = 1000 };

typedef struct tiles_seen {
    int threads;
    int64_t sum;           /* of the round before: read by all, written between rounds */
    int64_t values[TILES]; /* plain memory: only the team orders these */
    _Atomic int runs[TILES];
    atomic_bool bad;
} tiles_seen;

static void see(void *argument, int64_t tile, int thread) {
    tiles_seen *seen = argument;
    if (thread < 0 || thread >= seen->threads) atomic_store(&seen->bad, true);
    seen->values[tile] = seen->sum + tile;
    atomic_fetch_add(&seen->runs[tile], 1);
}

static void test_every_tile_once(void **state) {
    static const int threads[] = {1, 2, 3, 8};
    (void)state;
    for (int t = 0; t < 4; t++) {
        host_team *team = NULL;
        tiles_seen seen = {.threads = threads[t]};
        assert_int_equal(host_team_create(threads[t], &team, NULL), SIFR_OK);
        assert_int_equal(host_team_threads(team), threads[t]);
        int64_t expected = 0;
        for (int round = 0; round < 200; round++) {
            int64_t tiles = round % 5 == 0 ? round % 3 : TILES - round;
            memset(seen.runs, 0, sizeof seen.runs);
            host_parallel(team, tiles, see, &seen);
            int64_t sum = 0;
            for (int64_t i = 0; i < TILES; i++) {
                assert_int_equal(seen.runs[i], i < tiles ? 1 : 0);
                if (i < tiles) sum += seen.values[i];
            }
            expected = tiles * (expected % 1000) + tiles * (tiles - 1) / 2;
            assert_int_equal(sum, expected);
            seen.sum = sum % 1000;
            if (round % 50 == 0) usleep(3000); /* long enough for the workers to sleep */
        }
        assert_false(seen.bad);
        host_team_free(team);
    }
    host_team_free(NULL);
}

static void test_refusals(void **state) {
    (void)state;
    device *dev = NULL;
    sifr_error error = {0};
    assert_int_equal(device_open_cpu(1, "sse9", &dev, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "sse9"));
    assert_int_equal(device_open_cpu(-1, NULL, &dev, &error), SIFR_USAGE);
    assert_int_equal(device_open_cpu(1, "plain", &dev, &error), SIFR_OK);
    device_matrix good = {NULL, 4, 8, 8, BASE_FP32}, other = good, narrow = good, ids = good;
    other.dtype = BASE_BF16;
    narrow.stride = 7;
    ids = (device_matrix){NULL, 4, 1, 1, BASE_INT32};
    struct {
        device_call call;
        const char *operand;
    } cases[] = {
        {{.kernel = DEVICE_ADD, .x = {good, other}, .y = good}, "add: x[1]"},
        {{.kernel = DEVICE_ADD, .x = {good}, .y = good}, "add: x[1]"},
        {{.kernel = DEVICE_GELU, .x = {narrow}, .y = good}, "gelu: x[0]"},
        {{.kernel = DEVICE_GELU, .x = {good}, .y = ids}, "gelu: y"},
        {{.kernel = DEVICE_GELU_BACKWARD, .x = {good}, .dy = good}, "gelu_backward: dx[0]"},
        {{.kernel = DEVICE_RMS_NORM, .x = {good}, .w = {good}, .y = good}, "rms_norm: w[0]"},
        {{.kernel = DEVICE_LAYER_NORM_BACKWARD, .x = {good}}, "layer_norm_backward: saved[0]"},
        {{.kernel = DEVICE_ROPE, .x = {good, ids}, .y = good}, "rope: 0 heads"},
        {{.kernel = DEVICE_ROPE,
          .x = {good, ids},
          .y = good,
          .attributes.rope = {.heads = 2, .head_dim = 4, .rotary_dim = 6}},
         "rope: 2 heads of 4 elements, of which 6 rotate"},
        {{.kernel = DEVICE_EMBEDDING, .x = {good}, .y = good}, "embedding: x[0]"},
        {{.kernel = DEVICE_EMBEDDING_BACKWARD, .x = {ids}, .dy = good},
         "embedding_backward: dw[0]"},
        {{.kernel = DEVICE_EXACT_SQUARES, .x = {good}, .y = good}, "exact_squares: x[0]"},
        {{.kernel = DEVICE_ADAM, .x = {good}, .w = {good}}, "adam: x[0]"},
        {{.kernel = DEVICE_CONVERT, .x = {ids}, .y = good}, "convert: from int32"},
        {{.kernel = DEVICE_ADD_INTO, .x = {good}, .y = good}, "add_into: y"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(device_prepare(dev, &cases[i].call, &error), SIFR_USAGE);
        if (!strstr(error.message, cases[i].operand))
            fail_msg("expected \"%s\" in \"%s\"", cases[i].operand, error.message);
    }
    device_close(dev);
    device_close(NULL);
}

static void test_memory(void **state) {
    (void)state;
    device *dev = NULL;
    assert_int_equal(device_open_cpu(3, NULL, &dev, NULL), SIFR_OK);
    static const int64_t sizes[] = {1, 4097, (2 << 20) + 1, 9 << 20};
    for (int i = 0; i < 4; i++) {
        void *block = NULL;
        assert_int_equal(device_take(dev, sizes[i], &block, NULL), SIFR_OK);
        assert_int_equal((uintptr_t)block % 64, 0);
        for (int64_t b = 0; b < sizes[i]; b += 61) assert_int_equal(((char *)block)[b], 0);
        memset(block, 1, (size_t)sizes[i]);
        device_give(dev, block, sizes[i]);
    }
    char line[128];
    device_describe(dev, line, sizeof line);
    assert_int_equal(strncmp(line, device_isa(dev), strlen(device_isa(dev))), 0);
    device_close(dev);
}

typedef struct tiny_seen {
    float value;
    float product[TILES], sum[TILES];
} tiny_seen;

static void multiply(void *argument, int64_t tile, int thread) {
    tiny_seen *seen = argument;
    (void)thread;
    seen->product[tile] = seen->value * seen->value;
    seen->sum[tile] = seen->value * 0x1p-50f + 0x1p-140f;
}

/* Floats below the normal ones count as zero in every thread, and only while tiles run. */
static void test_tiny_floats(void **state) {
    (void)state;
#if defined(__x86_64__)
    for (int threads = 1; threads <= 3; threads += 2) {
        host_team *team = NULL;
        tiny_seen seen = {.value = 0x1p-70f};
        volatile float tiny = 0x1p-70f;
        assert_int_equal(host_team_create(threads, &team, NULL), SIFR_OK);
        host_parallel(team, TILES, multiply, &seen);
        for (int i = 0; i < TILES; i++) {
            assert_true(seen.product[i] == 0);
            assert_true(seen.sum[i] == 0x1p-120f);
        }
        assert_true(tiny * tiny > 0);
        host_team_free(team);
    }
#endif
}

static int threads_of_device(void) {
    device *dev;
    assert_int_equal(device_open_cpu(0, NULL, &dev, NULL), SIFR_OK);
    int threads = device_threads(dev);
    device_close(dev);
    return threads;
}

/* One a core, not one a processor: of two processors that are one core, one. */
static void test_threads_by_cores(void **state) {
    (void)state;
    assert_int_equal(threads_of_device(), base_topology_threads(1));
    setenv("HWLOC_SYNTHETIC", "node:1 core:1 pu:2", 1);
    setenv("HWLOC_THISSYSTEM", "1", 1); /* of which those may be used that may be used here */
    assert_int_equal(threads_of_device(), 1);
    unsetenv("HWLOC_SYNTHETIC");
    unsetenv("HWLOC_THISSYSTEM");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_tile_once),  cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_memory),           cmocka_unit_test(test_tiny_floats),
        cmocka_unit_test(test_threads_by_cores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

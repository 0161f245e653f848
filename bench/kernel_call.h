/* What the benches of single kernels share: operands in memory of the device, and the seconds of
 * several runs. */
#ifndef BENCH_KERNEL_CALL_H
#define BENCH_KERNEL_CALL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/device.h"

static inline void bench_check(sifr_status status, const sifr_error *error) {
    if (status == SIFR_OK) return;
    fprintf(stderr, "bench: %s\n", error->message);
    exit((int)status);
}

/* Kept until the process ends. Each block begins 17 KiB later in its page than the one before, as
 * large buffers of a plan do (memory.c), or their streams would meet on the same banks. */
static inline void *bench_take(device *dev, int64_t bytes) {
    static int64_t apart;
    sifr_error error = {0};
    void *block;
    bench_check(device_take(dev, bytes + apart, &block, &error), &error);
    void *begin = (char *)block + apart;
    apart += 17 << 10;
    return begin;
}

/* Small numbers of both signs, the same on every run. */
static inline device_matrix bench_matrix(device *dev, int64_t rows, int64_t columns,
                                         base_dtype type) {
    int64_t count = rows * columns;
    device_matrix m = {bench_take(dev, count * base_dtype_bytes(type)), rows, columns, columns,
                       type};
    uint32_t state = 12345;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        float value = (float)(int32_t)state * 0x1p-31f;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        if (type == BASE_FP32) ((float *)m.data)[i] = value;
        if (type == BASE_BF16) ((uint16_t *)m.data)[i] = (uint16_t)(bits >> 16);
    }
    return m;
}

/* Of one thread its own time, so that neighbours on the machine count less. */
static inline double bench_now(const device *dev) {
    struct timespec t;
    clock_gettime(device_threads(dev) == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Prints "NAME": [seconds of each run] but for a first one. Returns the bytes of scratch. */
static inline int64_t bench_time(device *dev, device_call *call, int runs, const char *name) {
    sifr_error error = {0};
    bench_check(device_prepare(dev, call, &error), &error);
    bench_check(device_take(dev, call->scratch_bytes + 1, &call->scratch, &error), &error);
    printf(" \"%s\": [", name);
    for (int run = -1; run < runs; run++) {
        double begun = bench_now(dev);
        bench_check(device_run(dev, call, &error), &error);
        double seconds = bench_now(dev) - begun;
        if (run >= 0) printf("%s%.6g", run ? ", " : "", seconds);
    }
    printf("],\n");
    int64_t bytes = call->scratch_bytes;
    device_give(dev, call->scratch, bytes + 1);
    return bytes;
}

#endif

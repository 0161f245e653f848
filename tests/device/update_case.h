/* What the tests of updates by optimizers share: vectors, and the numbers of a step. */
#ifndef TESTS_DEVICE_UPDATE_CASE_H
#define TESTS_DEVICE_UPDATE_CASE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/device.h"

enum { UPDATE_ISAS = 4 };
static const char *const update_isas[UPDATE_ISAS] = {"plain", "avx2", "avx512", "avx512_bf16"};

/* NULL where this processor lacks the set. */
static inline device *update_device(int threads, const char *isa) {
    device *dev = NULL;
    return device_open_cpu(threads, isa, &dev, NULL) == SIFR_OK ? dev : NULL;
}

/* Full of bytes of this value; free() it. */
static inline void *update_block(size_t bytes, int fill) {
    void *out = aligned_alloc(64, (bytes + 127) / 64 * 64);
    assert_non_null(out);
    memset(out, fill, (bytes + 127) / 64 * 64);
    return out;
}

static inline device_matrix update_vector(void *data, int64_t count, base_dtype dtype) {
    return (device_matrix){data, 1, count, count, dtype};
}

/* Step t of an optimizer with betas of 0.9 and 0.95, at a rate that grows. */
static inline device_step update_step(int t, float rate) {
    return (device_step){.update_scale = 0.75f,
                         .beta1 = 0.9f,
                         .beta2 = 0.95f,
                         .learning_rate = rate * (float)t,
                         .correction1 = (float)(1 - pow(0.9, t)),
                         .correction2 = (float)(1 - pow(0.95, t)),
                         .share = 1.0f / (float)t,
                         .update = true};
}

static inline void update_run(device *dev, device_call *call) {
    sifr_error error = {0};
    if (device_prepare(dev, call, &error) != SIFR_OK) fail_msg("%s", error.message);
    assert_int_equal(device_run(dev, call, &error), SIFR_OK);
}

#endif

#include "device/cuda/cuda_measure.h"

#include <math.h>

#include "base/checked.h"
#include "base/clock.h"

enum { LEAST_MEASURED = 1 << 16, ALIGNMENT = 256 }; /* bytes */

/* Copies inside the memory, half a block to the other half: reads and writes count. */
static sifr_status measure_copy(device *dev, char *memory, int64_t bytes, double *out,
                                sifr_error *error) {
    int64_t half = bytes / 2;
    *out = 0;
    for (int round = 0; round < 3; round++) {
        BASE_TRY(device_finish_queue(dev, DEVICE_COMPUTE, error));
        double start = base_seconds();
        BASE_TRY(device_start_copy(dev, DEVICE_COMPUTE, memory, memory + half, half, error));
        BASE_TRY(device_finish_queue(dev, DEVICE_COMPUTE, error));
        double rate = 2.0 * (double)half / (base_seconds() - start);
        if (rate > *out) *out = rate;
    }
    return SIFR_OK;
}

/* Memory that may be overwritten. */
typedef struct idle_memory {
    char *at;
    int64_t bytes;
} idle_memory;

/* Seconds of the fastest of three products of n x n, in idle memory or, if that is too small, in a
 * block of its own. */
static sifr_status time_product(device *dev, const idle_memory *idle, base_dtype type, int64_t n,
                                double *seconds, sifr_error *error) {
    int64_t each = n * n * base_dtype_bytes(type);
    device_call call = {.kernel = DEVICE_LINEAR};
    void *block = idle->at;
    call.x[0] = call.w[0] = call.y = (device_matrix){NULL, n, n, n, type};
    BASE_TRY(device_prepare(dev, &call, error));
    int64_t bytes = 3 * each + base_max_i64(call.scratch_bytes, 256);
    bool own = bytes > idle->bytes;
    if (own) BASE_TRY(device_take(dev, bytes, &block, error));
    call.x[0].data = block, call.w[0].data = (char *)block + each;
    call.y.data = (char *)block + 2 * each, call.scratch = (char *)block + 3 * each;
    sifr_status status = SIFR_OK;
    *seconds = INFINITY;
    for (int round = 0; round < 3 && status == SIFR_OK; round++) {
        double start = base_seconds();
        status = device_run(dev, &call, error);
        if (status == SIFR_OK) status = device_finish_queue(dev, DEVICE_COMPUTE, error);
        *seconds = fmin(*seconds, base_seconds() - start);
    }
    if (own) device_give(dev, block, bytes);
    return status;
}

/* Of products large enough that a launch is no part of their time, or of the largest that a run
 * leaves room for. */
static sifr_status measure_products(device *dev, const idle_memory *idle, base_dtype type,
                                    double *rate, sifr_error *error) {
    const double enough = 2e-3;
    double seconds = 0;
    for (int64_t n = 128; n <= 8192 && seconds < enough; n *= 2) {
        sifr_status status = time_product(dev, idle, type, n, &seconds, error);
        if (status == SIFR_NO_MEMORY && n > 128) return SIFR_OK;
        BASE_TRY(status);
        *rate = 2.0 * (double)n * (double)n * (double)n / seconds;
    }
    return SIFR_OK;
}

/* A block of *bytes, or of the half, and so on: a run may leave little. */
static sifr_status take_some(device *dev, int64_t *bytes, void **out, sifr_error *error) {
    sifr_status status = device_take(dev, *bytes, out, error);
    while (status == SIFR_NO_MEMORY && *bytes > LEAST_MEASURED) {
        *bytes /= 2;
        status = device_take(dev, *bytes, out, error);
    }
    return status;
}

sifr_status cuda_measure(device *dev, void *memory, int64_t bytes, device_limits *out,
                         sifr_error *error) {
    const int64_t aligned = base_ceil_to((int64_t)(uintptr_t)memory, ALIGNMENT);
    const int64_t skipped = aligned - (int64_t)(uintptr_t)memory;
    idle_memory idle = {(char *)memory + skipped, memory ? bytes - skipped : 0};
    void *own = NULL;
    if (!memory) BASE_TRY(take_some(dev, &bytes, &own, error));
    sifr_status status = measure_copy(dev, memory ? memory : own, bytes, &out->bytes, error);
    if (own) device_give(dev, own, bytes);
    BASE_TRY(status);
    BASE_TRY(measure_products(dev, &idle, BASE_FP32, &out->fp32_operations, error));
    status = measure_products(dev, &idle, BASE_BF16, &out->bf16_operations, error);
    if (status != SIFR_NO_MEMORY) return status;
    /* Their scratch does not fit. A run that has such products leaves enough memory for it. */
    out->bf16_operations = out->fp32_operations;
    return SIFR_OK;
}

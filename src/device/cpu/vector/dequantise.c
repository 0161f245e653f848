/* A block has 16 values at most, so these are computed and rounded, and codes choose among them:
 * the same bits on every instruction set. */
#include "device/cpu/vector/dequantise.h"

#include "base/half.h"
#include "base/nf4.h"

enum { PAIRS = BASE_NF4_BLOCK / 2 };

static void open_wide(const uint8_t *codes, float scale, float *out) {
    float values[16];
    for (int c = 0; c < 16; c++) values[c] = base_nf4_values[c] * scale;
    for (int i = 0; i < PAIRS; i++) {
        out[2 * i] = values[codes[i] >> 4];
        out[2 * i + 1] = values[codes[i] & 15];
    }
}

static void open_narrow(const uint8_t *codes, float scale, base_dtype type, uint16_t *out) {
    uint16_t values[16];
    for (int c = 0; c < 16; c++) {
        float value = base_nf4_values[c] * scale;
        values[c] = type == BASE_BF16 ? base_bf16_from_float(value) : base_half_from_float(value);
    }
    for (int i = 0; i < PAIRS; i++) {
        out[2 * i] = values[codes[i] >> 4];
        out[2 * i + 1] = values[codes[i] & 15];
    }
}

static void run_record(void *argument, int64_t record, int thread) {
    const device_call *call = argument;
    const device_matrix *x = &call->x[0], *y = &call->y;
    const uint8_t *from = (const uint8_t *)x->data + record * x->stride;
    float scales[BASE_NF4_SCALES];
    (void)thread;
    base_nf4_open_scales(from, x->columns == BASE_NF4_DOUBLED, scales);
    for (int64_t b = 0; b < BASE_NF4_SCALES; b++) {
        const uint8_t *codes = from + b * PAIRS;
        int64_t at = record * BASE_NF4_RECORD + b * BASE_NF4_BLOCK;
        if (y->dtype == BASE_FP32)
            open_wide(codes, scales[b], (float *)y->data + at);
        else
            open_narrow(codes, scales[b], y->dtype, (uint16_t *)y->data + at);
    }
}

sifr_status cpu_run_dequantise(device *dev, const device_call *call, sifr_error *error) {
    (void)error;
    host_parallel(dev->team, call->x[0].rows, run_record, (void *)(uintptr_t)call);
    return SIFR_OK;
}

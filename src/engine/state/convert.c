#include "engine/state/convert.h"

#include <string.h>

#include "base/half.h"

void engine_to_fp32(float *to, const void *from, base_dtype dtype, int64_t count) {
    const uint8_t *bytes = from;
    if (dtype == BASE_FP32) {
        if (count) memcpy(to, from, (size_t)count * sizeof *to);
        return;
    }
    if (dtype == BASE_UINT8) {
        for (int64_t i = 0; i < count; i++) to[i] = bytes[i];
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, bytes + 2 * i, sizeof half);
        to[i] = dtype == BASE_BF16 ? base_bf16_to_float(half) : base_half_to_float(half);
    }
}

void engine_from_fp32(void *to, const float *from, base_dtype dtype, int64_t count) {
    uint8_t *bytes = to;
    if (dtype == BASE_FP32) {
        if (count) memcpy(to, from, (size_t)count * sizeof *from);
        return;
    }
    if (dtype == BASE_BF16) { /* a separate loop, which compilers vectorize */
        for (int64_t i = 0; i < count; i++) {
            uint16_t half = base_bf16_from_float(from[i]);
            memcpy(bytes + 2 * i, &half, sizeof half);
        }
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        uint16_t half = base_half_from_float(from[i]);
        memcpy(bytes + 2 * i, &half, sizeof half);
    }
}

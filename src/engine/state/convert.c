#include "engine/state/convert.h"

#include <string.h>

#include "base/half.h"

formats_dtype engine_format_of(device_dtype dtype) {
    if (dtype == DEVICE_BF16) return FORMATS_BF16;
    return dtype == DEVICE_FP16 ? FORMATS_F16 : FORMATS_F32;
}

void engine_to_fp32(float *to, const void *from, formats_dtype dtype, int64_t count) {
    const uint8_t *bytes = from;
    if (dtype == FORMATS_F32) {
        if (count) memcpy(to, from, (size_t)count * sizeof *to);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, bytes + 2 * i, sizeof half);
        to[i] = dtype == FORMATS_BF16 ? base_bf16_to_float(half) : base_half_to_float(half);
    }
}

void engine_from_fp32(void *to, const float *from, formats_dtype dtype, int64_t count) {
    uint8_t *bytes = to;
    if (dtype == FORMATS_F32) {
        if (count) memcpy(to, from, (size_t)count * sizeof *from);
        return;
    }
    if (dtype == FORMATS_BF16) { /* a loop of its own, which compilers make vectors of */
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

#include "engine/state/convert.h"

#include "formats/fp8.h"

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/half.h"

void engine_to_fp32(float *to, const void *from, base_dtype dtype, int64_t count) {
    base_assert(dtype == BASE_FP32 || dtype == BASE_BF16 || dtype == BASE_FP16 ||
                dtype == BASE_UINT8);
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
    base_assert(dtype == BASE_FP32 || dtype == BASE_BF16 || dtype == BASE_FP16);
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

sifr_status engine_take_widened(void *user, const void *bytes, int64_t first, int64_t count,
                                sifr_error *error) {
    const engine_widened *wide = user;
    int64_t element = base_dtype_bytes(wide->dtype);
    base_assert(first % element == 0 && count % element == 0);
    (void)error;
    engine_to_fp32(wide->to + first / element, bytes, wide->dtype, count / element);
    return SIFR_OK;
}

void engine_round(base_dtype dtype, float *values, int64_t count) {
    enum { PIECE = 2048 };
    uint16_t narrow[PIECE];
    for (int64_t at = 0; dtype != BASE_FP32 && at < count; at += PIECE) {
        int64_t here = base_min_i64(PIECE, count - at);
        engine_from_fp32(narrow, values + at, dtype, here);
        engine_to_fp32(values + at, narrow, dtype, here);
    }
}

void engine_tensor_values(const void *user, size_t index, int64_t first, int64_t count,
                          float *values) {
    const formats_tensor *tensor = user;
    (void)index;
    if (tensor->scales) {
        formats_fp8_values(tensor, first, count, values);
        return;
    }
    engine_to_fp32(values, (const char *)tensor->data + first * base_dtype_bytes(tensor->dtype),
                   tensor->dtype, count);
}

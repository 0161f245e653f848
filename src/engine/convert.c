#include "engine/convert.h"

#include <string.h>

device_dtype engine_dtype(sifr_precision precision) {
    static const device_dtype dtypes[] = {
        [SIFR_FP32] = DEVICE_FP32, [SIFR_BF16] = DEVICE_BF16, [SIFR_FP16] = DEVICE_FP16};
    return dtypes[precision];
}

formats_dtype engine_format_of(device_dtype dtype) {
    if (dtype == DEVICE_BF16) return FORMATS_BF16;
    return dtype == DEVICE_FP16 ? FORMATS_F16 : FORMATS_F32;
}

static uint16_t to_bf16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float half_to_fp32(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, magnitude = half & 0x7fff;
    if (magnitude >= 0x7c00) return from_bits(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
    if (magnitude >= 0x400) return from_bits(sign | ((magnitude << 13) + 0x38000000));
    float value = (float)magnitude * 0x1p-24f; /* subnormal: exact */
    return sign ? -value : value;
}

static uint16_t fp32_to_half(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) return sign | 0x7e00;
    if (magnitude >= 0x477ff000) return sign | 0x7c00; /* rounds beyond the largest half */
    if (magnitude < 0x38800000) {
        /* Subnormal: adding 0.5 leaves the rounded multiple of 2^-24 in the lowest bits. */
        float shifted = from_bits(magnitude) + 0.5f;
        uint32_t rounded;
        memcpy(&rounded, &shifted, sizeof rounded);
        return (uint16_t)(sign | (rounded - 0x3f000000));
    }
    uint32_t rounded = magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)(sign | rounded >> 13);
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
        to[i] = dtype == FORMATS_BF16 ? from_bits((uint32_t)half << 16) : half_to_fp32(half);
    }
}

void engine_from_fp32(void *to, const float *from, formats_dtype dtype, int64_t count) {
    uint8_t *bytes = to;
    if (dtype == FORMATS_F32) {
        if (count) memcpy(to, from, (size_t)count * sizeof *from);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        uint16_t half = dtype == FORMATS_BF16 ? to_bf16(from[i]) : fp32_to_half(from[i]);
        memcpy(bytes + 2 * i, &half, sizeof half);
    }
}

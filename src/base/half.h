/* Scalar conversions of 16-bit floats: IEEE half precision and bfloat16. They round to nearest
 * even, keep subnormals, overflow to infinity, and make NaNs quiet with the upper bits of their
 * payload: the same bits as the conversions of F16C and AVX-512. */
#ifndef BASE_HALF_H
#define BASE_HALF_H

#include <stdint.h>
#include <string.h>

#include "base/inline.h"

BASE_INLINE float base_float_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

BASE_INLINE uint32_t base_float_to_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

BASE_INLINE uint16_t base_half_from_float(float value) {
    uint32_t bits = base_float_to_bits(value), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    if (rest > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (rest >> 13 & 0x3ff));
    if (rest >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
    if (rest < 0x38800000) { /* below 2^-14: adding 0.5 leaves multiples of 2^-24 */
        float shifted = base_float_from_bits(rest) + 0.5f;
        return (uint16_t)(sign | (base_float_to_bits(shifted) - 0x3f000000));
    }
    return (uint16_t)(sign | (rest - 0x38000000 + 0xfff + (rest >> 13 & 1)) >> 13);
}

BASE_INLINE float base_half_to_float(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = (uint32_t)(half & 0x7fff) << 13;
    if (rest >= 0x0f800000) { /* infinite or NaN */
        uint32_t quiet = rest > 0x0f800000 ? 0x00400000 : 0;
        return base_float_from_bits(sign | rest | 0x7f800000 | quiet);
    }
    /* a subnormal is a multiple of 2^-24 */
    float value =
        rest < 0x00800000 ? (float)(rest >> 13) * 0x1p-24f : base_float_from_bits(rest) * 0x1p112f;
    return base_float_from_bits(sign | base_float_to_bits(value));
}

BASE_INLINE uint16_t base_bf16_from_float(float value) {
    uint32_t bits = base_float_to_bits(value);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    uint32_t quiet = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

/* Rounds stochastically: the probability of rounding up is the value's distance from the lower
 * neighbour, relative to the distance between both neighbours, so the mean is `value`. `draw` is
 * uniform over 2^16 numbers. A NaN stays a NaN. */
BASE_INLINE uint16_t base_bf16_drawn(float value, uint16_t draw) {
    uint32_t bits = base_float_to_bits(value), quiet = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? quiet : (bits + draw) >> 16);
}

BASE_INLINE float base_bf16_to_float(uint16_t value) {
    return base_float_from_bits((uint32_t)value << 16);
}

#endif

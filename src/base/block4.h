/* Blocks of 4 bits: BASE_BLOCK4 values as as many signed codes, and behind them the block's scale,
 * an fp32: a value is its code, from -BASE_BLOCK4_MOST to that, times the scale. The scale is the
 * largest magnitude / 7, so an error is at most half of that. Byte i has the code of value i in its
 * lower half, and that of value i + BASE_BLOCK4 / 2 in its upper half. Values below 2^-100 are 0. A
 * value that is no number, or infinite, makes all of its block no numbers. */
#ifndef BASE_BLOCK4_H
#define BASE_BLOCK4_H

#include <stdint.h>

#include "base/half.h"

enum { BASE_BLOCK4 = 256, BASE_BLOCK4_BYTES = BASE_BLOCK4 / 2 + 4, BASE_BLOCK4_MOST = 7 };

/* Of the block whose largest magnitude has these bits. *inverse: what values are multiplied by; 0:
 * all codes are 0. */
static inline float base_block4_scale(uint32_t magnitude, float *inverse) {
    const uint32_t infinite = 0x7f800000, nothing = 0x0d800000; /* 2^-100 */
    float most = base_float_from_bits(magnitude);
    *inverse = 0;
    if (magnitude >= infinite) return base_float_from_bits(0x7fc00000);
    if (magnitude < nothing) return 0;
    *inverse = BASE_BLOCK4_MOST / most;
    return most / BASE_BLOCK4_MOST;
}

#endif

/* Blocks of 8 bits: BASE_BLOCK8 values as as many signed codes, and behind them the block's scale,
 * an fp32: a value is its code times the scale. The scale is the largest magnitude / 127, so an
 * error is at most half of that. Values below 2^-100 are 0. A value that is no number, or infinite,
 * makes all of its block no numbers. */
#ifndef BASE_BLOCK8_H
#define BASE_BLOCK8_H

#include <stdint.h>

#include "base/half.h"

enum {
    BASE_BLOCK8 = 1024,
    BASE_BLOCK8_BYTES = BASE_BLOCK8 + 4,
    BASE_BLOCK8_MOST = 127,
    /* Where weights are held so, as many values as a record of NF4 (base/nf4.h). */
    BASE_BLOCK8_IN_RECORD = 16,
    BASE_BLOCK8_RECORD_BYTES = BASE_BLOCK8_IN_RECORD * BASE_BLOCK8_BYTES
};

/* Of the block whose largest magnitude has these bits. *inverse: what values are multiplied by; 0:
 * all codes are 0. */
static inline float base_block8_scale(uint32_t magnitude, float *inverse) {
    const uint32_t infinite = 0x7f800000, nothing = 0x0d800000; /* 2^-100 */
    float most = base_float_from_bits(magnitude);
    *inverse = 0;
    if (magnitude >= infinite) return base_float_from_bits(0x7fc00000);
    if (magnitude < nothing) return 0;
    *inverse = BASE_BLOCK8_MOST / most;
    return most / BASE_BLOCK8_MOST;
}

/* A record of `count` values, at most those of its blocks; what they leave is zeros. The bits are
 * those of the kernels (DEVICE_ENCODE_BLOCKS8, DEVICE_DECODE_BLOCKS8). */
void base_block8_encode(const float *values, int64_t count, uint8_t *record);

/* Values first ... first + count - 1 of a record. */
void base_block8_decode(const uint8_t *record, int64_t first, int64_t count, float *out);

#endif

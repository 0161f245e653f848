/* Values as codes of 4 bits, NF4 (Dettmers et al., QLoRA, NeurIPS 2023), as bitsandbytes has them:
 * a code is one of 16 values from -1 to 1, and each block of values shares a scale, the largest
 * absolute value in it. With double quantisation the scales are codes of 8 bits too (base/code8.h):
 * of what they are above the mean scale of the whole tensor, by groups of 256.
 *
 * A record holds the codes of BASE_NF4_RECORD values with their scales, and can be read by itself:
 *   codes    two a byte, the first in the upper half
 *   scales   either FP32, or UINT8 codes, then the largest of the group and the mean, FP32
 * So codes and scales are bitsandbytes' bytes, laid out by group. A tensor begins a record; what it
 * leaves of its last one is zeros. */
#ifndef BASE_NF4_H
#define BASE_NF4_H

#include <stdbool.h>
#include <stdint.h>

enum {
    BASE_NF4_BLOCK = 64,                                   /* values that share a scale */
    BASE_NF4_SCALES = 256,                                 /* of a record */
    BASE_NF4_RECORD = BASE_NF4_BLOCK * BASE_NF4_SCALES,    /* values of a record */
    BASE_NF4_CODES = BASE_NF4_RECORD / 2,                  /* bytes of its codes */
    BASE_NF4_PLAIN = BASE_NF4_CODES + BASE_NF4_SCALES * 4, /* bytes of a record */
    BASE_NF4_DOUBLED = BASE_NF4_CODES + BASE_NF4_SCALES + 2 * 4
};

extern const float base_nf4_values[16];

/* The scales of `count` values, from the start of a block on; the last block may be shorter. */
void base_nf4_scales(const float *values, int64_t count, float *scales);

/* The mean of a tensor's scales, which `doubled` records need. */
float base_nf4_mean(const float *scales, int64_t count);

/* A record of `count` values, at most BASE_NF4_RECORD. */
void base_nf4_encode(const float *values, int64_t count, bool doubled, float mean, uint8_t *record);

/* The scales of a record's blocks: BASE_NF4_SCALES of them. */
void base_nf4_open_scales(const uint8_t *record, bool doubled, float *scales);

/* Values first ... first + count - 1 of a record. */
void base_nf4_decode(const uint8_t *record, bool doubled, int64_t first, int64_t count, float *out);

#endif

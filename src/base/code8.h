/* Values from -1 to 1 as codes of 8 bits whose steps grow with the value (Dettmers, 8-bit
 * Approximations for Parallelism in Deep Learning, ICLR 2016): zero, one, and seven decades, each
 * cut into twice as many equal cells as the decade below it. A code stands for the middle of its
 * cell. Codes are in the order of their values. */
#ifndef BASE_CODE8_H
#define BASE_CODE8_H

#include <stdint.h>

#include "base/inline.h"

enum { BASE_CODES = 256, BASE_CODE_DECADES = 7 };

typedef struct base_code8 {
    int32_t cells; /* of the lowest decade */
    int32_t zero;  /* the code of 0 */
    float values[BASE_CODES];
    /* Code c is the nearest of values above bounds[c], up to bounds[c + 1] itself. */
    float bounds[BASE_CODES + 1];
} base_code8;

extern const base_code8 base_code8_signed, base_code8_unsigned; /* the second for x >= 0 */

/* The code of the nearest value; of two that are as near, the lower one. The computed cell is right
 * or next to the right one. Compilers vectorise loops of it. */
BASE_INLINE uint8_t base_code8_of(const base_code8 *map, float x) {
    static const float begins[] = {1e-6f, 1e-5f, 1e-4f, 1e-3f, 1e-2f, 1e-1f};
    static const float scales[] = {1e5f, 1e4f, 1e3f, 1e2f, 10, 1};
    float a = x < 0 ? -x : x, scale = 1e6f;
    int32_t decade = 0;
    for (int d = 0; d < BASE_CODE_DECADES - 1; d++) {
        decade += a >= begins[d];
        scale = a >= begins[d] ? scales[d] : scale;
    }
    int32_t cells = map->cells << decade;
    float in_decade = (a * scale - 0.1f) * ((float)cells * (1 / 0.9f));
    in_decade = in_decade > 0 ? in_decade : 0;
    int32_t cell = in_decade < (float)cells ? (int32_t)in_decade : cells - 1;
    int32_t from_zero = 1 + cells - map->cells + cell;
    int32_t code = x < 0 ? map->zero - from_zero : map->zero + from_zero;
    code += x > map->bounds[code + 1];
    code -= x <= map->bounds[code];
    return (uint8_t)code;
}

#endif

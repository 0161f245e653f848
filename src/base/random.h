/* Counter-based random numbers: Philox 4x32-10 (Salmon et al., SC'11). A number is a function of
 * key and counter alone, so it does not depend on the thread, rank or time that computes it. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <math.h>
#include <stdint.h>

#include "base/inline.h"

typedef struct base_random4 {
    uint32_t v[4];
} base_random4;

BASE_INLINE base_random4 base_philox(uint64_t key, uint64_t counter_low, uint64_t counter_high) {
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)counter_low, c1 = (uint32_t)(counter_low >> 32);
    uint32_t c2 = (uint32_t)counter_high, c3 = (uint32_t)(counter_high >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c0 = n0, c1 = (uint32_t)p1, c2 = n2, c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    base_random4 out = {{c0, c1, c2, c3}};
    return out;
}

/* Derives a key from a seed and two coordinates (step, micro batch, op ...): Philox as a hash. */
BASE_INLINE uint64_t base_random_key(uint64_t seed, uint64_t a, uint64_t b) {
    base_random4 r = base_philox(seed, a, b);
    return (uint64_t)r.v[0] | (uint64_t)r.v[1] << 32;
}

/* Uniform in [0, 1), with 24 bits. */
BASE_INLINE float base_uniform(uint32_t bits) {
    return (float)(bits >> 8) * 0x1p-24f;
}

/* Standard normal numbers 2 x `pair` and 2 x `pair` + 1 of `key`, by Box and Muller in double. */
BASE_INLINE void base_normal_pair(uint64_t key, uint64_t pair, double out[2]) {
    base_random4 r = base_philox(key, pair, 0);
    uint64_t a = ((uint64_t)r.v[0] << 32 | r.v[1]) >> 11,
             b = ((uint64_t)r.v[2] << 32 | r.v[3]) >> 11;
    double u = ((double)a + 1.0) * 0x1p-53, angle = 6.283185307179586 * ((double)b * 0x1p-53);
    double radius = sqrt(-2.0 * log(u));
    out[0] = radius * cos(angle);
    out[1] = radius * sin(angle);
}

BASE_INLINE double base_normal(uint64_t key, uint64_t element) {
    double pair[2];
    base_normal_pair(key, element / 2, pair);
    return pair[element % 2];
}

#endif

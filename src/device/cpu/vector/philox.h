/* Philox 4x32-10 (base/random.h) for consecutive counters, computed in parallel in the widest
 * registers of the instruction set. The numbers equal those of base_philox. */
#ifndef CPU_PHILOX_H
#define CPU_PHILOX_H

#include "base/random.h"

#if defined(KERNEL_ISA_avx512)
#include <immintrin.h>

enum { PHILOX = 8 };
typedef __m512i philox_lanes; /* 64-bit lanes; of most values only the low half counts */

/* Consecutive counters, in an order that the unpacking in philox_store undoes. */
static inline philox_lanes philox_counters(uint64_t first) {
    return _mm512_add_epi64(_mm512_set1_epi64((long long)first),
                            _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7));
}
static inline philox_lanes philox_set(uint32_t value) {
    return _mm512_set1_epi64((long long)value);
}
static inline philox_lanes philox_high(philox_lanes a) {
    return _mm512_srli_epi64(a, 32);
}
static inline philox_lanes philox_product(philox_lanes a, philox_lanes b) {
    return _mm512_mul_epu32(a, b);
}
static inline philox_lanes philox_xor(philox_lanes a, philox_lanes b, philox_lanes c) {
    return _mm512_ternarylogic_epi64(a, b, c, 0x96);
}
/* Stores the low halves of a, b, c, d of each counter. */
static inline void philox_store(uint32_t *out, philox_lanes a, philox_lanes b, philox_lanes c,
                                philox_lanes d) {
    __m512i low = _mm512_mask_shuffle_epi32(a, 0xaaaa, b, _MM_PERM_CCAA);
    __m512i high = _mm512_mask_shuffle_epi32(c, 0xaaaa, d, _MM_PERM_CCAA);
    _mm512_storeu_si512(out, _mm512_unpacklo_epi64(low, high));
    _mm512_storeu_si512(out + 16, _mm512_unpackhi_epi64(low, high));
}
#elif defined(KERNEL_ISA_avx2)
#include <immintrin.h>

enum { PHILOX = 4 };
typedef __m256i philox_lanes;

static inline philox_lanes philox_counters(uint64_t first) {
    return _mm256_add_epi64(_mm256_set1_epi64x((long long)first), _mm256_setr_epi64x(0, 2, 1, 3));
}
static inline philox_lanes philox_set(uint32_t value) {
    return _mm256_set1_epi64x((long long)value);
}
static inline philox_lanes philox_high(philox_lanes a) {
    return _mm256_srli_epi64(a, 32);
}
static inline philox_lanes philox_product(philox_lanes a, philox_lanes b) {
    return _mm256_mul_epu32(a, b);
}
static inline philox_lanes philox_xor(philox_lanes a, philox_lanes b, philox_lanes c) {
    return _mm256_xor_si256(_mm256_xor_si256(a, b), c);
}
static inline void philox_store(uint32_t *out, philox_lanes a, philox_lanes b, philox_lanes c,
                                philox_lanes d) {
    __m256i low = _mm256_blend_epi32(a, _mm256_slli_epi64(b, 32), 0xaa);
    __m256i high = _mm256_blend_epi32(c, _mm256_slli_epi64(d, 32), 0xaa);
    _mm256_storeu_si256((__m256i *)out, _mm256_unpacklo_epi64(low, high));
    _mm256_storeu_si256((__m256i *)(out + 8), _mm256_unpackhi_epi64(low, high));
}
#else
enum { PHILOX = 1 };
#endif

/* Writes 4 x PHILOX numbers: four for each counter from `counter` on. */
static inline void philox(uint64_t key, uint64_t counter, uint32_t *out) {
#if defined(KERNEL_ISA_avx512) || defined(KERNEL_ISA_avx2)
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    philox_lanes c0 = philox_counters(counter), c1 = philox_high(c0), zero = philox_set(0);
    philox_lanes c2 = zero, c3 = zero;
    for (int round = 0; round < 10; round++) {
        philox_lanes p0 = philox_product(c0, philox_set(0xD2511F53u));
        philox_lanes p1 = philox_product(c2, philox_set(0xCD9E8D57u));
        c0 = philox_xor(philox_high(p1), c1, philox_set(k0));
        c2 = philox_xor(philox_high(p0), c3, philox_set(k1));
        c1 = p1, c3 = p0;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    philox_store(out, c0, c1, c2, c3);
#else
    base_random4 numbers = base_philox(key, counter, 0);
    for (int i = 0; i < 4; i++) out[i] = numbers.v[i];
#endif
}

#endif

/* Sixteen fp32 values as one, in the widest registers of the instruction set that the file is
 * compiled for. Multiply-add is one rounding everywhere, so that a result does not depend on which
 * of these runs it. */
#ifndef CPU_WIDE_H
#define CPU_WIDE_H

#include <math.h>

#if defined(KERNEL_ISA_avx512)
#include <immintrin.h>
typedef __m512 wide;
static inline wide wide_load(const float *p) {
    return _mm512_loadu_ps(p);
}
static inline void wide_store(float *p, wide a) {
    _mm512_storeu_ps(p, a);
}
static inline wide wide_set(float a) {
    return _mm512_set1_ps(a);
}
/* c + a b */
static inline wide wide_fma(wide a, wide b, wide c) {
    return _mm512_fmadd_ps(a, b, c);
}
#elif defined(KERNEL_ISA_avx2)
#include <immintrin.h>
typedef struct wide {
    __m256 low, high;
} wide;
static inline wide wide_load(const float *p) {
    return (wide){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
static inline void wide_store(float *p, wide a) {
    _mm256_storeu_ps(p, a.low);
    _mm256_storeu_ps(p + 8, a.high);
}
static inline wide wide_set(float a) {
    return (wide){_mm256_set1_ps(a), _mm256_set1_ps(a)};
}
static inline wide wide_fma(wide a, wide b, wide c) {
    return (wide){_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
#else
typedef struct wide {
    float v[16];
} wide;
static inline wide wide_load(const float *p) {
    wide a;
    for (int i = 0; i < 16; i++) a.v[i] = p[i];
    return a;
}
static inline void wide_store(float *p, wide a) {
    for (int i = 0; i < 16; i++) p[i] = a.v[i];
}
static inline wide wide_set(float a) {
    wide r;
    for (int i = 0; i < 16; i++) r.v[i] = a;
    return r;
}
static inline wide wide_fma(wide a, wide b, wide c) {
    for (int i = 0; i < 16; i++) c.v[i] = fmaf(a.v[i], b.v[i], c.v[i]);
    return c;
}
#endif

#endif

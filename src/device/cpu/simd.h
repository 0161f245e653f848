/* Vectors of floats for the instruction set of the kernels_*.c that includes this file: the few
 * operations that the matrix and attention kernels need. */
#ifndef CPU_SIMD_H
#define CPU_SIMD_H

#include <stdint.h>
#include <string.h>

#include "base/half.h"
#include "device/call.h"

#define VECTOR_JOIN2(a, b) a##_##b
#define VECTOR_JOIN(a, b) VECTOR_JOIN2(a, b)
#define KERNEL_NAME(name) VECTOR_JOIN(name, KERNEL_ISA)
#define VECTOR_INLINE static inline __attribute__((always_inline, unused))

/* Rounds to nearest even; a NaN stays a NaN. */
VECTOR_INLINE uint16_t vector_to_bf16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

VECTOR_INLINE float vector_from_bf16(uint16_t value) {
    uint32_t bits = (uint32_t)value << 16;
    float out;
    memcpy(&out, &bits, 4);
    return out;
}

/* 2^r on [-0.5, 0.5]: the Taylor series, relative error under 1.1e-7 with rounding. */
#define VECTOR_EXP2_POLYNOMIAL(r)                                                                  \
    vector_fma(                                                                                    \
        vector_fma(vector_fma(vector_fma(vector_fma(vector_fma(vector_set(1.5403530e-4f), r,       \
                                                               vector_set(1.3333558e-3f)),         \
                                                    r, vector_set(9.6181291e-3f)),                 \
                                         r, vector_set(5.5504109e-2f)),                            \
                              r, vector_set(2.4022651e-1f)),                                       \
                   r, vector_set(6.9314718e-1f)),                                                  \
        r, vector_set(1.0f))

#if defined(KERNEL_ISA_avx512)
#include <immintrin.h>

enum { VECTOR = 16 };
typedef __m512 vector;

VECTOR_INLINE vector vector_load(const float *p) {
    return _mm512_loadu_ps(p);
}
VECTOR_INLINE void vector_store(float *p, vector v) {
    _mm512_storeu_ps(p, v);
}
VECTOR_INLINE vector vector_set(float v) {
    return _mm512_set1_ps(v);
}
VECTOR_INLINE vector vector_add(vector a, vector b) {
    return _mm512_add_ps(a, b);
}
VECTOR_INLINE vector vector_sub(vector a, vector b) {
    return _mm512_sub_ps(a, b);
}
VECTOR_INLINE vector vector_mul(vector a, vector b) {
    return _mm512_mul_ps(a, b);
}
VECTOR_INLINE vector vector_div(vector a, vector b) {
    return _mm512_div_ps(a, b);
}
VECTOR_INLINE vector vector_fma(vector a, vector b, vector c) {
    return _mm512_fmadd_ps(a, b, c);
}
VECTOR_INLINE vector vector_max(vector a, vector b) {
    return _mm512_max_ps(a, b);
}
/* 2^v for v <= 127; 0 for very negative v. */
VECTOR_INLINE vector vector_exp2(vector v) {
    vector whole = _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    vector r = _mm512_sub_ps(v, whole);
    return _mm512_scalef_ps(VECTOR_EXP2_POLYNOMIAL(r), whole);
}
VECTOR_INLINE vector vector_load_bf16(const uint16_t *p) {
    __m256i half = _mm256_loadu_si256((const __m256i *)p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}
VECTOR_INLINE void vector_store_bf16(uint16_t *p, vector v) {
#if defined(KERNEL_BF16)
    __m256i half = (__m256i)_mm512_cvtneps_pbh(v);
#else
    __m512i bits = _mm512_castps_si512(v), upper = _mm512_srli_epi32(bits, 16);
    __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    __m512i quiet = _mm512_or_si512(upper, _mm512_set1_epi32(0x40));
    __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    __m256i half =
        _mm512_cvtepi32_epi16(_mm512_mask_blend_epi32(nan, _mm512_srli_epi32(rounded, 16), quiet));
#endif
    _mm256_storeu_si256((__m256i *)p, half);
}
VECTOR_INLINE vector vector_load_fp16(const uint16_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
VECTOR_INLINE void vector_store_fp16(uint16_t *p, vector v) {
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

#elif defined(KERNEL_ISA_avx2)
#include <immintrin.h>

enum { VECTOR = 8 };
typedef __m256 vector;

VECTOR_INLINE vector vector_load(const float *p) {
    return _mm256_loadu_ps(p);
}
VECTOR_INLINE void vector_store(float *p, vector v) {
    _mm256_storeu_ps(p, v);
}
VECTOR_INLINE vector vector_set(float v) {
    return _mm256_set1_ps(v);
}
VECTOR_INLINE vector vector_add(vector a, vector b) {
    return _mm256_add_ps(a, b);
}
VECTOR_INLINE vector vector_sub(vector a, vector b) {
    return _mm256_sub_ps(a, b);
}
VECTOR_INLINE vector vector_mul(vector a, vector b) {
    return _mm256_mul_ps(a, b);
}
VECTOR_INLINE vector vector_div(vector a, vector b) {
    return _mm256_div_ps(a, b);
}
VECTOR_INLINE vector vector_fma(vector a, vector b, vector c) {
    return _mm256_fmadd_ps(a, b, c);
}
VECTOR_INLINE vector vector_max(vector a, vector b) {
    return _mm256_max_ps(a, b);
}
VECTOR_INLINE vector vector_exp2(vector v) {
    vector tiny = _mm256_cmp_ps(v, _mm256_set1_ps(-126.0f), _CMP_LT_OQ);
    v = _mm256_max_ps(_mm256_set1_ps(-126.0f), v); /* returns v if v is a NaN */
    vector whole = _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    vector r = _mm256_sub_ps(v, whole);
    __m256i power =
        _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(whole), _mm256_set1_epi32(127)), 23);
    return _mm256_andnot_ps(tiny,
                            _mm256_mul_ps(VECTOR_EXP2_POLYNOMIAL(r), _mm256_castsi256_ps(power)));
}
VECTOR_INLINE vector vector_load_bf16(const uint16_t *p) {
    __m128i half = _mm_loadu_si128((const __m128i *)p);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}
VECTOR_INLINE void vector_store_bf16(uint16_t *p, vector v) {
    __m256i bits = _mm256_castps_si256(v), upper = _mm256_srli_epi32(bits, 16);
    __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    __m256i half = _mm256_blendv_epi8(_mm256_srli_epi32(rounded, 16), quiet, nan);
    _mm_storeu_si128((__m128i *)p, _mm_packus_epi32(_mm256_castsi256_si128(half),
                                                    _mm256_extracti128_si256(half, 1)));
}
VECTOR_INLINE vector vector_load_fp16(const uint16_t *p) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}
VECTOR_INLINE void vector_store_fp16(uint16_t *p, vector v) {
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

#else

enum { VECTOR = 4 };
typedef float vector __attribute__((vector_size(16)));

VECTOR_INLINE vector vector_load(const float *p) {
    vector v;
    memcpy(&v, p, sizeof v);
    return v;
}
VECTOR_INLINE void vector_store(float *p, vector v) {
    memcpy(p, &v, sizeof v);
}
VECTOR_INLINE vector vector_set(float v) {
    return (vector){v, v, v, v};
}
VECTOR_INLINE vector vector_add(vector a, vector b) {
    return a + b;
}
VECTOR_INLINE vector vector_sub(vector a, vector b) {
    return a - b;
}
VECTOR_INLINE vector vector_mul(vector a, vector b) {
    return a * b;
}
VECTOR_INLINE vector vector_div(vector a, vector b) {
    return a / b;
}
VECTOR_INLINE vector vector_fma(vector a, vector b, vector c) {
    return a * b + c;
}
VECTOR_INLINE vector vector_max(vector a, vector b) {
    vector out;
    for (int i = 0; i < VECTOR; i++) out[i] = a[i] > b[i] ? a[i] : b[i];
    return out;
}
VECTOR_INLINE vector vector_exp2(vector v) {
    vector whole, power;
    for (int i = 0; i < VECTOR; i++) {
        float x = v[i] < -126.0f ? -126.0f : v[i];
        int32_t n = (int32_t)(x < 0.0f ? x - 0.5f : x + 0.5f);
        uint32_t bits = (uint32_t)(n + 127) << 23;
        float p;
        memcpy(&p, &bits, 4);
        power[i] = v[i] < -126.0f ? 0.0f : p;
        whole[i] = (float)n;
        v[i] = x;
    }
    vector r = v - whole;
    return VECTOR_EXP2_POLYNOMIAL(r) * power;
}
VECTOR_INLINE vector vector_load_bf16(const uint16_t *p) {
    vector v;
    for (int i = 0; i < VECTOR; i++) v[i] = vector_from_bf16(p[i]);
    return v;
}
VECTOR_INLINE void vector_store_bf16(uint16_t *p, vector v) {
    for (int i = 0; i < VECTOR; i++) p[i] = vector_to_bf16(v[i]);
}
VECTOR_INLINE vector vector_load_fp16(const uint16_t *p) {
    vector v;
    for (int i = 0; i < VECTOR; i++) v[i] = base_half_to_float(p[i]);
    return v;
}
VECTOR_INLINE void vector_store_fp16(uint16_t *p, vector v) {
    for (int i = 0; i < VECTOR; i++) p[i] = base_half_from_float(v[i]);
}
#endif

/* The sum of the elements, in a fixed order. */
VECTOR_INLINE float vector_sum(vector v) {
#if defined(KERNEL_ISA_avx512)
    return _mm512_reduce_add_ps(v);
#else
    float values[VECTOR];
    vector_store(values, v);
    for (int width = VECTOR / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++) values[i] += values[i + width];
    return values[0];
#endif
}

/* Loads the first `count` <= VECTOR elements, and zeros after them. */
VECTOR_INLINE vector vector_load_part(const float *p, int64_t count) {
    float values[VECTOR] = {0};
    memcpy(values, p, (size_t)count * sizeof *p);
    return vector_load(values);
}
VECTOR_INLINE vector vector_load_bf16_part(const uint16_t *p, int64_t count) {
    uint16_t values[VECTOR] = {0};
    memcpy(values, p, (size_t)count * sizeof *p);
    return vector_load_bf16(values);
}
VECTOR_INLINE void vector_store_part(float *p, vector v, int64_t count) {
    float values[VECTOR];
    vector_store(values, v);
    memcpy(p, values, (size_t)count * sizeof *p);
}
VECTOR_INLINE void vector_store_bf16_part(uint16_t *p, vector v, int64_t count) {
    uint16_t values[VECTOR];
    vector_store_bf16(values, v);
    memcpy(p, values, (size_t)count * sizeof *p);
}
VECTOR_INLINE vector vector_load_fp16_part(const uint16_t *p, int64_t count) {
    uint16_t values[VECTOR] = {0};
    memcpy(values, p, (size_t)count * sizeof *p);
    return vector_load_fp16(values);
}

/* Loads VECTOR values, or the first `count` <= VECTOR of them, of a 16-bit type: BF16 or FP16. */
VECTOR_INLINE vector vector_load_narrow(base_dtype dtype, const uint16_t *p) {
    return dtype == BASE_BF16 ? vector_load_bf16(p) : vector_load_fp16(p);
}
VECTOR_INLINE vector vector_load_narrow_part(base_dtype dtype, const uint16_t *p, int64_t count) {
    return dtype == BASE_BF16 ? vector_load_bf16_part(p, count) : vector_load_fp16_part(p, count);
}
VECTOR_INLINE void vector_store_narrow(base_dtype dtype, uint16_t *p, vector v) {
    if (dtype == BASE_BF16)
        vector_store_bf16(p, v);
    else
        vector_store_fp16(p, v);
}
VECTOR_INLINE void vector_store_narrow_part(base_dtype dtype, uint16_t *p, vector v,
                                            int64_t count) {
    uint16_t values[VECTOR];
    vector_store_narrow(dtype, values, v);
    memcpy(p, values, (size_t)count * sizeof *p);
}
VECTOR_INLINE float vector_from_narrow(base_dtype dtype, uint16_t value) {
    return dtype == BASE_BF16 ? vector_from_bf16(value) : base_half_to_float(value);
}

/* Prefetches memory that is read soon: the processor's own prefetching ends at each page of 4
 * KiB. */
VECTOR_INLINE void vector_ask_for(const void *from, int64_t bytes) {
    enum { LINE = 64 };
    for (int64_t i = 0; i < bytes; i += LINE) __builtin_prefetch((const char *)from + i);
}

#endif

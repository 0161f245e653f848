/* Arithmetic on short rows of fp32 that compilers vectorise for the file's instruction set. Loops
 * run over LANES values at a time, and the tail uses the same operations, so a value never depends
 * on its place in a row. */
#ifndef CPU_LANES_H
#define CPU_LANES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "base/half.h"
#include "device/call.h"

enum { LANES = 16, PIECE = 512 };

#define KERNEL_JOIN_(name, isa) name##_##isa
#define KERNEL_JOIN(name, isa) KERNEL_JOIN_(name, isa)
#define KERNEL(name) KERNEL_JOIN(name, KERNEL_ISA)

/* Converts `count` values of IEEE half precision, with the set's instructions if it has them. */
static inline void lanes_load_half(float *to, const uint16_t *from, int64_t count) {
    int64_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
#endif
    for (; i < count; i++) to[i] = base_half_to_float(from[i]);
}

static inline void lanes_store_half(uint16_t *to, const float *from, int64_t count) {
    int64_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((__m128i *)(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < count; i++) to[i] = base_half_from_float(from[i]);
}

/* Loads `count` values from element `first` of row `row` as fp32. */
static inline void lanes_load(float *to, const device_matrix *m, int64_t row, int64_t first,
                              int64_t count) {
    int64_t at = row * m->stride + first;
    if (m->dtype == BASE_BF16) {
        const uint16_t *from = (const uint16_t *)m->data + at;
        for (int64_t i = 0; i < count; i++) to[i] = base_bf16_to_float(from[i]);
    } else if (m->dtype == BASE_FP16) {
        lanes_load_half(to, (const uint16_t *)m->data + at, count);
    } else {
        memcpy(to, (const float *)m->data + at, (size_t)count * sizeof *to);
    }
}

static inline void lanes_store(const device_matrix *m, int64_t row, int64_t first, int64_t count,
                               const float *from) {
    int64_t at = row * m->stride + first;
    if (m->dtype == BASE_BF16) {
        uint16_t *to = (uint16_t *)m->data + at;
        for (int64_t i = 0; i < count; i++) to[i] = base_bf16_from_float(from[i]);
    } else if (m->dtype == BASE_FP16) {
        lanes_store_half((uint16_t *)m->data + at, from, count);
    } else {
        memcpy((float *)m->data + at, from, (size_t)count * sizeof *from);
    }
}

/* Stores a gradient that may be unwanted (no dtype) or added to; overwrites `from`. */
static inline void lanes_store_gradient(const device_call *c, int which, int64_t row, int64_t first,
                                        int64_t count, float *from) {
    const device_matrix *m = &c->dx[which];
    float before[PIECE];
    if (m->dtype == BASE_NONE) return;
    if (c->accumulate[which]) {
        lanes_load(before, m, row, first, count);
        for (int64_t i = 0; i < count; i++) from[i] += before[i];
    }
    lanes_store(m, row, first, count, from);
}

/* The values themselves if they are fp32, else a copy in `buffer`. */
static inline const float *lanes_read(float *buffer, const device_matrix *m, int64_t row,
                                      int64_t first, int64_t count) {
    if (m->dtype == BASE_FP32) return (const float *)m->data + row * m->stride + first;
    lanes_load(buffer, m, row, first, count);
    return buffer;
}

/* Where to write results before lanes_written: their final place if it is fp32, else `buffer`. */
static inline float *lanes_place(float *buffer, const device_matrix *m, int64_t row,
                                 int64_t first) {
    if (m->dtype == BASE_FP32) return (float *)m->data + row * m->stride + first;
    return buffer;
}

static inline void lanes_written(const device_matrix *m, int64_t row, int64_t first, int64_t count,
                                 const float *from) {
    if (m->dtype != BASE_FP32) lanes_store(m, row, first, count, from);
}

/* Likewise for gradients. */
static inline float *lanes_gradient_place(float *buffer, const device_call *c, int which,
                                          int64_t row, int64_t first) {
    if (c->accumulate[which]) return buffer;
    return lanes_place(buffer, &c->dx[which], row, first);
}

static inline void lanes_gradient_written(const device_call *c, int which, int64_t row,
                                          int64_t first, int64_t count, float *from) {
    if (c->accumulate[which] || c->dx[which].dtype != BASE_FP32)
        lanes_store_gradient(c, which, row, first, count, from);
}

/* A loop over independent elements; a result may overwrite an operand. */
#if defined(__clang__)
#define LANES_EACH(i, n)                                                                           \
    _Pragma("clang loop vectorize(assume_safety)") for (int64_t i = 0; i < (n); i++)
#else
#define LANES_EACH(i, n) _Pragma("GCC ivdep") for (int64_t i = 0; i < (n); i++)
#endif

static inline float lanes_fold(const float sums[LANES]) {
    float eight[8], four[4];
    for (int l = 0; l < 8; l++) eight[l] = sums[l] + sums[l + 8];
    for (int l = 0; l < 4; l++) four[l] = eight[l] + eight[l + 4];
    return (four[0] + four[2]) + (four[1] + four[3]);
}

/* a b + c with one rounding if the set has that: equal in the body and the tail of a loop. */
#if defined(__FMA__)
#define LANES_FMA(a, b, c) __builtin_fmaf(a, b, c)
#else
#define LANES_FMA(a, b, c) ((a) * (b) + (c))
#endif

/* e^x for x from -87.3 to 88, clamped to these ends; relative error about 1.2e-7. Cody and Waite's
 * reduction, then the polynomial of Cephes' expf. */
static inline float lanes_exp(float x) {
    x = x > 88.0f ? 88.0f : x;
    x = x < -87.3f ? -87.3f : x;
    float shifted = LANES_FMA(x, 1.44269504f, 12582912.0f); /* low bits: round(x / ln 2) */
    float n = shifted - 12582912.0f;
    float r = LANES_FMA(n, -0.693359375f, x), p = 1.9875691500e-4f;
    r = LANES_FMA(n, 2.12194440e-4f, r);
    p = LANES_FMA(p, r, 1.3981999507e-3f);
    p = LANES_FMA(p, r, 8.3334519073e-3f);
    p = LANES_FMA(p, r, 4.1665795894e-2f);
    p = LANES_FMA(p, r, 1.6666665459e-1f);
    p = LANES_FMA(p, r, 5.0000001201e-1f);
    p = LANES_FMA(p, r * r, r) + 1.0f;
    return p * base_float_from_bits((base_float_to_bits(shifted) << 23) + 0x3f800000);
}

/* e^x - 1 for x up to 88, by the same reduction and polynomial: 2^n (e^r - 1) + (2^n - 1) loses no
 * digits near 0, where n is 0. */
static inline float lanes_expm1(float x) {
    x = x > 88.0f ? 88.0f : x;
    x = x < -87.3f ? -87.3f : x;
    float shifted = LANES_FMA(x, 1.44269504f, 12582912.0f);
    float n = shifted - 12582912.0f;
    float r = LANES_FMA(n, -0.693359375f, x), p = 1.9875691500e-4f;
    r = LANES_FMA(n, 2.12194440e-4f, r);
    p = LANES_FMA(p, r, 1.3981999507e-3f);
    p = LANES_FMA(p, r, 8.3334519073e-3f);
    p = LANES_FMA(p, r, 4.1665795894e-2f);
    p = LANES_FMA(p, r, 1.6666665459e-1f);
    p = LANES_FMA(p, r, 5.0000001201e-1f);
    p = LANES_FMA(p, r * r, r);
    float power = base_float_from_bits((base_float_to_bits(shifted) << 23) + 0x3f800000);
    return LANES_FMA(power, p, power - 1.0f);
}

static inline float lanes_sigmoid(float x) {
    return 1.0f / (1.0f + lanes_exp(-x));
}

/* Relative error about 2e-7. Uses the polynomial of Cephes' tanhf where 1 - 2 / (e^(2x) + 1) would
 * lose digits. */
static inline float lanes_tanh(float x) {
    float size = fabsf(x), z = x * x, p = -5.70498872745e-3f;
    p = LANES_FMA(p, z, 2.06390887954e-2f);
    p = LANES_FMA(p, z, -5.37397155531e-2f);
    p = LANES_FMA(p, z, 1.33314422036e-1f);
    p = LANES_FMA(p, z, -3.33332819422e-1f);
    float small = LANES_FMA(p * z, x, x), large = 1.0f - 2.0f / (1.0f + lanes_exp(2.0f * size));
    return size < 0.625f ? small : copysignf(large, x);
}

#endif

/* For kernels_attention*.c: small products on words, and packing of operands into words.
 *
 * A word is 32 bits: one fp32 value, or (`pairs`, with bf16 instructions) two bf16 values that are
 * consecutive in the sum. Products take a row-major, in words along the sum, and b in rows of
 * words, one row for each word of the sum. */
#ifndef CPU_ATTENTION_TILE_H
#define CPU_ATTENTION_TILE_H

#include "base/checked.h"
#include "base/random.h"
#include "device/cpu/attention/kernels_attention.h"
#include "device/cpu/simd.h"
#include "device/cpu/transpose_rows.h"

#if defined(KERNEL_BF16)
#define TILE_PAIRS 1
#else
#define TILE_PAIRS 0
#endif

/* As many sums as fit into registers, beside a row of b and a factor. */
#if defined(KERNEL_ISA_avx512)
enum { TILE_ROWS = 6 };
#else
enum { TILE_ROWS = 3 };
#endif

enum { TILE_VECTORS = 4, QUERY_BLOCK = TILE_VECTORS * VECTOR, KEY_BLOCK = 64 };

/* The initial largest score. A hidden key's score is so far below it that its probability is 0 even
 * if no other key is seen. */
#define TILE_NOTHING (-1e30f)
#define TILE_HIDDEN (-1e31f)

/* Inlined and unrolled for constant arguments. With sanitizers, which check each load, such code
 * would take minutes to compile. */
#if defined(SIFR_SANITIZED)
#define TILE_INLINE static inline __attribute__((unused))
#define TILE_UNROLL
#elif defined(__clang__)
#define TILE_INLINE VECTOR_INLINE
#define TILE_UNROLL _Pragma("unroll")
#else
#define TILE_INLINE VECTOR_INLINE
#define TILE_UNROLL _Pragma("GCC unroll 8")
#endif

typedef enum tile_mode { TILE_SET, TILE_ADD, TILE_SCALE } tile_mode;

VECTOR_INLINE vector tile_step(bool pairs, vector a, vector b, vector sum) {
#if TILE_PAIRS
    if (pairs)
        return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_castps_si512(a),
                                (__m512bh)_mm512_castps_si512(b));
#endif
    (void)pairs;
    return vector_fma(a, b, sum);
}

/* rows x (vectors of) columns; TILE_SCALE multiplies the old values of c by alpha, column by
 * column. */
TILE_INLINE void tile_small(bool pairs, int rows, int vectors, int64_t words, const float *a,
                            int64_t a_stride, const float *b, int64_t b_stride, float *c,
                            int64_t c_stride, tile_mode mode, const float *alpha) {
    vector sum[TILE_ROWS][TILE_VECTORS];
    TILE_UNROLL
    for (int i = 0; i < rows; i++) {
        TILE_UNROLL
        for (int j = 0; j < vectors; j++) {
            if (mode == TILE_SET)
                sum[i][j] = vector_set(0.0f);
            else
                sum[i][j] = vector_load(c + i * c_stride + j * VECTOR);
            if (mode == TILE_SCALE)
                sum[i][j] = vector_mul(sum[i][j], vector_load(alpha + j * VECTOR));
        }
    }
    for (int64_t k = 0; k < words; k++) {
        vector row[TILE_VECTORS];
        TILE_UNROLL
        for (int j = 0; j < vectors; j++) row[j] = vector_load(b + k * b_stride + j * VECTOR);
        TILE_UNROLL
        for (int i = 0; i < rows; i++) {
            vector factor = vector_set(a[i * a_stride + k]);
            TILE_UNROLL
            for (int j = 0; j < vectors; j++)
                sum[i][j] = tile_step(pairs, factor, row[j], sum[i][j]);
        }
    }
    TILE_UNROLL
    for (int i = 0; i < rows; i++) {
        TILE_UNROLL
        for (int j = 0; j < vectors; j++) vector_store(c + i * c_stride + j * VECTOR, sum[i][j]);
    }
}

TILE_INLINE void tile_panel(bool pairs, int vectors, int64_t rows, int64_t words, const float *a,
                            int64_t a_stride, const float *b, int64_t b_stride, float *c,
                            int64_t c_stride, tile_mode mode, const float *alpha) {
    int64_t r = 0;
    for (; r + TILE_ROWS <= rows; r += TILE_ROWS)
        tile_small(pairs, TILE_ROWS, vectors, words, a + r * a_stride, a_stride, b, b_stride,
                   c + r * c_stride, c_stride, mode, alpha);
#if defined(KERNEL_ISA_avx512)
    for (; r + 4 <= rows; r += 4)
        tile_small(pairs, 4, vectors, words, a + r * a_stride, a_stride, b, b_stride,
                   c + r * c_stride, c_stride, mode, alpha);
#endif
    for (; r < rows; r++)
        tile_small(pairs, 1, vectors, words, a + r * a_stride, a_stride, b, b_stride,
                   c + r * c_stride, c_stride, mode, alpha);
}

/* c (rows x columns, a multiple of VECTOR) = or += a b. */
TILE_INLINE void tile_product(bool pairs, int64_t rows, int64_t columns, int64_t words,
                              const float *a, int64_t a_stride, const float *b, int64_t b_stride,
                              float *c, int64_t c_stride, tile_mode mode, const float *alpha) {
    int64_t at = 0;
    for (; at + TILE_VECTORS * VECTOR <= columns; at += TILE_VECTORS * VECTOR)
        tile_panel(pairs, TILE_VECTORS, rows, words, a, a_stride, b + at, b_stride, c + at,
                   c_stride, mode, alpha + at);
    for (; at + 2 * VECTOR <= columns; at += 2 * VECTOR)
        tile_panel(pairs, 2, rows, words, a, a_stride, b + at, b_stride, c + at, c_stride, mode,
                   alpha + at);
    for (; at < columns; at += VECTOR)
        tile_panel(pairs, 1, rows, words, a, a_stride, b + at, b_stride, c + at, c_stride, mode,
                   alpha + at);
}

/* Scores by relative position are made in fp32 words whatever the type. */
static inline bool tile_takes_pairs(base_dtype dtype, int64_t places) {
    return TILE_PAIRS && dtype == BASE_BF16 && places == 0;
}

VECTOR_INLINE int64_t tile_words(bool pairs, int64_t count) {
    return pairs ? (count + 1) / 2 : count;
}

VECTOR_INLINE const void *tile_row(const void *from, base_dtype dtype, int64_t at) {
    return (const char *)from + at * (dtype == BASE_FP32 ? 4 : 2);
}

TILE_INLINE void tile_widen_row(const uint16_t *from, base_dtype dtype, int64_t count, float *to) {
    int64_t i = 0;
    for (; i + VECTOR <= count; i += VECTOR)
        vector_store(to + i, vector_load_narrow(dtype, from + i));
    for (; i < count; i++) to[i] = vector_from_narrow(dtype, from[i]);
}

/* Packs a row of `count` values into words along the row. */
TILE_INLINE void tile_pack_row(bool pairs, const void *from, base_dtype dtype, int64_t count,
                               float *to) {
    if (pairs) {
        if (count & 1) memset(to + count / 2, 0, 4);
        memcpy(to, from, (size_t)count * 2);
    } else if (dtype == BASE_FP32) {
        memcpy(to, from, (size_t)count * 4);
    } else if (dtype == BASE_BF16) {
        tile_widen_row(from, BASE_BF16, count, to);
    } else {
        tile_widen_row(from, BASE_FP16, count, to);
    }
}

/* Packs `rows` rows of `count` values into words along rows, with zeros in rows [rows, padded). */
TILE_INLINE void tile_pack(bool pairs, const void *from, base_dtype dtype, int64_t stride,
                           int64_t rows, int64_t padded, int64_t count, float *to) {
    int64_t words = tile_words(pairs, count);
    for (int64_t r = 0; r < rows; r++)
        tile_pack_row(pairs, tile_row(from, dtype, r * stride), dtype, count, to + r * words);
    memset(to + rows * words, 0, (size_t)((padded - rows) * words) * 4);
}

/* Packs one row of words across: of rows r and r + 1 (NULL: zeros) in pairs, else of row r. */
TILE_INLINE void tile_interleave(bool pairs, const void *even, const void *odd, base_dtype dtype,
                                 int64_t count, float *to) {
    if (!pairs) {
        tile_pack_row(false, even, dtype, count, to);
        return;
    }
    const uint16_t *low = even, *high = odd;
    uint16_t *words = (uint16_t *)(void *)to;
    for (int64_t i = 0; i < count; i++) {
        uint16_t values[2] = {low[i], high == NULL ? 0 : high[i]};
        memcpy(words + 2 * i, values, 4);
    }
}

/* Packs rows [0, rows) of `count` values into rows of words across, `to_stride` words apart, with
 * zeros up to `padded_count` values and `padded` rows. */
TILE_INLINE void tile_pack_across(bool pairs, const void *from, base_dtype dtype, int64_t stride,
                                  int64_t rows, int64_t padded, int64_t count, int64_t padded_count,
                                  float *to) {
    int64_t step = pairs ? 2 : 1;
    for (int64_t r = 0; r < padded; r += step, to += padded_count) {
        int64_t filled = r < rows ? count : 0;
        if (r < rows)
            tile_interleave(pairs, tile_row(from, dtype, r * stride),
                            r + 1 < rows ? tile_row(from, dtype, (r + 1) * stride) : NULL, dtype,
                            count, to);
        memset(to + filled, 0, (size_t)(padded_count - filled) * 4);
    }
}

/* Stores words of two rows of fp32 values (in pairs), or the first row. */
VECTOR_INLINE void tile_store_across(bool pairs, float *to, vector even, vector odd) {
#if TILE_PAIRS
    if (pairs) {
        const __m512i order =
            _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7,
                             22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
        __m512i both = (__m512i)_mm512_cvtne2ps_pbh(odd, even);
        _mm512_storeu_si512(to, _mm512_permutexvar_epi16(order, both));
        return;
    }
#endif
    (void)pairs, (void)odd;
    vector_store(to, even);
}

/* Stores VECTOR values of a row as words along the row. */
VECTOR_INLINE void tile_store_along(bool pairs, float *to, vector v) {
#if TILE_PAIRS
    if (pairs) {
        vector_store_bf16((uint16_t *)(void *)to, v);
        return;
    }
#endif
    (void)pairs;
    vector_store(to, v);
}

/* Writes fp32 values to a row of the operand's type. */
TILE_INLINE void tile_write_row(const float *from, base_dtype dtype, int64_t count, void *to) {
    if (dtype == BASE_FP32) {
        memcpy(to, from, (size_t)count * 4);
        return;
    }
    uint16_t *values = to;
    int64_t i = 0;
    for (; i + VECTOR <= count; i += VECTOR)
        vector_store_narrow(dtype, values + i, vector_load(from + i));
    if (i < count)
        vector_store_narrow_part(dtype, values + i, vector_load_part(from + i, count - i),
                                 count - i);
}

/* Dropout. A random number is a function of (key, head, query, position of the key): 16 bits of
 * Philox's, whose counter is (position of 8 keys, query, head). Factors are 0 where a probability
 * is dropped, else 1 / (1 - p) with p in 65536ths. Queries along lanes, keys k0 to k0 + keys. */
#define TILE_PHILOX_A 0xD2511F53u
#define TILE_PHILOX_B 0xCD9E8D57u

#if defined(KERNEL_ISA_avx512)
/* Eight counters, each in the low half of a 64-bit lane; the high halves are ignored. */
TILE_INLINE void tile_philox8(__m512i c[4], uint64_t key) {
    uint32_t key0 = (uint32_t)key, key1 = (uint32_t)(key >> 32);
    const __m512i a = _mm512_set1_epi64(TILE_PHILOX_A), b = _mm512_set1_epi64(TILE_PHILOX_B);
    TILE_UNROLL
    for (int round = 0; round < 10; round++) {
        __m512i p0 = _mm512_mul_epu32(c[0], a), p1 = _mm512_mul_epu32(c[2], b);
        c[0] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(p1, 32), c[1], _mm512_set1_epi64(key0),
                                         0x96);
        c[2] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(p0, 32), c[3], _mm512_set1_epi64(key1),
                                         0x96);
        c[1] = p1, c[3] = p0;
        key0 += 0x9E3779B9u, key1 += 0xBB67AE85u;
    }
}

/* Factors of 16 queries and 8 keys, rows of QUERY_BLOCK. */
TILE_INLINE void tile_dropout8(uint64_t key, uint32_t head, uint32_t query, uint32_t place,
                               uint32_t threshold, float keep, float *factors) {
    const __m512i even = _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0);
    __m512i first = _mm512_add_epi64(_mm512_set1_epi64(query), even);
    __m512i low[4] = {_mm512_set1_epi64(place), first, _mm512_set1_epi64(head),
                      _mm512_setzero_si512()};
    __m512i high[4] = {low[0], _mm512_add_epi64(first, _mm512_set1_epi64(1)), low[2], low[3]};
    tile_philox8(low, key);
    tile_philox8(high, key);
    const __m512i limit = _mm512_set1_epi32((int)threshold), half = _mm512_set1_epi32(0xffff);
    for (int j = 0; j < 4; j++) {
        __m512i words = _mm512_mask_blend_epi32(0xAAAA, low[j], _mm512_slli_epi64(high[j], 32));
        __mmask16 one = _mm512_cmpge_epu32_mask(_mm512_and_si512(words, half), limit);
        __mmask16 two = _mm512_cmpge_epu32_mask(_mm512_srli_epi32(words, 16), limit);
        _mm512_storeu_ps(factors + (2 * j) * QUERY_BLOCK,
                         _mm512_maskz_mov_ps(one, _mm512_set1_ps(keep)));
        _mm512_storeu_ps(factors + (2 * j + 1) * QUERY_BLOCK,
                         _mm512_maskz_mov_ps(two, _mm512_set1_ps(keep)));
    }
}
#else
TILE_INLINE void tile_dropout8(uint64_t key, uint32_t head, uint32_t query, uint32_t place,
                               uint32_t threshold, float keep, float *factors) {
    for (uint32_t i = 0; i < VECTOR; i++) {
        base_random4 random = base_philox(key, (uint64_t)(query + i) << 32 | place, (uint64_t)head);
        for (int j = 0; j < 8; j++) {
            uint32_t number = random.v[j / 2] >> (j % 2 * 16) & 0xffffu;
            factors[j * QUERY_BLOCK + i] = number >= threshold ? keep : 0.0f;
        }
    }
}
#endif

/* `factors` has rows for whole groups of 8 keys; k0 is a multiple of 8. */
TILE_INLINE void tile_dropout(const cpu_attention *a, uint32_t head, int64_t q0, int64_t k0,
                              int64_t keys, float *factors) {
    uint32_t threshold = (uint32_t)(a->dropout * 65536.0f + 0.5f);
    float keep = 65536.0f / (65536.0f - (float)threshold);
    for (int64_t k = 0; k < keys; k += 8)
        for (int64_t q = 0; q < QUERY_BLOCK; q += VECTOR)
            tile_dropout8(a->random_key, head, (uint32_t)(q0 + q), (uint32_t)((k0 + k) / 8),
                          threshold, keep, factors + k * QUERY_BLOCK + q);
}

#endif

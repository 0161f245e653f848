/* For kernels_attention*.c: small products on words, and bringing operands into words.
 *
 * A word is 32 bits: one fp32 value, or (`pairs`, with bf16 instructions) two bf16 values that
 * follow each other in the sum. Products take a row-major from words along the sum, and b in rows
 * of words, one row for each word of the sum. */
#ifndef CPU_ATTENTION_TILE_H
#define CPU_ATTENTION_TILE_H

#include "base/checked.h"
#include "base/random.h"
#include "device/cpu/kernels_attention.h"
#include "device/cpu/simd.h"
#include "device/cpu/transpose.h"

#if defined(KERNEL_ISA_avx512)
#define TILE_PAIRS 1
enum { TILE_ROWS = 6 };
#else
#define TILE_PAIRS 0
enum { TILE_ROWS = 3 };
#endif

enum { TILE_VECTORS = 4, QUERY_BLOCK = TILE_VECTORS * VECTOR, KEY_BLOCK = 64 };

#define TILE_NOTHING (-1e30f) /* the score of a key that a query does not see */

#if defined(__clang__)
#define TILE_UNROLL _Pragma("unroll")
#else
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

/* rows x (vectors of) columns; TILE_SCALE multiplies what is in c by alpha, column by column. */
VECTOR_INLINE void tile_small(bool pairs, int rows, int vectors, int64_t words, const float *a,
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

VECTOR_INLINE void tile_panel(bool pairs, int vectors, int64_t rows, int64_t words, const float *a,
                              int64_t a_stride, const float *b, int64_t b_stride, float *c,
                              int64_t c_stride, tile_mode mode, const float *alpha) {
    int64_t r = 0;
    for (; r + TILE_ROWS <= rows; r += TILE_ROWS)
        tile_small(pairs, TILE_ROWS, vectors, words, a + r * a_stride, a_stride, b, b_stride,
                   c + r * c_stride, c_stride, mode, alpha);
#if TILE_PAIRS
    for (; r + 4 <= rows; r += 4)
        tile_small(pairs, 4, vectors, words, a + r * a_stride, a_stride, b, b_stride,
                   c + r * c_stride, c_stride, mode, alpha);
#endif
    for (; r < rows; r++)
        tile_small(pairs, 1, vectors, words, a + r * a_stride, a_stride, b, b_stride,
                   c + r * c_stride, c_stride, mode, alpha);
}

/* c (rows x columns, a multiple of VECTOR) = or += a b. */
VECTOR_INLINE void tile_product(bool pairs, int64_t rows, int64_t columns, int64_t words,
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

VECTOR_INLINE int64_t tile_words(bool pairs, int64_t count) {
    return pairs ? (count + 1) / 2 : count;
}

VECTOR_INLINE const void *tile_row(const void *from, device_dtype dtype, int64_t at) {
    return (const char *)from + at * (dtype == DEVICE_BF16 ? 2 : 4);
}

/* Row of `count` values as words along the row. */
VECTOR_INLINE void tile_pack_row(bool pairs, const void *from, device_dtype dtype, int64_t count,
                                 float *to) {
    if (pairs) {
        if (count & 1) memset(to + count / 2, 0, 4);
        memcpy(to, from, (size_t)count * 2);
    } else if (dtype == DEVICE_FP32) {
        memcpy(to, from, (size_t)count * 4);
    } else {
        const uint16_t *values = from;
        int64_t i = 0;
        for (; i + VECTOR <= count; i += VECTOR) vector_store(to + i, vector_load_bf16(values + i));
        for (; i < count; i++) to[i] = vector_from_bf16(values[i]);
    }
}

/* `rows` rows of `count` values as words along rows, zeros in rows [rows, padded). */
VECTOR_INLINE void tile_pack(bool pairs, const void *from, device_dtype dtype, int64_t stride,
                             int64_t rows, int64_t padded, int64_t count, float *to) {
    int64_t words = tile_words(pairs, count);
    for (int64_t r = 0; r < rows; r++)
        tile_pack_row(pairs, tile_row(from, dtype, r * stride), dtype, count, to + r * words);
    memset(to + rows * words, 0, (size_t)((padded - rows) * words) * 4);
}

/* One row of words across: of rows r and r + 1 (NULL: zeros) in pairs, else of row r. */
VECTOR_INLINE void tile_interleave(bool pairs, const void *even, const void *odd,
                                   device_dtype dtype, int64_t count, float *to) {
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

/* Rows [0, rows) of `count` values as rows of words across, `to_stride` words apart; values behind
 * `count` are zeros up to `padded_count`, rows behind `rows` up to `padded` likewise. */
VECTOR_INLINE void tile_pack_across(bool pairs, const void *from, device_dtype dtype,
                                    int64_t stride, int64_t rows, int64_t padded, int64_t count,
                                    int64_t padded_count, float *to) {
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

VECTOR_INLINE void tile_transpose(const float *from, int64_t rows, int64_t columns, int64_t stride,
                                  float *to, int64_t to_stride) {
    cpu_transpose32((const uint32_t *)(const void *)from, rows, columns, stride,
                    (uint32_t *)(void *)to, to_stride);
}

/* Words of two rows of fp32 values (in pairs), or the first row. */
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

/* VECTOR values of a row as words along the row. */
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

/* fp32 values into a row of the operand's type. */
VECTOR_INLINE void tile_write_row(const float *from, device_dtype dtype, int64_t count, void *to) {
    if (dtype == DEVICE_FP32) {
        memcpy(to, from, (size_t)count * 4);
        return;
    }
    uint16_t *values = to;
    int64_t i = 0;
    for (; i + VECTOR <= count; i += VECTOR) vector_store_bf16(values + i, vector_load(from + i));
    if (i < count)
        vector_store_bf16_part(values + i, vector_load_part(from + i, count - i), count - i);
}

/* What a probability is multiplied with: 0 where it is dropped, else 1 / (1 - p). Queries along
 * lanes, keys k0 to k0 + keys; a number is a function of (key, head, query, key's place). */
VECTOR_INLINE void tile_dropout(const cpu_attention *a, uint32_t head, int64_t q0, int64_t k0,
                                int64_t keys, float *factors) {
    uint32_t threshold = (uint32_t)((double)a->dropout * 16777216.0);
    float keep = 1.0f / (1.0f - a->dropout);
    for (int64_t k = 0; k < keys; k += 4) {
        for (int64_t q = 0; q < QUERY_BLOCK; q += VECTOR) {
            uint32_t c[4][VECTOR];
            for (int i = 0; i < VECTOR; i++) {
                c[0][i] = (uint32_t)((k0 + k) / 4), c[1][i] = (uint32_t)(q0 + q + i);
                c[2][i] = head, c[3][i] = 0;
            }
            uint32_t key0 = (uint32_t)a->random_key, key1 = (uint32_t)(a->random_key >> 32);
            for (int round = 0; round < 10; round++) {
                for (int i = 0; i < VECTOR; i++) {
                    uint64_t p0 = (uint64_t)0xD2511F53u * c[0][i];
                    uint64_t p1 = (uint64_t)0xCD9E8D57u * c[2][i];
                    c[0][i] = (uint32_t)(p1 >> 32) ^ c[1][i] ^ key0;
                    c[2][i] = (uint32_t)(p0 >> 32) ^ c[3][i] ^ key1;
                    c[1][i] = (uint32_t)p1, c[3][i] = (uint32_t)p0;
                }
                key0 += 0x9E3779B9u, key1 += 0xBB67AE85u;
            }
            for (int j = 0; j < 4 && k + j < keys; j++)
                for (int i = 0; i < VECTOR; i++)
                    factors[(k + j) * QUERY_BLOCK + q + i] =
                        c[j][i] >> 8 >= threshold ? keep : 0.0f;
        }
    }
}

#endif

/* Transposes 32-bit words, with the vectors of the kernels_*.c that includes this file. */
#ifndef CPU_TRANSPOSE_ROWS_H
#define CPU_TRANSPOSE_ROWS_H

#include "device/cpu/product/transpose.h"
#include "device/cpu/simd.h"

#if defined(KERNEL_ISA_avx512)
/* 16 x 16; each row of the result is one cache line, written once. */
VECTOR_INLINE void turn_16(const float *from, int64_t stride, float *to, int64_t to_stride) {
    __m512 a[16], b[16];
    for (int i = 0; i < 16; i++) a[i] = _mm512_loadu_ps(from + i * stride);
    for (int i = 0; i < 16; i += 2) {
        b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int j = 0; j < 2; j++) {
            __m512d even = _mm512_castps_pd(b[i + j]), odd = _mm512_castps_pd(b[i + j + 2]);
            a[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(even, odd));
            a[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(even, odd));
        }
    for (int j = 0; j < 4; j++) { /* a[4 g + j] has columns j, 4 + j... of rows 4 g to 4 g + 3 */
        __m512 upper[2] = {_mm512_shuffle_f32x4(a[j], a[4 + j], 0x88),
                           _mm512_shuffle_f32x4(a[j], a[4 + j], 0xdd)};
        __m512 lower[2] = {_mm512_shuffle_f32x4(a[8 + j], a[12 + j], 0x88),
                           _mm512_shuffle_f32x4(a[8 + j], a[12 + j], 0xdd)};
        for (int i = 0; i < 2; i++) {
            _mm512_storeu_ps(to + (4 * i + j) * to_stride,
                             _mm512_shuffle_f32x4(upper[i], lower[i], 0x88));
            _mm512_storeu_ps(to + (4 * i + 8 + j) * to_stride,
                             _mm512_shuffle_f32x4(upper[i], lower[i], 0xdd));
        }
    }
}
#endif

/* to[c][r] = from[r][c]; strides in words. */
VECTOR_INLINE void transpose(const float *from, int64_t rows, int64_t columns, int64_t stride,
                             float *to, int64_t to_stride) {
    int64_t whole_rows = 0, whole_columns = 0;
#if defined(KERNEL_ISA_avx512)
    whole_rows = rows & ~15ll, whole_columns = columns & ~15ll;
    for (int64_t c = 0; c < whole_columns; c += 16)
        for (int64_t r = 0; r < whole_rows; r += 16)
            turn_16(from + r * stride + c, stride, to + c * to_stride + r, to_stride);
#endif
    cpu_transpose32((const uint32_t *)(const void *)(from + whole_columns), whole_rows,
                    columns - whole_columns, stride,
                    (uint32_t *)(void *)(to + whole_columns * to_stride), to_stride);
    cpu_transpose32((const uint32_t *)(const void *)(from + whole_rows * stride), rows - whole_rows,
                    columns, stride, (uint32_t *)(void *)(to + whole_rows), to_stride);
}

#endif

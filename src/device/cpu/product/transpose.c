#include "device/cpu/product/transpose.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/checked.h"

/* Blocks are written in whole cache lines. They are small enough to stay in a first-level cache
 * even if strides are powers of two and all lines compete for two of its sets. */
enum { BLOCK_ROWS = 32, BLOCK_COLUMNS16 = 16, BLOCK_COLUMNS32 = 8 };

static void transpose16_plain(const uint16_t *from, int64_t rows, int64_t columns, int64_t stride,
                              uint16_t *to, int64_t to_stride) {
    for (int64_t c = 0; c < columns; c++)
        for (int64_t r = 0; r < rows; r++) to[c * to_stride + r] = from[r * stride + c];
}

static void transpose32_plain(const uint32_t *from, int64_t rows, int64_t columns, int64_t stride,
                              uint32_t *to, int64_t to_stride) {
    for (int64_t c = 0; c < columns; c++)
        for (int64_t r = 0; r < rows; r++) to[c * to_stride + r] = from[r * stride + c];
}

#ifdef __SSE2__
static void transpose16_8x8(const uint16_t *from, int64_t stride, uint16_t *to, int64_t to_stride) {
    __m128i a[8], b[8];
    for (int i = 0; i < 8; i++) a[i] = _mm_loadu_si128((const __m128i *)(from + i * stride));
    for (int i = 0; i < 4; i++) {
        b[2 * i] = _mm_unpacklo_epi16(a[2 * i], a[2 * i + 1]);
        b[2 * i + 1] = _mm_unpackhi_epi16(a[2 * i], a[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        a[4 * i] = _mm_unpacklo_epi32(b[4 * i], b[4 * i + 2]);
        a[4 * i + 1] = _mm_unpackhi_epi32(b[4 * i], b[4 * i + 2]);
        a[4 * i + 2] = _mm_unpacklo_epi32(b[4 * i + 1], b[4 * i + 3]);
        a[4 * i + 3] = _mm_unpackhi_epi32(b[4 * i + 1], b[4 * i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        b[2 * i] = _mm_unpacklo_epi64(a[i], a[i + 4]);
        b[2 * i + 1] = _mm_unpackhi_epi64(a[i], a[i + 4]);
    }
    for (int i = 0; i < 8; i++) _mm_storeu_si128((__m128i *)(to + i * to_stride), b[i]);
}

static void transpose32_4x4(const uint32_t *from, int64_t stride, uint32_t *to, int64_t to_stride) {
    __m128i a[4], b[4];
    for (int i = 0; i < 4; i++) a[i] = _mm_loadu_si128((const __m128i *)(from + i * stride));
    b[0] = _mm_unpacklo_epi32(a[0], a[1]), b[1] = _mm_unpackhi_epi32(a[0], a[1]);
    b[2] = _mm_unpacklo_epi32(a[2], a[3]), b[3] = _mm_unpackhi_epi32(a[2], a[3]);
    a[0] = _mm_unpacklo_epi64(b[0], b[2]), a[1] = _mm_unpackhi_epi64(b[0], b[2]);
    a[2] = _mm_unpacklo_epi64(b[1], b[3]), a[3] = _mm_unpackhi_epi64(b[1], b[3]);
    for (int i = 0; i < 4; i++) _mm_storeu_si128((__m128i *)(to + i * to_stride), a[i]);
}
#endif

static void transpose16_block(const uint16_t *from, int64_t rows, int64_t columns, int64_t stride,
                              uint16_t *to, int64_t to_stride) {
    int64_t whole_rows = 0, whole_columns = 0;
#ifdef __SSE2__
    whole_rows = rows & ~7ll, whole_columns = columns & ~7ll;
    for (int64_t c = 0; c < whole_columns; c += 8)
        for (int64_t r = 0; r < whole_rows; r += 8)
            transpose16_8x8(from + r * stride + c, stride, to + c * to_stride + r, to_stride);
#endif
    transpose16_plain(from + whole_columns, whole_rows, columns - whole_columns, stride,
                      to + whole_columns * to_stride, to_stride);
    transpose16_plain(from + whole_rows * stride, rows - whole_rows, columns, stride,
                      to + whole_rows, to_stride);
}

static void transpose32_block(const uint32_t *from, int64_t rows, int64_t columns, int64_t stride,
                              uint32_t *to, int64_t to_stride) {
    int64_t whole_rows = 0, whole_columns = 0;
#ifdef __SSE2__
    whole_rows = rows & ~3ll, whole_columns = columns & ~3ll;
    for (int64_t c = 0; c < whole_columns; c += 4)
        for (int64_t r = 0; r < whole_rows; r += 4)
            transpose32_4x4(from + r * stride + c, stride, to + c * to_stride + r, to_stride);
#endif
    transpose32_plain(from + whole_columns, whole_rows, columns - whole_columns, stride,
                      to + whole_columns * to_stride, to_stride);
    transpose32_plain(from + whole_rows * stride, rows - whole_rows, columns, stride,
                      to + whole_rows, to_stride);
}

void cpu_transpose16(const uint16_t *from, int64_t rows, int64_t columns, int64_t from_stride,
                     uint16_t *to, int64_t to_stride) {
    for (int64_t r = 0; r < rows; r += BLOCK_ROWS)
        for (int64_t c = 0; c < columns; c += BLOCK_COLUMNS16)
            transpose16_block(from + r * from_stride + c, base_min_i64(BLOCK_ROWS, rows - r),
                              base_min_i64(BLOCK_COLUMNS16, columns - c), from_stride,
                              to + c * to_stride + r, to_stride);
}

void cpu_transpose32(const uint32_t *from, int64_t rows, int64_t columns, int64_t from_stride,
                     uint32_t *to, int64_t to_stride) {
    for (int64_t r = 0; r < rows; r += BLOCK_ROWS)
        for (int64_t c = 0; c < columns; c += BLOCK_COLUMNS32)
            transpose32_block(from + r * from_stride + c, base_min_i64(BLOCK_ROWS, rows - r),
                              base_min_i64(BLOCK_COLUMNS32, columns - c), from_stride,
                              to + c * to_stride + r, to_stride);
}

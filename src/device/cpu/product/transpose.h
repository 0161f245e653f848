/* Transposes a matrix of 2- or 4-byte elements. */
#ifndef CPU_TRANSPOSE_H
#define CPU_TRANSPOSE_H

#include <stdint.h>

/* to[c][r] = from[r][c]; strides in elements. */
void cpu_transpose16(const uint16_t *from, int64_t rows, int64_t columns, int64_t from_stride,
                     uint16_t *to, int64_t to_stride);
void cpu_transpose32(const uint32_t *from, int64_t rows, int64_t columns, int64_t from_stride,
                     uint32_t *to, int64_t to_stride);

#endif

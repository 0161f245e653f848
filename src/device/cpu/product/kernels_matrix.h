/* Vector kernels around matrix products; kernels_matrix.c is compiled for each instruction set. */
#ifndef CPU_KERNELS_MATRIX_H
#define CPU_KERNELS_MATRIX_H

#include "device/device.h"

enum { CPU_FEW_ROWS = 7 }; /* of x, that a vector_product takes */
enum { CPU_PANEL = 16 };   /* columns of b in a panel */

/* c, rows x columns, (+)= a b + bias, which may be NULL; columns a multiple of CPU_PANEL. Sums on
 * the way are in `made`, dense, which may be c. */
typedef struct cpu_panel_operands {
    const float *a, *panels, *bias;
    float *made, *c;
    int64_t rows, inner, columns, a_stride, c_stride;
    bool add;
} cpu_panel_operands;

typedef struct cpu_matrix_kernels {
    /* BF16 or FP16 to fp32 */
    void (*widen)(base_dtype dtype, const uint16_t *from, float *to, int64_t count);
    /* fp32 to BF16 or FP16, to nearest even; with `add`, what is there is added before rounding */
    void (*narrow)(base_dtype dtype, const float *from, uint16_t *to, int64_t count, bool add);
    /* sums[c] (+)= the sum over rows, in order, of column c; dtype FP32, BF16 or FP16 */
    void (*column_sums)(const void *from, base_dtype dtype, int64_t rows, int64_t columns,
                        int64_t stride, float *sums, bool add);
    /* to (+)= from, a dense block of rows x columns, columns a multiple of 64 */
    void (*put_block)(const float *from, int64_t rows, int64_t columns, float *to,
                      int64_t to_stride, bool add);
    /* to[c][r] = from[r][c]; strides in elements */
    void (*turn)(const float *from, int64_t rows, int64_t columns, int64_t stride, float *to,
                 int64_t to_stride);
    /* Elements first <= n < last of the rows of y = x w^T + bias, at most CPU_FEW_ROWS of them,
     * each with the bits that it has alone. */
    void (*vector_product)(const device_matrix *x, const device_matrix *w,
                           const device_matrix *bias, const device_matrix *y, int64_t first,
                           int64_t last);
    /* The same of y = x w, where w is in x out, in two parts: what `rows` rows of w give from `row`
     * on, and the end of all pieces of rows. sums: fp32, dense, (pieces, rows of x, out); the first
     * takes those of its piece. */
    void (*vector_sums)(const device_matrix *x, const device_matrix *w, int64_t row, int64_t rows,
                        int64_t first, int64_t last, float *sums);
    void (*vector_finish)(const float *sums, int64_t pieces, const device_matrix *bias,
                          const device_matrix *y, int64_t first, int64_t last);
    /* Both NULL where the library's products are quicker. b, inner x columns or, transposed,
     * columns x inner, becomes panels of CPU_PANEL columns, each inner x CPU_PANEL. */
    void (*pack_panels)(const float *b, int64_t stride, bool transposed, int64_t inner,
                        int64_t columns, float *panels);
    void (*panel_product)(const cpu_panel_operands *operands);
} cpu_matrix_kernels;

extern const cpu_matrix_kernels cpu_matrix_kernels_plain, cpu_matrix_kernels_avx2,
    cpu_matrix_kernels_avx512, cpu_matrix_kernels_avx512_bf16;

#endif

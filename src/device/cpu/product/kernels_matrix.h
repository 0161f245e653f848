/* Vector kernels around matrix products; kernels_matrix.c is compiled for each instruction set. */
#ifndef CPU_KERNELS_MATRIX_H
#define CPU_KERNELS_MATRIX_H

#include "device/call.h"

enum { CPU_FEW_ROWS = 7 }; /* most rows of x in a vector_product */
enum { CPU_PANEL = 16 };   /* columns of b in a panel */

/* c, rows x columns, (+)= a b + bias, which may be NULL; columns a multiple of CPU_PANEL. `made`
 * holds partial sums, dense, and may be c. */
typedef struct cpu_panel_operands {
    const float *a, *panels, *bias;
    float *made, *c;
    int64_t rows, inner, columns, a_stride, c_stride;
    bool add;
} cpu_panel_operands;

typedef struct cpu_matrix_kernels {
    /* BF16 or FP16 to fp32 */
    void (*widen)(base_dtype dtype, const uint16_t *from, float *to, int64_t count);
    /* fp32 to BF16 or FP16, to nearest even; with `add`, adds the old value before rounding */
    void (*narrow)(base_dtype dtype, const float *from, uint16_t *to, int64_t count, bool add);
    /* sums[c] (+)= the sum over rows, in order, of column c; dtype FP32, BF16 or FP16 */
    void (*column_sums)(const void *from, base_dtype dtype, int64_t rows, int64_t columns,
                        int64_t stride, float *sums, bool add);
    /* to (+)= from, a dense block of rows x columns, columns a multiple of 64 */
    void (*put_block)(const float *from, int64_t rows, int64_t columns, float *to,
                      int64_t to_stride, bool add);
    /* to[c][r] = from[r][c]; strides in elements */
    void (*transpose)(const float *from, int64_t rows, int64_t columns, int64_t stride, float *to,
                      int64_t to_stride);
    /* Elements first <= n < last of up to CPU_FEW_ROWS rows of y = x w^T + bias. Each row has the
     * same bits as alone. */
    void (*vector_product)(const device_matrix *x, const device_matrix *w,
                           const device_matrix *bias, const device_matrix *y, int64_t first,
                           int64_t last);
    /* Likewise y = x w, with w in x out, in two parts: the sums over `rows` rows of w from `row`
     * on, and the final addition of all pieces of rows. sums: fp32, dense, (pieces, rows of x,
     * out); the first part gets its piece of them. */
    void (*vector_sums)(const device_matrix *x, const device_matrix *w, int64_t row, int64_t rows,
                        int64_t first, int64_t last, float *sums);
    void (*vector_finish)(const float *sums, int64_t pieces, const device_matrix *bias,
                          const device_matrix *y, int64_t first, int64_t last);
    /* Both NULL if the library's products are faster. Packs b, inner x columns or, transposed,
     * columns x inner, into panels of CPU_PANEL columns, each inner x CPU_PANEL. */
    void (*pack_panels)(const float *b, int64_t stride, bool transposed, int64_t inner,
                        int64_t columns, float *panels);
    void (*panel_product)(const cpu_panel_operands *operands);
} cpu_matrix_kernels;

extern const cpu_matrix_kernels cpu_matrix_kernels_plain, cpu_matrix_kernels_avx2,
    cpu_matrix_kernels_avx512, cpu_matrix_kernels_avx512_bf16;

#endif

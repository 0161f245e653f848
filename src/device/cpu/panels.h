/* c = a b with b in panels, in the vectors that kernels_matrix.c is being compiled for.
 *
 * PANEL_ROWS rows of c by one panel stay in registers over PANEL_INNER steps of the inner dimension
 * (Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008): a panel's part
 * lies in the first-level cache then, a's rows come from the second. Steps are added in order,
 * however many rows are made together, so each row has the bits that it has alone. */
#ifndef CPU_PANELS_H
#define CPU_PANELS_H

#include "base/checked.h"
#include "device/cpu/kernels_matrix.h"
#include "device/cpu/turn.h"

#if defined(KERNEL_ISA_avx2)
enum { PANEL_ROWS = 6, PANEL_INNER = 256, PANEL_VECTORS = CPU_PANEL / VECTOR };

static void pack_panels(const float *b, int64_t stride, bool transposed, int64_t inner,
                        int64_t columns, float *panels) {
    for (int64_t c = 0; c < columns; c += CPU_PANEL, panels += inner * CPU_PANEL) {
        if (transposed) {
            turn(b + c * stride, CPU_PANEL, inner, stride, panels, CPU_PANEL);
            continue;
        }
        for (int64_t k = 0; k < inner; k++)
            memcpy(panels + k * CPU_PANEL, b + k * stride + c, CPU_PANEL * sizeof *b);
    }
}

/* `more`: to what c holds. `bias`: added last, or NULL. */
VECTOR_INLINE void panel_rows(int rows, const float *a, int64_t a_stride, const float *panel,
                              int64_t inner, bool more, const float *bias, float *c,
                              int64_t c_stride) {
    vector sum[PANEL_ROWS][PANEL_VECTORS], b[PANEL_VECTORS];
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < PANEL_VECTORS; j++)
            sum[r][j] = more ? vector_load(c + r * c_stride + j * VECTOR) : vector_set(0.0f);
    for (int64_t k = 0; k < inner; k++, panel += CPU_PANEL) {
        for (int j = 0; j < PANEL_VECTORS; j++) b[j] = vector_load(panel + j * VECTOR);
        for (int r = 0; r < rows; r++) {
            vector x = vector_set(a[r * a_stride + k]);
            for (int j = 0; j < PANEL_VECTORS; j++) sum[r][j] = vector_fma(x, b[j], sum[r][j]);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < PANEL_VECTORS; j++) {
            vector v = sum[r][j];
            if (bias) v = vector_add(v, vector_load(bias + j * VECTOR));
            vector_store(c + r * c_stride + j * VECTOR, v);
        }
}

static void panel_product(const float *a, int64_t a_stride, const float *panels, const float *bias,
                          int64_t rows, int64_t inner, int64_t columns, float *c,
                          int64_t c_stride) {
    for (int64_t k = 0; k < inner; k += PANEL_INNER) {
        int64_t n = base_min_i64(PANEL_INNER, inner - k);
        for (int64_t column = 0; column < columns; column += CPU_PANEL) {
            const float *panel = panels + column * inner + k * CPU_PANEL;
            const float *last = bias && k + n == inner ? bias + column : NULL;
            int64_t r = 0;
            for (; r + PANEL_ROWS <= rows; r += PANEL_ROWS)
                panel_rows(PANEL_ROWS, a + r * a_stride + k, a_stride, panel, n, k > 0, last,
                           c + r * c_stride + column, c_stride);
            for (; r + 2 <= rows; r += 2)
                panel_rows(2, a + r * a_stride + k, a_stride, panel, n, k > 0, last,
                           c + r * c_stride + column, c_stride);
            if (r < rows)
                panel_rows(1, a + r * a_stride + k, a_stride, panel, n, k > 0, last,
                           c + r * c_stride + column, c_stride);
        }
    }
}
#endif

#endif

/* c = a b with b in panels, with the vectors of the instruction set that kernels_matrix.c is
 * compiled for.
 *
 * PANEL_ROWS rows of c by one panel stay in registers over PANEL_INNER steps of the inner dimension
 * (after Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008). In the
 * paper the steps are few enough to keep a panel's part in the first-level cache. Here the part
 * comes from the second-level cache, like a's rows, which costs less than loading and storing the
 * sums more often. Steps are added in order, whatever the number of rows, so each row has the same
 * bits as alone. */
#ifndef CPU_PANELS_H
#define CPU_PANELS_H

#include "base/checked.h"
#include "device/cpu/product/kernels_matrix.h"
#include "device/cpu/transpose_rows.h"

#if defined(KERNEL_ISA_avx2)
enum { PANEL_ROWS = 6, PANEL_INNER = 1536, PANEL_VECTORS = CPU_PANEL / VECTOR };

static void pack_panels(const float *b, int64_t stride, bool transposed, int64_t inner,
                        int64_t columns, float *panels) {
    for (int64_t c = 0; c < columns; c += CPU_PANEL, panels += inner * CPU_PANEL) {
        if (transposed) {
            transpose(b + c * stride, CPU_PANEL, inner, stride, panels, CPU_PANEL);
            continue;
        }
        for (int64_t k = 0; k < inner; k++)
            memcpy(panels + k * CPU_PANEL, b + k * stride + c, CPU_PANEL * sizeof *b);
    }
}

/* c (+)= a b + bias (may be NULL) + the partial sums in `made`, if any. */
typedef struct panel_target {
    const float *made, *bias;
    float *c;
    int64_t made_stride, c_stride;
    bool add;
} panel_target;

VECTOR_INLINE void panel_rows(int rows, const float *a, int64_t a_stride, const float *panel,
                              int64_t inner, const panel_target *to, int64_t row) {
    vector sum[PANEL_ROWS][PANEL_VECTORS], b[PANEL_VECTORS];
    const float *made = to->made ? to->made + row * to->made_stride : NULL;
    float *c = to->c + row * to->c_stride;
    for (int r = 0; r < rows; r++) vector_ask_for(c + r * to->c_stride, CPU_PANEL * sizeof *c);
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < PANEL_VECTORS; j++)
            sum[r][j] =
                made ? vector_load(made + r * to->made_stride + j * VECTOR) : vector_set(0.0f);
    for (int64_t k = 0; k < inner; k++, panel += CPU_PANEL) {
        for (int j = 0; j < PANEL_VECTORS; j++) b[j] = vector_load(panel + j * VECTOR);
        for (int r = 0; r < rows; r++) {
            vector x = vector_set(a[r * a_stride + k]);
            for (int j = 0; j < PANEL_VECTORS; j++) sum[r][j] = vector_fma(x, b[j], sum[r][j]);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < PANEL_VECTORS; j++) {
            float *at = c + r * to->c_stride + j * VECTOR;
            vector v = sum[r][j];
            if (to->bias) v = vector_add(v, vector_load(to->bias + j * VECTOR));
            vector_store(at, to->add ? vector_add(vector_load(at), v) : v);
        }
}

static void panel_product(const cpu_panel_operands *o) {
    for (int64_t k = 0; k < o->inner; k += PANEL_INNER) {
        int64_t n = base_min_i64(PANEL_INNER, o->inner - k);
        bool last = k + n == o->inner;
        for (int64_t column = 0; column < o->columns; column += CPU_PANEL) {
            const float *panel = o->panels + column * o->inner + k * CPU_PANEL, *a = o->a + k;
            panel_target to = {.made = k > 0 ? o->made + column : NULL,
                               .made_stride = o->columns,
                               .bias = last && o->bias ? o->bias + column : NULL,
                               .c = (last ? o->c : o->made) + column,
                               .c_stride = last ? o->c_stride : o->columns,
                               .add = last && o->add};
            /* Two rows alone would wait on their sums, so the last eight rows are four and four. */
            int64_t r = 0, sixes = o->rows - (o->rows % PANEL_ROWS == 2 ? 8 : 0);
            for (; r + PANEL_ROWS <= sixes; r += PANEL_ROWS)
                panel_rows(PANEL_ROWS, a + r * o->a_stride, o->a_stride, panel, n, &to, r);
            for (; r + 4 <= o->rows; r += 4)
                panel_rows(4, a + r * o->a_stride, o->a_stride, panel, n, &to, r);
            for (; r + 2 <= o->rows; r += 2)
                panel_rows(2, a + r * o->a_stride, o->a_stride, panel, n, &to, r);
            if (r < o->rows) panel_rows(1, a + r * o->a_stride, o->a_stride, panel, n, &to, r);
        }
    }
}
#endif

#endif

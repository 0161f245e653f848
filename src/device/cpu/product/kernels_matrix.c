#include "device/cpu/product/kernels_matrix.h"

#include "base/checked.h"
#include "device/cpu/product/panels.h"
#include "device/cpu/transpose_rows.h"

enum { SUM_VECTORS = 4 };

VECTOR_INLINE void widen_values(base_dtype dtype, const uint16_t *from, float *to, int64_t count) {
    int64_t i = 0;
    for (; i + VECTOR <= count; i += VECTOR)
        vector_store(to + i, vector_load_narrow(dtype, from + i));
    for (; i < count; i++) to[i] = vector_from_narrow(dtype, from[i]);
}

static void matrix_widen(base_dtype dtype, const uint16_t *from, float *to, int64_t count) {
    if (dtype == BASE_BF16)
        widen_values(BASE_BF16, from, to, count);
    else
        widen_values(BASE_FP16, from, to, count);
}

VECTOR_INLINE void narrow_values(base_dtype dtype, const float *from, uint16_t *to, int64_t count,
                                 bool add) {
    int64_t i = 0;
    for (; i + VECTOR <= count; i += VECTOR) {
        vector v = vector_load(from + i);
        if (add) v = vector_add(v, vector_load_narrow(dtype, to + i));
        vector_store_narrow(dtype, to + i, v);
    }
    if (i == count) return;
    vector v = vector_load_part(from + i, count - i);
    if (add) v = vector_add(v, vector_load_narrow_part(dtype, to + i, count - i));
    vector_store_narrow_part(dtype, to + i, v, count - i);
}

static void matrix_narrow(base_dtype dtype, const float *from, uint16_t *to, int64_t count,
                          bool add) {
    if (dtype == BASE_BF16)
        narrow_values(BASE_BF16, from, to, count, add);
    else
        narrow_values(BASE_FP16, from, to, count, add);
}

/* Sums `n` adjacent vectors of columns, so that rows are read in whole cache lines. */
VECTOR_INLINE void sum_columns(const void *from, base_dtype dtype, int n, int64_t rows,
                               int64_t stride, float *sums, bool add) {
    const float *wide = from;
    const uint16_t *half = from;
    vector sum[SUM_VECTORS];
    for (int j = 0; j < n; j++) sum[j] = vector_set(0.0f);
    for (int64_t r = 0; r < rows; r++)
        for (int j = 0; j < n; j++) {
            int64_t at = r * stride + j * VECTOR;
            sum[j] = vector_add(sum[j], dtype == BASE_FP32 ? vector_load(wide + at)
                                                           : vector_load_narrow(dtype, half + at));
        }
    for (int j = 0; j < n; j++) {
        float *to = sums + j * VECTOR;
        vector_store(to, add ? vector_add(vector_load(to), sum[j]) : sum[j]);
    }
}

static void matrix_column_sums(const void *from, base_dtype dtype, int64_t rows, int64_t columns,
                               int64_t stride, float *sums, bool add) {
    const float *wide = from;
    const uint16_t *half = from;
    int64_t c = 0;
    for (; c + SUM_VECTORS * VECTOR <= columns; c += SUM_VECTORS * VECTOR) {
        if (dtype == BASE_FP32)
            sum_columns(wide + c, BASE_FP32, SUM_VECTORS, rows, stride, sums + c, add);
        else if (dtype == BASE_BF16)
            sum_columns(half + c, BASE_BF16, SUM_VECTORS, rows, stride, sums + c, add);
        else
            sum_columns(half + c, BASE_FP16, SUM_VECTORS, rows, stride, sums + c, add);
    }
    for (; c < columns; c++) {
        float sum = 0.0f;
        for (int64_t r = 0; r < rows; r++)
            sum += dtype == BASE_FP32 ? wide[r * stride + c]
                                      : vector_from_narrow(dtype, half[r * stride + c]);
        sums[c] = add ? sums[c] + sum : sum;
    }
}

static void matrix_put_block(const float *from, int64_t rows, int64_t columns, float *to,
                             int64_t to_stride, bool add) {
    for (int64_t r = 0; r < rows; r++) {
        const float *source = from + r * columns;
        float *target = to + r * to_stride;
        for (int64_t c = 0; c < columns; c += VECTOR) {
            vector v = vector_load(source + c);
            vector_store(target + c, add ? vector_add(vector_load(target + c), v) : v);
        }
    }
}

static void matrix_transpose(const float *from, int64_t rows, int64_t columns, int64_t stride,
                             float *to, int64_t to_stride) {
    transpose(from, rows, columns, stride, to, to_stride);
}

/* Products of one or a few rows are bound by reading the weights. Weights are prefetched, and each
 * is then used for all rows. The sums of a row do not depend on the other rows. */

enum { ASK_AHEAD = 4096 }; /* bytes: arrive while a thread uses the ones before */

/* Past the last row lie weights of another thread or of the next product, so prefetching them is
 * harmless. */
VECTOR_INLINE void ask_ahead(const void *from, int64_t bytes) {
    vector_ask_for((const void *)((uintptr_t)from + ASK_AHEAD), bytes);
}

/* Dot products of x with rows of w, each in two partial sums. Rows are read one after the other, so
 * the processor's prefetcher sees a single stream too. */
#define DEFINE_DOT(NAME, TYPE, LOAD, LOAD_PART)                                                    \
    VECTOR_INLINE float NAME##_row(const TYPE *x, const TYPE *row, int64_t count, bool ask) {      \
        vector sum[2] = {vector_set(0.0f), vector_set(0.0f)};                                      \
        int64_t i = 0;                                                                             \
        for (; i + 2 * VECTOR <= count; i += 2 * VECTOR) {                                         \
            if (ask) ask_ahead(row + i, 2 * VECTOR * (int)sizeof *x);                              \
            sum[0] = vector_fma(LOAD(row + i), LOAD(x + i), sum[0]);                               \
            sum[1] = vector_fma(LOAD(row + i + VECTOR), LOAD(x + i + VECTOR), sum[1]);             \
        }                                                                                          \
        for (; i < count; i += VECTOR) {                                                           \
            int64_t n = base_min_i64(VECTOR, count - i);                                           \
            sum[0] = vector_fma(LOAD_PART(row + i, n), LOAD_PART(x + i, n), sum[0]);               \
        }                                                                                          \
        return vector_sum(vector_add(sum[0], sum[1]));                                             \
    }                                                                                              \
    static void NAME(const TYPE *x, int64_t x_stride, int64_t x_rows, const TYPE *w,               \
                     int64_t stride, int64_t count, int64_t rows, float *out) {                    \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            const TYPE *row = w + r * stride;                                                      \
            out[r] = NAME##_row(x, row, count, true);                                              \
            for (int64_t q = 1; q < x_rows; q++)                                                   \
                out[q * rows + r] = NAME##_row(x + q * x_stride, row, count, false);               \
        }                                                                                          \
    }

DEFINE_DOT(dot_fp32, float, vector_load, vector_load_part)
DEFINE_DOT(dot_bf16, uint16_t, vector_load_bf16, vector_load_bf16_part)
DEFINE_DOT(dot_fp16, uint16_t, vector_load_fp16, vector_load_fp16_part)

/* sums[c] = sum over i of x[i] w[i][c], i in order. A few rows at a time over all columns: a thread
 * reads long runs of each row, and the sums stay in the first-level cache. */
enum { COMBINED_ROWS = 8, COMBINED = VECTOR == 8 ? 4 : 2 }; /* at least a cache line of a row */

#define DEFINE_COMBINE(NAME, TYPE, LOAD, LOAD_PART, SCALAR)                                        \
    VECTOR_INLINE void NAME##_rows(const TYPE *x, const TYPE *w, int64_t stride, int rows,         \
                                   int64_t ahead, int64_t columns, float *sums) {                  \
        vector factor[COMBINED_ROWS], sum[COMBINED];                                               \
        for (int r = 0; r < rows; r++) factor[r] = vector_set(SCALAR(x[r]));                       \
        int64_t c = 0;                                                                             \
        for (; c + COMBINED * VECTOR <= columns; c += COMBINED * VECTOR) {                         \
            for (int j = 0; j < COMBINED; j++) sum[j] = vector_load(sums + c + j * VECTOR);        \
            for (int r = 0; r < rows; r++) {                                                       \
                const TYPE *row = w + r * stride + c;                                              \
                vector_ask_for((const void *)((uintptr_t)row + (size_t)ahead * sizeof *row),       \
                               COMBINED *VECTOR *(int)sizeof *row);                                \
                for (int j = 0; j < COMBINED; j++)                                                 \
                    sum[j] = vector_fma(LOAD(row + j * VECTOR), factor[r], sum[j]);                \
            }                                                                                      \
            for (int j = 0; j < COMBINED; j++) vector_store(sums + c + j * VECTOR, sum[j]);        \
        }                                                                                          \
        for (; c < columns; c += VECTOR) {                                                         \
            int64_t n = base_min_i64(VECTOR, columns - c);                                         \
            sum[0] = vector_load_part(sums + c, n);                                                \
            for (int r = 0; r < rows; r++)                                                         \
                sum[0] = vector_fma(LOAD_PART(w + r * stride + c, n), factor[r], sum[0]);          \
            vector_store_part(sums + c, sum[0], n);                                                \
        }                                                                                          \
    }                                                                                              \
    static void NAME(const TYPE *x, int64_t x_stride, int64_t x_rows, const TYPE *w,               \
                     int64_t stride, int64_t count, int64_t columns, float *sums,                  \
                     int64_t sums_stride) {                                                        \
        for (int64_t q = 0; q < x_rows; q++)                                                       \
            memset(sums + q * sums_stride, 0, (size_t)columns * sizeof *sums);                     \
        int64_t i = 0;                                                                             \
        for (; i + COMBINED_ROWS <= count; i += COMBINED_ROWS)                                     \
            for (int64_t q = 0; q < x_rows; q++)                                                   \
                NAME##_rows(x + q * x_stride + i, w + i * stride, stride, COMBINED_ROWS,           \
                            q == 0 ? COMBINED_ROWS * stride : 0, columns, sums + q * sums_stride); \
        for (; i < count; i++)                                                                     \
            for (int64_t q = 0; q < x_rows; q++)                                                   \
                NAME##_rows(x + q * x_stride + i, w + i * stride, stride, 1, 0, columns,           \
                            sums + q * sums_stride);                                               \
    }

#define KEEP(value) (value)
DEFINE_COMBINE(combine_fp32, float, vector_load, vector_load_part, KEEP)
DEFINE_COMBINE(combine_bf16, uint16_t, vector_load_bf16, vector_load_bf16_part, vector_from_bf16)
DEFINE_COMBINE(combine_fp16, uint16_t, vector_load_fp16, vector_load_fp16_part, base_half_to_float)

enum { VECTOR_BLOCK = 1024 }; /* elements of a row of y computed at a time, in fp32 on the stack */

static void add_bias(const device_matrix *bias, int64_t first, int64_t n, float *out) {
    const uint16_t *half = bias->data;
    if (bias->dtype == BASE_FP32)
        for (int64_t i = 0; i < n; i++) out[i] += ((const float *)bias->data)[first + i];
    else if (bias->dtype != BASE_NONE)
        for (int64_t i = 0; i < n; i++) out[i] += vector_from_narrow(bias->dtype, half[first + i]);
}

static void put_elements(const device_matrix *bias, const device_matrix *y, int64_t row,
                         int64_t first, int64_t n, float *out) {
    int64_t to = row * y->stride + first;
    add_bias(bias, first, n, out);
    if (y->dtype == BASE_FP32)
        memcpy((float *)y->data + to, out, (size_t)n * sizeof *out);
    else
        matrix_narrow(y->dtype, out, (uint16_t *)y->data + to, n, false);
}

static void vector_block(const device_matrix *x, const device_matrix *w, const device_matrix *bias,
                         const device_matrix *y, int64_t first, int64_t n) {
    float out[CPU_FEW_ROWS * VECTOR_BLOCK];
    int64_t at = first * w->stride, count = x->columns;
    if (x->dtype == BASE_FP32)
        dot_fp32(x->data, x->stride, x->rows, (const float *)w->data + at, w->stride, count, n,
                 out);
    else if (x->dtype == BASE_BF16)
        dot_bf16(x->data, x->stride, x->rows, (const uint16_t *)w->data + at, w->stride, count, n,
                 out);
    else
        dot_fp16(x->data, x->stride, x->rows, (const uint16_t *)w->data + at, w->stride, count, n,
                 out);
    for (int64_t r = 0; r < x->rows; r++) put_elements(bias, y, r, first, n, out + r * n);
}

static void matrix_vector_product(const device_matrix *x, const device_matrix *w,
                                  const device_matrix *bias, const device_matrix *y, int64_t first,
                                  int64_t last) {
    for (; first < last; first += VECTOR_BLOCK)
        vector_block(x, w, bias, y, first, base_min_i64(VECTOR_BLOCK, last - first));
}

static void matrix_vector_sums(const device_matrix *x, const device_matrix *w, int64_t row,
                               int64_t rows, int64_t first, int64_t last, float *sums) {
    int64_t at = row * w->stride + first, columns = last - first, stride = w->columns;
    const float *wide = x->data;
    const uint16_t *half = x->data;
    sums += first;
    if (x->dtype == BASE_FP32)
        combine_fp32(wide + row, x->stride, x->rows, (const float *)w->data + at, w->stride, rows,
                     columns, sums, stride);
    else if (x->dtype == BASE_BF16)
        combine_bf16(half + row, x->stride, x->rows, (const uint16_t *)w->data + at, w->stride,
                     rows, columns, sums, stride);
    else
        combine_fp16(half + row, x->stride, x->rows, (const uint16_t *)w->data + at, w->stride,
                     rows, columns, sums, stride);
}

static void add_pieces(const float *sums, int64_t pieces, int64_t apart, const device_matrix *bias,
                       const device_matrix *y, int64_t row, int64_t first, int64_t n) {
    float out[VECTOR_BLOCK];
    memcpy(out, sums, (size_t)n * sizeof *out);
    for (int64_t piece = 1; piece < pieces; piece++)
        for (int64_t i = 0; i < n; i++) out[i] += sums[piece * apart + i];
    put_elements(bias, y, row, first, n, out);
}

static void matrix_vector_finish(const float *sums, int64_t pieces, const device_matrix *bias,
                                 const device_matrix *y, int64_t first, int64_t last) {
    for (; first < last; first += VECTOR_BLOCK)
        for (int64_t r = 0; r < y->rows; r++)
            add_pieces(sums + r * y->columns + first, pieces, y->rows * y->columns, bias, y, r,
                       first, base_min_i64(VECTOR_BLOCK, last - first));
}

extern const cpu_matrix_kernels KERNEL_NAME(cpu_matrix_kernels);
const cpu_matrix_kernels KERNEL_NAME(cpu_matrix_kernels) = {
    .widen = matrix_widen,
    .narrow = matrix_narrow,
    .column_sums = matrix_column_sums,
    .put_block = matrix_put_block,
    .transpose = matrix_transpose,
    .vector_product = matrix_vector_product,
    .vector_sums = matrix_vector_sums,
    .vector_finish = matrix_vector_finish,
#if defined(KERNEL_ISA_avx2)
    .pack_panels = pack_panels,
    .panel_product = panel_product,
#endif
};

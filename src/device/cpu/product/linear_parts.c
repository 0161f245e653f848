#include "device/cpu/product/linear_parts.h"

#include "base/checked.h"
#include "device/cpu/product/transpose.h"

enum {
    TRANSPOSE_COLUMNS = 64, /* columns of an operand transposed in one task */
    SUM_COLUMNS = 256       /* columns of dy summed in one task */
};

typedef struct bias_run {
    const device_call *call;
    const cpu_matrix_kernels *kernels;
} bias_run;

int64_t cpu_transpose_parts(int64_t columns) {
    return (columns + TRANSPOSE_COLUMNS - 1) / TRANSPOSE_COLUMNS;
}

int64_t cpu_transpose_scratch(int64_t rows) {
    return rows * TRANSPOSE_COLUMNS * 2;
}

void cpu_transpose_part(const cpu_matrix_kernels *kernels, const device_matrix *from, int64_t part,
                        bool widen, void *scratch, char *to) {
    int64_t first = part * TRANSPOSE_COLUMNS, rows = from->rows;
    int64_t columns = base_min_i64(TRANSPOSE_COLUMNS, from->columns - first);
    to += first * rows * base_dtype_bytes(widen ? BASE_FP32 : from->dtype);
    if (from->dtype == BASE_FP32) {
        kernels->transpose((const float *)from->data + first, rows, columns, from->stride,
                           (float *)(void *)to, rows);
        return;
    }
    uint16_t *transposed = widen ? scratch : (void *)to;
    cpu_transpose16((const uint16_t *)from->data + first, rows, columns, from->stride, transposed,
                    rows);
    if (widen) kernels->widen(from->dtype, transposed, (float *)(void *)to, rows * columns);
}

static void bias_task(void *context, int64_t task, int thread) {
    (void)thread;
    const bias_run *run = context;
    const device_matrix *dy = &run->call->dy;
    int64_t first = task * SUM_COLUMNS, bytes = base_dtype_bytes(dy->dtype);
    int64_t columns = base_min_i64(SUM_COLUMNS, dy->columns - first);
    float *sums = (float *)run->call->dw[1].data + first;
    for (int64_t row = 0; row < dy->rows; row += DEVICE_CPU_CHUNK)
        run->kernels->column_sums((const char *)dy->data + (row * dy->stride + first) * bytes,
                                  dy->dtype, base_min_i64(DEVICE_CPU_CHUNK, dy->rows - row),
                                  columns, dy->stride, sums, row > 0 || run->call->accumulate_dw);
}

void cpu_run_bias_gradient(device *dev, const device_call *call) {
    bias_run run = {.call = call, .kernels = cpu_of(dev)->set->matrix};
    if (call->dw[1].dtype == BASE_NONE) return;
    host_parallel(dev->team, (call->dy.columns + SUM_COLUMNS - 1) / SUM_COLUMNS, bias_task, &run);
}

#include "device/cuda/head/cuda_head_loss.h"

#include "base/checked.h"
#include "device/check/operands.h"
#include "device/cuda/cuda_launch.h"
#include "device/cuda/head/head_arguments.h"
#include "device/cuda/product/cuda_column_sums.h"
#include "device/cuda/product/cuda_gemm.h"
#include "device/cuda/vector/row_launch.h"

enum { WORDS_CHUNK = 1024 }; /* of an fp32 dx: one chain over all words would lose digits */

typedef struct head_plan {
    int64_t rows, width, words, chunk;
    int64_t x_stride, logits_stride; /* for 16-byte loads */
    int64_t lists;                   /* blocks that list rows */
    int64_t at_total, at_counts, at_list, at_x, at_logits, at_log_sums, at_parts;
    int64_t scratch_bytes;
    bool backward;
} head_plan;

static int64_t blocks_of(int64_t count, int64_t size) {
    return (count + size - 1) / size;
}

static head_plan plan_of(const device *dev, const device_call *call) {
    head_plan p = {.rows = call->x[0].rows,
                   .width = call->x[0].columns,
                   .words = call->w[0].rows,
                   .backward = call->kernel == DEVICE_HEAD_LOSS_BACKWARD};
    int64_t total = 0, size = base_dtype_bytes(call->x[0].dtype);
    p.chunk = base_min_i64(p.rows, device_token_chunk(dev));
    p.x_stride = base_ceil_to(p.width, 8);
    p.logits_stride = base_ceil_to(p.words, 64);
    p.lists = blocks_of(p.rows, HEAD_LIST_ROWS);
    p.at_total = device_reserve(&total, 4);
    p.at_counts = device_reserve(&total, p.lists * 4);
    p.at_list = device_reserve(&total, p.rows * 4);
    p.at_x = device_reserve(&total, p.chunk * p.x_stride * size);
    p.at_logits = device_reserve(&total, p.chunk * p.logits_stride * size);
    p.at_log_sums = device_reserve(&total, p.chunk * 4);
    if (p.backward && call->dw[1].dtype != BASE_NONE)
        p.at_parts = device_reserve(&total, cuda_column_sums_bytes(p.chunk, p.words));
    p.scratch_bytes = total;
    return p;
}

sifr_status cuda_prepare_head_loss(device *dev, device_call *call, sifr_error *error) {
    (void)error;
    call->scratch_bytes = plan_of(dev, call).scratch_bytes;
    return SIFR_OK;
}

static void *at(const device_call *call, int64_t offset) {
    return (char *)call->scratch + offset;
}

static sifr_status launch(device *dev, cuda_kernel kernel, int64_t across, int64_t down,
                          uint32_t threads, const void *arguments, sifr_error *error) {
    cuda_launch launch = {
        .kernel = kernel, .blocks = {across, down, 1}, .threads = threads, .arguments = arguments};
    return cuda_launch_kernel(dev, &launch, error);
}

static sifr_status list_rows(device *dev, const device_call *call, const head_plan *p,
                             sifr_error *error) {
    head_list_arguments list = {.labels = call->x[1].data,
                                .counts = at(call, p->at_counts),
                                .list = at(call, p->at_list),
                                .total = at(call, p->at_total),
                                .y = call->y.data,
                                .rows = p->rows,
                                .labels_stride = call->x[1].stride,
                                .y_stride = call->y.stride};
    BASE_TRY(launch(dev, cuda_kernel_head_count, p->lists, 1, HEAD_LIST_THREADS, &list, error));
    return launch(dev, cuda_kernel_head_list, p->lists, 1, HEAD_LIST_THREADS, &list, error);
}

static sifr_status clear_inputs(device *dev, const device_call *call, const head_plan *p,
                                sifr_error *error) {
    const device_matrix *dx = &call->dx[0];
    head_clear_arguments clear = {.labels = call->x[1].data,
                                  .dx = dx->data,
                                  .labels_stride = call->x[1].stride,
                                  .dx_stride = dx->stride,
                                  .width = dx->columns};
    cuda_kernel kernel =
        dx->dtype == BASE_FP32 ? cuda_kernel_head_clear32 : cuda_kernel_head_clear16;
    return launch(dev, kernel, p->rows, 1, HEAD_THREADS, &clear, error);
}

static sifr_status gather(device *dev, const device_call *call, const head_plan *p, int64_t first,
                          sifr_error *error) {
    const device_matrix *x = &call->x[0];
    int64_t wide = 16 / base_dtype_bytes(x->dtype);
    head_gather_arguments rows = {.from = x->data,
                                  .to = at(call, p->at_x),
                                  .list = at(call, p->at_list),
                                  .total = at(call, p->at_total),
                                  .first = first,
                                  .from_stride = x->stride,
                                  .to_stride = p->x_stride,
                                  .width = p->width,
                                  .wide = (uintptr_t)x->data % 16 == 0 && x->stride % wide == 0};
    cuda_kernel kernel =
        x->dtype == BASE_FP32 ? cuda_kernel_head_gather32 : cuda_kernel_head_gather16;
    return launch(dev, kernel, p->chunk, 1, HEAD_THREADS, &rows, error);
}

/* Matrices in scratch. */
static device_matrix rows_of_x(const device_call *call, const head_plan *p) {
    return (device_matrix){at(call, p->at_x), p->chunk, p->width, p->x_stride, call->x[0].dtype};
}

/* And of their gradients. */
static device_matrix logits_of(const device_call *call, const head_plan *p) {
    return (device_matrix){at(call, p->at_logits), p->chunk, p->words, p->logits_stride,
                           call->x[0].dtype};
}

/* The kernel of the operands' type, given the one of fp32. */
static cuda_kernel kernel_of(const device_call *call, cuda_kernel fp32) {
    return cuda_kernel_of(fp32, call->x[0].dtype);
}

static float scale_of(const device_call *call) {
    float scale = call->attributes.head.scale;
    return scale < 0 || scale > 0 ? scale : 1.0f;
}

static sifr_status run_logits(device *dev, const device_call *call, const head_plan *p,
                              const head_softmax_arguments *softmax, sifr_error *error) {
    cuda_gemm logits = {.form = CUDA_GEMM_NT,
                        .a = rows_of_x(call, p),
                        .b = call->w[0],
                        .c = logits_of(call, p),
                        .bias = call->w[1],
                        .count = softmax->total,
                        .first = softmax->first};
    BASE_TRY(cuda_gemm_run(dev, &logits, error));
    return launch(dev, kernel_of(call, cuda_kernel_head_statistics_fp32), p->chunk, 1, HEAD_THREADS,
                  softmax, error);
}

static sifr_status run_bias(device *dev, const device_call *call, const head_plan *p,
                            const head_softmax_arguments *softmax, sifr_error *error) {
    int64_t parts = blocks_of(p->chunk, COLUMN_SUMS_ROWS);
    BASE_TRY(launch(dev, kernel_of(call, cuda_kernel_head_bias_parts_fp32),
                    blocks_of(p->words, HEAD_BIAS_THREADS), parts, HEAD_BIAS_THREADS, softmax,
                    error));
    column_totals_arguments totals = {.parts = softmax->parts,
                                      .to = call->dw[1].data,
                                      .count = softmax->total,
                                      .first = softmax->first,
                                      .parts_count = parts,
                                      .columns = p->words,
                                      .chunk = parts,
                                      .accumulate = softmax->first > 0 || call->accumulate_dw};
    return cuda_column_totals(dev, &totals, error);
}

/* dw0 and dx0 from the gradients of the logits. */
static sifr_status run_products(device *dev, const device_call *call, const head_plan *p,
                                const head_softmax_arguments *softmax, sifr_error *error) {
    float factor = softmax->scale / (call->x[0].dtype == BASE_FP16 ? HEAD_FP16_FACTOR : 1);
    if (call->dw[0].dtype != BASE_NONE) {
        cuda_gemm weights = {.form = CUDA_GEMM_TN,
                             .a = logits_of(call, p),
                             .b = rows_of_x(call, p),
                             .c = call->dw[0],
                             .accumulate = softmax->first > 0 || call->accumulate_dw,
                             .factor = factor,
                             .factor_pointer = softmax->gradient_scale,
                             .count = softmax->total,
                             .first = softmax->first};
        BASE_TRY(cuda_gemm_run(dev, &weights, error));
    }
    if (call->dx[0].dtype == BASE_NONE) return SIFR_OK;
    cuda_gemm inputs = {.form = CUDA_GEMM_NN,
                        .a = logits_of(call, p),
                        .b = call->w[0],
                        .c = call->dx[0],
                        .accumulate = call->accumulate[0],
                        .chunk = call->dx[0].dtype == BASE_FP32 ? WORDS_CHUNK : 0,
                        .factor = factor,
                        .factor_pointer = softmax->gradient_scale,
                        .count = softmax->total,
                        .first = softmax->first,
                        .c_rows = softmax->list + softmax->first};
    inputs.c.rows = p->chunk;
    return cuda_gemm_run(dev, &inputs, error);
}

static sifr_status run_chunk(device *dev, const device_call *call, const head_plan *p,
                             int64_t first, sifr_error *error) {
    head_softmax_arguments softmax = {.labels = call->x[1].data,
                                      .list = at(call, p->at_list),
                                      .total = at(call, p->at_total),
                                      .logits = at(call, p->at_logits),
                                      .log_sums = at(call, p->at_log_sums),
                                      .y = call->y.data,
                                      .first = first,
                                      .labels_stride = call->x[1].stride,
                                      .y_stride = call->y.stride,
                                      .words = p->words,
                                      .stride = p->logits_stride,
                                      .scale = scale_of(call),
                                      .softcap = call->attributes.head.softcap};
    BASE_TRY(gather(dev, call, p, first, error));
    BASE_TRY(run_logits(dev, call, p, &softmax, error));
    if (!p->backward) return SIFR_OK;
    softmax.gradient_scale = &call->step->gradient_scale;
    if (call->dw[1].dtype != BASE_NONE) {
        softmax.parts = at(call, p->at_parts);
        BASE_TRY(run_bias(dev, call, p, &softmax, error));
    }
    BASE_TRY(launch(dev, kernel_of(call, cuda_kernel_head_gradients_fp32), p->chunk, 1,
                    HEAD_THREADS, &softmax, error));
    return run_products(dev, call, p, &softmax, error);
}

sifr_status cuda_run_head_loss(device *dev, const device_call *call, sifr_error *error) {
    head_plan p = plan_of(dev, call);
    BASE_TRY(list_rows(dev, call, &p, error));
    if (p.backward && call->dx[0].dtype != BASE_NONE && !call->accumulate[0])
        BASE_TRY(clear_inputs(dev, call, &p, error));
    for (int64_t first = 0; first < p.rows; first += p.chunk)
        BASE_TRY(run_chunk(dev, call, &p, first, error));
    return SIFR_OK;
}

#include "device/cuda/head/cuda_head_loss.h"

#include "base/checked.h"
#include "device/check/operands.h"
#include "device/cuda/head/cuda_head_run.h"
#include "device/cuda/product/cuda_column_sums.h"
#include "device/cuda/product/cuda_gemm.h"
#include "device/cuda/vector/row_launch.h"

enum { WORDS_CHUNK = 1024 }; /* of an fp32 dx: one chain over all words would lose digits */

/* What is wanted of a chunk. */
enum { LOSSES = 1, GRADIENTS = 2 };

static int64_t blocks_of(int64_t count, int64_t size) {
    return (count + size - 1) / size;
}

cuda_head_plan cuda_head_plan_of(const device *dev, const device_call *call) {
    device_kernel kernel = call->kernel;
    cuda_head_plan p = {.rows = call->x[0].rows,
                        .width = call->x[0].columns,
                        .words = call->w[0].rows,
                        .backward = kernel != DEVICE_HEAD_LOSS && kernel != DEVICE_HEAD_PREFERENCE,
                        .weighted = kernel == DEVICE_HEAD_PREFERENCE ||
                                    kernel == DEVICE_HEAD_PREFERENCE_BACKWARD};
    int64_t total = 0, size = base_dtype_bytes(call->x[0].dtype);
    if (kernel == DEVICE_HEAD_DISTIL_BACKWARD) p.top = call->x[2].columns / 2;
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
    if (p.weighted) {
        p.at_entropies = device_reserve(&total, p.rows * 4);
        p.at_weights = device_reserve(&total, p.rows * 4);
    }
    if (p.top) {
        p.at_kept = device_reserve(&total, p.chunk * p.top * 4);
        p.at_numbers = device_reserve(&total, p.chunk * 2 * 4);
    }
    p.scratch_bytes = total;
    return p;
}

sifr_status cuda_prepare_head_loss(device *dev, device_call *call, sifr_error *error) {
    (void)error;
    call->scratch_bytes = cuda_head_plan_of(dev, call).scratch_bytes;
    return SIFR_OK;
}

static sifr_status launch(device *dev, cuda_kernel kernel, int64_t across, int64_t down,
                          uint32_t threads, const void *arguments, sifr_error *error) {
    cuda_launch launch = {
        .kernel = kernel, .blocks = {across, down, 1}, .threads = threads, .arguments = arguments};
    return cuda_launch_kernel(dev, &launch, error);
}

/* Where the cross entropies of all rows go. */
static float *entropies_of(const device_call *call, const cuda_head_plan *p, int64_t *stride) {
    *stride = p->weighted ? 1 : call->y.stride;
    return p->weighted ? cuda_head_at(call, p->at_entropies) : call->y.data;
}

static sifr_status list_rows(device *dev, const device_call *call, const cuda_head_plan *p,
                             sifr_error *error) {
    head_list_arguments list = {.labels = call->x[1].data,
                                .counts = cuda_head_at(call, p->at_counts),
                                .list = cuda_head_at(call, p->at_list),
                                .total = cuda_head_at(call, p->at_total),
                                .rows = p->rows,
                                .labels_stride = call->x[1].stride};
    list.y = entropies_of(call, p, &list.y_stride);
    BASE_TRY(launch(dev, cuda_kernel_head_count, p->lists, 1, HEAD_LIST_THREADS, &list, error));
    return launch(dev, cuda_kernel_head_list, p->lists, 1, HEAD_LIST_THREADS, &list, error);
}

static sifr_status clear_inputs(device *dev, const device_call *call, const cuda_head_plan *p,
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

static sifr_status gather(device *dev, const device_call *call, const cuda_head_plan *p,
                          int64_t first, sifr_error *error) {
    const device_matrix *x = &call->x[0];
    int64_t wide = 16 / base_dtype_bytes(x->dtype);
    head_gather_arguments rows = {.from = x->data,
                                  .to = cuda_head_at(call, p->at_x),
                                  .list = cuda_head_at(call, p->at_list),
                                  .total = cuda_head_at(call, p->at_total),
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
static device_matrix rows_of_x(const device_call *call, const cuda_head_plan *p) {
    return (device_matrix){cuda_head_at(call, p->at_x), p->chunk, p->width, p->x_stride,
                           call->x[0].dtype};
}

/* And of their gradients. */
static device_matrix logits_of(const device_call *call, const cuda_head_plan *p) {
    return (device_matrix){cuda_head_at(call, p->at_logits), p->chunk, p->words, p->logits_stride,
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

/* The logits of a chunk, with their sums, and its losses. */
static sifr_status run_logits(device *dev, const device_call *call, const cuda_head_plan *p,
                              const head_distil_arguments *chunk, sifr_error *error) {
    cuda_gemm logits = {.form = CUDA_GEMM_NT,
                        .a = rows_of_x(call, p),
                        .b = call->w[0],
                        .c = logits_of(call, p),
                        .bias = call->w[1],
                        .count = chunk->head.total,
                        .first = chunk->head.first};
    BASE_TRY(gather(dev, call, p, chunk->head.first, error));
    BASE_TRY(cuda_gemm_run(dev, &logits, error));
    BASE_TRY(launch(dev, kernel_of(call, cuda_kernel_head_statistics_fp32), p->chunk, 1,
                    HEAD_THREADS, &chunk->head, error));
    if (!p->top) return SIFR_OK;
    return launch(dev, kernel_of(call, cuda_kernel_head_distil_rows_fp32), p->chunk, 1,
                  HEAD_THREADS, chunk, error);
}

/* `kernel` sums parts of it. */
static sifr_status run_bias(device *dev, const device_call *call, const cuda_head_plan *p,
                            cuda_kernel kernel, const void *arguments,
                            const head_softmax_arguments *softmax, sifr_error *error) {
    int64_t parts = blocks_of(p->chunk, COLUMN_SUMS_ROWS);
    if (call->dw[1].dtype == BASE_NONE) return SIFR_OK;
    BASE_TRY(launch(dev, kernel_of(call, kernel), blocks_of(p->words, HEAD_BIAS_THREADS), parts,
                    HEAD_BIAS_THREADS, arguments, error));
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

/* By what gradients of logits were multiplied. */
static float kept_factor(const device_call *call, const cuda_head_plan *p) {
    if (call->x[0].dtype != BASE_FP16) return 1;
    return p->weighted || p->top ? HEAD_FP16_FACTOR_LARGE : HEAD_FP16_FACTOR;
}

/* dw0 and dx0 from the gradients of the logits. */
static sifr_status run_products(device *dev, const device_call *call, const cuda_head_plan *p,
                                const head_softmax_arguments *softmax, sifr_error *error) {
    float factor = softmax->scale / kept_factor(call, p);
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

/* In place of the logits, and then those of the operands. */
static sifr_status run_gradients(device *dev, const device_call *call, const cuda_head_plan *p,
                                 const head_distil_arguments *chunk, sifr_error *error) {
    const head_softmax_arguments *softmax = &chunk->head;
    cuda_kernel bias =
        p->top ? cuda_kernel_head_distil_bias_fp32 : cuda_kernel_head_bias_parts_fp32;
    cuda_kernel logits =
        p->top ? cuda_kernel_head_distil_gradients_fp32 : cuda_kernel_head_gradients_fp32;
    const void *arguments = p->top ? (const void *)chunk : softmax;
    if (!p->top) BASE_TRY(run_bias(dev, call, p, bias, arguments, softmax, error));
    BASE_TRY(launch(dev, kernel_of(call, logits), p->chunk, 1, HEAD_THREADS, arguments, error));
    if (p->top) BASE_TRY(run_bias(dev, call, p, bias, arguments, softmax, error));
    return run_products(dev, call, p, softmax, error);
}

/* Losses that a chunk had before leave its logits where it is the only one. */
static sifr_status run_chunk(device *dev, const device_call *call, const cuda_head_plan *p,
                             int64_t first, int wanted, sifr_error *error) {
    head_distil_arguments chunk = {.head = {.labels = call->x[1].data,
                                            .list = cuda_head_at(call, p->at_list),
                                            .total = cuda_head_at(call, p->at_total),
                                            .logits = cuda_head_at(call, p->at_logits),
                                            .log_sums = cuda_head_at(call, p->at_log_sums),
                                            .parts = cuda_head_at(call, p->at_parts),
                                            .first = first,
                                            .labels_stride = call->x[1].stride,
                                            .words = p->words,
                                            .stride = p->logits_stride,
                                            .scale = scale_of(call),
                                            .softcap = call->attributes.head.softcap},
                                   .top = p->top};
    chunk.head.y = entropies_of(call, p, &chunk.head.y_stride);
    if (p->top) {
        chunk.given = call->x[2].data;
        chunk.given_stride = call->x[2].stride;
        chunk.kept = cuda_head_at(call, p->at_kept);
        chunk.numbers = cuda_head_at(call, p->at_numbers);
        chunk.temperature = call->attributes.head.temperature;
        chunk.weight = call->attributes.head.weight;
    }
    if (wanted & LOSSES || p->rows > p->chunk) BASE_TRY(run_logits(dev, call, p, &chunk, error));
    if (!(wanted & GRADIENTS)) return SIFR_OK;
    chunk.head.gradient_scale = &call->step->gradient_scale;
    if (p->weighted) chunk.head.weights = cuda_head_at(call, p->at_weights);
    return run_gradients(dev, call, p, &chunk, error);
}

static sifr_status run(device *dev, const device_call *call, const cuda_head_plan *p, int wanted,
                       sifr_error *error) {
    bool clears = call->dx[0].dtype != BASE_NONE && !call->accumulate[0];
    if (wanted & LOSSES) BASE_TRY(list_rows(dev, call, p, error));
    if (wanted & GRADIENTS && clears) BASE_TRY(clear_inputs(dev, call, p, error));
    for (int64_t first = 0; first < p->rows; first += p->chunk)
        BASE_TRY(run_chunk(dev, call, p, first, wanted, error));
    return SIFR_OK;
}

sifr_status cuda_head_losses(device *dev, const device_call *call, const cuda_head_plan *plan,
                             sifr_error *error) {
    return run(dev, call, plan, LOSSES, error);
}

sifr_status cuda_head_gradients(device *dev, const device_call *call, const cuda_head_plan *plan,
                                sifr_error *error) {
    return run(dev, call, plan, GRADIENTS, error);
}

sifr_status cuda_run_head_loss(device *dev, const device_call *call, sifr_error *error) {
    cuda_head_plan p = cuda_head_plan_of(dev, call);
    return run(dev, call, &p, p.backward ? LOSSES | GRADIENTS : LOSSES, error);
}

#include "device/cpu/product/linear_exact.h"

#include <string.h>

#include "base/checked.h"
#include "device/check/operands.h"
#include "device/cpu/product/linear_parts.h"
#include "device/cpu/product/product_exact.h"

enum {
    FINISH_ROWS = 16, /* rows of a sum finished in one task */
    HIGH_TILE = 256,  /* rows of a tile, with many rows */
    TILE = 128,
    LOW_TILE = 32,
    WEIGHT_TILE = 192, /* rows of a weight gradient in one tile */
    WEIGHT_TILE_BF16 = 128
};

/* Offsets in scratch. Of both directions. */
typedef struct exact_plan {
    bool widen, transposed;
    cpu_exact product;    /* y, or dx */
    cpu_exact weights[2]; /* dw: of a whole chunk, and of the last chunk */
    int64_t rows, transposed_columns;
    int64_t at_pieces, at_weight_pieces, at_transposed, at_threads, thread_bytes;
} exact_plan;

bool cpu_takes_exact(const device *dev, const device_call *call) {
    (void)dev;
    return call->attributes.linear.pieces > 0;
}

/* --- shapes --- */

static cpu_parts in_runs(const device_linear_attributes *linear, int64_t size) {
    cpu_parts parts = {.pieces = linear->pieces, .runs = linear->runs, .size = size};
    for (int32_t r = 0; r < linear->runs; r++) {
        parts.first[r] = r ? linear->run_end[r - 1] : 0;
        parts.width[r] = (linear->run_end[r] - parts.first[r]) / linear->pieces;
    }
    return parts;
}

static cpu_parts parts_of(const device_linear_attributes *linear, bool inputs, int64_t size) {
    return inputs == linear->cut_inputs ? in_runs(linear, size) : cpu_one_part(size);
}

static base_dtype product_type(const device *dev, base_dtype type, bool *widen) {
    *widen = !cpu_product_takes(dev, type);
    return *widen ? BASE_FP32 : type;
}

static int64_t tile_of(int64_t rows) {
    return rows >= 1024 ? HIGH_TILE : rows >= 256 ? TILE : LOW_TILE;
}

/* Of y, or of dx with `backward`. */
static cpu_exact_shape product_shape(const device *dev, const device_call *call, bool backward) {
    const device_linear_attributes *linear = &call->attributes.linear;
    const device_matrix *x = backward ? &call->dx[0] : &call->x[0];
    const device_matrix *a = backward ? &call->dy : &call->x[0];
    int64_t whole = linear->whole > 0 ? linear->whole : x->rows;
    int64_t out = linear->transposed ? call->w[0].columns : call->w[0].rows;
    cpu_parts ins = parts_of(linear, true, x->columns), outs = parts_of(linear, false, out);
    cpu_exact_shape shape = {.rows = cpu_one_part(x->rows),
                             .columns = backward ? ins : outs,
                             .inner = backward ? outs : ins,
                             .whole = whole,
                             .tile = tile_of(whole),
                             .divided = linear->cut_inputs != backward,
                             .a_stride = a->stride,
                             .b_stride = call->w[0].stride,
                             .b_transposed = linear->transposed == backward};
    shape.type = product_type(dev, a->dtype, &shape.widen_a);
    shape.widen_b = shape.widen_a;
    return shape;
}

static cpu_exact_shape weight_shape(const device *dev, const device_call *call, int64_t rows) {
    const device_linear_attributes *linear = &call->attributes.linear;
    bool transposed = linear->transposed;
    const device_matrix *kept = transposed ? &call->dy : &call->x[0];
    cpu_parts ins = parts_of(linear, true, call->x[0].columns);
    cpu_parts outs = parts_of(linear, false, call->dy.columns);
    cpu_exact_shape shape = {.rows = transposed ? ins : outs,
                             .columns = transposed ? outs : ins,
                             .inner = cpu_one_part(rows),
                             .a_stride = rows,
                             .b_stride = kept->stride};
    shape.type = product_type(dev, kept->dtype, &shape.widen_b); /* transposed values are widened */
    shape.tile = shape.type == BASE_BF16 ? WEIGHT_TILE_BF16 : WEIGHT_TILE;
    return shape;
}

/* --- planning --- */

static sifr_status keep(device *dev, device_call *call, exact_plan *plan, int64_t total,
                        sifr_error *error) {
    plan->thread_bytes = base_ceil_to(plan->thread_bytes, 64);
    plan->at_threads = device_reserve(&total, plan->thread_bytes * device_threads(dev));
    call->scratch_bytes = total;
    return cpu_products_keep(cpu_of(dev)->products, plan, sizeof *plan, &call->prepared, error);
}

static sifr_status plan_product(device *dev, const device_call *call, bool backward,
                                exact_plan *plan, int64_t *total, sifr_error *error) {
    cpu_exact_shape shape = product_shape(dev, call, backward);
    BASE_TRY(cpu_exact_find(dev, &shape, &plan->product, error));
    plan->at_pieces = device_reserve(total, plan->product.b_bytes);
    plan->thread_bytes = plan->product.thread_bytes;
    return SIFR_OK;
}

sifr_status cpu_prepare_exact(device *dev, device_call *call, sifr_error *error) {
    exact_plan plan;
    int64_t total = 0;
    memset(&plan, 0, sizeof plan); /* plans are compared bytewise */
    BASE_TRY(plan_product(dev, call, false, &plan, &total, error));
    return keep(dev, call, &plan, total, error);
}

static sifr_status plan_chunk(device *dev, const device_call *call, exact_plan *plan, int rest,
                              int64_t rows, sifr_error *error) {
    cpu_exact_shape shape = weight_shape(dev, call, rows);
    BASE_TRY(cpu_exact_find(dev, &shape, &plan->weights[rest], error));
    int64_t bytes = plan->weights[rest].thread_bytes;
    if (plan->widen) bytes = base_max_i64(bytes, cpu_transpose_scratch(rows));
    plan->thread_bytes = base_max_i64(plan->thread_bytes, bytes);
    return SIFR_OK;
}

static sifr_status plan_weights(device *dev, const device_call *call, exact_plan *plan,
                                int64_t *total, sifr_error *error) {
    const device_matrix *transposed = plan->transposed ? &call->x[0] : &call->dy;
    int64_t rest = plan->rows % DEVICE_CPU_CHUNK,
            chunk = base_min_i64(plan->rows, DEVICE_CPU_CHUNK);
    base_dtype type = product_type(dev, transposed->dtype, &plan->widen);
    plan->transposed_columns = transposed->columns;
    if (plan->rows >= DEVICE_CPU_CHUNK)
        BASE_TRY(plan_chunk(dev, call, plan, 0, DEVICE_CPU_CHUNK, error));
    if (rest > 0) BASE_TRY(plan_chunk(dev, call, plan, 1, rest, error));
    plan->at_transposed =
        device_reserve(total, chunk * transposed->columns * base_dtype_bytes(type));
    plan->at_weight_pieces =
        device_reserve(total, base_max_i64(plan->weights[0].b_bytes, plan->weights[1].b_bytes));
    return SIFR_OK;
}

sifr_status cpu_prepare_exact_backward(device *dev, device_call *call, sifr_error *error) {
    exact_plan plan;
    int64_t total = 0;
    memset(&plan, 0, sizeof plan);
    plan.transposed = call->attributes.linear.transposed;
    plan.rows = call->dy.rows;
    if (call->dx[0].dtype != BASE_NONE)
        BASE_TRY(plan_product(dev, call, true, &plan, &total, error));
    if (call->dw[0].dtype != BASE_NONE) BASE_TRY(plan_weights(dev, call, &plan, &total, error));
    return keep(dev, call, &plan, total, error);
}

/* --- running --- */

static sifr_status status_of(const device_call *call, bool ok, sifr_error *error) {
    if (ok) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s: oneDNN reports a fault in a product",
                     device_kernel_name(call->kernel));
}

static bool run_product(device *dev, const device_call *call, const device_matrix *a,
                        const device_matrix *bias, const device_matrix *c, bool add) {
    const exact_plan *plan = call->prepared;
    char *scratch = call->scratch;
    cpu_exact_operands operands = {.a = *a,
                                   .b = call->w[0],
                                   .bias = *bias,
                                   .c = *c,
                                   .add = add,
                                   .pieces = scratch + plan->at_pieces,
                                   .threads = scratch + plan->at_threads};
    return cpu_exact_run(dev, &plan->product, &operands);
}

sifr_status cpu_run_exact(device *dev, const device_call *call, sifr_error *error) {
    bool ok = run_product(dev, call, &call->x[0], &call->w[1], &call->y, false);
    return status_of(call, ok, error);
}

typedef struct transpose_run {
    const exact_plan *plan;
    const cpu_matrix_kernels *kernels;
    device_matrix from;
    char *scratch;
} transpose_run;

static void transpose_task(void *context, int64_t task, int thread) {
    const transpose_run *run = context;
    const exact_plan *plan = run->plan;
    cpu_transpose_part(run->kernels, &run->from, task, plan->widen,
                       run->scratch + plan->at_threads + thread * plan->thread_bytes,
                       run->scratch + plan->at_transposed);
}

static device_matrix rows_of(const device_matrix *m, int64_t first, int64_t rows) {
    device_matrix part = *m;
    part.data = (char *)m->data + first * m->stride * base_dtype_bytes(m->dtype);
    part.rows = rows;
    return part;
}

/* Adds a chunk of tokens to dw. */
static bool run_chunk(device *dev, const device_call *call, int64_t first) {
    const exact_plan *plan = call->prepared;
    const device_matrix *transposed = plan->transposed ? &call->x[0] : &call->dy;
    const device_matrix *kept = plan->transposed ? &call->dy : &call->x[0];
    int64_t rows = base_min_i64(DEVICE_CPU_CHUNK, plan->rows - first);
    char *scratch = call->scratch;
    transpose_run run = {plan, cpu_of(dev)->set->matrix, rows_of(transposed, first, rows), scratch};
    host_parallel(dev->team, cpu_transpose_parts(plan->transposed_columns), transpose_task, &run);
    base_dtype type = plan->widen ? BASE_FP32 : transposed->dtype;
    cpu_exact_operands operands = {
        .a = {scratch + plan->at_transposed, plan->transposed_columns, rows, rows, type},
        .b = rows_of(kept, first, rows),
        .c = call->dw[0],
        .add = first > 0 || call->accumulate_dw,
        .pieces = scratch + plan->at_weight_pieces,
        .threads = scratch + plan->at_threads};
    return cpu_exact_run(dev, &plan->weights[rows < DEVICE_CPU_CHUNK], &operands);
}

sifr_status cpu_run_exact_backward(device *dev, const device_call *call, sifr_error *error) {
    const exact_plan *plan = call->prepared;
    bool ok = true;
    for (int64_t first = 0; first < plan->rows && call->dw[0].dtype != BASE_NONE;
         first += DEVICE_CPU_CHUNK)
        ok &= run_chunk(dev, call, first);
    cpu_run_bias_gradient(dev, call);
    if (call->dx[0].dtype != BASE_NONE)
        ok &= run_product(dev, call, &call->dy, &(device_matrix){0}, &call->dx[0],
                          call->accumulate[0]);
    return status_of(call, ok, error);
}

/* --- the end of a sum over tensor ranks --- */

typedef struct finish_run {
    const device_call *call;
    const cpu_matrix_kernels *kernels;
} finish_run;

static void finish_task(void *context, int64_t task, int thread) {
    (void)thread;
    const finish_run *run = context;
    const device_call *call = run->call;
    const device_matrix *x = &call->x[0];
    int64_t first = task * FINISH_ROWS;
    device_matrix y = rows_of(&call->y, first, base_min_i64(FINISH_ROWS, x->rows - first));
    cpu_exact_finish(run->kernels, (const float *)x->data + first * x->stride, x->stride,
                     &call->w[1], &y, call->kernel == DEVICE_FINISH_INTO);
}

sifr_status cpu_run_finish(device *dev, const device_call *call, sifr_error *error) {
    (void)error;
    finish_run run = {call, cpu_of(dev)->set->matrix};
    host_parallel(dev->team, (call->x[0].rows + FINISH_ROWS - 1) / FINISH_ROWS, finish_task, &run);
    return SIFR_OK;
}

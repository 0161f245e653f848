#include "device/cpu/product/linear.h"

#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "device/check/operands.h"
#include "device/cpu/product/kernels_matrix.h"
#include "device/cpu/product/linear_parts.h"
#include "device/cpu/product/product_packed.h"

enum {
    WEIGHT_TILE = 192,       /* rows of a weight gradient in one task */
    WEIGHT_TILE_BF16 = 128,  /* likewise, with products in bf16 */
    WIDEN_ELEMENTS = 1 << 15 /* elements converted in one task */
};

/* Offsets in scratch (-1: unused). Shared by both directions. */
typedef struct linear_plan {
    int64_t rows, in, out;
    int64_t whole;   /* rows of the whole matrix, which determine the tiles */
    base_dtype type; /* of the products: FP32 if operands are widened */
    bool widen, transposed;
    cpu_packed packed;                        /* y, or dx */
    cpu_row_tiles tiles;                      /* y or dx if w is not packed */
    cpu_pieces pieces[2];                     /* of dw: of a whole chunk, and of the last chunk */
    cpu_row_tiles weights[2][2];              /* of dw without pieces: [chunk][set, add] */
    int64_t transposed_columns, kept_columns; /* dw is transposed_columns x kept_columns */
    int64_t at_x, at_w, at_bias, at_y, at_transposed, at_packed, at_threads, thread_bytes;
} linear_plan;

typedef struct linear_run {
    const linear_plan *plan;
    const device_call *call;
    const cpu_matrix_kernels *kernels;
    device_matrix x, w, bias, y, dx; /* as the products take them */
    const device_matrix *from;       /* of a conversion */
    float *to;
    device_matrix transposed, kept; /* operands of dw, for the current chunk */
    int64_t chunk_rows;
    int chunk_rest, chunk_sum;
    char *scratch;
    atomic_bool failed;
} linear_run;

/* Sizes for both directions, from x0 (dx0, where backward makes no dw0) and w0. */
static void plan_sizes(const device *dev, const device_call *call, linear_plan *plan) {
    memset(plan, 0, sizeof *plan);
    bool transposed = call->attributes.linear.transposed;
    const device_matrix *x = call->x[0].dtype == BASE_NONE ? &call->dx[0] : &call->x[0];
    plan->transposed = transposed;
    plan->rows = x->rows;
    plan->whole = call->attributes.linear.whole > 0 ? call->attributes.linear.whole : plan->rows;
    plan->in = x->columns;
    plan->out = transposed ? call->w[0].columns : call->w[0].rows;
    base_dtype type = x->dtype;
    plan->widen = !cpu_product_takes(dev, type);
    plan->type = plan->widen ? BASE_FP32 : type;
    plan->at_x = plan->at_w = plan->at_bias = plan->at_y = -1;
    plan->at_transposed = plan->at_packed = plan->at_threads = -1;
}

static void plan_threads(const device *dev, linear_plan *plan, int64_t *total, int64_t bytes) {
    plan->thread_bytes = base_ceil_to(bytes, 64);
    plan->at_threads = device_reserve(total, plan->thread_bytes * device_threads(dev));
}

static sifr_status keep_plan(device *dev, device_call *call, const linear_plan *plan, int64_t total,
                             sifr_error *error) {
    call->scratch_bytes = total;
    return cpu_products_keep(cpu_of(dev)->products, plan, sizeof *plan, &call->prepared, error);
}

sifr_status cpu_prepare_linear(device *dev, device_call *call, sifr_error *error) {
    linear_plan plan;
    plan_sizes(dev, call, &plan);
    bool biased = call->w[1].dtype != BASE_NONE;
    int64_t total = 0;
    cpu_product_shape shape = {.rows = plan.rows,
                               .columns = plan.out,
                               .inner = plan.in,
                               .a_stride = plan.widen ? plan.in : call->x[0].stride,
                               .b_stride = plan.widen ? call->w[0].columns : call->w[0].stride,
                               .c_stride = plan.widen ? plan.out : call->y.stride,
                               .input = plan.type,
                               .output = plan.type,
                               .bias = biased ? plan.type : BASE_NONE,
                               .b_transposed = !plan.transposed};
    BASE_TRY(cpu_packed_find(dev, shape, plan.whole, plan.widen, &plan.packed, error));
    if (plan.packed.pieces.count > 0) {
        plan.at_packed = device_reserve(&total, cpu_packed_bytes(&plan.packed));
        plan_threads(dev, &plan, &total, plan.packed.thread_bytes);
        return keep_plan(dev, call, &plan, total, error);
    }
    BASE_TRY(cpu_find_row_tiles(cpu_of(dev)->products, shape, cpu_row_tile(plan.whole), &plan.tiles,
                                error));
    if (plan.widen) {
        plan.at_x = device_reserve(&total, plan.rows * plan.in * 4);
        plan.at_w = device_reserve(&total, plan.in * plan.out * 4);
        plan.at_y = device_reserve(&total, plan.rows * plan.out * 4);
        if (biased) plan.at_bias = device_reserve(&total, plan.out * 4);
    }
    plan_threads(dev, &plan, &total, cpu_row_tiles_scratch(&plan.tiles));
    return keep_plan(dev, call, &plan, total, error);
}

static int64_t weight_tile(const linear_plan *plan) {
    return plan->type == BASE_BF16 ? WEIGHT_TILE_BF16 : WEIGHT_TILE;
}

/* Plans the products of a chunk of `rows` tokens, with b packed if the library can. */
static sifr_status plan_chunk(device *dev, linear_plan *plan, int64_t rows, int64_t kept_stride,
                              int64_t dw_stride, int rest, sifr_error *error) {
    cpu_product_shape shape = {.rows = plan->transposed_columns,
                               .columns = plan->kept_columns,
                               .inner = rows,
                               .a_stride = rows,
                               .b_stride = plan->widen ? 0 : kept_stride,
                               .c_stride = dw_stride,
                               .input = plan->type,
                               .output = BASE_FP32};
    BASE_TRY(cpu_find_pieces(cpu_of(dev)->products, shape, weight_tile(plan), &plan->pieces[rest],
                             error));
    if (plan->pieces[rest].count > 0) return SIFR_OK;
    if (plan->widen) shape.b_stride = plan->kept_columns;
    for (int sum = 0; sum < 2; sum++) {
        shape.sum = sum != 0;
        BASE_TRY(cpu_find_row_tiles(cpu_of(dev)->products, shape, weight_tile(plan),
                                    &plan->weights[rest][sum], error));
    }
    return SIFR_OK;
}

static sifr_status plan_weights(device *dev, const device_call *call, linear_plan *plan,
                                int64_t *total, sifr_error *error) {
    const device_matrix *transposed = plan->transposed ? &call->x[0] : &call->dy;
    const device_matrix *kept = plan->transposed ? &call->dy : &call->x[0];
    plan->transposed_columns = transposed->columns;
    plan->kept_columns = kept->columns;
    int64_t rest = plan->rows % DEVICE_CPU_CHUNK;
    int64_t chunk = base_min_i64(plan->rows, DEVICE_CPU_CHUNK);
    if (plan->rows >= DEVICE_CPU_CHUNK)
        BASE_TRY(
            plan_chunk(dev, plan, DEVICE_CPU_CHUNK, kept->stride, call->dw[0].stride, 0, error));
    if (rest != 0)
        BASE_TRY(plan_chunk(dev, plan, rest, kept->stride, call->dw[0].stride, 1, error));
    plan->at_transposed =
        device_reserve(total, chunk * transposed->columns * base_dtype_bytes(plan->type));
    /* A chunk's other operand is stored in pieces or in fp32. Both share one place, so one more row
     * never needs less scratch. */
    int64_t bytes =
        base_max_i64(cpu_pieces_bytes(&plan->pieces[0]), cpu_pieces_bytes(&plan->pieces[1]));
    bool unpacked = (plan->rows >= DEVICE_CPU_CHUNK && plan->pieces[0].count == 0) ||
                    (rest != 0 && plan->pieces[1].count == 0);
    if (plan->widen && unpacked) bytes = base_max_i64(bytes, chunk * kept->columns * 4);
    plan->at_packed = device_reserve(total, bytes);
    return SIFR_OK;
}

/* Scratch of a thread: to arrange operands of a weight gradient, and then for its products. */
static int64_t weights_scratch(const linear_plan *plan) {
    int64_t bytes = 0, chunk = base_min_i64(plan->rows, DEVICE_CPU_CHUNK);
    for (int i = 0; i < 4; i++) {
        bytes = base_max_i64(bytes, cpu_row_tiles_scratch(&plan->weights[i / 2][i % 2]));
        bytes = base_max_i64(bytes, cpu_pieces_scratch(&plan->pieces[i / 2]));
        if (plan->widen) bytes = base_max_i64(bytes, chunk * plan->pieces[i / 2].columns * 4);
    }
    return plan->widen ? base_max_i64(bytes, cpu_transpose_scratch(chunk)) : bytes;
}

/* dx = dy w, by packed products or by tiles of rows. */
static sifr_status plan_inputs(device *dev, const device_call *call, linear_plan *plan,
                               int64_t *total, int64_t *thread, sifr_error *error) {
    cpu_product_shape shape = {.rows = plan->rows,
                               .columns = plan->in,
                               .inner = plan->out,
                               .a_stride = plan->widen ? plan->out : call->dy.stride,
                               .b_stride = plan->widen ? call->w[0].columns : call->w[0].stride,
                               .c_stride = plan->widen ? plan->in : call->dx[0].stride,
                               .input = plan->type,
                               .output = plan->type,
                               .b_transposed = plan->transposed,
                               .sum = !plan->widen && call->accumulate[0]};
    BASE_TRY(cpu_packed_find(dev, shape, plan->whole, plan->widen, &plan->packed, error));
    if (plan->packed.pieces.count > 0) {
        plan->at_w = device_reserve(total, cpu_packed_bytes(&plan->packed));
        *thread = plan->packed.thread_bytes;
        return SIFR_OK;
    }
    if (plan->widen) {
        plan->at_x = device_reserve(total, plan->rows * plan->in * 4);
        plan->at_w = device_reserve(total, plan->in * plan->out * 4);
        plan->at_y = device_reserve(total, plan->rows * plan->out * 4);
    }
    BASE_TRY(cpu_find_row_tiles(cpu_of(dev)->products, shape, cpu_row_tile(plan->whole),
                                &plan->tiles, error));
    *thread = cpu_row_tiles_scratch(&plan->tiles);
    return SIFR_OK;
}

sifr_status cpu_prepare_linear_backward(device *dev, device_call *call, sifr_error *error) {
    linear_plan plan;
    plan_sizes(dev, call, &plan);
    bool wants_dx = call->dx[0].dtype != BASE_NONE, wants_dw = call->dw[0].dtype != BASE_NONE;
    int64_t total = 0, thread = 0;
    if (wants_dx) BASE_TRY(plan_inputs(dev, call, &plan, &total, &thread, error));
    if (wants_dw) BASE_TRY(plan_weights(dev, call, &plan, &total, error));
    if (wants_dw) thread = base_max_i64(thread, weights_scratch(&plan));
    plan_threads(dev, &plan, &total, thread);
    return keep_plan(dev, call, &plan, total, error);
}

/* --- conversions, if products run in fp32 and operands have 16 bits --- */

static void widen_task(void *context, int64_t task, int thread) {
    (void)thread;
    linear_run *run = context;
    const device_matrix *m = run->from;
    int64_t rows = base_max_i64(1, WIDEN_ELEMENTS / m->columns);
    int64_t last = base_min_i64(m->rows, (task + 1) * rows);
    for (int64_t r = task * rows; r < last; r++)
        run->kernels->widen(m->dtype, (const uint16_t *)m->data + r * m->stride,
                            run->to + r * m->columns, m->columns);
}

static void narrow_task(void *context, int64_t task, int thread) {
    (void)thread;
    linear_run *run = context;
    const device_matrix *m = run->from;
    bool add = run->call->kernel == DEVICE_LINEAR_BACKWARD && run->call->accumulate[0];
    int64_t rows = base_max_i64(1, WIDEN_ELEMENTS / m->columns);
    int64_t last = base_min_i64(m->rows, (task + 1) * rows);
    for (int64_t r = task * rows; r < last; r++)
        run->kernels->narrow(m->dtype, run->to + r * m->columns,
                             (uint16_t *)m->data + r * m->stride, m->columns, add);
}

static int64_t conversion_tasks(const device_matrix *m) {
    int64_t rows = base_max_i64(1, WIDEN_ELEMENTS / m->columns);
    return (m->rows + rows - 1) / rows;
}

static device_matrix widened(device *dev, linear_run *run, const device_matrix *m, int64_t at) {
    run->from = m;
    run->to = (float *)(run->scratch + at);
    host_parallel(dev->team, conversion_tasks(m), widen_task, run);
    return (device_matrix){run->to, m->rows, m->columns, m->columns, BASE_FP32};
}

static void narrow(device *dev, linear_run *run, const device_matrix *to, int64_t at) {
    run->from = to;
    run->to = (float *)(run->scratch + at);
    host_parallel(dev->team, conversion_tasks(to), narrow_task, run);
}

static device_matrix place(const linear_run *run, const device_matrix *m, int64_t at) {
    return (device_matrix){run->scratch + at, m->rows, m->columns, m->columns, BASE_FP32};
}

static const void *row_of(const device_matrix *m, int64_t row) {
    return (const char *)m->data + row * m->stride * base_dtype_bytes(m->dtype);
}

static void *thread_scratch(const linear_run *run, int thread) {
    return run->scratch + run->plan->at_threads + thread * run->plan->thread_bytes;
}

static void check_product(linear_run *run, bool ok) {
    if (!ok) atomic_store_explicit(&run->failed, true, memory_order_relaxed);
}

static sifr_status linear_status(linear_run *run, sifr_error *error) {
    if (!atomic_load(&run->failed)) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s: oneDNN reports a fault in a product",
                     device_kernel_name(run->call->kernel));
}

/* c (+)= a w, + bias, with w packed. Used in both directions. */
static void run_packed(device *dev, linear_run *run, const device_matrix *a,
                       const device_matrix *bias, const device_matrix *c, int64_t at) {
    const device_call *call = run->call;
    cpu_packed_operands operands = {.a = *a,
                                    .b = call->w[0],
                                    .bias = *bias,
                                    .c = *c,
                                    .add = call->kernel == DEVICE_LINEAR_BACKWARD &&
                                           call->accumulate[0],
                                    .packed = run->scratch + at,
                                    .threads = run->scratch + run->plan->at_threads};
    check_product(run, cpu_packed_run(dev, &run->plan->packed, &operands));
}

/* --- forward --- */

static void forward_task(void *context, int64_t task, int thread) {
    linear_run *run = context;
    const cpu_row_tiles *tiles = &run->plan->tiles;
    int64_t row = task * tiles->tile;
    check_product(run, cpu_product_run(cpu_row_tile_product(tiles, task), thread,
                                       row_of(&run->x, row), run->w.data, run->bias.data,
                                       (void *)(uintptr_t)row_of(&run->y, row),
                                       thread_scratch(run, thread)));
}

sifr_status cpu_run_linear(device *dev, const device_call *call, sifr_error *error) {
    const linear_plan *plan = call->prepared;
    linear_run run = {.plan = plan,
                      .call = call,
                      .kernels = cpu_of(dev)->set->matrix,
                      .x = call->x[0],
                      .w = call->w[0],
                      .bias = call->w[1],
                      .y = call->y,
                      .scratch = call->scratch};
    if (plan->packed.pieces.count > 0) {
        run_packed(dev, &run, &call->x[0], &call->w[1], &call->y, plan->at_packed);
        return linear_status(&run, error);
    }
    if (plan->widen) {
        run.x = widened(dev, &run, &call->x[0], plan->at_x);
        run.w = widened(dev, &run, &call->w[0], plan->at_w);
        if (plan->at_bias >= 0) run.bias = widened(dev, &run, &call->w[1], plan->at_bias);
        run.y = place(&run, &call->y, plan->at_y);
    }
    host_parallel(dev->team, cpu_row_tiles_count(&plan->tiles), forward_task, &run);
    if (plan->widen) narrow(dev, &run, &call->y, plan->at_y);
    return linear_status(&run, error);
}

/* --- backward: run.y holds dy --- */

static void gradient_task(void *context, int64_t task, int thread) {
    linear_run *run = context;
    const cpu_row_tiles *tiles = &run->plan->tiles;
    int64_t row = task * tiles->tile;
    check_product(run,
                  cpu_product_run(cpu_row_tile_product(tiles, task), thread, row_of(&run->y, row),
                                  run->w.data, NULL, (void *)(uintptr_t)row_of(&run->dx, row),
                                  thread_scratch(run, thread)));
}

/* Packs a piece of the operand that is not transposed. */
static void pack_piece(linear_run *run, int64_t piece, int thread) {
    const linear_plan *plan = run->plan;
    const cpu_pieces *pieces = &plan->pieces[run->chunk_rest];
    const void *from = run->kept.data;
    if (plan->widen) {
        float *wide = thread_scratch(run, thread);
        const uint16_t *half = (const uint16_t *)run->kept.data + piece * pieces->columns;
        for (int64_t r = 0; r < run->chunk_rows; r++)
            run->kernels->widen(run->kept.dtype, half + r * run->kept.stride,
                                wide + r * pieces->columns, pieces->columns);
        from = wide;
    }
    check_product(run,
                  cpu_pieces_pack(pieces, thread, piece, from, run->scratch + plan->at_packed));
}

/* First packs the pieces of b, which take longest, then transposes a. */
static void arrange_task(void *context, int64_t task, int thread) {
    linear_run *run = context;
    int64_t pieces = run->plan->pieces[run->chunk_rest].count;
    if (task < pieces)
        pack_piece(run, task, thread);
    else
        cpu_transpose_part(run->kernels, &run->transposed, task - pieces, run->plan->widen,
                           thread_scratch(run, thread), run->scratch + run->plan->at_transposed);
}

static int64_t weight_tasks(const linear_run *run) {
    const cpu_pieces *pieces = &run->plan->pieces[run->chunk_rest];
    if (pieces->count > 0) return cpu_row_tiles_count(&pieces->tiles) * pieces->count;
    return cpu_row_tiles_count(&run->plan->weights[run->chunk_rest][run->chunk_sum]);
}

static void weight_task(void *context, int64_t task, int thread) {
    linear_run *run = context;
    const linear_plan *plan = run->plan;
    const cpu_pieces *pieces = &plan->pieces[run->chunk_rest];
    const device_matrix *dw = &run->call->dw[0];
    int64_t tile = pieces->count > 0 ? task / pieces->count : task, row = tile * weight_tile(plan);
    const char *a =
        run->scratch + plan->at_transposed + row * run->chunk_rows * base_dtype_bytes(plan->type);
    float *c = (float *)dw->data + row * dw->stride;
    if (pieces->count > 0) {
        check_product(run, cpu_pieces_run(pieces, thread, tile, task % pieces->count, a,
                                          run->scratch + plan->at_packed, c, dw->stride,
                                          run->chunk_sum, thread_scratch(run, thread)));
        return;
    }
    const cpu_row_tiles *tiles = &plan->weights[run->chunk_rest][run->chunk_sum];
    check_product(run, cpu_product_run(cpu_row_tile_product(tiles, tile), thread, a, run->kept.data,
                                       NULL, c, thread_scratch(run, thread)));
}

static device_matrix rows_from(const device_matrix *m, int64_t first, int64_t rows) {
    device_matrix part = *m;
    part.data = (void *)(uintptr_t)row_of(m, first);
    part.rows = rows;
    return part;
}

static void run_weights(device *dev, linear_run *run) {
    const linear_plan *plan = run->plan;
    const device_matrix *transposed = plan->transposed ? &run->call->x[0] : &run->call->dy;
    const device_matrix *kept = plan->transposed ? &run->call->dy : &run->call->x[0];
    for (int64_t first = 0; first < plan->rows; first += DEVICE_CPU_CHUNK) {
        run->chunk_rows = base_min_i64(DEVICE_CPU_CHUNK, plan->rows - first);
        run->chunk_rest = run->chunk_rows < DEVICE_CPU_CHUNK;
        run->chunk_sum = first > 0 || run->call->accumulate_dw;
        run->transposed = rows_from(transposed, first, run->chunk_rows);
        run->kept = rows_from(kept, first, run->chunk_rows);
        bool unpacked = plan->pieces[run->chunk_rest].count == 0;
        if (plan->widen && unpacked) run->kept = widened(dev, run, &run->kept, plan->at_packed);
        host_parallel(dev->team,
                      plan->pieces[run->chunk_rest].count +
                          cpu_transpose_parts(plan->transposed_columns),
                      arrange_task, run);
        host_parallel(dev->team, weight_tasks(run), weight_task, run);
    }
}

sifr_status cpu_run_linear_backward(device *dev, const device_call *call, sifr_error *error) {
    const linear_plan *plan = call->prepared;
    bool wants_dx = call->dx[0].dtype != BASE_NONE, wants_dw = call->dw[0].dtype != BASE_NONE;
    linear_run run = {.plan = plan,
                      .call = call,
                      .kernels = cpu_of(dev)->set->matrix,
                      .x = call->x[0],
                      .w = call->w[0],
                      .y = call->dy,
                      .dx = call->dx[0],
                      .scratch = call->scratch};
    if (wants_dw) run_weights(dev, &run);
    cpu_run_bias_gradient(dev, call);
    if (wants_dx && plan->packed.pieces.count > 0) {
        run_packed(dev, &run, &call->dy, &(device_matrix){0}, &call->dx[0], plan->at_w);
    } else if (wants_dx) {
        if (plan->widen) {
            run.y = widened(dev, &run, &call->dy, plan->at_y);
            run.w = widened(dev, &run, &call->w[0], plan->at_w);
            run.dx = place(&run, &call->dx[0], plan->at_x);
        }
        host_parallel(dev->team, cpu_row_tiles_count(&plan->tiles), gradient_task, &run);
        if (plan->widen) narrow(dev, &run, &call->dx[0], plan->at_x);
    }
    return linear_status(&run, error);
}

#include "device/cpu/head/head_loss.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "device/check/operands.h"
#include "device/cpu/head/head_distil.h"
#include "device/cpu/head/head_logits.h"
#include "device/cpu/head/head_own.h"
#include "device/cpu/head/head_run.h"
#include "device/cpu/head/head_words.h"
#include "device/cpu/product/transpose.h"

enum {
    LOSS_TILE = 256,          /* rows of logits, and of dw, in one task */
    INPUT_TILE = 128,         /* rows of dx in one task */
    ROW_TILE = HEAD_ROW_TILE, /* rows gathered, finished or scattered in one task */
    FEW_ROWS = 8              /* fewer than ROW_TILE rows are padded to a multiple of this */
};

static int is_last(const head_plan *plan, int64_t block) {
    return head_block_words(plan, block) < plan->block;
}

/* Plans products of blocks of `words`; `last` is 1 for the last block if it is smaller. */
static sifr_status plan_block(device *dev, const device_call *call, head_plan *plan, int64_t words,
                              int last, sifr_error *error) {
    int64_t w_stride = plan->widen ? plan->width : call->w[0].stride;
    cpu_product_shape logits = {.rows = plan->chunk,
                                .columns = words,
                                .inner = plan->width,
                                .a_stride = plan->width,
                                .b_stride = w_stride,
                                .c_stride = plan->own ? plan->words : words,
                                .input = plan->type,
                                .output = BASE_FP32,
                                .b_transposed = true};
    BASE_TRY(
        cpu_find_row_tiles(cpu_of(dev)->products, logits, LOSS_TILE, &plan->logits[last], error));
    if (!plan->backward) return SIFR_OK;
    cpu_product_shape input = {.rows = plan->chunk,
                               .columns = plan->width,
                               .inner = words,
                               .a_stride = words,
                               .b_stride = w_stride,
                               .c_stride = plan->width,
                               .input = plan->type,
                               .output = BASE_FP32};
    cpu_product_shape weights = {.rows = words,
                                 .columns = plan->width,
                                 .inner = plan->chunk,
                                 .a_stride = plan->chunk,
                                 .b_stride = plan->width,
                                 .c_stride = call->dw[0].stride,
                                 .input = plan->type,
                                 .output = BASE_FP32};
    if (!plan->few)
        BASE_TRY(cpu_find_pieces(cpu_of(dev)->products, input, INPUT_TILE,
                                 &plan->input_pieces[last], error));
    if (call->dw[0].dtype != BASE_NONE)
        BASE_TRY(cpu_find_pieces(cpu_of(dev)->products, weights, LOSS_TILE,
                                 &plan->weight_pieces[last], error));
    for (int sum = 0; sum < 2; sum++) {
        input.sum = weights.sum = sum != 0;
        BASE_TRY(cpu_find_row_tiles(cpu_of(dev)->products, input, INPUT_TILE,
                                    &plan->input[last][sum], error));
        if (call->dw[0].dtype != BASE_NONE)
            BASE_TRY(cpu_find_row_tiles(cpu_of(dev)->products, weights, LOSS_TILE,
                                        &plan->weights[last][sum], error));
    }
    return SIFR_OK;
}

/* x is packed once for all blocks, so the last block must use the same layout. */
static void agree_on_packing(head_plan *plan) {
    cpu_pieces *whole = &plan->weight_pieces[0], *last = &plan->weight_pieces[1];
    if (plan->words % plan->block == 0 || plan->words < plan->block) return;
    bool same =
        whole->count > 0 && whole->count == last->count && cpu_pieces_same_packing(whole, last);
    if (!same) whole->count = last->count = 0;
}

static const cpu_pieces *x_pieces(const head_plan *plan) {
    return &plan->weight_pieces[plan->words < plan->block];
}

static int64_t most_scratch(const head_plan *plan) {
    int64_t most = 0;
    for (int last = 0; last < 2; last++) {
        most = base_max_i64(most, cpu_row_tiles_scratch(&plan->logits[last]));
        most = base_max_i64(most, cpu_pieces_scratch(&plan->weight_pieces[last]));
        most = base_max_i64(most, cpu_pieces_scratch(&plan->input_pieces[last]));
        for (int sum = 0; sum < 2; sum++) {
            most = base_max_i64(most, cpu_row_tiles_scratch(&plan->weights[last][sum]));
            most = base_max_i64(most, cpu_row_tiles_scratch(&plan->input[last][sum]));
        }
    }
    return most;
}

/* Scratch of the call, and of each thread: transposed operands, scratch of products, and its block
 * of w if there are too few rows to widen all of w at once. */
static int64_t place_scratch(const device *dev, head_plan *plan) {
    int64_t total = 0, element = base_dtype_bytes(plan->type);
    if (plan->weighted) plan->at_weights = device_reserve(&total, plan->rows * 4);
    int64_t whole = base_min_i64(plan->block, plan->words);
    plan->at_indices = device_reserve(&total, plan->rows * 4);
    plan->at_x = device_reserve(&total, plan->chunk * plan->width * element);
    if (plan->widen && !plan->few)
        plan->at_w = device_reserve(&total, plan->words * plan->width * 4);
    plan->at_logits = device_reserve(&total, plan->chunk * plan->words * 4);
    if (plan->own) {
        plan->at_labels = device_reserve(&total, plan->chunk * 4);
        if (plan->backward)
            plan->at_gradient = device_reserve(&total, plan->chunk * plan->words * 4);
    } else {
        plan->at_statistics = device_reserve(&total, plan->blocks * plan->chunk * 8);
        plan->at_sums = device_reserve(&total, plan->chunk * 4);
    }
    if (plan->columns) plan->at_rest = device_reserve(&total, plan->chunk * 8);
    if (plan->backward) {
        int64_t parts = plan->few ? plan->blocks : 1;
        plan->at_packed_x = device_reserve(&total, cpu_pieces_bytes(x_pieces(plan)));
        plan->at_packed_w = device_reserve(
            &total, plan->words / plan->block * cpu_pieces_bytes(&plan->input_pieces[0]) +
                        cpu_pieces_bytes(&plan->input_pieces[1]));
        plan->at_dx = device_reserve(&total, parts * plan->chunk * plan->width * 4);
        plan->transposed_bytes = base_ceil_to(plan->chunk * whole * element, 64);
    }
    plan->product_bytes = base_ceil_to(most_scratch(plan), 64);
    plan->thread_bytes = plan->transposed_bytes + plan->product_bytes;
    if (plan->widen && plan->few) plan->thread_bytes += base_ceil_to(whole * plan->width * 4, 64);
    plan->at_threads = device_reserve(&total, plan->thread_bytes * device_threads(dev));
    return total;
}

sifr_status cpu_prepare_head_loss(device *dev, device_call *call, sifr_error *error) {
    head_plan plan;
    memset(&plan, 0, sizeof plan);
    plan.rows = call->x[0].rows, plan.width = call->x[0].columns, plan.words = call->w[0].rows;
    plan.split = call->attributes.head.words;
    if (plan.split.all > 0) plan.words = plan.split.count;
    plan.backward = call->kernel != DEVICE_HEAD_LOSS && call->kernel != DEVICE_HEAD_PREFERENCE &&
                    call->kernel != DEVICE_OWN_LOSS && call->kernel != DEVICE_HEAD_STATISTICS;
    plan.own = call->kernel == DEVICE_OWN_LOSS || call->kernel == DEVICE_OWN_LOSS_BACKWARD;
    plan.weighted =
        call->kernel == DEVICE_HEAD_PREFERENCE || call->kernel == DEVICE_HEAD_PREFERENCE_BACKWARD;
    if (call->kernel == DEVICE_HEAD_DISTIL_BACKWARD) plan.columns = call->x[2].columns;
    plan.shape = cpu_head_shape(call);
    plan.shaped = cpu_shapes_logits(&plan.shape) || call->w[1].dtype != BASE_NONE;
    plan.widen = !cpu_product_takes(dev, call->x[0].dtype);
    plan.type = plan.widen ? BASE_FP32 : call->x[0].dtype;
    plan.few = plan.rows <= INPUT_TILE;
    plan.chunk = base_min_i64(CPU_LOSS_ROWS,
                              base_ceil_to(plan.rows, plan.rows < ROW_TILE ? FEW_ROWS : ROW_TILE));
    if (plan.own) plan.chunk = cpu_own_rows(call, plan.chunk);
    plan.block = device_words_block(head_all_words(&plan));
    plan.blocks = (plan.words + plan.block - 1) / plan.block;
    int64_t whole = base_min_i64(plan.block, plan.words), rest = plan.words % plan.block;
    if (plan.words >= plan.block) BASE_TRY(plan_block(dev, call, &plan, whole, 0, error));
    if (rest != 0) BASE_TRY(plan_block(dev, call, &plan, rest, 1, error));
    agree_on_packing(&plan);
    call->scratch_bytes = place_scratch(dev, &plan);
    return cpu_products_keep(cpu_of(dev)->products, &plan, sizeof plan, &call->prepared, error);
}

static char *thread_scratch(const head_run *run, int thread) {
    return run->scratch + run->plan->at_threads + thread * run->plan->thread_bytes;
}

static const char *block_w(const head_run *run, int64_t block) {
    return (const char *)run->w +
           block * run->plan->block * run->w_stride * base_dtype_bytes(run->plan->type);
}

static void note(head_run *run, bool ok) {
    if (!ok) atomic_store_explicit(&run->failed, true, memory_order_relaxed);
}

static void multiply(head_run *run, const cpu_row_tiles *tiles, int64_t tile, int thread,
                     const void *a, const void *b, float *c) {
    note(run, cpu_product_run(cpu_row_tile_product(tiles, tile), thread, a, b, NULL, c,
                              thread_scratch(run, thread) + run->plan->transposed_bytes));
}

/* Gathers rows of the chunk, padded with zeros. */
static void gather_task(void *context, int64_t task, int thread) {
    (void)thread;
    head_run *run = context;
    const head_plan *plan = run->plan;
    const device_matrix *x = &run->call->x[0];
    int64_t element = base_dtype_bytes(plan->type), given = base_dtype_bytes(x->dtype);
    for (int64_t i = task * ROW_TILE; i < (task + 1) * ROW_TILE && i < plan->chunk; i++) {
        char *to = run->scratch + plan->at_x + i * plan->width * element;
        if (i >= run->labelled) {
            memset(to, 0, (size_t)(plan->width * element));
            continue;
        }
        const char *from =
            (const char *)x->data + head_indices(run)[run->first + i] * x->stride * given;
        if (plan->widen)
            run->matrix->widen(x->dtype, (const uint16_t *)from, (float *)to, plan->width);
        else
            memcpy(to, from, (size_t)(plan->width * element));
    }
}

static void widen_task(void *context, int64_t task, int thread) {
    (void)thread;
    head_run *run = context;
    const head_plan *plan = run->plan;
    const device_matrix *w = &run->call->w[0];
    for (int64_t i = task * ROW_TILE; i < (task + 1) * ROW_TILE && i < plan->words; i++)
        run->matrix->widen(w->dtype, (const uint16_t *)w->data + i * w->stride,
                           (float *)(run->scratch + plan->at_w) + i * plan->width, plan->width);
}

/* A block of w in the form that the products take. */
static const void *ready_w(head_run *run, int64_t block, int thread) {
    const head_plan *plan = run->plan;
    if (!plan->few || !plan->widen) return block_w(run, block);
    const device_matrix *w = &run->call->w[0];
    const uint16_t *from = (const uint16_t *)w->data + block * plan->block * w->stride;
    float *to = (float *)(void *)(thread_scratch(run, thread) + plan->transposed_bytes +
                                  plan->product_bytes);
    for (int64_t i = 0; i < head_block_words(plan, block); i++)
        run->matrix->widen(w->dtype, from + i * w->stride, to + i * plan->width, plan->width);
    return to;
}

static void pack_x_task(void *context, int64_t piece, int thread) {
    head_run *run = context;
    note(run, cpu_pieces_pack(x_pieces(run->plan), thread, piece, run->scratch + run->plan->at_x,
                              run->scratch + run->plan->at_packed_x));
}

static char *packed_w(const head_run *run, int64_t block) {
    return run->scratch + run->plan->at_packed_w +
           block * cpu_pieces_bytes(&run->plan->input_pieces[0]);
}

/* Packs one piece of the blocks that are packed. */
static void pack_w_task(void *context, int64_t task, int thread) {
    head_run *run = context;
    const head_plan *plan = run->plan;
    int64_t most = base_max_i64(plan->input_pieces[0].count, plan->input_pieces[1].count);
    int64_t block = task / most, piece = task % most;
    const cpu_pieces *pieces = &plan->input_pieces[is_last(plan, block)];
    if (piece >= pieces->count) return;
    note(run, cpu_pieces_pack(pieces, thread, piece, block_w(run, block), packed_w(run, block)));
}

/* A block of the bias in fp32; NULL: no bias. */
static const float *block_bias(const head_run *run, int64_t block, float *buffer) {
    const device_matrix *w = &run->call->w[1];
    int64_t from = block * run->plan->block;
    if (w->dtype == BASE_NONE) return NULL;
    if (w->dtype == BASE_FP32) return (const float *)w->data + from;
    run->matrix->widen(w->dtype, (const uint16_t *)w->data + from, buffer,
                       head_block_words(run->plan, block));
    return buffer;
}

static void shape_logits(const head_run *run, int64_t block, float *logits, int64_t stride,
                         int64_t rows) {
    float buffer[HEAD_MOST_WORDS];
    const float *bias = block_bias(run, block, buffer);
    int64_t words = head_block_words(run->plan, block);
    for (int64_t r = 0; r < rows; r++)
        run->kernels->shape(logits + r * stride, words, bias, &run->plan->shape);
}

/* Where the logits of a block begin, and how far its rows are apart. */
static float *logits_of(const head_run *run, int64_t block, int64_t *stride) {
    const head_plan *plan = run->plan;
    *stride = plan->own ? plan->words : head_block_words(plan, block);
    if (!plan->own) return head_block_logits(run, block);
    return (float *)(void *)(run->scratch + plan->at_logits) + block * plan->block;
}

/* Computes a tile of rows of one block of logits. Tiles with padding alone are skipped. */
static void logits_task(void *context, int64_t task, int thread) {
    head_run *run = context;
    const head_plan *plan = run->plan;
    int64_t tile = task / plan->blocks, block = task % plan->blocks;
    int64_t words = head_block_words(plan, block), row = tile * LOSS_TILE, stride;
    float *logits = logits_of(run, block, &stride) + row * stride;
    multiply(run, &plan->logits[is_last(plan, block)], tile, thread,
             run->scratch + plan->at_x + row * plan->width * base_dtype_bytes(plan->type),
             ready_w(run, block, thread), logits);
    int64_t rows = base_min_i64(LOSS_TILE, run->labelled - row);
    if (plan->shaped) shape_logits(run, block, logits, stride, rows);
    int64_t number = plan->split.first / plan->block + block;
    for (int64_t r = 0; r < rows && !plan->own && !head_has_statistics(run); r++)
        run->kernels->statistics(logits + r * words, words, head_statistics(run, number, row + r));
}

static void write_bias_gradient(const head_run *run, int64_t from, int64_t words,
                                const float *sums) {
    const device_matrix *dw = &run->call->dw[1];
    if (dw->dtype == BASE_NONE) return;
    bool add = !run->first_chunk || run->call->accumulate_dw;
    float *to = (float *)dw->data + from;
    for (int64_t i = 0; i < words; i++) to[i] = add ? to[i] + sums[i] : sums[i];
}

/* Gradients of scaled or capped logits, and of the bias. */
static void shaped_gradients(head_run *run, int64_t block) {
    const head_plan *plan = run->plan;
    int64_t words = head_block_words(plan, block), from = block * plan->block;
    float *logits = head_block_logits(run, block), sums[HEAD_MOST_WORDS] = {0};
    const float *log_sums = (const float *)(run->scratch + plan->at_sums);
    int64_t element = base_dtype_bytes(plan->type);
    for (int64_t r = 0; r < run->labelled; r++)
        run->kernels->shaped_gradient(logits + r * words, words, log_sums[r],
                                      head_label_in(run, r, from, words), head_scale(run, r),
                                      &plan->shape, sums, plan->type,
                                      (char *)logits + r * words * element);
    write_bias_gradient(run, from, words, sums);
}

/* Gradients that another head's distribution is a part of, or that the caller's function made. */
static void made_gradients(head_run *run, int64_t block) {
    const head_plan *plan = run->plan;
    int64_t words = head_block_words(plan, block), from = block * plan->block;
    int64_t element = base_dtype_bytes(plan->type);
    float *logits = head_block_logits(run, block), sums[HEAD_MOST_WORDS] = {0};
    for (int64_t r = 0; r < run->labelled; r++) {
        float made[HEAD_MOST_WORDS];
        const float *row = plan->own ? cpu_own_gradient(run, block, r) : made;
        char *to = (char *)logits + r * words * element;
        if (!plan->own)
            cpu_distil_gradient(run, block, r, head_label_in(run, r, from, words), made);
        for (int64_t i = 0; i < words; i++) sums[i] += row[i];
        if (plan->type == BASE_FP32)
            memcpy(to, row, (size_t)words * sizeof *row);
        else
            run->matrix->narrow(plan->type, row, (uint16_t *)(void *)to, words, false);
    }
    write_bias_gradient(run, from, words, sums);
}

static void plain_gradients(head_run *run, int64_t block) {
    const head_plan *plan = run->plan;
    int64_t words = head_block_words(plan, block), from = block * plan->block;
    float *logits = head_block_logits(run, block);
    const float *sums = (const float *)(run->scratch + plan->at_sums);
    for (int64_t r = 0; r < run->labelled; r++) {
        int64_t label = head_label_in(run, r, from, words);
        float scale = head_scale(run, r);
        if (plan->type == BASE_FP32)
            run->kernels->gradient_fp32(logits + r * words, words, sums[r], label, scale,
                                        logits + r * words);
        else
            run->kernels->gradient_bf16(logits + r * words, words, sums[r], label, scale,
                                        (uint16_t *)logits + r * words);
    }
}

/* Turns a block of logits into gradients in place, then computes its part of dw. */
static void block_gradients(head_run *run, int64_t block) {
    const head_plan *plan = run->plan;
    int64_t words = head_block_words(plan, block);
    float *logits = head_block_logits(run, block);
    if (plan->columns || plan->own)
        made_gradients(run, block);
    else if (plan->shaped)
        shaped_gradients(run, block);
    else
        plain_gradients(run, block);
    int64_t element = base_dtype_bytes(plan->type);
    memset((char *)logits + run->labelled * words * element, 0,
           (size_t)((plan->chunk - run->labelled) * words * element));
}

static void weight_gradients(head_run *run, int64_t block, int thread) {
    const head_plan *plan = run->plan;
    const device_matrix *dw = &run->call->dw[0];
    int64_t words = head_block_words(plan, block), element = base_dtype_bytes(plan->type);
    char *transposed = thread_scratch(run, thread);
    if (plan->type == BASE_FP32)
        run->matrix->transpose(head_block_logits(run, block), plan->chunk, words, words,
                               (float *)(void *)transposed, plan->chunk);
    else
        cpu_transpose16((const uint16_t *)head_block_logits(run, block), plan->chunk, words, words,
                        (uint16_t *)transposed, plan->chunk);
    int sum = !run->first_chunk || run->call->accumulate_dw, last = is_last(plan, block);
    const cpu_pieces *pieces = &plan->weight_pieces[last];
    for (int64_t row = 0; row < words; row += LOSS_TILE) {
        const char *a = transposed + row * plan->chunk * element;
        float *c = (float *)dw->data + (block * plan->block + row) * dw->stride;
        for (int64_t piece = 0; piece < pieces->count; piece++)
            note(run, cpu_pieces_run(pieces, thread, row / LOSS_TILE, piece, a,
                                     run->scratch + plan->at_packed_x, c, dw->stride, sum != 0,
                                     transposed + plan->transposed_bytes));
        if (pieces->count == 0)
            multiply(run, &plan->weights[last][sum], row / LOSS_TILE, thread, a,
                     run->scratch + plan->at_x, c);
    }
}

static float *block_dx(const head_run *run, int64_t block) {
    return (float *)(run->scratch + run->plan->at_dx) + block * run->plan->chunk * run->plan->width;
}

static void gradient_task(void *context, int64_t block, int thread) {
    head_run *run = context;
    const head_plan *plan = run->plan;
    block_gradients(run, block);
    if (run->call->dw[0].dtype != BASE_NONE) weight_gradients(run, block, thread);
    if (plan->few && run->call->dx[0].dtype != BASE_NONE)
        multiply(run, &plan->input[is_last(plan, block)][0], 0, thread,
                 head_block_logits(run, block), ready_w(run, block, thread), block_dx(run, block));
}

static void write_dx(head_run *run, int64_t place, const float *row) {
    const device_matrix *dx = &run->call->dx[0];
    int64_t at = head_indices(run)[run->first + place] * dx->stride;
    bool add = run->call->accumulate[0];
    if (dx->dtype != BASE_FP32) {
        run->matrix->narrow(dx->dtype, row, (uint16_t *)dx->data + at, dx->columns, add);
        return;
    }
    float *to = (float *)dx->data + at;
    for (int64_t c = 0; c < dx->columns; c++) to[c] = add ? to[c] + row[c] : row[c];
}

static void input_task(void *context, int64_t tile, int thread) {
    head_run *run = context;
    const head_plan *plan = run->plan;
    int64_t row = tile * INPUT_TILE, element = base_dtype_bytes(plan->type);
    float *dx = (float *)(run->scratch + plan->at_dx) + row * plan->width;
    for (int64_t block = 0; block < plan->blocks; block++) {
        int64_t words = head_block_words(plan, block);
        const char *a = (const char *)head_block_logits(run, block) + row * words * element;
        const cpu_pieces *pieces = &plan->input_pieces[is_last(plan, block)];
        for (int64_t piece = 0; piece < pieces->count; piece++)
            note(run, cpu_pieces_run(pieces, thread, tile, piece, a, packed_w(run, block), dx,
                                     plan->width, block > 0,
                                     thread_scratch(run, thread) + plan->transposed_bytes));
        if (pieces->count == 0)
            multiply(run, &plan->input[is_last(plan, block)][block > 0], tile, thread, a,
                     block_w(run, block), dx);
    }
    int64_t rows = base_min_i64(INPUT_TILE, run->labelled - row);
    for (int64_t r = 0; r < rows; r++) write_dx(run, row + r, dx + r * plan->width);
}

/* With few rows: adds up a row of dx from the parts of all blocks. */
static void sum_task(void *context, int64_t row, int thread) {
    (void)thread;
    head_run *run = context;
    const head_plan *plan = run->plan;
    float *to = block_dx(run, 0) + row * plan->width;
    for (int64_t block = 1; block < plan->blocks; block++) {
        const float *from = block_dx(run, block) + row * plan->width;
        for (int64_t c = 0; c < plan->width; c++) to[c] += from[c];
    }
    write_dx(run, row, to);
}

/* Clears loss and dx of rows without a label, and lists the other rows. */
static sifr_status list_labelled(head_run *run, int64_t *count, sifr_error *error) {
    const device_call *call = run->call;
    const device_matrix *labels = &call->x[1], *dx = &call->dx[0];
    *count = 0;
    for (int64_t r = 0; r < run->plan->rows; r++) {
        int32_t label = ((const int32_t *)labels->data)[r * labels->stride];
        if (label >= head_all_words(run->plan))
            return base_fail(error, SIFR_FAILED,
                             "%s: label %d in row %lld, but there are %lld words",
                             device_kernel_name(call->kernel), label, (long long)r,
                             (long long)head_all_words(run->plan));
        if (label >= 0) {
            head_indices(run)[(*count)++] = (int32_t)r;
            continue;
        }
        ((float *)call->y.data)[r * call->y.stride] = 0.0f;
        int64_t element = base_dtype_bytes(dx->dtype);
        if (run->plan->backward && dx->dtype != BASE_NONE && !call->accumulate[0])
            memset((char *)dx->data + r * dx->stride * element, 0, (size_t)(dx->columns * element));
    }
    return SIFR_OK;
}

static void run_chunk(device *dev, head_run *run) {
    const head_plan *plan = run->plan;
    int64_t row_tasks = (plan->chunk + ROW_TILE - 1) / ROW_TILE;
    int64_t tiles = (run->labelled + LOSS_TILE - 1) / LOSS_TILE;
    bool losses_alone = head_has_statistics(run) && (!plan->backward || run->losses_only);
    if (!run->has_logits && !losses_alone) {
        host_parallel(dev->team, row_tasks, gather_task, run);
        host_parallel(dev->team, tiles * plan->blocks, logits_task, run);
    }
    if (!run->has_logits) {
        if (plan->own)
            cpu_own_loss(dev, run);
        else
            host_parallel(dev->team, row_tasks, cpu_head_finish, run);
    }
    if (!plan->backward || run->losses_only) return;
    if (plan->blocks == 0) {
        cpu_head_clear_dx(run);
        return;
    }
    if (run->call->dw[0].dtype != BASE_NONE)
        host_parallel(dev->team, x_pieces(plan)->count, pack_x_task, run);
    host_parallel(dev->team, plan->blocks, gradient_task, run);
    if (run->call->dx[0].dtype == BASE_NONE) return;
    if (plan->few)
        host_parallel(dev->team, run->labelled, sum_task, run);
    else
        host_parallel(dev->team, (run->labelled + INPUT_TILE - 1) / INPUT_TILE, input_task, run);
}

static void clear_rows(const device_matrix *dw) {
    if (dw->dtype == BASE_NONE) return;
    for (int64_t r = 0; r < dw->rows; r++)
        memset((float *)dw->data + r * dw->stride, 0, (size_t)dw->columns * sizeof(float));
}

float *cpu_head_weights(const device_call *call) {
    const head_plan *plan = call->prepared;
    return (float *)(void *)((char *)call->scratch + plan->at_weights);
}

sifr_status cpu_run_head_loss(device *dev, const device_call *call, sifr_error *error) {
    return cpu_run_head_part(dev, call, CPU_HEAD_ALL, error);
}

sifr_status cpu_run_head_part(device *dev, const device_call *call, cpu_head_part part,
                              sifr_error *error) {
    head_run run = {.plan = call->prepared,
                    .losses_only = part == CPU_HEAD_LOSSES,
                    .weights = part == CPU_HEAD_WEIGHTED ? cpu_head_weights(call) : NULL,
                    .call = call,
                    .kernels = cpu_of(dev)->set->loss,
                    .matrix = cpu_of(dev)->set->matrix,
                    .scratch = call->scratch,
                    .statistics = cpu_head_split_statistics(call),
                    .w = call->w[0].data,
                    .w_stride = call->w[0].stride};
    const head_plan *plan = run.plan;
    int64_t count = 0;
    BASE_TRY(list_labelled(&run, &count, error));
    run.has_logits = part == CPU_HEAD_WEIGHTED && count <= plan->chunk && !run.statistics;
    cpu_head_clear_unused(&run);
    if (count == 0 && plan->backward && !call->accumulate_dw)
        for (int w = 0; w < DEVICE_WEIGHTS; w++) clear_rows(&call->dw[w]);
    if (count > 0 && plan->widen && !plan->few) {
        if (part != CPU_HEAD_WEIGHTED) /* that follows on the losses, in the same scratch */
            host_parallel(dev->team, (plan->words + ROW_TILE - 1) / ROW_TILE, widen_task, &run);
        run.w = run.scratch + plan->at_w;
        run.w_stride = plan->width;
    }
    if (count > 0 && plan->backward && !run.losses_only && !plan->few &&
        call->dx[0].dtype != BASE_NONE) {
        int64_t most = base_max_i64(plan->input_pieces[0].count, plan->input_pieces[1].count);
        host_parallel(dev->team, plan->blocks * most, pack_w_task, &run);
    }
    for (run.first = 0; run.first < count; run.first += plan->chunk) {
        run.labelled = base_min_i64(plan->chunk, count - run.first);
        run.first_chunk = run.first == 0;
        run_chunk(dev, &run);
    }
    if (!atomic_load(&run.failed)) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s: oneDNN reports a fault in a product",
                     device_kernel_name(call->kernel));
}

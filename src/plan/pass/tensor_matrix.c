/* The values of a logical weight, put together from those of the tensor ranks. Each rank makes all
 * of it, from the same values in the same way, so what they take of it fits together. */
#include "plan/pass/tensor_matrix.h"

#include <string.h>

#include "base/assert.h"
#include "model/shard.h"
#include "plan/queries.h"

typedef struct matrix_work {
    plan_schedule *s;
    const plan_instruction *in;
    size_t weight;
    plan_operand values; /* this rank's */
    int32_t ranks;
    int32_t parts, matrix; /* buffers: all ranks' values, and the logical weight's */
    bool stacked;          /* they are the same */
} matrix_work;

bool plan_changes_part(const plan_schedule *s, const plan_instruction *in) {
    if (in->action != PLAN_UPDATE || s->model->segments[in->segment].replicated) return false;
    const optim_row *row = plan_row(s, in->segment);
    return row->reads_whole && s->calls[in->call].kernel == row->whole;
}

static const model_weight *own_weight(const matrix_work *m) {
    return &m->s->model->weights[m->weight];
}

static int64_t local_bytes(const matrix_work *m) {
    const model_weight *w = own_weight(m);
    return w->rows * w->columns * (int64_t)sizeof(float);
}

/* The weight whose values begin at this element of its segment. */
static size_t find_weight(const plan_schedule *s, int32_t segment, int64_t element) {
    size_t w = 0;
    while (s->model->weights[w].segment != segment || s->model->weights[w].offset != element) w++;
    base_assert(w < s->model->weight_count);
    return w;
}

/* Whether the ranks' parts, one below the other, are the logical weight. */
static bool is_stacked(const matrix_work *m) {
    for (int32_t p = 0; p < m->ranks; p++) {
        model_weight w = model_weight_at(m->s->model, m->weight, p);
        const model_block *block = &w.cut.blocks[0];
        bool whole_rows = block->columns[0] == 0 && block->columns[1] == w.cut.columns;
        if (w.cut.count != 1 || !whole_rows) return false;
        if (block->rows[0] != p * w.rows || block->rows[1] != (p + 1) * w.rows) return false;
    }
    return true;
}

/* Neighbours that have the same part have the same values: those of the first are taken. */
static bool is_taken(const matrix_work *m, int32_t place) {
    int32_t copies = own_weight(m)->copies;
    return copies <= 1 || place % copies == 0;
}

static sifr_status add_buffer(const matrix_work *m, int64_t bytes, int32_t *out,
                              sifr_error *error) {
    return plan_add_buffer(m->s, PLAN_GRADIENTS, bytes, m->in->unit, -1, false, out, error);
}

static sifr_status emit_gather(const matrix_work *m, sifr_error *error) {
    plan_schedule *s = m->s;
    BASE_TRY(plan_add_operand(s, PLAN_X0, m->values.buffer, m->values.offset, error));
    BASE_TRY(plan_add_operand(s, PLAN_Y, m->parts, 0, error));
    return plan_add_collective(s,
                               &(plan_collective){.action = PLAN_GATHER,
                                                  .span = PLAN_TENSORS,
                                                  .encoding = PLAN_CODE_FP32,
                                                  .segment = m->in->segment,
                                                  .micro_batch = -1,
                                                  .bytes = local_bytes(m)},
                               error);
}

/* Between block `b` of a rank's part, whose values begin at `part`, and its place in the matrix. */
static sifr_status copy_block(const matrix_work *m, const model_weight *w, int32_t b,
                              plan_operand part, bool back, sifr_error *error) {
    const model_block *block = &w->cut.blocks[b];
    int64_t rows = block->rows[1] - block->rows[0], columns = block->columns[1] - block->columns[0];
    int64_t row, column, size = (int64_t)sizeof(float);
    plan_operand whole = {.buffer = m->matrix,
                          .offset = (block->rows[0] * w->cut.columns + block->columns[0]) * size};
    device_matrix local = {NULL, rows, columns, w->columns, BASE_FP32}, logical = local;
    plan_instruction in = {.action = PLAN_ADD,
                           .queue = PLAN_COMPUTE,
                           .unit = m->in->unit,
                           .micro_batch = -1,
                           .node = -1,
                           .segment = m->in->segment,
                           .wait = -1};
    device_call call;
    if (model_block_elements(block) == 0) return SIFR_OK;
    model_block_corner(w, b, &row, &column);
    part.offset += (row * w->columns + column) * size;
    logical.stride = w->cut.columns;
    memset(&call, 0, sizeof call);
    call.kernel = DEVICE_CONVERT;
    call.x[0] = back ? logical : local;
    call.y = back ? local : logical;
    const plan_operand *x = back ? &whole : &part, *y = back ? &part : &whole;
    BASE_TRY(plan_add_operand(m->s, PLAN_X0, x->buffer, x->offset, error));
    BASE_TRY(plan_add_operand(m->s, PLAN_Y, y->buffer, y->offset, error));
    BASE_TRY(plan_add_call(m->s, call, &in.call, error));
    return plan_add_instruction(m->s, in, error);
}

static sifr_status copy_blocks(const matrix_work *m, int32_t place, plan_operand part, bool back,
                               sifr_error *error) {
    model_weight w = model_weight_at(m->s->model, m->weight, place);
    for (int32_t b = 0; b < w.cut.count; b++) BASE_TRY(copy_block(m, &w, b, part, back, error));
    return SIFR_OK;
}

static sifr_status join_parts(const matrix_work *m, sifr_error *error) {
    for (int32_t p = 0; p < m->ranks && !m->stacked; p++) {
        plan_operand part = {.buffer = m->parts, .offset = p * local_bytes(m)};
        if (is_taken(m, p)) BASE_TRY(copy_blocks(m, p, part, false, error));
    }
    return SIFR_OK;
}

static sifr_status emit_change(const matrix_work *m, sifr_error *error) {
    plan_instruction in = *m->in;
    device_call call = m->s->calls[in.call];
    const model_cut *cut = &own_weight(m)->cut;
    base_assert(call.attributes.update.matrices == 1); /* kernels of convolutions are not cut */
    call.y = (device_matrix){NULL, cut->rows, cut->columns, cut->columns, BASE_FP32};
    BASE_TRY(plan_add_operand(m->s, PLAN_Y, m->matrix, 0, error));
    BASE_TRY(plan_add_call(m->s, call, &in.call, error));
    return plan_add_instruction(m->s, in, error);
}

sifr_status plan_change_matrix(plan_schedule *s, const plan_list *old, const plan_instruction *in,
                               sifr_error *error) {
    matrix_work m = {.s = s,
                     .in = in,
                     .values = old->operands[in->first_operand],
                     .ranks = plan_mesh_ranks(&s->settings.mesh, PLAN_TENSORS)};
    m.weight = find_weight(s, in->segment, m.values.offset / (int64_t)sizeof(float));
    const model_cut *cut = &own_weight(&m)->cut;
    base_assert(cut->count > 0);
    m.stacked = is_stacked(&m);
    BASE_TRY(add_buffer(&m, m.ranks * local_bytes(&m), &m.parts, error));
    m.matrix = m.parts;
    if (!m.stacked)
        BASE_TRY(
            add_buffer(&m, cut->rows * cut->columns * (int64_t)sizeof(float), &m.matrix, error));
    BASE_TRY(emit_gather(&m, error));
    BASE_TRY(join_parts(&m, error));
    BASE_TRY(emit_change(&m, error));
    return copy_blocks(&m, plan_mesh_place(&s->settings.mesh, PLAN_TENSORS), m.values, true, error);
}

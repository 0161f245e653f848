/* Tensor ranks that have some rows each between products: gathers of all rows and sums to a rank's
 * own, forward and backward. Like sums over ranks, only their start is lowered. */
#include <string.h>

#include "base/assert.h"
#include "plan/list.h"
#include "plan/lower/lower.h"
#include "plan/queries.h"

static int32_t rank_count(const lower_state *state) {
    return plan_mesh_ranks(&state->s->settings.mesh, PLAN_TENSORS);
}

static sifr_status start(lower_state *state, int32_t n, plan_action action, base_dtype type,
                         int64_t elements, const lower_operand *x, const lower_operand *y,
                         sifr_error *error) {
    plan_schedule *s = state->s;
    BASE_TRY(plan_add_operand(s, PLAN_X0, x->buffer, x->offset, error));
    BASE_TRY(plan_add_operand(s, PLAN_Y, y->buffer, y->offset, error));
    return plan_add_collective(
        s,
        &(plan_collective){.action = action,
                           .span = PLAN_TENSORS,
                           .encoding = plan_code_of(type),
                           .sum = type,
                           .segment = -1,
                           .unit = s->model->nodes[n].unit,
                           .micro_batch = state->micro_batch,
                           .bytes = plan_encoded_bytes(plan_code_of(type), elements)},
        error);
}

/* The rank's own rows of x, which has all, to y. */
static sifr_status take(lower_state *state, int32_t n, plan_action action, const lower_operand *x,
                        const lower_operand *y, sifr_error *error) {
    lower_operand own = *x;
    device_call call;
    int64_t first = plan_mesh_place(&state->s->settings.mesh, PLAN_TENSORS) * y->matrix.rows;
    own.offset += first * x->matrix.stride * base_dtype_bytes(x->matrix.dtype);
    own.matrix.rows = y->matrix.rows;
    memset(&call, 0, sizeof call);
    call.kernel = DEVICE_CONVERT;
    BASE_TRY(lower_put(state, &call, PLAN_X0, own, error));
    BASE_TRY(lower_put(state, &call, PLAN_Y, *y, error));
    return lower_emit(state, action, state->model->nodes[n].unit, n, &call, NULL, false, error);
}

sifr_status lower_rows_move(lower_state *state, int32_t n, bool back, const lower_operand *x,
                            const lower_operand *y, sifr_error *error) {
    model_row_move move = state->model->nodes[n].op->moves;
    bool takes = move == (back ? MODEL_ROWS_GATHER : MODEL_ROWS_TAKE);
    bool sums = move == (back ? MODEL_ROWS_ENTER : MODEL_ROWS_SUM);
    plan_action action = back ? PLAN_BACKWARD : state->recomputing ? PLAN_RECOMPUTE : PLAN_FORWARD;
    const device_matrix *own = takes || sums ? &y->matrix : &x->matrix;
    base_assert(move != MODEL_ROWS_STAY && own->stride == own->columns);
    if (takes) return take(state, n, action, x, y, error);
    return start(state, n, sums ? PLAN_REDUCE : PLAN_GATHER, own->dtype, own->rows * own->columns,
                 x, y, error);
}

sifr_status lower_rows_begin(lower_state *state, int32_t n, const lower_operand *rows,
                             const lower_operand *whole, sifr_error *error) {
    return start(state, n, PLAN_GATHER, rows->matrix.dtype,
                 rows->matrix.rows * rows->matrix.columns, rows, whole, error);
}

/* The head's forward pass is in its backward call, before which they are gathered. */
static bool feeds_heads_alone(const lower_state *state, int32_t n) {
    const model_node *node = &state->model->nodes[n];
    const model_unit *u = &state->model->units[node->unit];
    for (int32_t m = n + 1; m < u->first_node + u->nodes; m++) {
        const model_node *reader = &state->model->nodes[m];
        for (int x = 0; x < DEVICE_INPUTS; x++)
            if (reader->x[x] == node->y && !reader->op->makes_loss) return false;
    }
    return true;
}

static sifr_status forward(lower_state *state, int32_t n, sifr_error *error) {
    const model_node *node = &state->model->nodes[n];
    int64_t columns = state->model->values[node->y].columns;
    base_assert(state->part.region < 0); /* it is not by_row */
    state->local[lower_value(state, node->y)] = false;
    BASE_TRY(plan_add_buffer(
        state->s, PLAN_ACTIVATIONS, lower_rows(state, node->y, false) * columns * state->element,
        node->unit, node->y, false, &state->buffer_of[lower_value(state, node->y)], error));
    state->tiles.gathered[n] = model_gathers_rows(node->op) && state->recomputing != NULL;
    lower_operand x = lower_locate(state, node->x[0]), y = lower_locate(state, node->y);
    return lower_rows_move(state, n, false, &x, &y, error);
}

sifr_status lower_rows_forward(lower_state *state, int32_t n, sifr_error *error) {
    bool gathers = model_gathers_rows(state->model->nodes[n].op);
    bool later = state->s->settings.mode == PLAN_TRAIN && gathers && feeds_heads_alone(state, n);
    return later ? SIFR_OK : forward(state, n, error);
}

/* --- once more --- */

void lower_forget_gathered(lower_state *state, int32_t unit) {
    const model_unit *u = &state->model->units[unit];
    for (int32_t n = u->first_node; n < u->first_node + u->nodes; n++)
        state->tiles.gathered[n] = false;
}

sifr_status lower_gather_again(lower_state *state, int32_t n, int keep, sifr_error *error) {
    const model_node *node = &state->model->nodes[n];
    for (int i = 0; i < DEVICE_INPUTS; i++) {
        if (node->x[i] < 0 || !(keep & (MODEL_KEEP_X0 << i))) continue;
        int32_t maker = state->model->values[node->x[i]].node;
        if (maker < 0 || !model_gathers_rows(state->model->nodes[maker].op)) continue;
        if (state->tiles.gathered[maker]) continue;
        BASE_TRY(forward(state, maker, error));
        state->tiles.gathered[maker] = true;
    }
    return SIFR_OK;
}

/* --- gradients of weights --- */

/* A rank's rows are whole runs (lower_cut_tensors). */
sifr_status lower_run_sums(lower_state *state, int32_t n, int64_t numbers, lower_operand *all,
                           lower_operand *own, sifr_error *error) {
    const model_node *node = &state->model->nodes[n];
    int64_t rows = lower_rows(state, node->y, false), runs = rows / DEVICE_NORM_ROWS;
    int32_t place = plan_mesh_place(&state->s->settings.mesh, PLAN_TENSORS);
    base_assert(rows % DEVICE_NORM_ROWS == 0);
    all->matrix = lower_matrix(runs * rank_count(state), numbers, BASE_FP32);
    all->offset = 0;
    BASE_TRY(plan_add_buffer(state->s, PLAN_ACTIVATIONS, all->matrix.rows * numbers * 4, node->unit,
                             node->y, false, &all->buffer, error));
    *own = (lower_operand){.buffer = all->buffer,
                           .offset = place * runs * numbers * 4,
                           .matrix = lower_matrix(runs, numbers, BASE_FP32)};
    return SIFR_OK;
}

sifr_status lower_gather_sums(lower_state *state, int32_t n, const lower_operand *all,
                              const lower_operand *own, sifr_error *error) {
    return start(state, n, PLAN_GATHER, BASE_FP32, own->matrix.rows * own->matrix.columns, own, all,
                 error);
}

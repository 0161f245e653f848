/* Lowers the backward pass of a node: where its gradients go, and when one is added to another. */
#include <string.h>

#include "base/assert.h"
#include "base/heap.h"
#include "plan/list.h"
#include "plan/lower/lower.h"
#include "plan/queries.h"

static base_dtype gradient_type(const lower_state *state, int32_t value) {
    bool wide = state->model->values[value].wide;
    return wide ? BASE_FP32 : plan_dtype(&state->s->settings);
}

sifr_status lower_new_place(lower_state *state, int32_t value, int32_t *out, sifr_error *error) {
    lower_tiles *tiles = &state->tiles;
    bool local = lower_gradient_is_local(state, value);
    if (!local && state->part.tile > 0) {
        base_assert(tiles->whole_next < tiles->whole_count); /* the first tile made it */
        *out = tiles->whole[tiles->whole_next++];
        state->places[*out].sharers = 1;
        return SIFR_OK;
    }
    int32_t buffer;
    int64_t columns = state->model->values[value].columns;
    int64_t element = base_dtype_bytes(gradient_type(state, value));
    BASE_TRY(plan_add_buffer(state->s, PLAN_ACTIVATIONS,
                             lower_rows(state, value, local) * columns * element,
                             state->model->values[value].unit, value, false, &buffer, error));
    BASE_TRY(base_grow(&state->places, &state->place_capacity, state->place_count + 1,
                       sizeof *state->places, error));
    state->places[state->place_count] =
        (lower_place){.buffer = buffer, .sharers = 1, .local = local};
    *out = (int32_t)state->place_count++;
    if (local || state->part.region < 0) return SIFR_OK;
    BASE_TRY(base_grow(&tiles->whole, &tiles->whole_capacity, tiles->whole_count + 1,
                       sizeof *tiles->whole, error));
    tiles->whole[tiles->whole_count++] = *out;
    return SIFR_OK;
}

/* y = x0 by one of CLEAR, ACCUMULATE, CONVERT on activations. */
static sifr_status emit_simple(lower_state *state, device_kernel kernel, int32_t node,
                               const lower_operand *from, const lower_operand *to,
                               sifr_error *error) {
    device_call call;
    memset(&call, 0, sizeof call);
    call.kernel = kernel;
    if (from) BASE_TRY(lower_put(state, &call, PLAN_X0, *from, error));
    BASE_TRY(lower_put(state, &call, PLAN_Y, *to, error));
    return lower_emit(state, PLAN_BACKWARD, state->model->nodes[node].unit, node, &call, NULL,
                      false, error);
}

static lower_operand gradient_of(const lower_state *state, int32_t value) {
    const model_value *v = &state->model->values[value];
    int32_t base = v->base >= 0 ? v->base : value;
    base_assert(state->gradient[lower_value(state, base)] >= 0);
    const lower_place *place = &state->places[state->gradient[lower_value(state, base)]];
    int64_t stride = state->model->values[base].columns;
    int64_t row = lower_first_row(state, place->local);
    lower_operand out = {.buffer = place->buffer,
                         .offset = (row * stride + (v->base >= 0 ? v->first : 0)) * state->element,
                         .matrix = lower_matrix(lower_value_rows(state, value), v->columns,
                                                gradient_type(state, value))};
    out.matrix.stride = stride;
    return out;
}

/* Gives a value's gradient a place of its own before something is added to it. */
static sifr_status make_exclusive(lower_state *state, int32_t value, int32_t node,
                                  sifr_error *error) {
    int32_t *place = &state->gradient[lower_value(state, value)];
    base_assert(*place >= 0 && state->places[*place].sharers >= 1);
    if (state->places[*place].sharers == 1) return SIFR_OK;
    lower_operand from = gradient_of(state, value);
    state->places[*place].sharers--;
    BASE_TRY(lower_new_place(state, value, place, error));
    lower_operand to = gradient_of(state, value);
    return emit_simple(state, DEVICE_CONVERT, node, &from, &to, error);
}

/* Whether `value` is gathered from rows whose gradient is there in part. Its own gradient, whole,
 * then begins as that, gathered: what reads it adds to that as it would to a gradient that was
 * whole from the beginning, with the same bits. */
static bool begins_with_rows(const lower_state *state, int32_t value) {
    int32_t maker = state->model->values[value].node;
    if (maker < 0 || state->model->nodes[maker].op->moves != MODEL_ROWS_GATHER) return false;
    return state->gradient[lower_value(state, state->model->nodes[maker].x[0])] >= 0;
}

static sifr_status gather_begun(lower_state *state, int32_t value, sifr_error *error) {
    int32_t maker = state->model->values[value].node;
    lower_operand rows = gradient_of(state, state->model->nodes[maker].x[0]);
    lower_operand whole = gradient_of(state, value);
    return lower_rows_begin(state, maker, &rows, &whole, error);
}

/* The place of the gradient of input `value`; *written: it already has a gradient, to be added to.
 */
static sifr_status target_of(lower_state *state, int32_t value, int32_t node, lower_operand *out,
                             bool *written, sifr_error *error) {
    const model_value *v = &state->model->values[value];
    int32_t base = v->base >= 0 ? v->base : value;
    int32_t *place = &state->gradient[lower_value(state, base)];
    bool fresh = *place < 0, begins = fresh && begins_with_rows(state, base);
    if (fresh) {
        BASE_TRY(lower_new_place(state, base, place, error));
        if (begins) {
            base_assert(!state->mixed[base] && v->base < 0);
            BASE_TRY(gather_begun(state, base, error));
        }
        if (state->mixed[base]) {
            lower_operand whole = gradient_of(state, base);
            BASE_TRY(emit_simple(state, DEVICE_CLEAR, node, NULL, &whole, error));
        }
    } else if (v->base < 0) {
        BASE_TRY(make_exclusive(state, base, node, error));
    }
    if (state->mixed[base]) {
        *written = true;
    } else if (v->base >= 0) {
        *written = state->slice_written[lower_value(state, value)];
        state->slice_written[lower_value(state, value)] = true;
    } else {
        *written = !fresh || begins;
    }
    *out = gradient_of(state, value);
    return SIFR_OK;
}

/* Whether the gradient of `value` may lie where another's does: a place for one tile's rows is
 * enough only where nothing outside of the tiles reads it. */
static bool place_serves(const lower_state *state, int32_t place, int32_t value) {
    return !state->places[place].local || lower_gradient_is_local(state, value);
}

/* y = a + b: the gradients of a and b are that of y, shared if possible. */
static sifr_status backward_shared(lower_state *state, int32_t n, sifr_error *error) {
    const model_node *node = &state->model->nodes[n];
    for (int i = 0; i < DEVICE_INPUTS; i++) {
        int32_t value = node->x[i];
        if (value < 0 || !lower_has_gradient(state, value)) continue;
        int32_t *place = &state->gradient[lower_value(state, value)];
        int32_t mine = state->gradient[lower_value(state, node->y)];
        bool whole = state->model->values[value].base < 0 && !state->mixed[value] &&
                     !begins_with_rows(state, value);
        if (whole && *place < 0 && place_serves(state, mine, value)) {
            *place = mine;
            state->places[mine].sharers++;
            continue;
        }
        lower_operand to, from;
        bool written;
        BASE_TRY(target_of(state, value, n, &to, &written, error));
        from = gradient_of(state, node->y);
        BASE_TRY(
            emit_simple(state, written ? DEVICE_ACCUMULATE : DEVICE_CONVERT, n, &from, &to, error));
    }
    return SIFR_OK;
}

/* The place for one input's gradient. */
typedef struct lower_target {
    bool wanted, accumulate;
    lower_operand place; /* what the kernel writes */
    bool beside; /* an op that cannot add wrote to a place of its own, which is added next */
    lower_operand sum;
} lower_target;

/* A place of its own for the gradient of a node's input, of its shape. */
static sifr_status add_beside(lower_state *state, const model_node *node, int32_t value,
                              lower_operand *out, sifr_error *error) {
    *out = lower_locate(state, value);
    int64_t columns = out->matrix.columns;
    out->offset = 0;
    out->matrix.stride = columns;
    return plan_add_buffer(state->s, PLAN_ACTIVATIONS,
                           lower_value_rows(state, value) * columns * state->element, node->unit,
                           value, false, &out->buffer, error);
}

/* May append instructions (a copy, a clearing), so no operand may be pending. */
static sifr_status find_target(lower_state *state, int32_t n, int i, lower_target *out,
                               sifr_error *error) {
    const model_node *node = &state->model->nodes[n];
    const model_op *row = node->op;
    int32_t value = node->x[i];
    *out = (lower_target){0};
    if (!(row->gradients & (1 << i)) || value < 0) return SIFR_OK;
    out->wanted = row->makes_all || lower_has_gradient(state, value);
    if (!out->wanted) return SIFR_OK;
    if (!lower_has_gradient(state, value))
        return add_beside(state, node, value, &out->place, error);
    bool whole = state->model->values[value].base < 0 && !state->mixed[value] &&
                 !begins_with_rows(state, value);
    int32_t *place = &state->gradient[lower_value(state, value)];
    if (i == 0 && row->backward_in_place && whole && *place < 0) {
        int32_t mine = state->gradient[lower_value(state, node->y)];
        if (state->places[mine].sharers == 1 && place_serves(state, mine, value)) {
            *place = mine;
            state->places[mine].sharers++;
            out->place = gradient_of(state, value);
            return SIFR_OK;
        }
    }
    bool written;
    BASE_TRY(target_of(state, value, n, &out->place, &written, error));
    if (!written || row->accumulates) {
        out->accumulate = written;
        return SIFR_OK;
    }
    out->beside = true;
    out->sum = out->place;
    return add_beside(state, node, value, &out->place, error);
}

static sifr_status put_weight_gradients(lower_state *state, device_call *call, int32_t n,
                                        bool *accumulate, sifr_error *error) {
    const model_node *node = &state->model->nodes[n];
    bool first = true;
    for (int i = 0; i < DEVICE_WEIGHTS; i++) {
        if (node->w[i] < 0 || state->model->weights[node->w[i]].frozen) continue;
        bool before =
            state->weight_written[node->w[i]] || (state->added_at_once && state->micro_batch > 0);
        if (!first && before != *accumulate) {
            return base_fail(
                error, SIFR_USAGE,
                "unit %s: %s: weight %s is used twice in the unit, but the other weight of the op "
                "is not; use both twice, or put the second use in another unit",
                state->model->units[node->unit].name, node->op->name,
                state->model->weights[node->w[i]].name);
        }
        *accumulate = before;
        first = false;
        state->weight_written[node->w[i]] = true;
        BASE_TRY(lower_put(state, call, (plan_role)(PLAN_DW0 + i),
                           lower_weight_gradient(state, node, i), error));
    }
    return SIFR_OK;
}

/* The kept values that the calls for `makes` read. */
static int kept_for(const lower_state *state, int32_t n, lower_makes makes) {
    int keep = lower_kept(state, n);
    bool unread = state->model->nodes[n].op->x_for_weights && makes == LOWER_INPUTS;
    return unread ? keep & ~MODEL_KEEP_X0 : keep;
}

/* Numbers that a norm sums up over a run of rows: of its weight and, of a layer norm, its bias. */
static int64_t sums_of_run(const lower_state *state, const model_node *node) {
    const model_weight *w = &state->model->weights[node->w[0]];
    return w->rows * w->columns * (node->op->run_sums == DEVICE_LAYER_NORM_SUMS ? 2 : 1);
}

static bool trains_weights(const lower_state *state, const model_node *node) {
    for (int w = 0; w < DEVICE_WEIGHTS; w++)
        if (node->w[w] >= 0 && !state->model->weights[node->w[w]].frozen) return true;
    return false;
}

/* Of a norm with this rank's rows: the sums over their runs begin their way to the other ranks. */
static sifr_status send_sums(lower_state *state, int32_t n, const lower_operand *all,
                             const lower_operand *own, sifr_error *error) {
    BASE_TRY(lower_gather_sums(state, n, all, own, error));
    BASE_TRY(base_grow(&state->folds, &state->fold_capacity, state->fold_count + 1,
                       sizeof *state->folds, error));
    state->folds[state->fold_count++] = (lower_fold){.node = n, .sums = *all};
    return SIFR_OK;
}

sifr_status lower_fold_sums(lower_state *state, sifr_error *error) {
    for (size_t i = 0; i < state->fold_count; i++) {
        int32_t n = state->folds[i].node;
        bool accumulate = false;
        device_call call;
        memset(&call, 0, sizeof call);
        call.kernel = DEVICE_NORM_FOLD;
        BASE_TRY(lower_put(state, &call, PLAN_X0, state->folds[i].sums, error));
        BASE_TRY(put_weight_gradients(state, &call, n, &accumulate, error));
        BASE_TRY(lower_emit(state, PLAN_BACKWARD, state->model->nodes[n].unit, n, &call, NULL,
                            accumulate, error));
    }
    state->fold_count = 0;
    return SIFR_OK;
}

static sifr_status backward_kernel(lower_state *state, int32_t n, lower_makes makes,
                                   sifr_error *error) {
    const model_node *node = &state->model->nodes[n];
    const model_op *row = node->op;
    int keep = kept_for(state, n, makes);
    lower_target targets[DEVICE_INPUTS] = {0};
    bool any = makes & LOWER_WEIGHTS, accumulate = false;
    for (int i = 0; i < DEVICE_INPUTS && (makes & LOWER_INPUTS); i++) {
        BASE_TRY(find_target(state, n, i, &targets[i], error));
        any |= targets[i].wanted;
    }
    if (!any) return SIFR_OK;
    bool sums = targets[0].wanted && node->summed && !node->attributes.linear.cut_inputs;
    bool runs = (makes & LOWER_WEIGHTS) && state->model->values[node->y].cut_rows &&
                trains_weights(state, node);
    lower_operand all_sums, own_sums;
    lower_target whole = targets[0];
    if (sums) {
        BASE_TRY(lower_tensor_part(state, n, &whole.place, &targets[0].place, error));
        targets[0].accumulate = false;
    }
    lower_operand statistics;
    BASE_TRY(lower_words(state, n, PLAN_BACKWARD, &statistics, error));
    device_call call;
    memset(&call, 0, sizeof call);
    call.kernel = runs ? row->run_sums : row->backward;
    call.attributes = lower_attributes(state, node);
    if (runs) {
        BASE_TRY(lower_run_sums(state, n, sums_of_run(state, node), &all_sums, &own_sums, error));
        BASE_TRY(lower_put(state, &call, PLAN_Y, own_sums, error));
        BASE_TRY(lower_put(state, &call, PLAN_X1, lower_saved(state, n), error));
    }
    for (int i = 0; i < DEVICE_INPUTS; i++) {
        if (!targets[i].wanted) continue;
        call.accumulate[i] = targets[i].accumulate;
        BASE_TRY(lower_put(state, &call, (plan_role)(PLAN_DX0 + i), targets[i].place, error));
    }
    for (int i = 0; i < DEVICE_INPUTS; i++) {
        if (node->x[i] >= 0 && (keep & (MODEL_KEEP_X0 << i))) {
            BASE_TRY(lower_put(state, &call, (plan_role)(PLAN_X0 + i),
                               lower_locate(state, node->x[i]), error));
        }
    }
    if (statistics.buffer >= 0) BASE_TRY(lower_put(state, &call, PLAN_X3, statistics, error));
    if ((row->keep & MODEL_KEEP_W0) && node->w[0] >= 0) {
        BASE_TRY(lower_put(state, &call, PLAN_W0, lower_weight(state, node->w[0]), error));
    }
    if ((row->keep & MODEL_KEEP_W1) && node->w[1] >= 0) {
        BASE_TRY(lower_put(state, &call, PLAN_W1, lower_weight(state, node->w[1]), error));
    }
    if ((row->keep & MODEL_KEEP_Y) || row->makes_loss) {
        BASE_TRY(lower_put(state, &call, PLAN_Y, lower_locate(state, node->y), error));
    }
    if ((row->keep & MODEL_KEEP_SAVED) && !runs) {
        BASE_TRY(lower_put(state, &call, PLAN_SAVED0, lower_saved(state, n), error));
    }
    if (!row->makes_loss) {
        BASE_TRY(lower_put(state, &call, PLAN_DY, gradient_of(state, node->y), error));
    }
    if ((makes & LOWER_WEIGHTS) && !runs)
        BASE_TRY(put_weight_gradients(state, &call, n, &accumulate, error));
    int32_t *calls = makes == LOWER_WEIGHTS ? state->weight_calls : state->backward_calls;
    BASE_TRY(
        lower_emit(state, PLAN_BACKWARD, node->unit, n, &call, &calls[2 * n], accumulate, error));
    if (sums)
        BASE_TRY(lower_tensor_finish(state, n, PLAN_BACKWARD, node->x[0], &targets[0].place, -1,
                                     &whole.place, whole.accumulate, error));
    if (runs) BASE_TRY(send_sums(state, n, &all_sums, &own_sums, error));
    for (int i = 0; i < DEVICE_INPUTS; i++) {
        if (!targets[i].beside) continue;
        BASE_TRY(
            emit_simple(state, DEVICE_ACCUMULATE, n, &targets[i].place, &targets[i].sum, error));
    }
    return SIFR_OK;
}

/* --- sums over tensor ranks beside computing (lower_overlap.c) --- */

/* The gradient of a product's input alone, of the current rows. */
static sifr_status emit_input(lower_state *state, int32_t n, const lower_operand *to,
                              bool accumulate, sifr_error *error) {
    const model_node *node = &state->model->nodes[n];
    device_call call;
    memset(&call, 0, sizeof call);
    call.kernel = node->op->backward;
    call.attributes = lower_attributes(state, node);
    call.accumulate[0] = accumulate;
    BASE_TRY(lower_put(state, &call, PLAN_DX0, *to, error));
    BASE_TRY(lower_put(state, &call, PLAN_W0, lower_weight(state, node->w[0]), error));
    BASE_TRY(lower_put(state, &call, PLAN_DY, gradient_of(state, node->y), error));
    return lower_emit(state, PLAN_BACKWARD, node->unit, n, &call, &state->backward_calls[2 * n],
                      false, error);
}

/* Its tiles, each of which the ranks begin to add up. `part`: with tp_exact, its place. */
static sifr_status input_tiles(lower_state *state, int32_t n, const lower_operand *part,
                               bool accumulate, sifr_error *error) {
    int32_t value = state->model->nodes[n].x[0];
    lower_first_tile(state, state->model->values[value].columns);
    do {
        lower_operand tile = part ? lower_rows_of(state, part) : gradient_of(state, value);
        BASE_TRY(emit_input(state, n, &tile, accumulate, error));
        BASE_TRY(lower_sum_tile(state, n, value, &tile, error));
    } while (lower_next_tile(state));
    return SIFR_OK;
}

static sifr_status backward_op(lower_state *state, int32_t n, lower_makes makes, sifr_error *error);

/* What a product has left for later: it no longer needs the gradient of its result. */
static sifr_status make_weights(lower_state *state, int32_t n, sifr_error *error) {
    BASE_TRY(backward_op(state, n, LOWER_WEIGHTS, error));
    state->places[state->gradient[lower_value(state, state->model->nodes[n].y)]].sharers--;
    state->later[n] = false;
    return SIFR_OK;
}

/* The first part of a product's backward pass, if the other one waits for a sum to begin. */
static sifr_status make_inputs(lower_state *state, int32_t n, sifr_error *error) {
    state->later[n] = true;
    if (!state->model->nodes[n].summed) return backward_op(state, n, LOWER_INPUTS, error);
    lower_target target;
    lower_operand part;
    int32_t value = state->model->nodes[n].x[0];
    BASE_TRY(find_target(state, n, 0, &target, error));
    base_assert(target.wanted && !target.beside);
    BASE_TRY(lower_tensor_part(state, n, &target.place, &part, error));
    if (lower_sums_tiles(state, n, true)) {
        BASE_TRY(input_tiles(state, n, &part, false, error));
    } else {
        BASE_TRY(emit_input(state, n, &part, false, error));
        BASE_TRY(lower_sum_tile(state, n, value, &part, error));
    }
    BASE_TRY(make_weights(state, n, error));
    return lower_tensor_finish(state, n, PLAN_BACKWARD, value, &part, -1, &target.place,
                               target.accumulate, error);
}

/* Of the products behind entry n, which have begun the sum of its gradient if they could: what they
 * have left. The sum's last gather begins behind the first of them. */
static sifr_status weights_beside(lower_state *state, int32_t n, sifr_error *error) {
    const model_unit *u = &state->model->units[state->model->nodes[n].unit];
    int32_t value = state->model->nodes[n].y;
    for (int32_t m = u->first_node + u->nodes - 1; m > n; m--) {
        if (!state->later[m] || state->model->nodes[m].x[0] != value) continue;
        BASE_TRY(make_weights(state, m, error));
        if (state->summing.value == value) BASE_TRY(lower_end_sum(state, n, error));
    }
    return state->summing.value == value ? lower_end_sum(state, n, error) : SIFR_OK;
}

static bool leaves_weights(const lower_state *state, int32_t n) {
    const model_unit *u = &state->model->units[state->model->nodes[n].unit];
    for (int32_t m = n + 1; m < u->first_node + u->nodes; m++)
        if (state->later[m] && state->model->nodes[m].x[0] == state->model->nodes[n].y) return true;
    return false;
}

/* Each tensor rank has made a part of the gradient. */
static sifr_status sum_gradient(lower_state *state, int32_t n, sifr_error *error) {
    int32_t value = state->model->nodes[n].y;
    if (!lower_has_gradient(state, state->model->nodes[n].x[0])) return SIFR_OK;
    BASE_TRY(make_exclusive(state, value, n, error));
    lower_operand gradient = gradient_of(state, value);
    bool begun = state->summing.value == value;
    if (!begun && !leaves_weights(state, n))
        return lower_tensor_sum(state, n, &gradient, &gradient, error);
    if (!begun) BASE_TRY(lower_sum_tile(state, n, value, &gradient, error));
    return weights_beside(state, n, error);
}

/* Of a gathered value, whose gradient began as that of the rows, these are in it. */
static sifr_status end_rows(lower_state *state, int32_t n, sifr_error *error) {
    const model_node *node = &state->model->nodes[n];
    int32_t *place = &state->gradient[lower_value(state, node->x[0])];
    if (state->places[*place].sharers > 1) {
        state->places[*place].sharers--;
        BASE_TRY(lower_new_place(state, node->x[0], place, error));
    }
    lower_operand from = gradient_of(state, node->y), to = gradient_of(state, node->x[0]);
    return lower_rows_move(state, n, true, &from, &to, error);
}

/* The gradient goes back the way that the value came. */
static sifr_status backward_moved(lower_state *state, int32_t n, sifr_error *error) {
    const model_node *node = &state->model->nodes[n];
    bool heads = node->op->exchanges == MODEL_EXCHANGE_TO_ROWS;
    lower_target target;
    if (begins_with_rows(state, node->y)) return end_rows(state, n, error);
    BASE_TRY(find_target(state, n, 0, &target, error));
    if (!target.wanted) return SIFR_OK;
    lower_operand from = gradient_of(state, node->y);
    if (node->op->moves)
        BASE_TRY(lower_rows_move(state, n, true, &from, &target.place, error));
    else if (node->op->exchanges == MODEL_EXCHANGE_GATHER)
        BASE_TRY(lower_sum_gathered(state, n, &from, &target.place, error));
    else if (node->op->exchanges == MODEL_EXCHANGE_TO_HALO)
        BASE_TRY(lower_sum_halo(state, n, &from, &target.place, error));
    else if (node->op->exchanges == MODEL_EXCHANGE_OFF_HALO)
        BASE_TRY(lower_off_halo(state, n, PLAN_BACKWARD, true, &from, &target.place, error));
    else
        BASE_TRY(lower_exchange(state, n, PLAN_BACKWARD, heads, &from, &target.place, error));
    if (!target.beside) return SIFR_OK;
    return emit_simple(state, DEVICE_ACCUMULATE, n, &target.place, &target.sum, error);
}

static sifr_status backward_op(lower_state *state, int32_t n, lower_makes makes,
                               sifr_error *error) {
    const model_op *op = state->model->nodes[n].op;
    if (op->shares_gradient) return backward_shared(state, n, error);
    if (op->exchanges || op->moves)
        return makes & LOWER_INPUTS ? backward_moved(state, n, error) : SIFR_OK;
    bool inputs = makes == LOWER_INPUTS || !trains_weights(state, &state->model->nodes[n]);
    if (inputs && !state->model->nodes[n].summed && lower_sums_tiles(state, n, true)) {
        lower_target target;
        BASE_TRY(find_target(state, n, 0, &target, error));
        base_assert(target.wanted && !target.beside);
        return input_tiles(state, n, NULL, target.accumulate, error);
    }
    if (state->part.region < 0)
        BASE_TRY(lower_gather_again(state, n, kept_for(state, n, makes), error));
    return backward_kernel(state, n, makes, error);
}

sifr_status lower_backward(lower_state *state, int32_t n, lower_makes makes, sifr_error *error) {
    const model_node *node = &state->model->nodes[n];
    if (!state->carries[n]) return SIFR_OK;
    bool has_gradient = node->op->makes_loss || state->gradient[lower_value(state, node->y)] >= 0;
    if (!has_gradient) {
        return base_fail(error, SIFR_USAGE, "unit %s: the output of %s is never used",
                         state->model->units[node->unit].name, node->op->name);
    }
    if (node->op->sums_gradient) BASE_TRY(sum_gradient(state, n, error));
    if (makes == LOWER_BOTH && lower_waits_for_sum(state, n)) return make_inputs(state, n, error);
    BASE_TRY(backward_op(state, n, makes, error));
    if (node->op->makes_loss || makes != LOWER_BOTH) return SIFR_OK;
    state->places[state->gradient[lower_value(state, node->y)]].sharers--;
    return SIFR_OK;
}

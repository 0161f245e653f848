/* What follows the backward pass: the norm of all gradients, and the updates of the weights. */
#include <stddef.h>
#include <string.h>

#include "base/checked.h"
#include "plan/list.h"
#include "plan/lower/lower.h"
#include "plan/numbers.h"
#include "plan/queries.h"

static lower_operand gradient_of(const lower_state *state, int32_t segment) {
    return lower_gradient_sum(state, segment, 0, state->s->segment_elements[segment]);
}

/* Ends an instruction on a whole segment. */
static sifr_status emit_on_segment(lower_state *state, plan_action action, int32_t segment,
                                   const device_call *call, sifr_error *error) {
    plan_schedule *s = state->s;
    int32_t unit = state->model->segments[segment].unit;
    BASE_TRY(lower_emit(state, action, unit, -1, call, NULL, false, error));
    s->instructions[s->instruction_count - 1].segment = segment;
    return SIFR_OK;
}

/* Elements of the segments before this one, in whole blocks: the same for any number of ranks. */
static int64_t elements_before(const sifr_model *model, int32_t segment) {
    int64_t elements = 0;
    for (int32_t g = 0; g < segment; g++) elements += model->segments[g].elements;
    return elements;
}

/* Ends an update of a segment's elements from `first` on. */
static sifr_status emit_update_from(lower_state *state, int32_t segment, int64_t first,
                                    const device_call *call, sifr_error *error) {
    plan_schedule *s = state->s;
    BASE_TRY(emit_on_segment(state, PLAN_UPDATE, segment, call, error));
    s->instructions[s->instruction_count - 1].element =
        elements_before(state->model, segment) + first;
    return SIFR_OK;
}

static sifr_status emit_squares(lower_state *state, int32_t segment, sifr_error *error) {
    device_call call;
    memset(&call, 0, sizeof call);
    call.kernel = DEVICE_EXACT_SQUARES;
    lower_operand y = {.buffer = state->s->numbers,
                       .offset = offsetof(plan_numbers, squares),
                       .matrix = lower_matrix(1, EXACT_WORDS, BASE_INT64)};
    BASE_TRY(lower_put(state, &call, PLAN_X0, gradient_of(state, segment), error));
    BASE_TRY(lower_put(state, &call, PLAN_Y, y, error));
    return emit_on_segment(state, PLAN_SQUARES, segment, &call, error);
}

/* What an update of a segment's weights is called with, but for its operands. */
static device_call update_call(const lower_state *state, int32_t segment) {
    const plan_schedule *s = state->s;
    sifr_optimizer optimizer = s->settings.step.optimizer;
    model_group group =
        optim_group_of(state->model, state->model->segments[segment].group, &optimizer);
    const optim_row *row = plan_row(s, segment);
    device_call call;
    memset(&call, 0, sizeof call);
    call.kernel = row->kernel;
    optimizer.weight_decay = group.weight_decay;
    row->set_call(&optimizer, &call.attributes);
    double scale = row->rate_scale ? row->rate_scale(&optimizer) : 1;
    call.attributes.update.lr_scale = (float)(group.lr_scale * scale);
    call.attributes.update.averages = row->ema;
    return call;
}

/* Some of the states of a row. */
typedef struct state_range {
    int first, end;
} state_range;

/* The values of a state with an axis, of the weight at element `first` of a segment. */
static void find_axis(const lower_state *state, int32_t segment, int i, int64_t first, int64_t *at,
                      int64_t *count) {
    const optim_row *row = plan_row(state->s, segment);
    const model_unit *unit = &state->model->units[state->model->segments[segment].unit];
    *at = optim_axis_place(row, i, state->model, segment, first);
    for (int32_t w = unit->first_weight; w < unit->first_weight + unit->weights; w++) {
        const model_weight *weight = &state->model->weights[w];
        if (weight->segment == segment && weight->offset == first)
            *count = optim_weight_values(row, i, weight);
    }
}

/* Operands of an update behind x0: elements of a segment from `first` on, some of its states, and
 * the copy of the weights where that is asked for. */
static sifr_status put_weights(lower_state *state, int32_t segment, int64_t first, int64_t elements,
                               state_range states, bool copies, device_call *call,
                               sifr_error *error) {
    plan_schedule *s = state->s;
    bool mixed = s->masters[segment] >= 0;
    const optim_row *row = plan_row(s, segment);
    lower_operand parameters =
        lower_vector(s->parameters[segment], first, elements, plan_dtype(&s->settings));
    if (mixed)
        BASE_TRY(lower_put(state, call, PLAN_W0,
                           lower_vector(s->masters[segment], first, elements, BASE_FP32), error));
    if (!mixed || copies)
        BASE_TRY(lower_put(state, call, mixed ? PLAN_W1 : PLAN_W0, parameters, error));
    for (int i = states.first; i < states.end; i++) {
        int64_t at = optim_values(row, i, first), count = optim_values(row, i, elements);
        if (row->states[i].axis) find_axis(state, segment, i, first, &at, &count);
        BASE_TRY(lower_put(
            state, call, (plan_role)(PLAN_SAVED0 + i - states.first),
            lower_vector(s->states[i][segment], at, count, plan_state_type(&s->settings, row, i)),
            error));
    }
    return SIFR_OK;
}

/* All operands of an update, with the first `states` states of the row. */
static sifr_status put_elements(lower_state *state, int32_t segment, int64_t first,
                                int64_t elements, int states, bool copies, device_call *call,
                                sifr_error *error) {
    BASE_TRY(lower_put(state, call, PLAN_X0, lower_gradient_sum(state, segment, first, elements),
                       error));
    return put_weights(state, segment, first, elements, (state_range){0, states}, copies, call,
                       error);
}

/* The optimizer on a segment. */
static sifr_status emit_update(lower_state *state, int32_t segment, sifr_error *error) {
    plan_schedule *s = state->s;
    device_call call = update_call(state, segment);
    BASE_TRY(put_elements(state, segment, 0, s->segment_elements[segment],
                          optim_states(plan_row(s, segment)), true, &call, error));
    return emit_update_from(state, segment, 0, &call, error);
}

/* --- updates by weight --- */

sifr_status lower_weight_sums(lower_state *state, int32_t segment, sifr_error *error) {
    plan_schedule *s = state->s;
    int64_t parts = plan_sum_parts(&s->settings) * plan_sum_tensors(s, segment);
    int64_t bytes = parts * plan_sum_bytes(s, segment);
    return plan_add_segment_buffer(s, PLAN_MOMENTS, bytes, segment, -1, false,
                                   &s->weight_sums[segment], error);
}

/* The bytes of the sums of a segment's weights that tensor ranks which share it make together. */
static int64_t tensor_sums(const plan_schedule *s, int32_t segment) {
    return plan_sum_tensors(s, segment) * plan_sum_bytes(s, segment);
}

/* Where they begin, of the ranks that hold the same slice as this one, and where this rank's are.
 */
static int64_t slice_sums(const plan_schedule *s, int32_t segment) {
    bool cut = plan_sum_parts(&s->settings) > 1;
    return cut ? plan_mesh_place(&s->settings.mesh, PLAN_STATE) * tensor_sums(s, segment) : 0;
}
static int64_t own_sums(const plan_schedule *s, int32_t segment) {
    bool several = plan_sum_tensors(s, segment) > 1;
    int32_t place = several ? plan_mesh_place(&s->settings.mesh, PLAN_TENSORS) : 0;
    return slice_sums(s, segment) + place * plan_sum_bytes(s, segment);
}

static sifr_status clear_sums(lower_state *state, int32_t segment, sifr_error *error) {
    plan_schedule *s = state->s;
    int64_t words = plan_sum_bytes(s, segment) / (int64_t)sizeof(int64_t);
    lower_operand y = {.buffer = s->weight_sums[segment],
                       .offset = own_sums(s, segment),
                       .matrix = lower_matrix(1, words, BASE_INT64)};
    device_call call;
    memset(&call, 0, sizeof call);
    call.kernel = DEVICE_CLEAR;
    BASE_TRY(lower_put(state, &call, PLAN_Y, y, error));
    return emit_on_segment(state, PLAN_ADD, segment, &call, error);
}

/* Brings the sums of the other tensor ranks, in place; behind it pass_zero.c brings those of the
 * ranks that hold other slices. */
static sifr_status gather_sums(lower_state *state, int32_t segment, sifr_error *error) {
    plan_schedule *s = state->s;
    if (plan_sum_tensors(s, segment) == 1) return SIFR_OK;
    BASE_TRY(plan_add_operand(s, PLAN_X0, s->weight_sums[segment], own_sums(s, segment), error));
    BASE_TRY(plan_add_operand(s, PLAN_Y, s->weight_sums[segment], slice_sums(s, segment), error));
    return plan_add_collective(s,
                               &(plan_collective){.action = PLAN_GATHER,
                                                  .span = PLAN_TENSORS,
                                                  .encoding = PLAN_CODE_BYTES,
                                                  .segment = segment,
                                                  .micro_batch = -1,
                                                  .bytes = plan_sum_bytes(s, segment)},
                               error);
}

/* This rank's sums of a weight, the `number`th of its segment, which an update reads with those of
 * the other tensor ranks. pass_zero.c adds those of the ranks that hold other slices. */
static sifr_status put_sums(lower_state *state, int32_t segment, int64_t number, bool begin,
                            device_call *call, sifr_error *error) {
    enum { WORDS = 2 * EXACT_WORDS };
    plan_schedule *s = state->s;
    int64_t at = number * WORDS * (int64_t)sizeof(int64_t);
    lower_operand sums = {.buffer = s->weight_sums[segment],
                          .offset = own_sums(s, segment) + at,
                          .matrix = lower_matrix(1, WORDS, BASE_INT64)};
    if (!begin && plan_sum_tensors(s, segment) > 1) {
        sums.offset = slice_sums(s, segment) + at;
        sums.matrix.rows = plan_sum_tensors(s, segment);
        sums.matrix.stride = plan_sum_bytes(s, segment) / (int64_t)sizeof(int64_t);
    }
    return lower_put(state, call, begin ? PLAN_Y : PLAN_X1, sums, error);
}

/* The gradient of a whole weight, which pass_zero.c gathers where ranks hold slices. */
static sifr_status put_gradient(lower_state *state, const model_weight *weight, device_call *call,
                                sifr_error *error) {
    int64_t elements = weight->rows * weight->columns;
    lower_operand x = lower_gradient_sum(state, weight->segment, weight->offset, elements);
    x.matrix = lower_matrix(weight->rows, weight->columns, x.matrix.dtype);
    return lower_put(state, call, PLAN_X2, x, error);
}

static sifr_status emit_weight(lower_state *state, const model_weight *weight, int64_t number,
                               bool begin, sifr_error *error) {
    plan_schedule *s = state->s;
    int32_t segment = weight->segment;
    const optim_row *row = plan_row(s, segment);
    int64_t elements = base_ceil_to(weight->rows * weight->columns, DEVICE_BLOCK);
    device_call call = update_call(state, segment);
    if (begin) call.kernel = row->begin, call.attributes.update.averages = false;
    int states = begin ? device_update_states(row->begin) : optim_states(row);
    BASE_TRY(put_elements(state, segment, weight->offset, elements, states, !begin, &call, error));
    BASE_TRY(put_sums(state, segment, number, begin, &call, error));
    if (!begin && row->whole_gradient) BASE_TRY(put_gradient(state, weight, &call, error));
    return emit_update_from(state, segment, weight->offset, &call, error);
}

/* Either the sums or the updates of a segment's weights. */
static sifr_status emit_weights(lower_state *state, int32_t segment, bool begin,
                                sifr_error *error) {
    const model_unit *unit = &state->model->units[state->model->segments[segment].unit];
    int64_t number = 0;
    if (begin) BASE_TRY(clear_sums(state, segment, error));
    for (int32_t w = unit->first_weight; w < unit->first_weight + unit->weights; w++) {
        const model_weight *weight = &state->model->weights[w];
        if (weight->segment != segment) continue;
        BASE_TRY(emit_weight(state, weight, number++, begin, error));
    }
    return begin ? gather_sums(state, segment, error) : SIFR_OK;
}

/* --- updates that read whole weights --- */

/* The values of all elements. pass_zero.c lets a rank make its own, and gathers the others'. */
static sifr_status begin_whole(lower_state *state, int32_t segment, sifr_error *error) {
    plan_schedule *s = state->s;
    int64_t elements = s->segment_elements[segment];
    device_call call = update_call(state, segment);
    int32_t *values = &s->whole_values[segment];
    if (*values >= 0) return SIFR_OK;
    BASE_TRY(plan_add_segment_buffer(s, PLAN_GRADIENTS, elements * 4, segment, -1, false, values,
                                     error));
    call.kernel = plan_row(s, segment)->begin;
    call.attributes.update.averages = false;
    BASE_TRY(put_elements(state, segment, 0, elements, device_update_states(call.kernel), false,
                          &call, error));
    BASE_TRY(lower_put(state, &call, PLAN_Y, lower_vector(*values, 0, elements, BASE_FP32), error));
    return emit_update_from(state, segment, 0, &call, error);
}

static sifr_status change_values(lower_state *state, const model_weight *weight,
                                 sifr_error *error) {
    int32_t segment = weight->segment;
    device_call call = update_call(state, segment);
    call.kernel = plan_row(state->s, segment)->whole;
    int64_t columns = weight->size ? weight->size : weight->columns;
    int64_t rows = weight->rows * weight->columns / columns;
    lower_operand y = {.buffer = state->s->whole_values[segment],
                       .offset = weight->offset * 4,
                       .matrix = lower_matrix(rows, columns, BASE_FP32)};
    call.attributes.update.matrices = weight->size ? (int32_t)weight->rows : 1;
    BASE_TRY(lower_put(state, &call, PLAN_Y, y, error));
    return emit_on_segment(state, PLAN_UPDATE, segment, &call, error);
}

static sifr_status end_whole(lower_state *state, int32_t segment, sifr_error *error) {
    plan_schedule *s = state->s;
    const model_unit *unit = &state->model->units[state->model->segments[segment].unit];
    const optim_row *row = plan_row(s, segment);
    state_range states = {device_update_states(row->begin), optim_states(row)};
    int64_t elements = s->segment_elements[segment];
    for (int32_t w = unit->first_weight; w < unit->first_weight + unit->weights; w++) {
        const model_weight *weight = &state->model->weights[w];
        if (weight->segment == segment) BASE_TRY(change_values(state, weight, error));
    }
    device_call call = update_call(state, segment);
    lower_operand values = lower_vector(s->whole_values[segment], 0, elements, BASE_FP32);
    BASE_TRY(lower_put(state, &call, PLAN_X0, values, error));
    BASE_TRY(put_weights(state, segment, 0, elements, states, true, &call, error));
    return emit_update_from(state, segment, 0, &call, error);
}

/* Where values travel beside computing, the next segment's are begun first. */
static sifr_status emit_whole(lower_state *state, int32_t segment, sifr_error *error) {
    plan_schedule *s = state->s;
    bool ahead = plan_sum_parts(&s->settings) > 1 && s->settings.step.zero.overlap_comm;
    BASE_TRY(begin_whole(state, segment, error));
    for (int32_t g = segment + 1; ahead && g < (int32_t)state->model->segment_count; g++) {
        if (!lower_owns_segment(state, g) || !plan_row(s, g)->reads_whole) continue;
        BASE_TRY(begin_whole(state, g, error));
        break;
    }
    return end_whole(state, segment, error);
}

/* Whether some state of this run is offloaded. */
static bool state_is_offloaded(const plan_schedule *s) {
    const sifr_offload *offload = &s->settings.step.offload;
    const sifr_tier tiers[] = {offload->optimizer.device, offload->param.device,
                               offload->gradients};
    for (size_t i = 0; i < sizeof tiers / sizeof *tiers; i++)
        if (plan_is_offloaded_tier(s, plan_tier_of(tiers[i]))) return true;
    return false;
}

static sifr_status emit_segment(lower_state *state, int32_t segment, bool begun,
                                sifr_error *error) {
    const optim_row *row = plan_row(state->s, segment);
    if (row->reads_whole) return emit_whole(state, segment, error);
    if (!row->by_weight) return emit_update(state, segment, error);
    if (!begun) BASE_TRY(emit_weights(state, segment, true, error));
    return emit_weights(state, segment, false, error);
}

/* The sums over weights come first, so that their gathers hide behind one another. Where state is
 * offloaded, those of a segment come just before its update: units then follow each other, and a
 * delayed update can be spread over the forward pass. */
static sifr_status emit_updates(lower_state *state, sifr_error *error) {
    int32_t segments = (int32_t)state->model->segment_count;
    bool at_once = !state_is_offloaded(state->s);
    for (int32_t g = 0; g < segments && at_once; g++) {
        if (!lower_owns_segment(state, g) || !plan_row(state->s, g)->by_weight) continue;
        BASE_TRY(emit_weights(state, g, true, error));
    }
    for (int32_t g = 0; g < segments; g++)
        if (lower_owns_segment(state, g)) BASE_TRY(emit_segment(state, g, at_once, error));
    return SIFR_OK;
}

sifr_status lower_update(lower_state *state, sifr_error *error) {
    plan_schedule *s = state->s;
    int32_t segments = (int32_t)state->model->segment_count;
    for (int32_t g = 0; g < segments; g++) {
        if (lower_owns_segment(state, g)) BASE_TRY(emit_squares(state, g, error));
    }
    BASE_TRY(plan_add_operand(s, PLAN_X0, s->numbers, 0, error));
    BASE_TRY(plan_add_operand(s, PLAN_Y, s->numbers, 0, error));
    BASE_TRY(plan_add_instruction(
        s,
        (plan_instruction){
            .action = PLAN_NORM, .unit = -1, .micro_batch = -1, .node = -1, .call = -1, .wait = -1},
        error));
    return emit_updates(state, error);
}

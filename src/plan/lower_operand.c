/* Where values and weights lie, and the making of an instruction: what all of the lowering uses. */
#include <string.h>

#include "plan/lower.h"

size_t lower_value(const lower_state *state, int32_t value) {
    size_t set = state->s->settings.order == PLAN_UNIT ? (size_t)state->micro_batch : 0;
    return set * state->model->value_count + (size_t)value;
}

size_t lower_node(const lower_state *state, int32_t node) {
    size_t set = state->s->settings.order == PLAN_UNIT ? (size_t)state->micro_batch : 0;
    return set * state->model->node_count + (size_t)node;
}

device_matrix lower_matrix(int64_t rows, int64_t columns, device_dtype dtype) {
    return (device_matrix){.rows = rows, .columns = columns, .stride = columns, .dtype = dtype};
}

device_dtype lower_dtype(const lower_state *state, int32_t value) {
    switch (state->model->values[value].kind) {
    case MODEL_VALUE_ACTIVATION:
        return state->s->settings.dtype;
    case MODEL_VALUE_TABLE:
    case MODEL_VALUE_LOSS:
        return DEVICE_FP32;
    default:
        return DEVICE_INT32;
    }
}

lower_operand lower_locate(const lower_state *state, int32_t value) {
    const model_value *v = &state->model->values[value];
    const plan_schedule *s = state->s;
    device_dtype dtype = lower_dtype(state, value);
    lower_operand out = {.matrix = lower_matrix(state->tokens, v->columns, dtype)};
    switch (v->kind) {
    case MODEL_VALUE_TOKENS:
        out.buffer = s->tokens[state->micro_batch];
        break;
    case MODEL_VALUE_POSITIONS:
        out.buffer = s->positions[state->micro_batch];
        break;
    case MODEL_VALUE_LABELS:
        out.buffer = s->labels[state->micro_batch];
        break;
    case MODEL_VALUE_LOSS:
        out.buffer = s->losses[state->micro_batch];
        break;
    case MODEL_VALUE_TABLE:
        out.buffer = s->tables[v->table];
        out.matrix.rows =
            s->settings.mode == PLAN_GENERATE ? s->settings.cache_length : s->settings.length;
        break;
    case MODEL_VALUE_ACTIVATION:
        if (v->base >= 0) {
            out.buffer = state->where[lower_value(state, v->base)];
            out.offset = v->first * state->element;
            out.matrix.stride = state->model->values[v->base].columns;
        } else {
            out.buffer = state->where[lower_value(state, value)];
        }
        break;
    }
    return out;
}

bool lower_has_gradient(const lower_state *state, int32_t value) {
    const model_value *v = &state->model->values[value];
    if (v->base >= 0) v = &state->model->values[v->base];
    return v->node >= 0 && state->carries[v->node];
}

lower_operand lower_weight(const lower_state *state, int32_t weight) {
    const model_weight *w = &state->model->weights[weight];
    return (lower_operand){.buffer = state->s->parameters[w->unit],
                           .offset = w->offset * state->element,
                           .matrix = lower_matrix(w->rows, w->columns, state->s->settings.dtype)};
}

sifr_status lower_put(lower_state *state, device_call *call, plan_role role, lower_operand operand,
                      sifr_error *error) {
    *plan_role_matrix(call, role) = operand.matrix;
    return plan_add_operand(state->s, role, operand.buffer, operand.offset, error);
}

sifr_status lower_emit(lower_state *state, plan_action action, int32_t unit, int32_t node,
                       const device_call *call, int32_t *cached, bool accumulate_dw,
                       sifr_error *error) {
    int32_t index = cached ? *cached : -1;
    if (index >= 0) {
        device_call known = state->s->calls[index];
        known.prepared = NULL;
        known.scratch_bytes = 0;
        if (memcmp(&known, call, sizeof known) != 0) index = -1;
    }
    if (index < 0) BASE_TRY(plan_add_call(state->s, *call, &index, error));
    if (cached) *cached = index;
    return plan_add_instruction(state->s,
                                (plan_instruction){.action = (uint8_t)action,
                                                   .queue = PLAN_COMPUTE,
                                                   .accumulate_dw = accumulate_dw,
                                                   .unit = (int16_t)unit,
                                                   .micro_batch = state->micro_batch,
                                                   .node = node,
                                                   .call = index,
                                                   .wait = -1},
                                error);
}

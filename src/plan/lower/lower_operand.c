/* Operands of values and weights, and the making of instructions, for all files of the lowering. */

#include "base/assert.h"
#include "device/same_call.h"
#include "plan/list.h"
#include "plan/lower/lower.h"
#include "plan/queries.h"

size_t lower_value(const lower_state *state, int32_t value) {
    base_assert(value >= 0 && (state->sets == 1 || state->micro_batch >= 0));
    size_t set = state->sets > 1 ? (size_t)state->micro_batch : 0;
    return set * state->model->value_count + (size_t)value;
}

size_t lower_node(const lower_state *state, int32_t node) {
    base_assert(node >= 0 && (state->sets == 1 || state->micro_batch >= 0));
    size_t set = state->sets > 1 ? (size_t)state->micro_batch : 0;
    return set * state->model->node_count + (size_t)node;
}

/* Rows of a value that are not those of the current part; 0: they are. */
static int64_t own_rows(const lower_state *state, int32_t value) {
    const model_value *v = &state->model->values[value];
    if (v->cut_rows) return state->tokens / state->model->tensors;
    if (v->halo) return state->tokens + v->halo * lower_context_runs(state);
    return v->contexts ? v->contexts * state->tokens : v->rows;
}

int64_t lower_value_rows(const lower_state *state, int32_t value) {
    int64_t rows = own_rows(state, value);
    return rows ? rows : state->part.rows;
}

int64_t lower_rows(const lower_state *state, int32_t value, bool local) {
    int64_t rows = own_rows(state, value);
    return rows ? rows : local ? state->part.rows : state->tokens;
}

int64_t lower_first_row(const lower_state *state, bool local) {
    return local ? 0 : state->part.first;
}

device_matrix lower_matrix(int64_t rows, int64_t columns, base_dtype dtype) {
    base_assert(rows >= 0 && columns >= 0);
    return (device_matrix){.rows = rows, .columns = columns, .stride = columns, .dtype = dtype};
}

base_dtype lower_dtype(const lower_state *state, int32_t value) {
    switch (state->model->values[value].kind) {
    case MODEL_VALUE_ACTIVATION:
        return plan_dtype(&state->s->settings);
    case MODEL_VALUE_TARGETS:
    case MODEL_VALUE_TABLE:
    case MODEL_VALUE_LOSS:
        return BASE_FP32;
    default:
        return BASE_INT32;
    }
}

lower_operand lower_locate(const lower_state *state, int32_t value) {
    const model_value *v = &state->model->values[value];
    const plan_schedule *s = state->s;
    base_dtype dtype = lower_dtype(state, value);
    lower_operand out = {.matrix = lower_matrix(lower_value_rows(state, value), v->columns, dtype)};
    bool local = false;
    switch (v->kind) {
    case MODEL_VALUE_INPUT:
    case MODEL_VALUE_TARGETS:
        out.buffer = s->inputs[v->input][state->micro_batch];
        break;
    case MODEL_VALUE_LOSS:
        out.buffer = s->losses[state->micro_batch];
        if (v->columns > 1) out.matrix = lower_matrix(v->columns, out.matrix.rows, dtype);
        break;
    case MODEL_VALUE_TABLE:
        out.buffer = s->tables[v->table];
        out.matrix.rows = s->settings.mode == PLAN_GENERATE ? s->settings.cache_length
                                                            : s->settings.step.seq_length;
        break;
    case MODEL_VALUE_ACTIVATION:
        if (v->base >= 0) {
            out.buffer = state->buffer_of[lower_value(state, v->base)];
            out.offset = v->first * state->element;
            out.matrix.stride = state->model->values[v->base].columns;
            local = state->local[lower_value(state, v->base)];
        } else {
            out.buffer = state->buffer_of[lower_value(state, value)];
            local = state->local[lower_value(state, value)];
        }
        break;
    }
    if (v->kind != MODEL_VALUE_TABLE)
        out.offset += lower_first_row(state, local) * out.matrix.stride * base_dtype_bytes(dtype);
    return out;
}

lower_operand lower_saved(const lower_state *state, int32_t node) {
    const model_node *n = &state->model->nodes[node];
    bool local = state->local[lower_value(state, n->y)];
    int64_t rows, columns;
    n->op->saved(n, lower_value_rows(state, n->y), &rows, &columns);
    return (lower_operand){.buffer = state->saved[lower_node(state, node)],
                           .offset = lower_first_row(state, local) * columns * 4,
                           .matrix = lower_matrix(rows, columns, BASE_FP32)};
}

device_attributes lower_attributes(const lower_state *state, const model_node *node) {
    const plan_settings *settings = &state->s->settings;
    bool cached = settings->mode == PLAN_GENERATE;
    device_attributes attributes = node->attributes;
    int64_t sequences = settings->step.micro_batch_size, length = settings->step.seq_length;
    bool part = state->part.region >= 0 || state->part.summed ||
                plan_mesh_ranks(&settings->mesh, PLAN_CONTEXTS) > 1;
    model_extent extent = {.sequences = sequences,
                           .length = cached ? settings->cache_length : length,
                           .whole = part ? sequences * length : 0,
                           .contexts = plan_mesh_ranks(&settings->mesh, PLAN_CONTEXTS),
                           .context = plan_mesh_place(&settings->mesh, PLAN_CONTEXTS),
                           .training = settings->mode == PLAN_TRAIN};
    int32_t halo = node->x[0] >= 0 ? state->model->values[node->x[0]].halo : 0;
    if (halo > 0) extent.length = plan_runs_of_tokens(settings).length + halo;
    if (node->op->complete) node->op->complete(&attributes, &extent);
    return attributes;
}

bool lower_has_gradient(const lower_state *state, int32_t value) {
    const model_value *v = &state->model->values[value];
    if (v->base >= 0) v = &state->model->values[v->base];
    return v->node >= 0 && state->carries[v->node];
}

lower_operand lower_weight(const lower_state *state, int32_t weight) {
    const model_weight *w = &state->model->weights[weight];
    return (lower_operand){.buffer = state->s->parameters[w->segment],
                           .offset = w->offset * state->element,
                           .matrix =
                               lower_matrix(w->rows, w->columns, plan_dtype(&state->s->settings))};
}

sifr_status lower_put(lower_state *state, device_call *call, plan_role role, lower_operand operand,
                      sifr_error *error) {
    if (call) *plan_role_matrix(call, role) = operand.matrix;
    return plan_add_operand(state->s, role, operand.buffer, operand.offset, error);
}

int32_t *lower_cached(const lower_state *state, int32_t *cached) {
    int64_t rows = state->part.summed;
    if (state->part.region >= 0) rows = state->tiles.rows;
    return state->part.rows < rows ? cached + 1 : cached;
}

/* Of the micro batch, the first row that a value has. */
static int64_t first_row_of(const lower_state *state, int32_t value) {
    bool cut = state->model->values[value].cut_rows;
    return cut ? state->model->tensor_place * lower_rows(state, value, false) : 0;
}

sifr_status lower_emit(lower_state *state, plan_action action, int32_t unit, int32_t node,
                       const device_call *call, int32_t *cached, bool accumulate_dw,
                       sifr_error *error) {
    if (cached) cached = lower_cached(state, cached);
    int32_t index = cached ? *cached : -1;
    const model_node *made = node < 0 ? NULL : &state->model->nodes[node];
    int64_t element = 0;
    if (made && made->op->counts_elements)
        element = (lower_first_token(state) + first_row_of(state, made->y) + state->part.first) *
                  state->model->values[made->y].columns;
    if (call && index >= 0 && !device_same_call(&state->s->calls[index], call)) index = -1;
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
                                                   .element = element,
                                                   .wait = -1},
                                error);
}

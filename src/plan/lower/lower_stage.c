/* A stage of a pipeline: which values and gradients cross to other stages, and the transfers of
 * tied weights between the stage that owns them and those that read them too. */

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/errors.h"
#include "base/heap.h"
#include "plan/list.h"
#include "plan/lower/lower.h"
#include "plan/peers.h"
#include "plan/queries.h"

static const plan_pipeline *pipeline_of(const lower_state *state) {
    return &state->s->settings.pipeline;
}

bool lower_is_here(const lower_state *state, int32_t unit) {
    return plan_has_unit(pipeline_of(state), unit);
}

bool lower_is_read_here(const lower_state *state, int32_t segment) {
    return plan_reads_segment(state->model, pipeline_of(state), pipeline_of(state)->stage, segment);
}

sifr_status lower_find_crossings(lower_state *state, sifr_error *error) {
    const sifr_model *model = state->model;
    size_t values = model->value_count;
    if (plan_parts(pipeline_of(state)) == 1) return SIFR_OK;
    BASE_TRY(base_alloc(values, sizeof *state->last_part, &state->last_part, error));
    BASE_TRY(base_alloc(values, sizeof *state->gradient_part, &state->gradient_part, error));
    for (size_t v = 0; v < values; v++) state->last_part[v] = state->gradient_part[v] = -1;
    for (size_t n = 0; n < model->node_count; n++) {
        const model_node *node = &model->nodes[n];
        int32_t part = plan_part_of(pipeline_of(state), node->unit);
        for (int x = 0; x < DEVICE_INPUTS; x++) {
            int32_t value = node->x[x];
            if (value < 0 || model->values[value].kind != MODEL_VALUE_ACTIVATION) continue;
            int32_t base = model->values[value].base < 0 ? value : model->values[value].base;
            bool crosses = plan_part_of(pipeline_of(state), model->values[base].unit) < part;
            if (crosses && base != value)
                return base_fail(error, SIFR_USAGE,
                                 "pipeline: unit %s reads a part of a value of unit %s, which "
                                 "lies on another stage; this model is not supported with stages",
                                 model->units[node->unit].name,
                                 model->units[model->values[base].unit].name);
            if (part > state->last_part[base]) state->last_part[base] = part;
            bool gives = (node->op->shares_gradient || (node->op->gradients & (1 << x))) &&
                         state->carries[n] && lower_has_gradient(state, base);
            if (gives && part > state->gradient_part[base]) state->gradient_part[base] = part;
        }
    }
    return SIFR_OK;
}

/* Whether a value, or its gradient, crosses the border behind `part`. */
static bool crosses(const lower_state *state, size_t value, int32_t part, bool gradient) {
    const model_value *v = &state->model->values[value];
    if (v->kind != MODEL_VALUE_ACTIVATION || v->base >= 0 || v->node < 0) return false;
    int32_t last = gradient ? state->gradient_part[value] : state->last_part[value];
    return plan_part_of(pipeline_of(state), v->unit) <= part && part < last;
}

static sifr_status add_peer(lower_state *state, plan_action action, int32_t unit, int32_t stage,
                            int32_t stream, int64_t bytes, sifr_error *error) {
    plan_instruction in = {.action = (uint8_t)action,
                           .queue = PLAN_PEER,
                           .unit = (int16_t)unit,
                           .peer = (int16_t)stage,
                           .micro_batch = state->micro_batch,
                           .node = -1,
                           .call = -1,
                           .bytes = bytes,
                           .stream = stream,
                           .wait = -1};
    return plan_add_instruction(state->s, in, error);
}

static int64_t value_bytes(const lower_state *state, int32_t value) {
    return lower_rows(state, value, false) * state->model->values[value].columns * state->element;
}

/* The stream over the border behind `part`. */
static int32_t stream_of(int32_t part, int kind) {
    return part * PLAN_STREAMS + kind;
}

static int32_t stage_of_part(const lower_state *state, int32_t part) {
    return part % pipeline_of(state)->stages;
}

/* What crosses a border for a micro batch: values, or their gradients. */
typedef struct stage_border {
    int32_t part; /* behind which it is */
    bool gradient;
} stage_border;

/* Bytes that cross, as one message: every value of them behind the other. 0: few do, and each is a
 * message of its own. A rank has only so many messages under way (comm/worker.h), and layers that
 * share keys or have inputs of their own would take one each. */
static int64_t packed_bytes(const lower_state *state, stage_border border) {
    enum { MOST_MESSAGES = 2 };
    int64_t bytes = 0;
    int count = 0;
    for (int32_t v = 0; v < (int32_t)state->model->value_count; v++) {
        if (!crosses(state, (size_t)v, border.part, border.gradient)) continue;
        bytes += value_bytes(state, v);
        count++;
    }
    return count > MOST_MESSAGES ? bytes : 0;
}

/* The buffer that a value's message comes from or goes to, made new where it arrives. */
static sifr_status buffer_at(lower_state *state, int32_t value, bool gradient, bool arrives,
                             int32_t *out, sifr_error *error) {
    if (gradient) {
        int32_t *place = &state->gradient[lower_value(state, value)];
        if (arrives) BASE_TRY(lower_new_place(state, value, place, error));
        base_assert(*place >= 0 && !state->places[*place].local);
        return *out = state->places[*place].buffer, SIFR_OK;
    }
    int32_t *buffer = &state->buffer_of[lower_value(state, value)];
    if (arrives) {
        state->local[lower_value(state, value)] = false;
        BASE_TRY(plan_add_buffer(state->s, PLAN_ACTIVATIONS, value_bytes(state, value),
                                 state->model->values[value].unit, value, false, buffer, error));
    }
    return *out = *buffer, SIFR_OK;
}

/* A copy between a value's buffer and its place in the message. */
static sifr_status copy_packed(lower_state *state, int32_t unit, bool backward, lower_operand from,
                               lower_operand to, sifr_error *error) {
    const model_unit *u = &state->model->units[unit];
    device_call call;
    memset(&call, 0, sizeof call);
    call.kernel = DEVICE_CONVERT;
    BASE_TRY(lower_put(state, &call, PLAN_X0, from, error));
    BASE_TRY(lower_put(state, &call, PLAN_Y, to, error));
    return lower_emit(state, backward ? PLAN_BACKWARD : PLAN_FORWARD, unit, u->first_node, &call,
                      NULL, false, error);
}

/* Copies all that crosses into the message `packed`, or out of it. `unit`: of this stage, beside
 * the border. */
static sifr_status copy_all(lower_state *state, stage_border border, int32_t unit, int32_t packed,
                            bool arrives, sifr_error *error) {
    int64_t offset = 0;
    for (int32_t v = 0; v < (int32_t)state->model->value_count; v++) {
        int64_t rows = lower_rows(state, v, false), columns = state->model->values[v].columns;
        int32_t buffer;
        if (!crosses(state, (size_t)v, border.part, border.gradient)) continue;
        BASE_TRY(buffer_at(state, v, border.gradient, arrives, &buffer, error));
        lower_operand value = {.buffer = buffer,
                               .matrix =
                                   lower_matrix(rows, columns, plan_dtype(&state->s->settings))};
        lower_operand place = value;
        place.buffer = packed;
        place.offset = offset;
        BASE_TRY(copy_packed(state, unit, border.gradient, arrives ? place : value,
                             arrives ? value : place, error));
        offset += value_bytes(state, v);
    }
    return SIFR_OK;
}

/* One message of `bytes` with all that crosses, between the parts on both sides of the border. */
static sifr_status move_packed(lower_state *state, stage_border border, bool arrives, int64_t bytes,
                               sifr_error *error) {
    const plan_pipeline *p = pipeline_of(state);
    int kind = border.gradient ? PLAN_STREAM_GRADIENTS : PLAN_STREAM_VALUES;
    bool behind = border.gradient == arrives; /* the other end is */
    int32_t part = border.part + !behind, other = border.part + behind, packed;
    int32_t unit = behind ? p->first_unit[part + 1] - 1 : p->first_unit[part];
    BASE_TRY(plan_add_buffer(state->s, PLAN_ACTIVATIONS, bytes, unit, -1, false, &packed, error));
    if (!arrives) BASE_TRY(copy_all(state, border, unit, packed, false, error));
    BASE_TRY(plan_add_operand(state->s, arrives ? PLAN_Y : PLAN_X0, packed, 0, error));
    BASE_TRY(add_peer(state, arrives ? PLAN_RECEIVE : PLAN_SEND, -1, stage_of_part(state, other),
                      stream_of(border.part, kind), bytes, error));
    return arrives ? copy_all(state, border, unit, packed, true, error) : SIFR_OK;
}

sifr_status lower_receive_values(lower_state *state, int32_t part, sifr_error *error) {
    int64_t packed = part > 0 ? packed_bytes(state, (stage_border){part - 1, false}) : 0;
    if (packed) return move_packed(state, (stage_border){part - 1, false}, true, packed, error);
    for (int32_t v = 0; part > 0 && v < (int32_t)state->model->value_count; v++) {
        if (!crosses(state, (size_t)v, part - 1, false)) continue;
        int32_t *buffer = &state->buffer_of[lower_value(state, v)];
        state->local[lower_value(state, v)] = false;
        BASE_TRY(plan_add_buffer(state->s, PLAN_ACTIVATIONS, value_bytes(state, v),
                                 state->model->values[v].unit, v, false, buffer, error));
        BASE_TRY(plan_add_operand(state->s, PLAN_Y, *buffer, 0, error));
        BASE_TRY(add_peer(state, PLAN_RECEIVE, -1, stage_of_part(state, part - 1),
                          stream_of(part - 1, PLAN_STREAM_VALUES), value_bytes(state, v), error));
    }
    return SIFR_OK;
}

sifr_status lower_send_values(lower_state *state, int32_t part, sifr_error *error) {
    if (part + 1 == plan_parts(pipeline_of(state))) return SIFR_OK;
    int64_t packed = packed_bytes(state, (stage_border){part, false});
    if (packed) return move_packed(state, (stage_border){part, false}, false, packed, error);
    for (int32_t v = 0; v < (int32_t)state->model->value_count; v++) {
        if (!crosses(state, (size_t)v, part, false)) continue;
        BASE_TRY(
            plan_add_operand(state->s, PLAN_X0, state->buffer_of[lower_value(state, v)], 0, error));
        BASE_TRY(add_peer(state, PLAN_SEND, -1, stage_of_part(state, part + 1),
                          stream_of(part, PLAN_STREAM_VALUES), value_bytes(state, v), error));
    }
    return SIFR_OK;
}

sifr_status lower_receive_gradients(lower_state *state, int32_t part, sifr_error *error) {
    if (part + 1 == plan_parts(pipeline_of(state))) return SIFR_OK;
    int64_t packed = packed_bytes(state, (stage_border){part, true});
    if (packed) return move_packed(state, (stage_border){part, true}, true, packed, error);
    for (int32_t v = 0; v < (int32_t)state->model->value_count; v++) {
        if (!crosses(state, (size_t)v, part, true)) continue;
        int32_t *place = &state->gradient[lower_value(state, v)];
        BASE_TRY(lower_new_place(state, v, place, error));
        BASE_TRY(plan_add_operand(state->s, PLAN_Y, state->places[*place].buffer, 0, error));
        BASE_TRY(add_peer(state, PLAN_RECEIVE, -1, stage_of_part(state, part + 1),
                          stream_of(part, PLAN_STREAM_GRADIENTS), value_bytes(state, v), error));
    }
    return SIFR_OK;
}

sifr_status lower_send_gradients(lower_state *state, int32_t part, sifr_error *error) {
    int64_t packed = part > 0 ? packed_bytes(state, (stage_border){part - 1, true}) : 0;
    if (packed) return move_packed(state, (stage_border){part - 1, true}, false, packed, error);
    for (int32_t v = 0; part > 0 && v < (int32_t)state->model->value_count; v++) {
        if (!crosses(state, (size_t)v, part - 1, true)) continue;
        int32_t place = state->gradient[lower_value(state, v)];
        base_assert(place >= 0 && !state->places[place].local);
        BASE_TRY(plan_add_operand(state->s, PLAN_X0, state->places[place].buffer, 0, error));
        BASE_TRY(add_peer(state, PLAN_SEND, -1, stage_of_part(state, part - 1),
                          stream_of(part - 1, PLAN_STREAM_GRADIENTS), value_bytes(state, v),
                          error));
    }
    return SIFR_OK;
}

/* Streams of weights are numbered behind those of borders. */
static int32_t weight_stream(int32_t segment, int kind) {
    return (PLAN_MOST_PARTS + segment) * PLAN_STREAMS + kind;
}

static int32_t stage_of_segment(const lower_state *state, int32_t segment) {
    return plan_stage_of(pipeline_of(state), state->model->segments[segment].unit);
}

static sifr_status add_weights(lower_state *state, plan_action action, int32_t segment,
                               int32_t stage, int kind, int64_t bytes, sifr_error *error) {
    BASE_TRY(add_peer(state, action, state->model->segments[segment].unit, stage,
                      weight_stream(segment, kind), bytes, error));
    state->s->instructions[state->s->instruction_count - 1].segment = segment;
    return SIFR_OK;
}

static int64_t sum_size(const lower_state *state, int32_t segment) {
    return state->s->segment_elements[segment] * base_dtype_bytes(state->sum_type);
}

sifr_status lower_send_sum(lower_state *state, int32_t use, int32_t buffer, sifr_error *error) {
    base_assert(buffer >= 0);
    int32_t segment = state->uses[use].segment;
    BASE_TRY(plan_add_operand(state->s, PLAN_X0, buffer, 0, error));
    return add_weights(state, PLAN_SEND, segment, stage_of_segment(state, segment),
                       PLAN_STREAM_SUMS, sum_size(state, segment), error);
}

sifr_status lower_receive_sum(lower_state *state, int32_t use, int32_t *buffer, sifr_error *error) {
    int32_t segment = state->uses[use].segment;
    BASE_TRY(plan_add_segment_buffer(state->s, PLAN_GRADIENTS, sum_size(state, segment), segment,
                                     -1, false, buffer, error));
    BASE_TRY(plan_add_operand(state->s, PLAN_Y, *buffer, 0, error));
    return add_weights(state, PLAN_RECEIVE, segment,
                       plan_stage_of(pipeline_of(state), state->uses[use].unit), PLAN_STREAM_SUMS,
                       sum_size(state, segment), error);
}

/* Whether an earlier use of the same stage has moved these weights already. */
static bool is_moved(const lower_state *state, int32_t use) {
    const plan_pipeline *p = pipeline_of(state);
    int32_t segment = state->uses[use].segment;
    for (int32_t u = 0; u < use; u++) {
        const lower_use *other = &state->uses[u];
        if (other->segment == segment && u != state->own_use[segment] &&
            plan_stage_of(p, other->unit) == plan_stage_of(p, state->uses[use].unit))
            return true;
    }
    return false;
}

sifr_status lower_share_weights(lower_state *state, sifr_error *error) {
    const plan_pipeline *p = pipeline_of(state);
    for (int32_t use = 0; use < state->use_count; use++) {
        int32_t segment = state->uses[use].segment;
        int32_t from = stage_of_segment(state, segment);
        int32_t to = plan_stage_of(p, state->uses[use].unit);
        bool here = from == p->stage || to == p->stage, sends = from == p->stage;
        if (use == state->own_use[segment] || from == to || !here) continue;
        if (is_moved(state, use)) continue;
        int64_t bytes = state->s->segment_elements[segment] * state->element;
        BASE_TRY(plan_add_operand(state->s, sends ? PLAN_X0 : PLAN_Y, state->s->parameters[segment],
                                  0, error));
        BASE_TRY(add_weights(state, sends ? PLAN_SEND : PLAN_RECEIVE, segment, sends ? to : from,
                             PLAN_STREAM_WEIGHTS, bytes, error));
    }
    return SIFR_OK;
}

/* Whether evaluations may read logits, as those of classifiers do. A description does not say what
 * its head is for; that of a classifier rarely has more labels than columns. */
static bool reads_logits(const sifr_model *model) {
    const model_node *head = &model->nodes[model->node_count - 1];
    return model->weights[head->w[0]].rows <= model->weights[head->w[0]].columns;
}

sifr_status lower_hold_evaluation(plan_schedule *s, sifr_error *error) {
    plan_settings settings = plan_evaluation_of(&s->settings, reads_logits(s->model));
    plan_schedule *evaluation;
    settings.verify = false;
    BASE_TRY(lower_list(s->model, s->dev, &settings, NULL, &evaluation, error));
    s->total_bytes = base_max_i64(s->total_bytes, plan_idle_start(s) + evaluation->total_bytes);
    plan_free(evaluation);
    return SIFR_OK;
}

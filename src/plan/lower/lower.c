/* Lowers a model to a schedule: which op runs when, for every step order. */
#include "plan/lower/lower.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"
#include "plan/list.h"
#include "plan/numbers.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "plan/verify/verify.h"
#include "plan/walk.h"

/* An instruction without a kernel, which the executor itself runs. */
static sifr_status emit_action(lower_state *state, plan_action action, int32_t micro_batch,
                               sifr_error *error) {
    return plan_add_instruction(state->s,
                                (plan_instruction){.action = (uint8_t)action,
                                                   .queue = PLAN_COMPUTE,
                                                   .unit = -1,
                                                   .micro_batch = micro_batch,
                                                   .node = -1,
                                                   .call = -1,
                                                   .wait = -1},
                                error);
}

/* The step's numbers go to the device, too. */
static sifr_status emit_count(lower_state *state, sifr_error *error) {
    BASE_TRY(plan_add_operand(state->s, PLAN_Y, state->s->numbers, 0, error));
    return emit_action(state, PLAN_COUNT, -1, error);
}

static sifr_status emit_loss(lower_state *state, sifr_error *error) {
    BASE_TRY(plan_add_operand(state->s, PLAN_Y, state->s->losses[state->micro_batch], 0, error));
    return emit_action(state, PLAN_LOSS, state->micro_batch, error);
}

static sifr_status forward_unit(lower_state *state, int32_t unit, sifr_error *error) {
    const model_unit *u = &state->model->units[unit];
    plan_mode mode = state->s->settings.mode;
    for (int32_t n = u->first_node, next; n < u->first_node + u->nodes; n = next) {
        bool head = state->model->nodes[n].op->makes_loss;
        next = n + 1;
        if (state->tiles.region[n] >= 0) {
            BASE_TRY(lower_forward_tiles(state, n, &next, error));
            continue;
        }
        if (state->recomputing && !state->recomputing[n]) continue;
        if (!head) {
            BASE_TRY(lower_forward(state, n, error));
        } else if (mode == PLAN_EVALUATE) {
            BASE_TRY(lower_forward(state, n, error));
            BASE_TRY(emit_loss(state, error));
            if (state->s->settings.logits) BASE_TRY(lower_logits(state, n, error));
        } else if (mode != PLAN_TRAIN) {
            BASE_TRY(lower_logits(state, n, error));
        } /* in training its backward call also computes the loss */
    }
    return SIFR_OK;
}

/* Recomputes the unit's nodes that `which` selects. */
static sifr_status recompute_unit(lower_state *state, int32_t unit, const bool *which,
                                  sifr_error *error) {
    state->recomputing = which;
    sifr_status status = forward_unit(state, unit, error);
    state->recomputing = NULL;
    return status;
}

static sifr_status backward_unit(lower_state *state, int32_t unit, sifr_error *error) {
    const model_unit *u = &state->model->units[unit];
    lower_forget_gathered(state, unit);
    if (state->s->settings.step.recompute != SIFR_RECOMPUTE_NONE)
        BASE_TRY(recompute_unit(state, unit, state->tiles.early, error));
    if (lower_is_split(state, unit)) return lower_split_inputs(state, unit, error);
    BASE_TRY(lower_begin_unit(state, unit, error));
    for (int32_t n = u->first_node + u->nodes - 1, next; n >= u->first_node; n = next) {
        next = n - 1;
        if (state->tiles.region[n] >= 0) {
            BASE_TRY(lower_backward_tiles(state, n, &next, error));
            continue;
        }
        BASE_TRY(lower_backward(state, n, LOWER_BOTH, error));
        if (state->model->nodes[n].op->makes_loss) BASE_TRY(emit_loss(state, error));
    }
    return lower_end_unit(state, unit, error);
}

/* The first unit of the segment that ends with `unit`; `unit` itself if its input is kept or it
 * ends no segment. The units between the first and the last of the model are cut into segments of
 * equal length; the last segments may be one unit shorter. */
static int32_t segment_start(const lower_state *state, int32_t unit) {
    const plan_settings *settings = &state->s->settings;
    int32_t inner = (int32_t)state->model->unit_count - 2,
            segments = (int32_t)base_min_i64(settings->step.number_checkpoints, INT32_MAX);
    if (settings->step.recompute != SIFR_RECOMPUTE_UNIT || segments == 0 || segments >= inner)
        return unit;
    int32_t length = inner / segments, longer = inner % segments, first = 1;
    for (int32_t i = 0; i < segments; i++) {
        int32_t end = first + length + (i < longer);
        if (unit == end - 1) return first;
        first = end;
    }
    return unit;
}

static bool has_backward(const lower_state *state, int32_t unit) {
    const model_unit *u = &state->model->units[unit];
    for (int32_t n = u->first_node; n < u->first_node + u->nodes; n++) {
        if (state->carries[n]) return true;
    }
    return false;
}

/* Recomputes the inputs of a segment's units from the one that was kept, before the last unit's
 * backward pass. What a pipeline's part receives, before unit `first`, is kept. */
static sifr_status recompute_segment(lower_state *state, int32_t last, int32_t first,
                                     const plan_walk_item *item, sifr_error *error) {
    if (!has_backward(state, last)) return SIFR_OK;
    for (int32_t u = (int32_t)base_max_i64(segment_start(state, last), first); u < last; u++) {
        for (int32_t j = 0; j < item->count; j++) {
            state->micro_batch = item->micro_batch + j;
            BASE_TRY(recompute_unit(state, u, state->feeds_other_units, error));
        }
    }
    return SIFR_OK;
}

/* Nothing of these micro batches has a gradient yet. */
static void forget_gradients(lower_state *state, const plan_walk_item *item) {
    size_t values = state->model->value_count;
    for (int32_t j = 0; j < item->count; j++) {
        state->micro_batch = item->micro_batch + j;
        size_t first = lower_value(state, 0);
        for (size_t v = first; v < first + values; v++) state->gradient[v] = -1;
        memset(state->slice_written + first, 0, values * sizeof *state->slice_written);
    }
}

/* The units of one part of the model, first ... end - 1. */
typedef struct lower_range {
    int32_t part, first, end;
} lower_range;

static lower_range range_of(const lower_state *state, const plan_walk_item *item) {
    const plan_pipeline *p = &state->s->settings.pipeline;
    if (plan_parts(p) == 1) return (lower_range){.end = (int32_t)state->model->unit_count};
    int32_t part = item->chunk * p->stages + p->stage;
    return (lower_range){part, p->first_unit[part], p->first_unit[part + 1]};
}

static sifr_status forward_item(lower_state *state, const plan_walk_item *item, sifr_error *error) {
    lower_range range = range_of(state, item);
    forget_gradients(state, item);
    state->micro_batch = item->micro_batch;
    BASE_TRY(lower_receive_values(state, range.part, error));
    for (int32_t u = range.first; u < range.end; u++) {
        for (int32_t j = 0; j < item->count; j++) {
            state->micro_batch = item->micro_batch + j;
            BASE_TRY(forward_unit(state, u, error));
        }
    }
    return lower_send_values(state, range.part, error);
}

static sifr_status backward_item(lower_state *state, const plan_walk_item *item,
                                 sifr_error *error) {
    lower_range range = range_of(state, item);
    state->micro_batch = item->micro_batch;
    BASE_TRY(lower_receive_gradients(state, range.part, error));
    for (int32_t u = range.end - 1; u >= range.first; u--) {
        BASE_TRY(recompute_segment(state, u, range.first, item, error));
        for (int32_t j = 0; j < item->count; j++) {
            state->micro_batch = item->micro_batch + j;
            BASE_TRY(backward_unit(state, u, error));
        }
    }
    return lower_send_gradients(state, range.part, error);
}

/* What the backward pass has left out. */
static sifr_status weights_item(lower_state *state, const plan_walk_item *item, sifr_error *error) {
    lower_range range = range_of(state, item);
    state->micro_batch = item->micro_batch;
    for (int32_t u = range.end - 1; u >= range.first; u--)
        if (lower_is_split(state, u)) BASE_TRY(lower_split_weights(state, u, error));
    return SIFR_OK;
}

static sifr_status lower_items(lower_state *state, const plan_walk *walk, sifr_error *error) {
    static sifr_status (*const passes[PLAN_WALK_PASSES])(lower_state *, const plan_walk_item *,
                                                         sifr_error *) = {
        [PLAN_WALK_FORWARD] = forward_item,
        [PLAN_WALK_BACKWARD] = backward_item,
        [PLAN_WALK_WEIGHTS] = weights_item};
    for (size_t i = 0; i < walk->count; i++)
        BASE_TRY(passes[walk->items[i].pass](state, &walk->items[i], error));
    return SIFR_OK;
}

static plan_walk_shape walk_shape(const plan_settings *settings) {
    const plan_pipeline *p = &settings->pipeline;
    bool by_unit = settings->step.step_order == SIFR_STEP_UNIT;
    plan_walk_shape shape = {.order = by_unit ? PLAN_WALK_UNIT : PLAN_WALK_BATCH,
                             .stages = 1,
                             .chunks = 1,
                             .micro_batches = settings->step.gradient_accumulation_steps};
    if (plan_parts(p) == 1) return shape;
    shape.order = p->order;
    shape.stages = p->stages;
    shape.chunks = p->chunks;
    return shape;
}

static sifr_status lower_step(lower_state *state, sifr_error *error) {
    const plan_settings *settings = &state->s->settings;
    bool training = settings->mode == PLAN_TRAIN;
    plan_walk_shape shape = walk_shape(settings);
    plan_walk walk;
    if (training) BASE_TRY(emit_count(state, error));
    BASE_TRY(plan_walk_make(&shape, settings->pipeline.stage, training, &walk, error));
    sifr_status status = lower_items(state, &walk, error);
    plan_walk_free(&walk);
    state->micro_batch = -1;
    if (status != SIFR_OK || !training) return status;
    BASE_TRY(lower_borrowed(state, error));
    BASE_TRY(lower_update(state, error));
    return lower_share_weights(state, error);
}

/* The inputs of micro batch j, and its losses. Tokens and labels are the caller's whatever the
 * model reads; positions are the same in all micro batches, but for packed models. */
static sifr_status add_inputs(lower_state *state, int32_t j, sifr_error *error) {
    plan_schedule *s = state->s;
    int64_t bytes = state->tokens * 4;
    static const sifr_input order[] = {SIFR_TOKENS, SIFR_LABELS};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        int32_t *at = &s->inputs[order[i]][j];
        BASE_TRY(plan_add_buffer(s, PLAN_INPUTS, bytes, -1, j, true, at, error));
    }
    const model_node *head = &state->model->nodes[state->model->node_count - 1];
    int64_t numbers = state->model->values[head->y].columns;
    BASE_TRY(plan_add_buffer(s, PLAN_INPUTS, bytes * numbers, -1, j, true, &s->losses[j], error));
    int32_t *positions = s->inputs[SIFR_POSITIONS];
    bool own = j == 0 || state->model->packed;
    if (own) BASE_TRY(plan_add_buffer(s, PLAN_INPUTS, bytes, -1, j, true, &positions[j], error));
    if (!own) positions[j] = positions[0];
    for (int i = SIFR_TOKEN_TYPES; i < SIFR_INPUTS; i++) {
        int32_t *at = &s->inputs[i][j];
        *at = -1;
        if (state->model->inputs[i] < 0) continue;
        int64_t columns = state->model->values[state->model->inputs[i]].columns;
        int64_t rows = lower_rows(state, state->model->inputs[i], false);
        BASE_TRY(plan_add_buffer(s, PLAN_INPUTS, rows * 4 * columns, -1, j, true, at, error));
    }
    return SIFR_OK;
}

/* A segment's parameters and states. */
static sifr_status add_segment(lower_state *state, int32_t g, sifr_error *error) {
    plan_schedule *s = state->s;
    const plan_settings *settings = &s->settings;
    const model_segment *segment = &state->model->segments[g];
    int64_t elements = lower_is_read_here(state, g) ? plan_padded_elements(s, g) : 0;
    int64_t bytes = settings->external_parameters
                        ? 0
                        : model_held_bytes(segment->coding, elements, state->element);
    s->segment_elements[g] = elements;
    s->masters[g] = -1;
    s->weight_sums[g] = s->whole_values[g] = -1;
    for (int i = 0; i < OPTIM_STATES; i++) s->states[i][g] = -1;
    BASE_TRY(
        plan_add_segment_buffer(s, PLAN_PARAMETERS, bytes, g, -1, true, &s->parameters[g], error));
    if (settings->mode != PLAN_TRAIN || segment->frozen) return SIFR_OK;
    if (!lower_is_here(state, segment->unit)) return SIFR_OK;
    if (plan_has_masters(settings)) {
        BASE_TRY(plan_add_segment_buffer(s, PLAN_MASTERS, elements * 4, g, -1, true, &s->masters[g],
                                         error));
    }
    const optim_row *row = plan_row(s, g);
    if (row->by_weight) BASE_TRY(lower_weight_sums(state, g, error));
    for (int i = 0; i < optim_states(row); i++) {
        int64_t values = optim_values(row, i, elements);
        if (row->states[i].axis) values = optim_axis_place(row, i, state->model, g, INT64_MAX);
        int64_t size = values * base_dtype_bytes(plan_state_type(settings, row, i));
        BASE_TRY(
            plan_add_segment_buffer(s, PLAN_MOMENTS, size, g, i, true, &s->states[i][g], error));
    }
    return SIFR_OK;
}

/* Makes the buffers that live for the whole step or longer. */
static sifr_status add_permanent(lower_state *state, sifr_error *error) {
    plan_schedule *s = state->s;
    const plan_settings *settings = &s->settings;
    const sifr_model *model = state->model;
    BASE_TRY(plan_add_buffer(s, PLAN_SCRATCH, 0, -1, -1, true, &s->scratch, error));
    for (int32_t g = 0; g < (int32_t)model->segment_count; g++)
        BASE_TRY(add_segment(state, g, error));
    int64_t positions =
        settings->mode == PLAN_GENERATE ? settings->cache_length : settings->step.seq_length;
    for (size_t t = 0; t < model->table_count; t++) {
        BASE_TRY(plan_add_buffer(s, PLAN_CONSTANTS, positions * model->tables[t].rotary_dim * 4, -1,
                                 (int32_t)t, true, &s->tables[t], error));
    }
    for (int32_t j = 0; j < settings->step.gradient_accumulation_steps; j++) {
        BASE_TRY(add_inputs(state, j, error));
    }
    BASE_TRY(
        plan_add_buffer(s, PLAN_INPUTS, plan_number_bytes(s), -1, -1, true, &s->numbers, error));
    s->logits = -1;
    return lower_add_caches(state, error);
}

static sifr_status allocate(lower_state *state, sifr_error *error) {
    plan_schedule *s = state->s;
    const sifr_model *model = state->model;
    size_t segments = model->segment_count, values = model->value_count, nodes = model->node_count;
    size_t k = (size_t)s->settings.step.gradient_accumulation_steps;
    bool together = s->settings.step.step_order == SIFR_STEP_UNIT;
    size_t sets = together || plan_parts(&s->settings.pipeline) > 1 ? k : 1;
    state->sets = sets;
    BASE_TRY(base_alloc(segments, sizeof *s->parameters, &s->parameters, error));
    BASE_TRY(base_alloc(segments, sizeof *s->masters, &s->masters, error));
    for (int i = 0; i < OPTIM_STATES; i++)
        BASE_TRY(base_alloc(segments, sizeof *s->states[i], &s->states[i], error));
    BASE_TRY(base_alloc(segments, sizeof *s->segment_elements, &s->segment_elements, error));
    BASE_TRY(base_alloc(segments, sizeof *s->weight_sums, &s->weight_sums, error));
    BASE_TRY(base_alloc(segments, sizeof *s->whole_values, &s->whole_values, error));
    BASE_TRY(base_alloc(model->table_count, sizeof *s->tables, &s->tables, error));
    for (int i = 0; i < SIFR_INPUTS; i++) {
        BASE_TRY(base_alloc(k, sizeof *s->inputs[i], &s->inputs[i], error));
    }
    BASE_TRY(base_alloc(k, sizeof *s->losses, &s->losses, error));
    BASE_TRY(base_alloc(nodes * 2, sizeof *s->caches, &s->caches, error));
    BASE_TRY(base_alloc(values * sets, sizeof *state->buffer_of, &state->buffer_of, error));
    BASE_TRY(base_alloc(nodes * sets, sizeof *state->saved, &state->saved, error));
    BASE_TRY(base_alloc(values * sets, sizeof *state->local, &state->local, error));
    BASE_TRY(base_alloc(values * sets, sizeof *state->gradient, &state->gradient, error));
    BASE_TRY(base_alloc(values * sets, sizeof *state->slice_written, &state->slice_written, error));
    BASE_TRY(base_alloc(2 * nodes, sizeof *state->forward_calls, &state->forward_calls, error));
    BASE_TRY(base_alloc(2 * nodes, sizeof *state->backward_calls, &state->backward_calls, error));
    BASE_TRY(base_alloc(2 * nodes, sizeof *state->weight_calls, &state->weight_calls, error));
    BASE_TRY(base_alloc(nodes, sizeof *state->in_place, &state->in_place, error));
    BASE_TRY(base_alloc(nodes, sizeof *state->recompute, &state->recompute, error));
    BASE_TRY(base_alloc(nodes, sizeof *state->feeds_other_units, &state->feeds_other_units, error));
    BASE_TRY(base_alloc(nodes, sizeof *state->carries, &state->carries, error));
    BASE_TRY(base_alloc(nodes, sizeof *state->later, &state->later, error));
    BASE_TRY(base_alloc(values, sizeof *state->mixed, &state->mixed, error));
    BASE_TRY(base_alloc(model->weight_count, sizeof *state->weight_written, &state->weight_written,
                        error));
    BASE_TRY(base_alloc(nodes * DEVICE_WEIGHTS, sizeof *state->use_of, &state->use_of, error));
    BASE_TRY(base_alloc(segments, sizeof *state->own_use, &state->own_use, error));
    for (size_t n = 0; n < 2 * nodes; n++)
        state->forward_calls[n] = state->backward_calls[n] = state->weight_calls[n] = -1;
    if (s->settings.mode == PLAN_TRAIN) plan_reserve(s, 2 * nodes * k, 8 * nodes * k);
    return SIFR_OK;
}

static void release(lower_state *state) {
    void *const blocks[] = {
        state->buffer_of,     state->saved,          state->gradient,      state->places,
        state->forward_calls, state->backward_calls, state->in_place,      state->recompute,
        state->mixed,         state->slice_written,  state->slot_of,       state->sums,
        state->sum_buffers,   state->uses,           state->use_of,        state->own_use,
        state->fresh,         state->weight_written, state->carries,       state->feeds_other_units,
        state->local,         state->last_part,      state->gradient_part, state->weight_calls,
        state->later};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
    lower_free_tiles(state);
}

static sifr_status check_tiles(const device *dev, const plan_settings *settings,
                               sifr_error *error) {
    int64_t tokens = settings->step.tile_tokens, chunk = device_token_chunk(dev);
    if (tokens >= 0 && tokens % chunk == 0) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "tile_tokens %lld: tiles are whole chunks of %lld tokens, in which gradients "
                     "are added on this device; give a multiple of that, or 0 for none",
                     (long long)tokens, (long long)chunk);
}

/* Without slices, only optimizer state and activations can be in host memory. */
static sifr_status check_host_tier(const device *dev, const plan_settings *settings,
                                   sifr_error *error) {
    const sifr_offload *f = &settings->step.offload;
    if (!device_is_separate(dev)) return SIFR_OK; /* it is the device's own */
    if (f->param.device == SIFR_TIER_CPU && !plan_cuts(settings, PLAN_CUT_WEIGHTS))
        return base_fail(
            error, SIFR_USAGE,
            "offload: parameters are in host memory at ZeRO stage 3 only, but this is stage %d",
            (int)settings->step.zero.stage);
    if (f->gradients != SIFR_TIER_CPU || !plan_sums_are_whole(settings)) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "offload: gradients of several ranks are in host memory at ZeRO stages 2 and "
                     "3 only, but this is stage %d",
                     (int)settings->step.zero.stage);
}

static sifr_status check_settings(const sifr_model *model, const device *dev,
                                  const plan_settings *settings, sifr_error *error) {
    int64_t tokens, largest = 0, bytes;
    if (!model->finished) return base_fail(error, SIFR_USAGE, "plan: the model is not finished");
    if (settings->mode == PLAN_TRAIN && sifr_model_trained(model) == 0) {
        return base_fail(error, SIFR_USAGE,
                         "freeze: every weight is frozen, nothing is left to train");
    }
    bool counts = settings->step.micro_batch_size >= 1 && settings->step.seq_length >= 1 &&
                  settings->step.gradient_accumulation_steps >= 1 &&
                  plan_mesh_ranks(&settings->mesh, PLAN_WORLD) >= 1;
    bool type = settings->step.precision <= SIFR_FP16;
    if (!counts || !type) {
        return base_fail(error, SIFR_USAGE,
                         "plan: sequences, length, micro batches and ranks must be at least 1, and "
                         "the type fp32, bf16 or fp16");
    }
    for (size_t v = 0; v < model->value_count; v++) {
        if (model->values[v].rows == 0) largest = base_max_i64(largest, model->values[v].columns);
    }
    if (!base_mul_i64(settings->step.micro_batch_size, settings->step.seq_length, &tokens) ||
        tokens > INT32_MAX || !base_mul_i64(tokens, largest * 8, &bytes) ||
        bytes > INT64_MAX / 1024 || settings->cache_length > INT32_MAX ||
        !base_mul_i64(plan_cache_rows(settings), largest * 8, &bytes) || bytes > INT64_MAX / 1024) {
        return base_fail(
            error, SIFR_USAGE,
            "plan: a micro batch of %lld sequences of %lld tokens is too large; give a smaller one",
            (long long)settings->step.micro_batch_size, (long long)settings->step.seq_length);
    }
    BASE_TRY(check_tiles(dev, settings, error));
    BASE_TRY(check_host_tier(dev, settings, error));
    /* An estimate: forward and backward of every op are instructions. */
    if ((double)model->node_count * 2 * settings->step.gradient_accumulation_steps >
        PLAN_INSTRUCTION_LIMIT) {
        return base_fail(error, SIFR_USAGE,
                         "schedule: a step of more than %d instructions is not supported; lower "
                         "gradient_accumulation_steps, or the model's number of layers",
                         PLAN_INSTRUCTION_LIMIT);
    }
    for (size_t n = 0; n < model->node_count; n++) { /* learned positions end somewhere */
        const model_node *node = &model->nodes[n];
        if (!model_numbers_rows(node, model->inputs[SIFR_POSITIONS])) continue;
        int64_t rows = model_numbered_rows(model, node);
        int64_t wanted =
            settings->mode == PLAN_GENERATE ? settings->cache_length : settings->step.seq_length;
        if (wanted > rows) {
            return base_fail(error, SIFR_USAGE,
                             "sequence length %lld: the model has learned positions for %lld only "
                             "(%s); give a shorter one",
                             (long long)wanted, (long long)rows, model->weights[node->w[0]].name);
        }
    }
    return SIFR_OK;
}

/* The spread for plan_pass_delay_update. Ranks other than the first use the first rank's plan,
 * since all must do the same even if a rank has nothing to write. 0: the pass is left out. */
static sifr_status find_spread(const plan_schedule *s, const bool *kept, int32_t *spread,
                               sifr_error *error) {
    plan_settings first = s->settings;
    plan_schedule *other;
    *spread = 0;
    if (!plan_may_delay_update(s)) return SIFR_OK;
    if (plan_mesh_place(&first.mesh, PLAN_WORLD) == 0) {
        if (plan_update_writes(s)) *spread = -1;
        return SIFR_OK;
    }
    first.mesh = plan_mesh_at(&first.mesh, 0);
    BASE_TRY(lower_list(s->model, s->dev, &first, kept, &other, error));
    *spread = other->spread;
    plan_free(other);
    return SIFR_OK;
}

/* To the verifier each row of a strided operand is a range of its own. Builds with assertions,
 * which verify by default, skip micro batches that would take minutes and gigabytes. */
enum { MOST_VERIFIED_TOKENS = 1 << 16 };

static bool is_verified(const plan_settings *settings) {
#ifdef SIFR_ASSERTS
    return settings->verify ||
           settings->step.micro_batch_size <= MOST_VERIFIED_TOKENS / settings->step.seq_length;
#else
    return settings->verify;
#endif
}

/* Those that are not about memory, in order. */
static sifr_status run_passes(plan_schedule *s, sifr_error *error) {
    static sifr_status (*const passes[])(plan_schedule * schedule, sifr_error * error) = {
        plan_pass_cut_activations,
        plan_pass_zero,
        plan_pass_replicas,
        plan_pass_compress,
        plan_pass_tensors,
        plan_pass_reuse,
        plan_pass_secondary,
        plan_pass_overlap,
        plan_pass_quantise,
        plan_pass_quantise_sums,
        plan_pass_stages,
        plan_pass_offload_parameters,
        plan_pass_offload_gradients,
        plan_pass_offload_activations,
        plan_pass_offload_optimizer,
    };
    const plan_instruction *verified = NULL; /* a pass without work leaves the list unchanged */
    BASE_TRY(plan_pass_decode(s, error));    /* until then codes stand for values */
    for (size_t p = 0; p < sizeof passes / sizeof *passes; p++) {
        if (is_verified(&s->settings) && s->instructions != verified)
            BASE_TRY(plan_verify_list(s, error));
        verified = s->instructions;
        BASE_TRY(passes[p](s, error));
    }
    return SIFR_OK;
}

sifr_status lower_list(const sifr_model *model, device *dev, const plan_settings *settings,
                       const bool *kept, plan_schedule **out, sifr_error *error) {
    plan_schedule *s;
    BASE_TRY(base_alloc(1, sizeof *s, &s, error));
    s->model = model;
    s->dev = dev;
    s->settings = *settings;
    s->errors = s->bases = -1;
    lower_state state = {.s = s,
                         .model = model,
                         .tokens = plan_tokens(settings),
                         .element = base_dtype_bytes(plan_dtype(settings)),
                         .micro_batch = -1,
                         .kept = kept,
                         .summing = {.value = -1}};
    sifr_status status;
    int32_t spread;
    state.part = lower_whole(&state);
    BASE_TRY_GOTO(status, allocate(&state, error), done);
    BASE_TRY_GOTO(status, add_permanent(&state, error), done);
    BASE_TRY_GOTO(status, lower_analyse(&state, error), done);
    BASE_TRY_GOTO(status, lower_find_crossings(&state, error), done);
    BASE_TRY_GOTO(status, lower_find_tiles(&state, error), done);
    BASE_TRY_GOTO(status, lower_plan_sums(&state, error), done);
    BASE_TRY_GOTO(status, lower_step(&state, error), done);
    plan_assign_tiers(s);
    BASE_TRY_GOTO(status, run_passes(s, error), done);
    BASE_TRY_GOTO(status, find_spread(s, kept, &spread, error), done);
    status = spread ? plan_pass_delay_update(s, spread, error) : plan_memory(s, error);
    if (status != SIFR_OK) goto done;
    if (is_verified(settings)) BASE_TRY_GOTO(status, plan_verify(s, error), done);
    *out = s;
    s = NULL;
done:
    release(&state);
    plan_free(s);
    return status;
}

/* Where no matrix would be compressed, a run is one without: it has its bits, and cuts its sums. */
static void settle_compression(const sifr_model *model, plan_settings *settings) {
    int64_t compressed, matrices;
    plan_count_compressed(model, settings, &compressed, &matrices);
    if (plan_compresses(settings) && compressed == 0)
        settings->step.compression.type = SIFR_COMPRESSION_NONE;
}

static sifr_status lower(const sifr_model *model, device *dev, const plan_settings *asked,
                         plan_schedule **out, sifr_error *error) {
    plan_settings here = *asked;
    const plan_settings *settings = &here;
    here.mesh.alike = model->copies > 1 ? model->copies : 0;
    BASE_TRY(check_settings(model, dev, settings, error));
    if (settings->mode == PLAN_TRAIN)
        BASE_TRY(optim_check_groups(model, &settings->step.optimizer, error));
    BASE_TRY(lower_cut_model(model, dev, &here, error));
    settle_compression(model, &here);
    if (settings->mode == PLAN_TRAIN && settings->step.recompute == SIFR_RECOMPUTE_AUTO)
        BASE_TRY(lower_keep(model, dev, settings, out, error));
    else
        BASE_TRY(lower_list(model, dev, settings, NULL, out, error));
    if (settings->mode != PLAN_TRAIN || plan_parts(&here.pipeline) == 1) return SIFR_OK;
    sifr_status status = lower_hold_evaluation(*out, error);
    if (status == SIFR_OK) return SIFR_OK;
    plan_free(*out);
    *out = NULL;
    return status;
}

sifr_status plan_lower(const sifr_model *model, device *dev, const plan_settings *settings,
                       plan_schedule **out, sifr_error *error) {
    sifr_model *part;
    BASE_TRY(lower_cut_ranks(model, dev, settings, &part, error));
    sifr_status status = lower(part ? part : model, dev, settings, out, error);
    if (status == SIFR_OK)
        (*out)->part = part;
    else if (part)
        sifr_model_free(part);
    return status;
}

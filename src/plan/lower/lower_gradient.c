/* Gradients of weights: partial sums over micro batches, tied weights. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "plan/list.h"
#include "plan/lower/lower.h"
#include "plan/queries.h"

/* Appends the sums of a range of micro batches into `slot`, one after the other. */
static void left_to_right(lower_state *state, int32_t first, int32_t count, int32_t slot) {
    base_assert(count >= 1);
    if (slot + 1 + (count > 1) > state->slots) state->slots = slot + 1 + (count > 1);
    for (int32_t i = 0; i < count; i++) {
        state->slot_of[first + i] = slot + (i > 0);
        if (i == 0) continue;
        state->sums[state->sum_count++] =
            (lower_sum){.after = first + i, .into = slot, .from = slot + 1};
    }
}

/* The same in a tree: a range of even length is the sum of its halves, an odd one is summed left to
 * right. device/tree_sum.h adds ranks by the same rule, so the bits do not depend on which micro
 * batches are on which rank. */
static void tree(lower_state *state, int32_t first, int32_t count, int32_t slot) {
    if (count % 2) {
        left_to_right(state, first, count, slot);
        return;
    }
    tree(state, first, count / 2, slot);
    tree(state, first + count / 2, count / 2, slot + 1);
    state->sums[state->sum_count++] =
        (lower_sum){.after = first + count - 1, .into = slot, .from = slot + 1};
}

/* Ranks add each micro batch across ranks before a rank adds its own, so each needs a sum. */
static bool each_is_reduced(const plan_settings *settings) {
    return plan_slices(settings, PLAN_CUT_SUMS) > 1 &&
           settings->step.step_order == SIFR_STEP_BATCH &&
           settings->step.gradient_accumulation_steps > 1;
}

/* The use of a trained segment by `unit`; a new one where there is none yet. */
static sifr_status find_use(lower_state *state, size_t *capacity, int32_t unit, int32_t segment,
                            int32_t *out, sifr_error *error) {
    for (int32_t u = 0; u < state->use_count; u++) {
        if (state->uses[u].unit != unit || state->uses[u].segment != segment) continue;
        *out = u;
        return SIFR_OK;
    }
    BASE_TRY(base_grow(&state->uses, capacity, (size_t)state->use_count + 1, sizeof *state->uses,
                       error));
    *out = state->use_count;
    state->uses[state->use_count++] = (lower_use){.unit = unit, .segment = segment};
    return SIFR_OK;
}

static sifr_status find_node_uses(lower_state *state, size_t *capacity, size_t n,
                                  sifr_error *error) {
    const sifr_model *model = state->model;
    const model_node *node = &model->nodes[n];
    if (node->w[1] >= 0 && model->weights[node->w[1]].unit != node->unit) {
        return base_fail(error, SIFR_USAGE,
                         "unit %s: %s: weight %s belongs to another unit, so it can only be "
                         "the first weight of an op",
                         model->units[node->unit].name, node->op->name,
                         model->weights[node->w[1]].name);
    }
    for (int w = 0; w < DEVICE_WEIGHTS; w++) {
        int32_t *use = &state->use_of[DEVICE_WEIGHTS * n + (size_t)w];
        *use = -1;
        if (node->w[w] < 0) continue;
        const model_weight *weight = &model->weights[node->w[w]];
        *use = state->own_use[weight->segment];
        if (weight->frozen || weight->unit == node->unit) continue;
        BASE_TRY(find_use(state, capacity, node->unit, weight->segment, use, error));
    }
    return SIFR_OK;
}

sifr_status lower_plan_sums(lower_state *state, sifr_error *error) {
    const sifr_model *model = state->model;
    const plan_settings *settings = &state->s->settings;
    int32_t k = settings->step.gradient_accumulation_steps;
    size_t capacity = 0;
    BASE_TRY(base_alloc((size_t)k, sizeof *state->slot_of, &state->slot_of, error));
    BASE_TRY(base_alloc((size_t)k, sizeof *state->sums, &state->sums, error));
    state->slots = 1;
    state->sum_type = device_dtype_of(settings->step.grad_accum_dtype);
    if (settings->step.gradient_order == SIFR_GRADIENT_TREE) {
        tree(state, 0, k, 0);
    } else if (each_is_reduced(settings) || state->sum_type != BASE_FP32) {
        left_to_right(state, 0, k, 0);
        base_assert(state->sum_count == k - 1);
    } else {
        state->added_at_once = true;
    }
    for (int32_t g = 0; g < (int32_t)model->segment_count; g++) {
        const model_segment *segment = &model->segments[g];
        state->own_use[g] = -1;
        if (segment->frozen) continue;
        BASE_TRY(find_use(state, &capacity, segment->unit, g, &state->own_use[g], error));
    }
    for (size_t n = 0; n < model->node_count; n++)
        BASE_TRY(find_node_uses(state, &capacity, n, error));
    size_t sums = (size_t)state->use_count * (size_t)state->slots;
    BASE_TRY(base_alloc(sums, sizeof *state->sum_buffers, &state->sum_buffers, error));
    for (size_t i = 0; i < sums; i++) state->sum_buffers[i] = -1;
    return base_alloc((size_t)state->use_count, sizeof *state->fresh, &state->fresh, error);
}

static int32_t *sum_buffer(const lower_state *state, int32_t use, int32_t slot) {
    base_assert(use >= 0 && use < state->use_count && slot >= 0 && slot < state->slots);
    return &state->sum_buffers[(size_t)use * (size_t)state->slots + (size_t)slot];
}

static int32_t current_slot(const lower_state *state) {
    return state->added_at_once ? 0 : state->slot_of[state->micro_batch];
}

/* Where kernels write a micro batch's gradient: FP32. */
static int32_t made_in(const lower_state *state, int32_t use) {
    return state->sum_type == BASE_FP32 ? *sum_buffer(state, use, current_slot(state))
                                        : state->fresh[use];
}

lower_operand lower_weight_gradient(const lower_state *state, const model_node *node, int which) {
    const model_weight *w = &state->model->weights[node->w[which]];
    int32_t use = state->use_of[(node - state->model->nodes) * DEVICE_WEIGHTS + which];
    base_assert(use >= 0); /* or the weight is frozen */
    return (lower_operand){.buffer = made_in(state, use),
                           .offset = w->offset * 4,
                           .matrix = lower_matrix(w->rows, w->columns, BASE_FP32)};
}

lower_operand lower_vector(int32_t buffer, int64_t first, int64_t elements, base_dtype dtype) {
    base_assert(buffer >= 0 && first >= 0);
    return (lower_operand){.buffer = buffer,
                           .offset = first * base_dtype_bytes(dtype),
                           .matrix = lower_matrix(1, elements, dtype)};
}

static lower_operand vector_at(int32_t buffer, int64_t first, int64_t elements) {
    return lower_vector(buffer, first, elements, BASE_FP32);
}

static lower_operand sum_at(const lower_state *state, int32_t buffer, int64_t first,
                            int64_t elements) {
    return lower_vector(buffer, first, elements, state->sum_type);
}

static sifr_status emit_clear(lower_state *state, int32_t use, int64_t first, int64_t elements,
                              sifr_error *error) {
    base_assert(elements >= 0);
    if (elements == 0) return SIFR_OK;
    device_call call;
    memset(&call, 0, sizeof call);
    call.kernel = DEVICE_CLEAR;
    int32_t buffer = made_in(state, use);
    BASE_TRY(lower_put(state, &call, PLAN_Y, vector_at(buffer, first, elements), error));
    return lower_emit(state, PLAN_ADD, state->uses[use].unit, -1, &call, NULL, false, error);
}

/* Of sums: into += from with DEVICE_ADD_INTO, into = from with DEVICE_CONVERT. */
static sifr_status emit_sum(lower_state *state, device_kernel kernel, int32_t unit,
                            lower_operand into, lower_operand from, sifr_error *error) {
    device_call call;
    memset(&call, 0, sizeof call);
    call.kernel = kernel;
    BASE_TRY(lower_put(state, &call, PLAN_X0, from, error));
    BASE_TRY(lower_put(state, &call, PLAN_Y, into, error));
    return lower_emit(state, PLAN_ADD, unit, -1, &call, NULL, false, error);
}

sifr_status lower_begin_unit(lower_state *state, int32_t unit, sifr_error *error) {
    memset(state->weight_written, 0, state->model->weight_count * sizeof *state->weight_written);
    for (int32_t use = 0; use < state->use_count; use++) {
        int32_t *buffer = sum_buffer(state, use, current_slot(state));
        int32_t segment = state->uses[use].segment;
        int64_t elements = state->s->segment_elements[segment];
        if (state->uses[use].unit != unit) continue;
        if (state->sum_type != BASE_FP32) {
            BASE_TRY(plan_add_segment_buffer(state->s, PLAN_GRADIENTS, elements * 4, segment, -1,
                                             false, &state->fresh[use], error));
        }
        if (*buffer >= 0) continue;
        BASE_TRY(plan_add_segment_buffer(state->s, PLAN_GRADIENTS,
                                         elements * base_dtype_bytes(state->sum_type), segment,
                                         current_slot(state), false, buffer, error));
    }
    return SIFR_OK;
}

/* No kernel writes padding, or weights that this use does not touch. */
static sifr_status clear_unwritten(lower_state *state, int32_t use, sifr_error *error) {
    const sifr_model *model = state->model;
    int32_t segment = state->uses[use].segment;
    const model_unit *owner = &model->units[model->segments[segment].unit];
    int64_t end = 0;
    for (int32_t w = owner->first_weight; w < owner->first_weight + owner->weights; w++) {
        const model_weight *weight = &model->weights[w];
        if (weight->segment != segment) continue;
        int64_t elements = weight->rows * weight->columns;
        int64_t written = state->weight_written[w] ? elements : 0;
        end = weight->offset + base_ceil_to(elements, DEVICE_BLOCK);
        BASE_TRY(emit_clear(state, use, weight->offset + written, end - weight->offset - written,
                            error));
    }
    return emit_clear(state, use, end, state->s->segment_elements[segment] - end, error);
}

sifr_status lower_end_unit(lower_state *state, int32_t unit, sifr_error *error) {
    bool first = !(state->added_at_once && state->micro_batch > 0);
    BASE_TRY(lower_fold_sums(state, error));
    for (int32_t use = 0; use < state->use_count; use++) {
        if (state->uses[use].unit != unit) continue;
        int64_t elements = state->s->segment_elements[state->uses[use].segment];
        if (first) BASE_TRY(clear_unwritten(state, use, error));
        if (state->sum_type != BASE_FP32) {
            int32_t sum = *sum_buffer(state, use, current_slot(state));
            BASE_TRY(emit_sum(state, DEVICE_CONVERT, unit, sum_at(state, sum, 0, elements),
                              vector_at(state->fresh[use], 0, elements), error));
        }
        for (int32_t i = 0; i < state->sum_count; i++) {
            const lower_sum *sum = &state->sums[i];
            if (sum->after != state->micro_batch) continue;
            int32_t *into = sum_buffer(state, use, sum->into);
            int32_t *from = sum_buffer(state, use, sum->from);
            BASE_TRY(emit_sum(state, DEVICE_ADD_INTO, unit, sum_at(state, *into, 0, elements),
                              sum_at(state, *from, 0, elements), error));
            *from = -1; /* free for the next partial sum */
        }
    }
    return SIFR_OK;
}

bool lower_owns_segment(const lower_state *state, int32_t segment) {
    return state->own_use[segment] >= 0 &&
           lower_is_here(state, state->model->segments[segment].unit);
}

/* The sum of a use, or where it arrives from the stage that has it; -1: of no concern here. */
static sifr_status borrowed_sum(lower_state *state, int32_t use, int32_t *buffer,
                                sifr_error *error) {
    bool uses = lower_is_here(state, state->uses[use].unit);
    bool owns = lower_owns_segment(state, state->uses[use].segment);
    *buffer = uses ? *sum_buffer(state, use, 0) : -1;
    if (uses == owns) return SIFR_OK;
    if (owns) return lower_receive_sum(state, use, buffer, error);
    BASE_TRY(lower_send_sum(state, use, *buffer, error));
    *buffer = -1;
    return SIFR_OK;
}

sifr_status lower_borrowed(lower_state *state, sifr_error *error) {
    for (int32_t use = 0; use < state->use_count; use++) {
        int32_t segment = state->uses[use].segment, own = state->own_use[segment], buffer;
        int64_t elements = state->s->segment_elements[segment];
        if (use == own) continue;
        BASE_TRY(borrowed_sum(state, use, &buffer, error));
        if (buffer < 0) continue;
        BASE_TRY(emit_sum(state, DEVICE_ADD_INTO, state->uses[own].unit,
                          sum_at(state, *sum_buffer(state, own, 0), 0, elements),
                          sum_at(state, buffer, 0, elements), error));
    }
    return SIFR_OK;
}

lower_operand lower_gradient_sum(const lower_state *state, int32_t segment, int64_t first,
                                 int64_t elements) {
    return sum_at(state, *sum_buffer(state, state->own_use[segment], 0), first, elements);
}

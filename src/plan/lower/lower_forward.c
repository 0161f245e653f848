#include <string.h>

#include "base/assert.h"
#include "base/errors.h"
#include "model/shard_words.h"
#include "plan/list.h"
#include "plan/lower/lower.h"
#include "plan/queries.h"

/* The first node that keeps the same keys and values as node n: n itself, or one of an earlier
 * layer that n shares them with. */
static int32_t cache_owner(const sifr_model *model, int32_t n) {
    const model_node *node = &model->nodes[n];
    for (int32_t m = 0; node->op->caches && m < n; m++) {
        const model_node *other = &model->nodes[m];
        if (other->op == node->op && other->x[1] == node->x[1] && other->x[2] == node->x[2])
            return m;
    }
    return n;
}

static sifr_status add_cache(lower_state *state, int32_t n, sifr_error *error) {
    const model_op *op = state->model->nodes[n].op;
    const plan_settings *settings = &state->s->settings;
    int32_t *caches = state->s->caches, owner = cache_owner(state->model, n);
    int64_t rows, columns;
    base_dtype dtype;
    if (owner != n) {
        for (int i = 0; i < 2; i++) caches[2 * n + i] = caches[2 * owner + i];
        return SIFR_OK;
    }
    plan_cache_shape(state->model, settings, n, &rows, &columns, &dtype);
    int64_t bytes = settings->external_parameters ? 0 : rows * columns * base_dtype_bytes(dtype);
    for (int i = 0; i < (op->state ? 1 : 2); i++)
        BASE_TRY(
            plan_add_buffer(state->s, PLAN_CACHE, bytes, -1, n, true, &caches[2 * n + i], error));
    return SIFR_OK;
}

sifr_status lower_add_caches(lower_state *state, sifr_error *error) {
    int32_t *caches = state->s->caches;
    bool generates = state->s->settings.mode == PLAN_GENERATE;
    for (int32_t n = 0; n < (int32_t)state->model->node_count; n++) {
        caches[2 * n] = caches[2 * n + 1] = -1;
        if (generates && model_is_cached(state->model->nodes[n].op))
            BASE_TRY(add_cache(state, n, error));
    }
    return SIFR_OK;
}

/* Of a call in generation: its positions, and what the node keeps of earlier tokens. */
static sifr_status put_caches(lower_state *state, device_call *call, int32_t n, sifr_error *error) {
    const model_node *node = &state->model->nodes[n];
    plan_schedule *s = state->s;
    lower_operand positions = {.buffer = s->inputs[SIFR_POSITIONS][state->micro_batch],
                               .matrix = lower_matrix(state->tokens, 1, BASE_INT32)};
    BASE_TRY(lower_put(state, call, (plan_role)(PLAN_X0 + node->op->positions), positions, error));
    for (int i = 0; i < 2; i++) {
        lower_operand cache = {.buffer = s->caches[2 * n + i]};
        plan_role role = node->op->state ? PLAN_SAVED0 : (plan_role)(PLAN_W0 + i);
        int64_t rows, columns;
        base_dtype dtype;
        if (cache.buffer < 0) continue;
        plan_cache_shape(s->model, &s->settings, n, &rows, &columns, &dtype);
        cache.matrix = lower_matrix(rows, columns, dtype);
        BASE_TRY(lower_put(state, call, role, cache, error));
    }
    return SIFR_OK;
}

/* `part`: where a part of a sum goes, with tp_exact; NULL: the result, to its value. */
static sifr_status forward_kernel(lower_state *state, int32_t n, const lower_operand *part,
                                  sifr_error *error) {
    const model_node *node = &state->model->nodes[n];
    const model_op *row = node->op;
    plan_schedule *s = state->s;
    lower_operand joined;
    if (node->joined) BASE_TRY(lower_tensor_join(state, n, &joined, error));
    bool cached = model_is_cached(row) && s->settings.mode == PLAN_GENERATE;
    lower_operand statistics;
    BASE_TRY(lower_words(state, n, PLAN_FORWARD, &statistics, error));
    device_call made, *call = NULL; /* which is the same each time */
    if (*lower_cached(state, &state->forward_calls[2 * n]) < 0) {
        call = &made;
        memset(call, 0, sizeof *call); /* calls are compared bytewise */
        call->kernel = cached ? row->cached : row->forward;
        call->attributes = lower_attributes(state, node);
    }

    int inputs = cached ? row->positions : DEVICE_INPUTS;
    for (int i = 0; i < inputs; i++) {
        if (node->x[i] < 0) continue;
        BASE_TRY(lower_put(state, call, (plan_role)(PLAN_X0 + i), lower_locate(state, node->x[i]),
                           error));
    }
    if (statistics.buffer >= 0) BASE_TRY(lower_put(state, call, PLAN_X3, statistics, error));
    if (node->joined) BASE_TRY(lower_put(state, call, PLAN_X4, joined, error));
    for (int i = 0; i < DEVICE_WEIGHTS; i++) {
        if (node->w[i] < 0 || (i == 1 && (node->bias_elsewhere || part))) continue;
        BASE_TRY(lower_put(state, call, (plan_role)(PLAN_W0 + i), lower_weight(state, node->w[i]),
                           error));
    }
    if (cached) BASE_TRY(put_caches(state, call, n, error));

    const model_value *y = &state->model->values[node->y];
    int32_t *place = &state->buffer_of[lower_value(state, node->y)];
    bool local = lower_is_local(state, n);
    bool fresh = local || state->part.tile == 0; /* else the first tile made the buffer */
    if (y->kind == MODEL_VALUE_ACTIVATION) {
        state->local[lower_value(state, node->y)] = local;
        if (state->in_place[n]) {
            *place = state->buffer_of[lower_value(state, node->x[0])];
        } else if (fresh) {
            BASE_TRY(
                plan_add_buffer(s, PLAN_ACTIVATIONS,
                                lower_rows(state, node->y, local) * y->columns * state->element,
                                node->unit, node->y, false, place, error));
        }
    }
    BASE_TRY(lower_put(state, call, PLAN_Y, part ? *part : lower_locate(state, node->y), error));
    if (row->saved && !cached) {
        int64_t rows, columns;
        int32_t *saved = &state->saved[lower_node(state, n)];
        row->saved(node, lower_rows(state, node->y, local), &rows, &columns);
        if (fresh) {
            BASE_TRY(plan_add_buffer(s, PLAN_ACTIVATIONS, rows * columns * 4, node->unit, node->y,
                                     false, saved, error));
        }
        BASE_TRY(lower_put(state, call, PLAN_SAVED0, lower_saved(state, n), error));
    }
    plan_action action = state->recomputing ? PLAN_RECOMPUTE : PLAN_FORWARD;
    return lower_emit(state, action, node->unit, n, call, &state->forward_calls[2 * n], false,
                      error);
}

/* A product whose result the tensor ranks add up by tiles. */
static sifr_status forward_tiles(lower_state *state, int32_t n, const lower_operand *part,
                                 sifr_error *error) {
    int32_t value = state->model->nodes[n].y;
    lower_first_tile(state, state->model->values[value].columns);
    do {
        lower_operand tile = {0};
        if (part) tile = lower_rows_of(state, part);
        BASE_TRY(forward_kernel(state, n, part ? &tile : NULL, error));
        if (!part) tile = lower_locate(state, value);
        BASE_TRY(lower_sum_tile(state, n, value, &tile, error));
    } while (lower_next_tile(state));
    return SIFR_OK;
}

static sifr_status forward_parts(lower_state *state, int32_t n, const lower_operand *part,
                                 sifr_error *error) {
    return lower_sums_tiles(state, n, false) ? forward_tiles(state, n, part, error)
                                             : forward_kernel(state, n, part, error);
}

sifr_status lower_forward(lower_state *state, int32_t n, sifr_error *error) {
    const model_node *node = &state->model->nodes[n];
    const model_op *row = node->op;
    if (row->sums || row->sums_gradient) return lower_tensor_forward(state, n, error);
    if (row->moves) return lower_rows_forward(state, n, error);
    if (row->exchanges) return lower_context_forward(state, n, error);
    if (!node->summed || !node->attributes.linear.cut_inputs)
        return forward_parts(state, n, NULL, error);
    int64_t rows = lower_value_rows(state, node->y);
    lower_operand part,
        whole = {.matrix = lower_matrix(rows, state->model->values[node->y].columns, BASE_FP32)};
    BASE_TRY(lower_tensor_part(state, n, &whole, &part, error));
    BASE_TRY(forward_parts(state, n, &part, error));
    whole = lower_locate(state, node->y);
    return lower_tensor_finish(state, n, state->recomputing ? PLAN_RECOMPUTE : PLAN_FORWARD,
                               node->y, &part, node->w[1], &whole, false, error);
}

sifr_status lower_logits(lower_state *state, int32_t n, sifr_error *error) {
    const model_node *node = &state->model->nodes[n];
    base_assert(node->op->makes_loss && node->w[0] >= 0);
    plan_schedule *s = state->s;
    device_call call;
    if (model_words_of(node).all > 0)
        return base_fail(error, SIFR_USAGE,
                         "tensor_parallel: an evaluation that reads logits is not supported where "
                         "tensor ranks divide the vocabulary; set "
                         "tensor_parallel.vocab_parallel_lm_head to false");
    memset(&call, 0, sizeof call);
    call.kernel = node->op->logits;
    call.attributes = node->attributes;
    lower_operand x = lower_locate(state, node->x[0]);
    bool one = s->settings.step.micro_batch_size == 1;
    if (s->settings.mode == PLAN_GENERATE && one) { /* only the last token is asked for the next */
        x.offset += (x.matrix.rows - 1) * x.matrix.stride * state->element;
        x.matrix.rows = 1;
    }
    lower_operand w = lower_weight(state, node->w[0]);
    lower_operand y = {.matrix =
                           lower_matrix(x.matrix.rows, w.matrix.rows, plan_dtype(&s->settings))};
    BASE_TRY(plan_add_buffer(s, PLAN_ACTIVATIONS, y.matrix.rows * y.matrix.columns * state->element,
                             node->unit, -1, true, &s->logits, error));
    y.buffer = s->logits;
    BASE_TRY(lower_put(state, &call, PLAN_X0, x, error));
    BASE_TRY(lower_put(state, &call, PLAN_W0, w, error));
    if (node->w[1] >= 0)
        BASE_TRY(lower_put(state, &call, PLAN_W1, lower_weight(state, node->w[1]), error));
    BASE_TRY(lower_put(state, &call, PLAN_Y, y, error));
    return lower_emit(state, PLAN_FORWARD, node->unit, n, &call, NULL, false, error);
}

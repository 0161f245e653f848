/* Tensor ranks: this rank's part of a model, and the sums over all ranks of values and gradients.
 * Their start is lowered alone: pass_overlap.c waits for it before the sum is used. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/errors.h"
#include "model/shard.h"
#include "model/shard_rows.h"
#include "plan/list.h"
#include "plan/lower/lower.h"
#include "plan/queries.h"

sifr_status lower_tensor_sum(lower_state *state, int32_t n, const lower_operand *from,
                             const lower_operand *to, sifr_error *error) {
    plan_schedule *s = state->s;
    plan_code code = plan_code_of(from->matrix.dtype);
    int32_t ranks = plan_mesh_ranks(&s->settings.mesh, PLAN_TENSORS);
    int64_t elements = from->matrix.rows * from->matrix.columns;
    base_assert(from->matrix.stride == from->matrix.columns);
    bool of_tokens = from->matrix.rows == plan_tokens(&s->settings);
    if (elements % ranks)
        return base_fail(
            error, SIFR_USAGE,
            "tensor_parallel: unit %s: a sum of %lld x %lld values is not divided among %d ranks; "
            "give %s",
            s->model->units[s->model->nodes[n].unit].name, (long long)from->matrix.rows,
            (long long)from->matrix.columns, (int)ranks,
            of_tokens ? "a sequence length or a micro batch that is a multiple of the ranks"
                      : "a number of ranks that divides these, or leave out what they are for (the "
                        "norms of DoRA's weights)");
    BASE_TRY(plan_add_operand(s, PLAN_X0, from->buffer, from->offset, error));
    BASE_TRY(plan_add_operand(s, PLAN_Y, to->buffer, to->offset, error));
    return plan_add_collective(
        s,
        &(plan_collective){.action = PLAN_SUM,
                           .span = PLAN_TENSORS,
                           .encoding = code,
                           .sum = from->matrix.dtype,
                           .segment = -1,
                           .unit = s->model->nodes[n].unit,
                           .micro_batch = state->micro_batch,
                           .bytes = plan_encoded_bytes(code, elements / ranks)},
        error);
}

sifr_status lower_tensor_part(lower_state *state, int32_t n, const lower_operand *like,
                              lower_operand *part, sifr_error *error) {
    const model_node *node = &state->model->nodes[n];
    int64_t rows = like->matrix.rows, columns = like->matrix.columns;
    *part = (lower_operand){.matrix = lower_matrix(rows, columns, BASE_FP32)};
    return plan_add_buffer(state->s, PLAN_ACTIVATIONS, rows * columns * 4, node->unit, node->y,
                           false, &part->buffer, error);
}

sifr_status lower_tensor_finish(lower_state *state, int32_t n, plan_action action, int32_t value,
                                const lower_operand *part, int32_t bias, const lower_operand *to,
                                bool add, sifr_error *error) {
    device_call call;
    if (state->summing.value == value)
        BASE_TRY(lower_end_sum(state, n, error));
    else
        BASE_TRY(lower_tensor_sum(state, n, part, part, error));
    memset(&call, 0, sizeof call);
    call.kernel = add ? DEVICE_FINISH_INTO : DEVICE_FINISH_SUM;
    BASE_TRY(lower_put(state, &call, PLAN_X0, *part, error));
    if (bias >= 0) BASE_TRY(lower_put(state, &call, PLAN_W1, lower_weight(state, bias), error));
    BASE_TRY(lower_put(state, &call, PLAN_Y, *to, error));
    return lower_emit(state, action, state->model->nodes[n].unit, n, &call, NULL, false, error);
}

sifr_status lower_tensor_join(lower_state *state, int32_t n, lower_operand *out,
                              sifr_error *error) {
    const model_node *node = &state->model->nodes[n];
    int64_t rows = state->model->values[node->y].columns;
    device_call call;
    memset(&call, 0, sizeof call);
    call.kernel = node->op->forward;
    call.attributes = node->attributes;
    *out = (lower_operand){.matrix = lower_matrix(rows, 1, BASE_FP32)};
    BASE_TRY(plan_add_buffer(state->s, PLAN_ACTIVATIONS, rows * 4, node->unit, node->y, false,
                             &out->buffer, error));
    for (int i = 1; i <= 2; i++)
        BASE_TRY(lower_put(state, &call, (plan_role)(PLAN_X0 + i), lower_locate(state, node->x[i]),
                           error));
    BASE_TRY(lower_put(state, &call, PLAN_W0, lower_weight(state, node->w[0]), error));
    BASE_TRY(lower_put(state, &call, PLAN_SAVED0, *out, error));
    BASE_TRY(lower_emit(state, state->recomputing ? PLAN_RECOMPUTE : PLAN_FORWARD, node->unit, n,
                        &call, NULL, false, error));
    return lower_tensor_sum(state, n, out, out, error);
}

/* y is x0, at another place. */
static sifr_status copy(lower_state *state, int32_t n, const lower_operand *x,
                        const lower_operand *y, sifr_error *error) {
    device_call call;
    memset(&call, 0, sizeof call);
    call.kernel = DEVICE_CONVERT;
    BASE_TRY(lower_put(state, &call, PLAN_X0, *x, error));
    BASE_TRY(lower_put(state, &call, PLAN_Y, *y, error));
    return lower_emit(state, state->recomputing ? PLAN_RECOMPUTE : PLAN_FORWARD,
                      state->model->nodes[n].unit, n, &call, NULL, false, error);
}

sifr_status lower_tensor_forward(lower_state *state, int32_t n, sifr_error *error) {
    const model_node *node = &state->model->nodes[n];
    int32_t *place = &state->buffer_of[lower_value(state, node->y)];
    int64_t columns = state->model->values[node->y].columns;
    base_assert(state->part.region < 0); /* it is not by_row */
    state->local[lower_value(state, node->y)] = false;
    bool begun = state->summing.value == node->x[0]; /* which is in place */
    if (state->in_place[n])
        *place = state->buffer_of[lower_value(state, node->x[0])];
    else
        BASE_TRY(plan_add_buffer(state->s, PLAN_ACTIVATIONS,
                                 lower_rows(state, node->y, false) * columns * state->element,
                                 node->unit, node->y, false, place, error));
    if (begun) return lower_end_sum(state, n, error);
    lower_operand x = lower_locate(state, node->x[0]), y = lower_locate(state, node->y);
    if (node->op->sums) return lower_tensor_sum(state, n, &x, &y, error);
    return state->in_place[n] ? SIFR_OK : copy(state, n, &x, &y, error);
}

/* --- what they go with --- */

/* State of the optimizer may be anywhere. Activations in host memory are where they are. */
static bool is_offloaded(const device *dev, const sifr_offload *o) {
    bool activations = o->activations == SIFR_TIER_NVME ||
                       (o->activations == SIFR_TIER_CPU && device_is_separate(dev));
    return o->param.device != SIFR_TIER_NONE || o->gradients != SIFR_TIER_NONE || activations;
}

/* Optimizers that see an element at a time work on any part of a weight, sums over a weight are
 * added up, and values of a whole one are gathered. NULL: it is one of these. */
static const char *seen_by(const optim_row *row) {
    bool codes = false;
    for (int i = 0; i < optim_states(row); i++) codes |= row->states[i].each > 1;
    return row->whole_gradient ? "whole gradients, by rows and columns"
           : codes             ? "elements by blocks, which have a code's scale in common"
                               : NULL;
}

/* A new message, in `out`, or NULL. */
enum { TEXT = 200 };
static const char *refuse_optimizer(const optim_row *row, char out[TEXT]) {
    const char *what = seen_by(row);
    if (what) snprintf(out, TEXT, "%s, an optimizer that reads %s, is", row->name, what);
    return what ? out : NULL;
}

/* What would give other bits with tp_exact, or is not shown to give the same: it follows from how a
 * rank's weights lie one behind the other (numbers that stochastic rounding draws by, blocks of
 * codes), from the shapes of cut matrices, or from sums in other orders. */
static const char *unshown(const plan_settings *settings) {
    const sifr_settings *step = &settings->step;
    bool draws =
        step->precision == SIFR_BF16 && (step->bf16_master_weights || step->bf16_optimizer_states);
    return draws                           ? "stochastic rounding (weights or moments in bf16) is"
           : step->zero.quantized_weights  ? "zero_quantized_weights is"
           : plan_quantises_sums(settings) ? "zero_quantized_gradients is"
           : plan_compresses(settings)     ? "compression (powerSGD) is"
           : step->offload.optimizer.device != SIFR_TIER_NONE    ? "offloaded state is"
           : plan_mesh_ranks(&settings->mesh, PLAN_CONTEXTS) > 1 ? "context ranks are"
                                                                 : NULL;
}

static const char *unsupported(const device *dev, const plan_settings *settings, char text[TEXT]) {
    bool generates = settings->mode != PLAN_TRAIN && settings->mode != PLAN_EVALUATE;
    const optim_row *row = optim_row_of(&settings->step.optimizer);
    return generates ? "generation is"
           : is_offloaded(dev, &settings->step.offload)
               ? "offload of parameters, gradients or activations is"
           : seen_by(row)                 ? refuse_optimizer(row, text)
           : settings->step.mesh.tp_exact ? unshown(settings)
                                          : NULL;
}

/* --- rows --- */

/* An evaluation keeps nothing, so where its rows do not divide each rank has all of them. */
static bool cuts_rows(const plan_settings *settings) {
    int32_t ranks = plan_mesh_ranks(&settings->mesh, PLAN_TENSORS);
    return settings->step.mesh.sequence_parallel && ranks > 1 &&
           (settings->mode == PLAN_TRAIN || plan_tokens(settings) % ranks == 0);
}

static sifr_status refuse_rows(const char *what, sifr_error *error) {
    return base_fail(error, SIFR_USAGE,
                     "sifr.sequence_parallel: %s not supported with it yet; leave one of them out",
                     what);
}

static sifr_status check_rows(const plan_settings *settings, sifr_error *error) {
    int64_t tokens = plan_tokens(settings);
    int64_t whole = (int64_t)plan_mesh_ranks(&settings->mesh, PLAN_TENSORS) * DEVICE_NORM_ROWS;
    int64_t below = tokens / whole * whole, above = below + whole;
    if (!settings->step.mesh.sequence_parallel) return SIFR_OK;
    if (settings->step.mesh.tp_exact) return refuse_rows("sifr.tp_exact is", error);
    if (plan_mesh_ranks(&settings->mesh, PLAN_CONTEXTS) > 1)
        return refuse_rows("context_parallel (context ranks) is", error);
    if (settings->mode != PLAN_TRAIN || tokens == below) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "sifr.sequence_parallel: a micro batch has %lld sequences of %lld tokens, "
                     "which are not divided among %d tensor ranks in whole runs of %d; give sizes "
                     "that make %lld tokens",
                     (long long)settings->step.micro_batch_size,
                     (long long)settings->step.seq_length,
                     (int)plan_mesh_ranks(&settings->mesh, PLAN_TENSORS), (int)DEVICE_NORM_ROWS,
                     (long long)(below && tokens - below <= whole / 2 ? below : above));
}

static sifr_status cut_rows(const sifr_model *model, sifr_model **part, sifr_error *error) {
    sifr_model *cut = NULL;
    sifr_status status = model_cut_rows(model, *part, &cut, error);
    sifr_model_free(*part);
    *part = cut;
    return status;
}

static sifr_status check_overlap(const plan_settings *settings, sifr_error *error) {
    const sifr_settings *step = &settings->step;
    const char *what = step->mesh.sequence_parallel ? "sifr.sequence_parallel"
                       : step->tile_tokens > 0      ? "sifr.tile_tokens"
                                                    : NULL;
    bool sums = step->mesh.tp_overlap_comm && plan_mesh_ranks(&settings->mesh, PLAN_TENSORS) > 1;
    if (!sums || !what) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "tensor_parallel.tp_overlap_comm: %s is not supported with it yet; leave one "
                     "of them out",
                     what);
}

/* With tp_exact one rank refuses what several would, since nothing shows that their bits are its
 * own. */
sifr_status lower_cut_tensors(const sifr_model *model, const device *dev,
                              const plan_settings *settings, sifr_model **out, sifr_error *error) {
    int32_t ranks = plan_mesh_ranks(&settings->mesh, PLAN_TENSORS);
    int32_t exact = settings->step.mesh.tp_exact;
    bool steps = settings->mode == PLAN_TRAIN || settings->mode == PLAN_EVALUATE;
    *out = NULL;
    bool rows = ranks == 1 && steps && settings->step.mesh.sequence_parallel;
    if (rows && exact) return refuse_rows("sifr.tp_exact is", error); /* with more ranks, too */
    if (rows)
        return base_fail(
            error, SIFR_USAGE,
            "sifr.sequence_parallel: there are no tensor ranks to divide tokens among; "
            "give tensor_parallel.size, or leave it out");
    if (ranks == 1 && !(exact && steps)) return SIFR_OK;
    const char *key = ranks > 1 ? "tensor_parallel" : "sifr.tp_exact";
    if (device_is_hidden(dev))
        return base_fail(error, SIFR_USAGE,
                         "%s: tensor ranks on GPUs are not supported yet; set device "
                         "to \"cpu\", or leave them out",
                         key);
    char text[TEXT], with[32] = "tp_exact";
    const char *what = unsupported(dev, settings, text);
    if (ranks > 1 && !(exact && unshown(settings)))
        snprintf(with, sizeof with, "%d tensor ranks", (int)ranks);
    if (what)
        return base_fail(error, SIFR_USAGE,
                         "%s: %s not supported with %s yet; leave one of them out", key, what,
                         with);
    BASE_TRY(check_rows(settings, error));
    BASE_TRY(check_overlap(settings, error));
    if (model->tensors) return SIFR_OK;
    model_shard_args args = {.ranks = ranks,
                             .place = plan_mesh_place(&settings->mesh, PLAN_TENSORS),
                             .exact = exact,
                             .words = settings->step.mesh.vocab_parallel_lm_head};
    BASE_TRY(model_shard_by(model, args, out, error));
    if ((*out)->copies > 1 && optim_row_of(&settings->step.optimizer)->by_weight) {
        sifr_model_free(*out);
        *out = NULL;
        return base_fail(
            error, SIFR_USAGE,
            "%s: %s, whose sums over a weight would count twice what several ranks have alike, is "
            "not supported with more tensor ranks than kv heads yet; leave one of them out",
            key, optim_row_of(&settings->step.optimizer)->name);
    }
    return cuts_rows(settings) ? cut_rows(model, out, error) : SIFR_OK;
}

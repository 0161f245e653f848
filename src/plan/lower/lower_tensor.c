/* Tensor ranks: this rank's part of a model, and the sums over all ranks of values and gradients.
 * Their start is lowered alone: pass_overlap.c waits for it before the sum is used. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/errors.h"
#include "model/shard.h"
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
    if (elements % ranks)
        return base_fail(error, SIFR_USAGE,
                         "tensor_parallel: unit %s: %lld values of a micro batch cannot be divided "
                         "among %d ranks; give a multiple of that for the sequence length",
                         s->model->units[s->model->nodes[n].unit].name, (long long)elements,
                         (int)ranks);
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

sifr_status lower_tensor_finish(lower_state *state, int32_t n, plan_action action,
                                const lower_operand *part, int32_t bias, const lower_operand *to,
                                bool add, sifr_error *error) {
    device_call call;
    BASE_TRY(lower_tensor_sum(state, n, part, part, error));
    memset(&call, 0, sizeof call);
    call.kernel = add ? DEVICE_FINISH_INTO : DEVICE_FINISH_SUM;
    BASE_TRY(lower_put(state, &call, PLAN_X0, *part, error));
    if (bias >= 0) BASE_TRY(lower_put(state, &call, PLAN_W1, lower_weight(state, bias), error));
    BASE_TRY(lower_put(state, &call, PLAN_Y, *to, error));
    return lower_emit(state, action, state->model->nodes[n].unit, n, &call, NULL, false, error);
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
    if (state->in_place[n])
        *place = state->buffer_of[lower_value(state, node->x[0])];
    else
        BASE_TRY(plan_add_buffer(state->s, PLAN_ACTIVATIONS,
                                 lower_rows(state, node->y, false) * columns * state->element,
                                 node->unit, node->y, false, place, error));
    lower_operand x = lower_locate(state, node->x[0]), y = lower_locate(state, node->y);
    if (node->op->sums) return lower_tensor_sum(state, n, &x, &y, error);
    return state->in_place[n] ? SIFR_OK : copy(state, n, &x, &y, error);
}

/* --- what they go with --- */

/* State of the optimizer may be anywhere. */
static bool is_offloaded(const sifr_offload *o) {
    return o->param.device != SIFR_TIER_NONE || o->gradients != SIFR_TIER_NONE ||
           o->activations != SIFR_TIER_NONE;
}

/* Optimizers that see an element at a time work on any part of a weight, and sums over a weight are
 * added up. NULL: it is one of these. */
static const char *seen_by(const optim_row *row) {
    bool codes = false;
    for (int i = 0; i < optim_states(row); i++) codes |= row->states[i].each > 1;
    return row->reads_whole      ? "whole matrices"
           : row->whole_gradient ? "whole gradients, by rows and columns"
           : codes               ? "elements by blocks, which have a code's scale in common"
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

static const char *unsupported(const plan_settings *settings, char text[TEXT]) {
    bool generates = settings->mode != PLAN_TRAIN && settings->mode != PLAN_EVALUATE;
    const optim_row *row = optim_row_of(&settings->step.optimizer);
    return generates ? "generation is"
           : is_offloaded(&settings->step.offload)
               ? "offload of parameters, gradients or activations is"
           : seen_by(row)                 ? refuse_optimizer(row, text)
           : settings->step.mesh.tp_exact ? unshown(settings)
                                          : NULL;
}

/* With tp_exact one rank refuses what several would, since nothing shows that their bits are its
 * own. */
sifr_status lower_cut_tensors(const sifr_model *model, const device *dev,
                              const plan_settings *settings, sifr_model **out, sifr_error *error) {
    int32_t ranks = plan_mesh_ranks(&settings->mesh, PLAN_TENSORS);
    int32_t exact = settings->step.mesh.tp_exact;
    bool steps = settings->mode == PLAN_TRAIN || settings->mode == PLAN_EVALUATE;
    *out = NULL;
    if (ranks == 1 && !(exact && steps)) return SIFR_OK;
    const char *key = ranks > 1 ? "tensor_parallel" : "sifr.tp_exact";
    if (device_is_hidden(dev))
        return base_fail(error, SIFR_USAGE,
                         "%s: tensor ranks on GPUs are not supported yet; set device "
                         "to \"cpu\", or leave them out",
                         key);
    char text[TEXT];
    const char *what = unsupported(settings, text);
    if (what)
        return base_fail(error, SIFR_USAGE,
                         "%s: %s not supported with %d tensor ranks yet; leave one of "
                         "them out",
                         key, what, (int)(ranks > 1 ? ranks : exact));
    if (model->tensors) return SIFR_OK;
    model_shard_args args = {.ranks = ranks,
                             .place = plan_mesh_place(&settings->mesh, PLAN_TENSORS),
                             .exact = exact,
                             .words = settings->step.mesh.vocab_parallel_lm_head};
    BASE_TRY(model_shard_by(model, args, out, error));
    if ((*out)->copies <= 1 || !optim_row_of(&settings->step.optimizer)->by_weight) return SIFR_OK;
    sifr_model_free(*out);
    *out = NULL;
    return base_fail(error, SIFR_USAGE,
                     "%s: %s, whose sums over a weight would count twice what several ranks have "
                     "alike, is not supported with more tensor ranks than kv heads yet; leave one "
                     "of them out",
                     key, optim_row_of(&settings->step.optimizer)->name);
}

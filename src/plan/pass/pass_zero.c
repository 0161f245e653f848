/* ZeRO (Rajbhandari et al., SC20): the pass that cuts states into slices.
 *
 * A slice is 1/N of a segment, a unit's flat parameter, N being the ranks of PLAN_STATE. Every
 * stage reduces a segment's gradient to slices as soon as the gradient is complete. Frozen segments
 * have none. Stage 0 gathers it again. A rank adds the squares of its slice to the norm, at every
 * stage. Stage 1 keeps its slice in place, updates it and gathers the parameters. Stage 2 releases
 * the rest of the gradient at once. Stage 3 holds parameters as slices and gathers a segment for
 * each run of its unit's instructions, except small ones that persist. In step order "batch" stages
 * 2 and 3 reduce every micro batch, and sums over micro batches are sums of slices. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "plan/list.h"
#include "plan/pass/passes.h"
#include "plan/peers.h"
#include "plan/queries.h"
#include "plan/schedule.h"

typedef struct zero_state {
    plan_schedule *s;
    plan_list old; /* the list before the pass */
    int32_t ranks, rank;
    bool cuts_states, cuts_sums, cuts_weights; /* plan_cuts */
    bool *whole;           /* by segment: whether every rank holds all of its parameters */
    bool *parameter_of;    /* by buffer: whether it holds its segment's parameters */
    int32_t *reduce_after; /* by buffer: old instruction after which it is reduced; -1: never */
    bool *reduced;
    int32_t *slice;    /* by buffer: the buffer of its slice; itself if in place */
    int32_t *gathered; /* by segment: its buffer in this run of instructions; -1: none */
    int32_t *gradient; /* by segment: the buffer of its whole gradient; -1: not gathered */
    size_t old_buffers;
} zero_state;

static int64_t slice_elements(const zero_state *z, int32_t segment) {
    base_assert(z->s->segment_elements[segment] % ((int64_t)z->ranks * DEVICE_BLOCK) == 0);
    return z->s->segment_elements[segment] / z->ranks;
}

/* Whether a buffer holds a gradient's sums. An FP32 gradient that a micro batch is still computing
 * has no slot. */
static bool is_gradient(const zero_state *z, int32_t buffer) {
    const plan_buffer *b = &z->s->buffers[buffer];
    return (size_t)buffer < z->old_buffers && b->class == PLAN_GRADIENTS && b->first >= 0 &&
           b->index >= 0;
}

static base_dtype sum_type(const zero_state *z) {
    return plan_sum_type(&z->s->settings);
}

static int64_t sum_bytes(const zero_state *z) {
    return base_dtype_bytes(sum_type(z));
}

/* Whether a buffer holds what an optimizer makes of whole weights. */
static bool is_values(const zero_state *z, int32_t buffer) {
    int32_t segment = z->s->buffers[buffer].segment;
    return segment >= 0 && z->s->whole_values[segment] == buffer;
}

/* Partial sums that live to the end have slot 0. */
static bool is_final(const zero_state *z, int32_t buffer) {
    return is_gradient(z, buffer) && z->s->buffers[buffer].index == 0;
}

static sifr_status emit_reduce(zero_state *z, int32_t buffer, int32_t micro_batch,
                               sifr_error *error) {
    plan_schedule *s = z->s;
    int32_t segment = s->buffers[buffer].segment, slice = buffer, from = buffer;
    int64_t elements = slice_elements(z, segment), sum = sum_bytes(z);
    int64_t offset = z->rank * elements * sum;
    plan_code sent = plan_sent_sums(&s->settings);
    if (plan_converts_gradients(&s->settings))
        BASE_TRY(
            plan_add_narrow(s, buffer, 0, s->segment_elements[segment], micro_batch, &from, error));
    if (z->cuts_sums) {
        offset = 0;
        BASE_TRY(plan_add_segment_buffer(s, PLAN_GRADIENTS, elements * sum, segment,
                                         s->buffers[buffer].index, false, &slice, error));
    }
    base_assert(!z->reduced[buffer]);
    z->slice[buffer] = slice;
    z->reduced[buffer] = true;
    BASE_TRY(plan_add_operand(s, PLAN_X0, from, 0, error));
    BASE_TRY(plan_add_operand(s, PLAN_Y, slice, offset, error));
    return plan_add_collective(s,
                               &(plan_collective){.action = PLAN_REDUCE,
                                                  .span = PLAN_STATE,
                                                  .encoding = sent,
                                                  .sum = sum_type(z),
                                                  .segment = segment,
                                                  .micro_batch = micro_batch,
                                                  .bytes = plan_encoded_bytes(sent, elements)},
                               error);
}

/* The operands were added before. */
static sifr_status emit_gather_of(const zero_state *z, plan_code code, int32_t segment,
                                  int32_t micro_batch, int64_t bytes, sifr_error *error) {
    return plan_add_collective(z->s,
                               &(plan_collective){.action = PLAN_GATHER,
                                                  .span = PLAN_STATE,
                                                  .encoding = code,
                                                  .segment = segment,
                                                  .micro_batch = micro_batch,
                                                  .bytes = bytes},
                               error);
}

/* Gathers in place: the whole contains this rank's part, of `bytes`, already. */
static sifr_status emit_gather_parts(zero_state *z, plan_code code, int32_t buffer, int32_t segment,
                                     int64_t bytes, sifr_error *error) {
    BASE_TRY(plan_add_operand(z->s, PLAN_X0, buffer, z->rank * bytes, error));
    BASE_TRY(plan_add_operand(z->s, PLAN_Y, buffer, 0, error));
    return emit_gather_of(z, code, segment, -1, bytes, error);
}

/* Gathers slices of elements of a type in place. */
static sifr_status emit_gather_in_place(zero_state *z, int32_t buffer, int32_t segment,
                                        base_dtype type, sifr_error *error) {
    plan_code code = plan_code_of(type);
    return emit_gather_parts(z, code, buffer, segment,
                             plan_encoded_bytes(code, slice_elements(z, segment)), error);
}

static sifr_status emit_gather(zero_state *z, int32_t segment, int32_t micro_batch,
                               sifr_error *error) {
    plan_schedule *s = z->s;
    plan_code code =
        plan_code_of_weights(s->model->segments[segment].coding, plan_dtype(&s->settings));
    int64_t bytes = plan_encoded_bytes(code, slice_elements(z, segment));
    BASE_TRY(plan_add_segment_buffer(s, PLAN_GATHERED, bytes * z->ranks, segment, -1, false,
                                     &z->gathered[segment], error));
    BASE_TRY(plan_add_operand(s, PLAN_X0, s->parameters[segment], 0, error));
    BASE_TRY(plan_add_operand(s, PLAN_Y, z->gathered[segment], 0, error));
    return emit_gather_of(z, code, segment, micro_batch, bytes, error);
}

/* Finds where sums are complete and reduced: at stages 2 and 3 with order "batch", the sum of each
 * micro batch; else the sum of all micro batches of this rank. Gradients of the uses of tied
 * weights are reduced before they are added. */
static void find_reductions(zero_state *z) {
    const plan_schedule *s = z->s;
    bool each = z->cuts_sums && s->settings.step.step_order == SIFR_STEP_BATCH;
    for (size_t i = 0; i < z->old.count; i++) {
        const plan_instruction *in = &z->old.instructions[i];
        if (in->call < 0 || in->micro_batch < 0) continue;
        bool sum = s->calls[in->call].kernel == DEVICE_ADD_INTO;
        for (int32_t o = in->first_operand; o < in->first_operand + in->operands; o++) {
            int32_t buffer = z->old.operands[o].buffer;
            if (!is_gradient(z, buffer) || (each ? sum : !is_final(z, buffer))) continue;
            z->reduce_after[buffer] = (int32_t)i;
        }
    }
}

/* Moves `operand`, which has a value of `bytes` for `each` elements, to the place of element
 * `first` of a segment, which lies in this rank's slice. */
static void move_operand(const zero_state *z, int32_t segment, int64_t first, int64_t each,
                         int64_t bytes, plan_operand *operand) {
    int64_t in_slice = first - z->rank * slice_elements(z, segment);
    bool parameter = z->parameter_of[operand->buffer], in_place = false;
    base_assert(in_slice >= 0 && in_slice < slice_elements(z, segment));
    if (is_gradient(z, operand->buffer)) {
        in_place = z->slice[operand->buffer] == operand->buffer;
        operand->buffer = z->slice[operand->buffer];
    }
    bool whole = in_place || (parameter && z->whole[segment]) || is_values(z, operand->buffer);
    operand->offset = (whole ? first : in_slice) / each * bytes;
}

/* Those of all ranks, which gather_sums has brought. */
static void read_all_sums(const zero_state *z, int32_t segment, device_matrix *m,
                          plan_operand *operand) {
    int64_t bytes = plan_sum_bytes(z->s, segment);
    operand->offset -= z->rank * plan_sum_tensors(z->s, segment) * bytes;
    m->rows *= z->ranks;
    m->stride = bytes / base_dtype_bytes(m->dtype);
}

/* Before the first update that reads a segment's whole gradient, x2. At stage 1 it has a place
 * already. */
static sifr_status gather_gradient(zero_state *z, const plan_instruction *in, sifr_error *error) {
    plan_schedule *s = z->s;
    bool reads = in->action == PLAN_UPDATE && s->calls[in->call].x[2].dtype != BASE_NONE;
    if (!reads || z->gradient[in->segment] >= 0) return SIFR_OK;
    int32_t segment = in->segment, sum = z->old.operands[in->first_operand].buffer;
    int32_t *whole = &z->gradient[segment];
    *whole = z->slice[sum];
    if (*whole == sum) return emit_gather_in_place(z, sum, segment, sum_type(z), error);
    int64_t bytes = slice_elements(z, segment) * sum_bytes(z);
    BASE_TRY(plan_add_segment_buffer(s, PLAN_GRADIENTS, bytes * z->ranks, segment, -1, false, whole,
                                     error));
    BASE_TRY(plan_add_operand(s, PLAN_X0, z->slice[sum], 0, error));
    BASE_TRY(plan_add_operand(s, PLAN_Y, *whole, 0, error));
    return emit_gather_of(z, plan_code_of(sum_type(z)), segment, -1, bytes, error);
}

/* Whether an operand of an update by weight is of the whole weight: its gradient, or a state of its
 * rows or columns. */
static bool is_of_weight(const zero_state *z, int32_t segment, const plan_operand *operand) {
    const plan_schedule *s = z->s;
    const optim_row *row = plan_row(s, segment);
    if (!row->whole_gradient) return false;
    for (int i = 0; i < optim_states(row); i++)
        if (row->states[i].axis && s->states[i][segment] == operand->buffer) return true;
    return operand->role == PLAN_X2;
}

/* How an instruction on flat vectors of a segment is cut to this rank's slice. */
typedef struct zero_cut {
    int32_t segment;
    int64_t whole;      /* elements before the cut */
    int64_t first, end; /* elements of the segment after it */
} zero_cut;

static void cut_operand(const zero_state *z, const zero_cut *cut, device_call *call,
                        plan_operand *operand) {
    const plan_schedule *s = z->s;
    device_matrix *m = plan_role_matrix(call, (plan_role)operand->role);
    if (operand->buffer == s->numbers) return;
    if (operand->buffer == s->weight_sums[cut->segment]) {
        if (operand->role == PLAN_X1) read_all_sums(z, cut->segment, m, operand);
        return;
    }
    if (is_of_weight(z, cut->segment, operand)) {
        if (is_gradient(z, operand->buffer)) operand->buffer = z->gradient[cut->segment];
        return;
    }
    int64_t each = cut->whole / m->columns; /* elements for a value */
    m->columns = m->stride = (cut->end - cut->first) / each;
    move_operand(z, cut->segment, cut->first, each, base_dtype_bytes(m->dtype), operand);
}

/* Cuts an instruction to this rank's slice; drops it if it works on other ranks' slices only. */
static sifr_status emit_sliced(zero_state *z, const plan_instruction *in, sifr_error *error) {
    plan_schedule *s = z->s;
    device_call call = s->calls[in->call];
    plan_instruction out = *in;
    plan_operand gradient = z->old.operands[in->first_operand];
    zero_cut cut = {.segment = s->buffers[gradient.buffer].segment, .whole = call.x[0].columns};
    int64_t slice = slice_elements(z, cut.segment);
    int64_t start = gradient.offset / base_dtype_bytes(call.x[0].dtype);
    cut.first = base_max_i64(start, z->rank * slice);
    cut.end = base_min_i64(start + cut.whole, (z->rank + 1) * slice);
    BASE_TRY(gather_gradient(z, in, error));
    if (cut.end <= cut.first) return SIFR_OK;
    for (int32_t o = in->first_operand; o < in->first_operand + in->operands; o++) {
        plan_operand operand = z->old.operands[o];
        cut_operand(z, &cut, &call, &operand);
        BASE_TRY(
            plan_add_operand(s, (plan_role)operand.role, operand.buffer, operand.offset, error));
    }
    if (plan_row(s, cut.segment)->whole_gradient) call.attributes.update.first += cut.first - start;
    BASE_TRY(plan_add_call(s, call, &out.call, error));
    out.element += cut.first - start;
    return plan_add_instruction(s, out, error);
}

/* Whether an instruction changes the values of a whole weight, which are its first operand. */
static bool changes_values(const zero_state *z, const plan_instruction *in) {
    if (in->action != PLAN_UPDATE) return false;
    const optim_row *row = plan_row(z->s, in->segment);
    return row->reads_whole && z->s->calls[in->call].kernel == row->whole;
}

/* Whether it does, and this rank owns no element of the weight. */
static bool is_of_others(const zero_state *z, const plan_instruction *in) {
    if (!z->cuts_states || !changes_values(z, in)) return false;
    const device_matrix *values = &z->s->calls[in->call].y;
    int64_t slice = slice_elements(z, in->segment);
    int64_t first = z->old.operands[in->first_operand].offset / base_dtype_bytes(values->dtype);
    int64_t end = first + values->rows * values->columns;
    return end <= z->rank * slice || first >= (z->rank + 1) * slice;
}

static sifr_status emit_same(zero_state *z, const plan_instruction *in, sifr_error *error) {
    plan_schedule *s = z->s;
    plan_operand *operands;
    bool uses = in->action != PLAN_UPDATE && !plan_is_peer(in);
    for (int32_t o = in->first_operand; o < in->first_operand + in->operands && uses; o++) {
        int32_t buffer = z->old.operands[o].buffer, segment = s->buffers[buffer].segment;
        if (!z->parameter_of[buffer] || z->whole[segment] || z->gathered[segment] >= 0) continue;
        BASE_TRY(emit_gather(z, segment, in->micro_batch, error));
    }
    BASE_TRY(plan_add_operands(s, &z->old, in, &operands, error));
    for (int32_t o = 0; o < in->operands && uses; o++) {
        int32_t buffer = operands[o].buffer, segment = s->buffers[buffer].segment;
        if (z->parameter_of[buffer] && !z->whole[segment])
            operands[o].buffer = z->gathered[segment];
    }
    return plan_add_instruction(s, *in, error);
}

/* Stage 0: gathers the sums that the optimizer reads from their slices. */
static sifr_status gather_gradients(zero_state *z, sifr_error *error) {
    for (size_t i = 0; i < z->old.count; i++) {
        const plan_instruction *in = &z->old.instructions[i];
        if (in->action != PLAN_SQUARES) continue;
        int32_t buffer = z->old.operands[in->first_operand].buffer;
        BASE_TRY(emit_gather_in_place(z, buffer, in->segment, sum_type(z), error));
    }
    return SIFR_OK;
}

/* Tied weights between stages: each rank sends its slice of their gradient to the rank of the same
 * place, and gets its slice of the updated weights, at stage 0 all of them. */
static sifr_status emit_peer(zero_state *z, const plan_instruction *in, sifr_error *error) {
    plan_schedule *s = z->s;
    plan_instruction out = *in;
    plan_operand operand = z->old.operands[in->first_operand];
    int32_t buffer = operand.buffer, segment = in->segment;
    bool weights = z->parameter_of[buffer];
    int64_t slice = in->bytes / z->ranks;
    bool whole = weights ? z->whole[segment] : z->reduced[buffer] && z->slice[buffer] == buffer;
    if (weights && !z->cuts_states) return emit_same(z, in, error);
    if (!weights && z->reduced[buffer]) operand.buffer = z->slice[buffer];
    if (!weights && in->action == PLAN_RECEIVE) {
        s->buffers[buffer].bytes = slice;
        z->reduced[buffer] = true; /* by the other stage */
    }
    out.bytes = slice;
    BASE_TRY(plan_add_operand(s, (plan_role)operand.role, operand.buffer,
                              whole ? z->rank * slice : 0, error));
    BASE_TRY(plan_add_instruction(s, out, error));
    if (!weights || !whole || in->action == PLAN_SEND) return SIFR_OK;
    return emit_gather_in_place(z, buffer, segment, plan_dtype(&s->settings), error);
}

/* The sums of the other slices. */
static sifr_status gather_sums(zero_state *z, int32_t segment, sifr_error *error) {
    const plan_schedule *s = z->s;
    return emit_gather_parts(z, PLAN_CODE_BYTES, s->weight_sums[segment], segment,
                             plan_sum_tensors(s, segment) * plan_sum_bytes(s, segment), error);
}

/* Behind a gather that has brought those of the other tensor ranks. */
static sifr_status gather_joined(zero_state *z, const plan_instruction *in, sifr_error *error) {
    bool joins = in->action == PLAN_GATHER && in->span == PLAN_TENSORS && in->segment >= 0;
    if (!joins || !z->cuts_states || z->ranks == 1) return SIFR_OK;
    return gather_sums(z, in->segment, error);
}

/* After the last update of a segment with this kernel. */
static sifr_status gather_updated(zero_state *z, size_t index, sifr_error *error) {
    plan_schedule *s = z->s;
    const plan_instruction *in = &z->old.instructions[index], *next = in + 1;
    if (in->action != PLAN_UPDATE || !z->cuts_states || z->ranks == 1) return SIFR_OK;
    device_kernel kernel = s->calls[in->call].kernel;
    bool more = index + 1 < z->old.count && next->action == PLAN_UPDATE &&
                next->segment == in->segment && s->calls[next->call].kernel == kernel;
    if (more) return SIFR_OK;
    int32_t segment = in->segment;
    const optim_row *row = plan_row(s, segment);
    if (row->by_weight && kernel == row->begin)
        return plan_sum_tensors(s, segment) > 1 ? SIFR_OK : gather_sums(z, segment, error);
    if (row->reads_whole && kernel == row->begin)
        return emit_gather_in_place(z, s->whole_values[segment], segment, BASE_FP32, error);
    if (!z->whole[segment] || kernel != row->kernel) return SIFR_OK;
    return emit_gather_in_place(z, s->parameters[segment], segment, plan_dtype(&s->settings),
                                error);
}

/* Whether an instruction works on this rank's slice alone. */
static bool is_sliced(const zero_state *z, const plan_instruction *in) {
    if (in->call < 0 || in->operands == 0) return false;
    bool adds = in->action == PLAN_ADD && z->s->calls[in->call].kernel == DEVICE_ADD_INTO;
    bool updates = in->action == PLAN_UPDATE && z->cuts_states && !changes_values(z, in);
    int32_t buffer = z->old.operands[in->first_operand].buffer;
    if (updates && is_values(z, buffer)) return true;
    return (adds || updates || in->action == PLAN_SQUARES) && z->reduced[buffer];
}

static sifr_status rewrite_instruction(zero_state *z, size_t index, sifr_error *error) {
    const plan_instruction *in = &z->old.instructions[index];
    if (!z->cuts_states && in->action == PLAN_SQUARES) {
        bool first = index == 0 || z->old.instructions[index - 1].action != PLAN_SQUARES;
        if (first) BASE_TRY(gather_gradients(z, error));
    }
    if (plan_is_peer(in) && in->unit >= 0 && z->ranks > 1)
        BASE_TRY(emit_peer(z, in, error));
    else if (is_sliced(z, in))
        BASE_TRY(emit_sliced(z, in, error));
    else
        BASE_TRY(is_of_others(z, in) ? SIFR_OK : emit_same(z, in, error));
    BASE_TRY(gather_updated(z, index, error));
    BASE_TRY(gather_joined(z, in, error));
    for (int32_t o = in->first_operand; o < in->first_operand + in->operands; o++) {
        int32_t buffer = z->old.operands[o].buffer;
        if ((size_t)buffer >= z->old_buffers || z->reduced[buffer]) continue;
        if (z->reduce_after[buffer] != (int32_t)index) continue;
        BASE_TRY(emit_reduce(z, buffer, in->micro_batch, error));
    }
    return SIFR_OK;
}

static bool is_whole_state(const plan_schedule *s, int32_t segment, int i) {
    return s->states[i][segment] >= 0 && plan_row(s, segment)->states[i].axis;
}

/* Cuts optimizer state and, at stage 3, parameters into slices. */
static void cut_states(const zero_state *z) {
    plan_schedule *s = z->s;
    if (z->ranks == 1) return;
    for (size_t g = 0; g < s->model->segment_count && z->cuts_states; g++) {
        int32_t states[2 + OPTIM_STATES] = {s->masters[g], z->whole[g] ? -1 : s->parameters[g]};
        for (int i = 0; i < OPTIM_STATES; i++)
            states[2 + i] = is_whole_state(s, (int32_t)g, i) ? -1 : s->states[i][g];
        for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
            if (states[i] >= 0) s->buffers[states[i]].bytes /= z->ranks;
        }
    }
}

static sifr_status rewrite(zero_state *z, sifr_error *error) {
    plan_schedule *s = z->s;
    cut_states(z);
    int32_t unit = -1;
    for (size_t i = 0; i < z->old.count; i++) {
        const plan_instruction *in = &z->old.instructions[i];
        if (in->unit >= 0 && in->unit != unit) { /* a run of another unit begins */
            unit = in->unit;
            for (size_t g = 0; g < s->model->segment_count; g++) z->gathered[g] = -1;
        }
        BASE_TRY(rewrite_instruction(z, i, error));
    }
    return SIFR_OK;
}

/* Finds segments whose parameters are whole on every rank: all below stage 3, small ones at stage
 * 3; on one rank, those that are neither offloaded nor go through codes. */
static void find_whole(zero_state *z) {
    const plan_schedule *s = z->s;
    int64_t capacity = s->settings.step.zero.model_persistence_threshold;
    for (size_t g = 0; g < s->model->segment_count; g++) {
        bool stays = !z->cuts_weights || plan_persists(s, (int32_t)g, &capacity);
        z->whole[g] = stays;
        if (z->ranks == 1)
            z->whole[g] = !plan_is_offloaded(s, s->parameters[g]) &&
                          (stays || !plan_quantises(s, (int32_t)g));
    }
}

sifr_status plan_pass_zero(plan_schedule *s, sifr_error *error) {
    zero_state z = {.s = s,
                    .cuts_states = plan_cuts(&s->settings, PLAN_CUT_OPTIMIZER),
                    .cuts_sums = plan_cuts(&s->settings, PLAN_CUT_SUMS),
                    .cuts_weights = plan_cuts(&s->settings, PLAN_CUT_WEIGHTS),
                    .ranks = plan_mesh_ranks(&s->settings.mesh, PLAN_STATE),
                    .rank = plan_mesh_place(&s->settings.mesh, PLAN_STATE),
                    .old_buffers = s->buffer_count};
    bool goes = s->settings.step.zero.quantized_weights && z.cuts_weights; /* through codes */
    if (z.ranks == 1 && !plan_parameters_offloaded(s) && !goes) return SIFR_OK;
    sifr_status status;
    size_t buffers = z.old_buffers, segments = s->model->segment_count;
    BASE_TRY_GOTO(status, base_alloc(buffers, sizeof *z.parameter_of, &z.parameter_of, error),
                  done);
    BASE_TRY_GOTO(status, base_alloc(buffers, sizeof *z.reduce_after, &z.reduce_after, error),
                  done);
    BASE_TRY_GOTO(status, base_alloc(buffers, sizeof *z.reduced, &z.reduced, error), done);
    BASE_TRY_GOTO(status, base_alloc(buffers, sizeof *z.slice, &z.slice, error), done);
    BASE_TRY_GOTO(status, base_alloc(segments, sizeof *z.gathered, &z.gathered, error), done);
    BASE_TRY_GOTO(status, base_alloc(segments, sizeof *z.gradient, &z.gradient, error), done);
    BASE_TRY_GOTO(status, base_alloc(segments, sizeof *z.whole, &z.whole, error), done);
    for (size_t b = 0; b < buffers; b++) z.reduce_after[b] = -1;
    for (size_t g = 0; g < segments; g++) {
        z.gathered[g] = z.gradient[g] = -1;
        z.parameter_of[s->parameters[g]] = true;
    }
    find_whole(&z);
    z.old = plan_take_list(s);
    if (s->settings.mode == PLAN_TRAIN && z.ranks > 1) find_reductions(&z);
    status = rewrite(&z, error);
done:
    plan_free_list(&z.old);
    free(z.parameter_of);
    free(z.reduce_after);
    free(z.reduced);
    free(z.slice);
    free(z.gathered);
    free(z.gradient);
    free(z.whole);
    return status;
}

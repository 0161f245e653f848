/* PowerSGD (Vogels et al., NeurIPS 2019, algorithms 1 and 2): after some steps, sums of the
 * gradients of matrices over the ranks that share the global
 * batch are made as products of two factors of low rank.
 *
 * A rank's gradient M, of all its micro batches and with the error E of the step before, is
 * multiplied by orthonormal columns Q; the sum over ranks of M Q is made orthonormal, P; and the
 * sum over ranks of M^T P is the next Q. The sum of gradients is P Q^T, and what a rank has not
 * sent is E = M - P Q^T / ranks. Factors are stored transposed. What is no matrix, or too small to
 * pay, is sent as it is, all of it in one sum.
 *
 * The list has both ways, and a step carries one of them out (plan_kind). That of compressed steps
 * comes behind the backward pass: three sums (PLAN_SUM), then the squares of this rank's slices,
 * of values that live for that alone. M stays where it is until the norm is known, since a step
 * that is skipped changes neither E nor Q: POWER_KEEP then makes the sum in its place. E is kept
 * without the loss scale, which may be another one in the next step. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "plan/list.h"
#include "plan/pass/passes.h"
#include "plan/pass/power_layout.h"
#include "plan/peers.h"
#include "plan/queries.h"

typedef struct power_pass {
    plan_schedule *s;
    plan_list old;
    power_layout layout;
    bool *owned;                /* by segment: trained here */
    int32_t *sums;              /* by segment: the buffer of its gradient; -1: none */
    int32_t *moved;             /* by old instruction: the new one */
    int32_t left, right, dense; /* buffers */
    bool warm, feeds;           /* warm_start, use_error_feedback */
} power_pass;

/* An operand of a kernel: elements of a buffer. */
typedef struct power_operand {
    plan_role role;
    int32_t buffer;
    int64_t first, rows, columns;
} power_operand;

static power_operand vector_of(plan_role role, int32_t buffer, int64_t first, int64_t elements) {
    return (power_operand){role, buffer, first, 1, elements};
}

static power_operand left_of(const power_pass *p, plan_role role, const power_matrix *m) {
    return (power_operand){role, p->left, m->left, m->rank, m->rows};
}

static power_operand right_of(const power_pass *p, plan_role role, const power_matrix *m) {
    return (power_operand){role, p->right, m->right, m->rank, m->columns};
}

static power_operand base_of(const power_pass *p, plan_role role, const power_matrix *m) {
    return (power_operand){role, p->s->bases, m->right, m->rank, m->columns};
}

static power_operand flat_of(const power_pass *p, plan_role role, const power_matrix *m) {
    return vector_of(role, p->sums[m->segment], m->first, m->rows * m->columns);
}

static power_operand matrix_of(const power_pass *p, plan_role role, const power_matrix *m) {
    return (power_operand){role, p->sums[m->segment], m->first, m->rows, m->columns};
}

static power_operand error_of(const power_pass *p, plan_role role, const power_matrix *m) {
    return vector_of(role, p->s->errors, m->error, m->rows * m->columns);
}

/* A kernel of compressed steps, on fp32 operands. */
static sifr_status emit(power_pass *p, plan_action action, int32_t segment, device_call call,
                        const power_operand *operands, int count, sifr_error *error) {
    plan_schedule *s = p->s;
    plan_instruction in = {.action = (uint8_t)action,
                           .queue = PLAN_COMPUTE,
                           .kind = PLAN_COMPRESSED_STEPS,
                           .unit = (int16_t)s->model->segments[segment].unit,
                           .micro_batch = -1,
                           .node = -1,
                           .segment = segment,
                           .wait = -1};
    for (int i = 0; i < count; i++) {
        const power_operand *o = &operands[i];
        *plan_role_matrix(&call, o->role) =
            (device_matrix){NULL, o->rows, o->columns, o->columns, BASE_FP32};
        BASE_TRY(plan_add_operand(s, o->role, o->buffer, o->first * 4, error));
    }
    sifr_status status = plan_add_call(s, call, &in.call, error);
    if (status != SIFR_OK) return base_fail_in(error, status, "compression");
    return plan_add_instruction(s, in, error);
}

static device_call call_of(device_kernel kernel) {
    device_call call;
    memset(&call, 0, sizeof call);
    call.kernel = kernel;
    return call;
}

static sifr_status emit_copy(power_pass *p, int32_t segment, power_operand from, power_operand to,
                             sifr_error *error) {
    const power_operand operands[] = {from, to};
    return emit(p, PLAN_COMPRESS, segment, call_of(DEVICE_CONVERT), operands, 2, error);
}

/* Of `elements`, and of zeros behind them: ranks add up equal parts. */
static sifr_status emit_sum(power_pass *p, int32_t buffer, int64_t elements, int64_t all,
                            sifr_error *error) {
    plan_schedule *s = p->s;
    const power_operand behind = vector_of(PLAN_Y, buffer, elements, all - elements);
    if (elements == 0) return SIFR_OK;
    if (all > elements) {
        int32_t segment =
            p->layout.matrix_count ? p->layout.matrices[0].segment : p->layout.pieces[0].segment;
        BASE_TRY(emit(p, PLAN_COMPRESS, segment, call_of(DEVICE_CLEAR), &behind, 1, error));
    }
    BASE_TRY(plan_add_operand(s, PLAN_X0, buffer, 0, error));
    BASE_TRY(plan_add_operand(s, PLAN_Y, buffer, 0, error));
    BASE_TRY(plan_add_collective(
        s,
        &(plan_collective){.action = PLAN_SUM,
                           .span = PLAN_BATCH,
                           .encoding = PLAN_CODE_FP32,
                           .sum = BASE_FP32,
                           .segment = -1,
                           .unit = -1,
                           .micro_batch = -1,
                           .bytes = all / plan_mesh_ranks(&s->settings.mesh, PLAN_BATCH) * 4},
        error));
    s->instructions[s->instruction_count - 1].kind = PLAN_COMPRESSED_STEPS;
    return SIFR_OK;
}

/* --- what is sent --- */

/* Orthonormal rows: of the factor of the last step, or drawn. */
static sifr_status emit_base(power_pass *p, const power_matrix *m, sifr_error *error) {
    const sifr_compression *c = &p->s->settings.step.compression;
    device_call call = call_of(DEVICE_POWER_BASE);
    call.attributes.power =
        (device_power_attributes){.seed = (uint64_t)c->seed,
                                  .weight = m->weight,
                                  .epsilon = (float)c->orthogonalization_epsilon,
                                  .draws = true,
                                  .fresh = !p->warm};
    power_operand y = right_of(p, PLAN_Y, m);
    if (p->warm)
        BASE_TRY(emit_copy(p, m->segment, base_of(p, PLAN_X0, m), y, error));
    else /* drawn rows do not read it, but the kernel may */
        BASE_TRY(emit(p, PLAN_COMPRESS, m->segment, call_of(DEVICE_CLEAR), &y, 1, error));
    return emit(p, PLAN_COMPRESS, m->segment, call, &y, 1, error);
}

static sifr_status emit_left(power_pass *p, const power_matrix *m, sifr_error *error) {
    const power_operand feeds[] = {error_of(p, PLAN_X0, m), flat_of(p, PLAN_Y, m)};
    const power_operand left[] = {matrix_of(p, PLAN_X0, m), right_of(p, PLAN_X1, m),
                                  left_of(p, PLAN_Y, m)};
    if (p->feeds)
        BASE_TRY(emit(p, PLAN_COMPRESS, m->segment, call_of(DEVICE_POWER_ADD), feeds, 2, error));
    return emit(p, PLAN_COMPRESS, m->segment, call_of(DEVICE_POWER_LEFT), left, 3, error);
}

static sifr_status emit_right(power_pass *p, const power_matrix *m, sifr_error *error) {
    const sifr_compression *c = &p->s->settings.step.compression;
    device_call base = call_of(DEVICE_POWER_BASE);
    base.attributes.power.epsilon = (float)c->orthogonalization_epsilon;
    const power_operand left = left_of(p, PLAN_Y, m);
    const power_operand right[] = {matrix_of(p, PLAN_X0, m), left_of(p, PLAN_X1, m),
                                   right_of(p, PLAN_Y, m)};
    BASE_TRY(emit(p, PLAN_COMPRESS, m->segment, base, &left, 1, error));
    return emit(p, PLAN_COMPRESS, m->segment, call_of(DEVICE_POWER_RIGHT), right, 3, error);
}

/* --- what is made of it --- */

/* Elements of a segment that this rank adds to the norm. */
typedef struct power_slice {
    int32_t segment, buffer;
    int64_t first, end;
} power_slice;

static sifr_status build_matrix(power_pass *p, const power_slice *slice, const power_matrix *m,
                                sifr_error *error) {
    int64_t first = base_max_i64(slice->first, m->first),
            end = base_min_i64(slice->end, m->first + m->rows * m->columns);
    device_call call = call_of(DEVICE_POWER_BUILD);
    if (m->segment != slice->segment || end <= first) return SIFR_OK;
    call.attributes.power.first = first - m->first;
    const power_operand operands[] = {
        left_of(p, PLAN_X0, m), right_of(p, PLAN_X1, m),
        vector_of(PLAN_Y, slice->buffer, first - slice->first, end - first)};
    return emit(p, PLAN_COMPRESS, m->segment, call, operands, 3, error);
}

/* Of a weight that is no matrix the sum is in its place already. */
static sifr_status build_piece(power_pass *p, const power_slice *slice, const power_piece *piece,
                               sifr_error *error) {
    int64_t first = base_max_i64(slice->first, piece->first),
            end = base_min_i64(slice->end, piece->first + piece->count);
    if (piece->segment != slice->segment || end <= first) return SIFR_OK;
    return emit_copy(p, slice->segment,
                     vector_of(PLAN_X0, p->sums[slice->segment], first, end - first),
                     vector_of(PLAN_Y, slice->buffer, first - slice->first, end - first), error);
}

/* The squares of a slice, as those of plain steps. */
static sifr_status emit_squares(power_pass *p, const plan_instruction *squares, sifr_error *error) {
    plan_schedule *s = p->s;
    device_call call = s->calls[squares->call];
    const plan_operand *x = &p->old.operands[squares->first_operand], *y = x + 1;
    int64_t elements = call.x[0].columns, first = x->offset / 4;
    power_slice slice = {squares->segment, -1, first, first + elements};
    base_assert(x->role == PLAN_X0 && y->role == PLAN_Y);
    BASE_TRY(plan_add_segment_buffer(s, PLAN_GRADIENTS, elements * 4, squares->segment, -1, false,
                                     &slice.buffer, error));
    power_operand all = vector_of(PLAN_Y, slice.buffer, 0, elements);
    BASE_TRY(emit(p, PLAN_COMPRESS, squares->segment, call_of(DEVICE_CLEAR), &all, 1, error));
    for (size_t i = 0; i < p->layout.matrix_count; i++)
        BASE_TRY(build_matrix(p, &slice, &p->layout.matrices[i], error));
    for (size_t i = 0; i < p->layout.piece_count; i++)
        BASE_TRY(build_piece(p, &slice, &p->layout.pieces[i], error));
    plan_instruction out = *squares;
    out.kind = PLAN_COMPRESSED_STEPS;
    BASE_TRY(plan_add_operand(s, PLAN_X0, slice.buffer, 0, error));
    BASE_TRY(plan_add_operand(s, PLAN_Y, y->buffer, y->offset, error));
    return plan_add_instruction(s, out, error);
}

/* To the dense buffer, or back: the same on all ranks, who wait for its sum at one place. */
static sifr_status emit_pieces(power_pass *p, bool back, sifr_error *error) {
    for (size_t i = 0; i < p->layout.piece_count; i++) {
        const power_piece *piece = &p->layout.pieces[i];
        power_operand sum =
            vector_of(back ? PLAN_Y : PLAN_X0, p->sums[piece->segment], piece->first, piece->count);
        power_operand dense = vector_of(back ? PLAN_X0 : PLAN_Y, p->dense, piece->at, piece->count);
        BASE_TRY(emit_copy(p, piece->segment, back ? dense : sum, back ? sum : dense, error));
    }
    return SIFR_OK;
}

/* From the end of the backward pass to the norm. */
static sifr_status emit_sums(power_pass *p, sifr_error *error) {
    const power_layout *l = &p->layout;
    BASE_TRY(emit_pieces(p, false, error));
    BASE_TRY(emit_sum(p, p->dense, l->dense, power_sent(p->s, l->dense), error));
    for (size_t i = 0; i < l->matrix_count; i++) {
        BASE_TRY(emit_base(p, &l->matrices[i], error));
        BASE_TRY(emit_left(p, &l->matrices[i], error));
    }
    BASE_TRY(emit_sum(p, p->left, l->left, power_sent(p->s, l->left), error));
    for (size_t i = 0; i < l->matrix_count; i++) BASE_TRY(emit_right(p, &l->matrices[i], error));
    BASE_TRY(emit_sum(p, p->right, l->right, power_sent(p->s, l->right), error));
    BASE_TRY(emit_pieces(p, true, error));
    for (size_t i = 0; i < p->old.count; i++)
        if (p->old.instructions[i].action == PLAN_SQUARES)
            BASE_TRY(emit_squares(p, &p->old.instructions[i], error));
    return SIFR_OK;
}

/* Behind the norm: sums in the place of gradients, errors and factors for the next step. */
static sifr_status emit_keep(power_pass *p, const power_matrix *m, sifr_error *error) {
    device_call call = call_of(DEVICE_POWER_KEEP);
    power_operand operands[5] = {left_of(p, PLAN_X0, m), right_of(p, PLAN_X1, m),
                                 flat_of(p, PLAN_Y, m)};
    int count = 3;
    call.attributes.power.ranks = plan_mesh_ranks(&p->s->settings.mesh, PLAN_BATCH);
    if (p->feeds) operands[count++] = error_of(p, PLAN_SAVED0, m);
    if (p->warm) operands[count++] = base_of(p, PLAN_SAVED1, m);
    return emit(p, PLAN_COMPRESS, m->segment, call, operands, count, error);
}

static sifr_status emit_kept(power_pass *p, sifr_error *error) {
    for (size_t i = 0; i < p->layout.matrix_count; i++)
        BASE_TRY(emit_keep(p, &p->layout.matrices[i], error));
    return SIFR_OK;
}

/* --- plain steps --- */

static bool is_sum(const power_pass *p, const plan_operand *operand) {
    const plan_buffer *b = &p->s->buffers[operand->buffer];
    return b->class == PLAN_GRADIENTS && b->index == 0;
}

/* A sum over ranks, or of one: of a plain step alone. */
static bool is_plain(const power_pass *p, const plan_instruction *in) {
    const plan_operand *operands = p->old.operands + in->first_operand;
    if (in->action == PLAN_SQUARES) return true;
    bool moves = in->action == PLAN_REDUCE || in->action == PLAN_GATHER;
    return moves && in->segment >= 0 && is_sum(p, &operands[1]);
}

/* The sum of a tied weight's uses, of this rank's slices. */
static bool adds_uses(const power_pass *p, const plan_instruction *in) {
    const plan_operand *operands = p->old.operands + in->first_operand;
    if (in->action != PLAN_ADD || p->s->calls[in->call].kernel != DEVICE_ADD_INTO) return false;
    return is_sum(p, &operands[0]) && is_sum(p, &operands[1]);
}

/* The same of all elements: compressed steps have reduced nothing before. */
static sifr_status emit_uses(power_pass *p, const plan_instruction *in, sifr_error *error) {
    plan_schedule *s = p->s;
    const plan_operand *from = &p->old.operands[in->first_operand], *to = from + 1;
    int32_t segment = s->buffers[to->buffer].segment;
    int64_t elements = s->segment_elements[segment];
    const power_operand operands[] = {vector_of(PLAN_X0, from->buffer, 0, elements),
                                      vector_of(PLAN_Y, to->buffer, 0, elements)};
    return emit(p, PLAN_ADD, segment, call_of(DEVICE_ADD_INTO), operands, 2, error);
}

static sifr_status rewrite(power_pass *p, sifr_error *error) {
    plan_schedule *s = p->s;
    bool summed = false;
    for (size_t i = 0; i < p->old.count; i++) {
        plan_instruction *in = &p->old.instructions[i];
        bool uses = adds_uses(p, in);
        bool ends = in->action == PLAN_NORM;
        if (ends && !summed) BASE_TRY(emit_sums(p, error));
        summed |= ends;
        if (uses || is_plain(p, in)) in->kind = PLAN_PLAIN_STEPS;
        BASE_TRY(plan_keep(s, &p->old, i, p->moved, error));
        if (uses) BASE_TRY(emit_uses(p, in, error));
        if (ends) BASE_TRY(emit_kept(p, error));
    }
    return SIFR_OK;
}

/* --- what it goes with --- */

static sifr_status check(const plan_schedule *s, sifr_error *error) {
    const sifr_settings *o = &s->settings.step;
    const sifr_compression *c = &o->compression;
    bool tied = false, parts = false;
    for (size_t g = 0; g < s->model->segment_count; g++) parts |= s->model->segments[g].partial;
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        int kind = in->stream % PLAN_STREAMS;
        tied |= plan_is_peer(in) && (kind == PLAN_STREAM_SUMS || kind == PLAN_STREAM_WEIGHTS);
    }
    if ((c->error_feedback || c->warm_start) && c->start < 2)
        return base_fail(error, SIFR_USAGE,
                         "compression: start_compressing_after_step is %lld; with "
                         "use_error_feedback or warm_start it is at least 2, as in torch's hook",
                         (long long)c->start);
    const char *what = device_is_separate(s->dev)            ? "GPUs are"
                       : plan_narrow_gradients(&s->settings) ? "sums of gradients in 16 bits are"
                       : plan_converts_gradients(&s->settings)
                           ? "a communication_data_type of 16 bits is"
                       : o->offload.gradients != SIFR_TIER_NONE ? "offload_gradients is"
                       : o->zero.quantized_gradients            ? "zero_quantized_gradients is"
                       : tied  ? "a weight that two pipeline stages share is"
                       : parts ? "a norm or an adapter whose gradient tensor ranks add up is"
                               : NULL;
    if (!what) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "compression: %s not supported with powerSGD yet; leave one of both out",
                     what);
}

static sifr_status add_buffers(power_pass *p, sifr_error *error) {
    plan_schedule *s = p->s;
    const power_layout *l = &p->layout;
    const struct {
        int64_t elements;
        plan_class class;
        bool permanent;
        int32_t *to;
    } each[] = {{p->feeds ? l->errors : 0, PLAN_ERRORS, true, &s->errors},
                {p->warm ? l->right : 0, PLAN_ERRORS, true, &s->bases},
                {power_sent(s, l->left), PLAN_OUTGOING, false, &p->left},
                {power_sent(s, l->right), PLAN_OUTGOING, false, &p->right},
                {power_sent(s, l->dense), PLAN_OUTGOING, false, &p->dense}};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        if (each[i].elements == 0) continue;
        BASE_TRY(plan_add_buffer(s, each[i].class, each[i].elements * 4, -1, -1, each[i].permanent,
                                 each[i].to, error));
    }
    return SIFR_OK;
}

/* The segments of this stage that are trained, and their gradients. */
static void find_sums(power_pass *p) {
    for (size_t i = 0; i < p->old.count; i++) {
        const plan_instruction *in = &p->old.instructions[i];
        if (in->action != PLAN_SQUARES) continue;
        p->owned[in->segment] = true;
        p->sums[in->segment] = p->old.operands[in->first_operand].buffer;
    }
}

static void release(power_pass *p) {
    plan_free_list(&p->old);
    power_layout_free(&p->layout);
    free(p->owned);
    free(p->sums);
    free(p->moved);
}

sifr_status plan_pass_compress(plan_schedule *s, sifr_error *error) {
    const sifr_compression *c = &s->settings.step.compression;
    power_pass p = {.s = s,
                    .left = -1,
                    .right = -1,
                    .dense = -1,
                    .warm = c->warm_start,
                    .feeds = c->error_feedback};
    size_t segments = s->model->segment_count;
    sifr_status status;
    if (!plan_compresses(&s->settings)) return SIFR_OK;
    BASE_TRY(check(s, error));
    BASE_TRY_GOTO(status, base_alloc(segments, sizeof *p.owned, &p.owned, error), done);
    BASE_TRY_GOTO(status, base_alloc(segments, sizeof *p.sums, &p.sums, error), done);
    BASE_TRY_GOTO(status, base_alloc(s->instruction_count, sizeof *p.moved, &p.moved, error), done);
    p.old = plan_take_list(s);
    find_sums(&p);
    BASE_TRY_GOTO(status, power_layout_make(s, p.owned, &p.layout, error), done);
    BASE_TRY_GOTO(status, add_buffers(&p, error), done);
    s->compresses = s->compressed = true;
    status = rewrite(&p, error);
done:
    release(&p);
    return status;
}

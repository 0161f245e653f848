/* Overlaps communication with computing: gathers of parameters start before they are needed, and a
 * wait comes only before another instruction that uses the transfer's operands. A wait has the
 * operands of its transfer, so buffers live until the transfer has ended. Without `overlap_comm`
 * the wait follows each transfer at once. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "plan/list.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "plan/schedule.h"

/* DeepSpeed's defaults of stage3_max_live_parameters and reduce_bucket_size, in elements. */
enum { LIVE = 1000000000, REDUCED = 500000000 };

/* Most transfers of one kind in flight: the length of a group's queue (comm/worker.h). */
enum { FLIGHT = 16 };

/* Most transfers that begin while one is in flight: it keeps its place in its queue until it is
 * waited for, and what comes later has no place behind that many. */
enum { BEHIND = 24 };

typedef enum overlap_kind {
    OVERLAP_AHEAD,  /* gathers of stage 3, before a use */
    OVERLAP_UPDATE, /* gathers after the update, or after stage 0's reduction */
    OVERLAP_REDUCE,
    OVERLAP_REPLICAS, /* of slices, between copies of the state */
    OVERLAP_VALUES,   /* of no segment, or among tensor ranks */
    OVERLAP_KINDS
} overlap_kind;

typedef struct overlap_state {
    plan_schedule *s;
    plan_list old;
    const sifr_zero *transfers;
    int64_t most_live, most_reduced; /* elements: of parameters, and of gradients on their way */
    bool *started;                   /* by old instruction: whether it is done or moved forward */
    int32_t *last_use;               /* by buffer of gathered parameters: old instruction */
    bool *used;                      /* by buffer of gathered parameters: whether they were used */
    bool *lacks;                     /* by buffer: whether its copy is still to be made */
    int32_t *pending;                /* new instructions in flight, oldest first */
    int64_t *begun;                  /* by pending one: transfers until it began */
    int64_t transfers_begun;
    size_t pending_count, next; /* next: old instruction where the search for gathers continues */
    int64_t ahead, live;        /* elements gathered and not used yet; all gathered elements */
} overlap_state;

/* What is of no segment has no limit. */
static int64_t elements_of(const overlap_state *o, const plan_instruction *in) {
    return in->segment < 0 ? 0 : o->s->model->segments[in->segment].elements;
}

/* What the key says, else `standard`, or `count` of the largest segments if that is more: as long
 * as one is used, the next one is gathered, and a gradient travels whatever its size. */
static int64_t limit_of(const plan_schedule *s, int64_t key, int64_t standard, int64_t count) {
    int64_t largest = 0;
    if (key >= 0) return key;
    for (size_t g = 0; g < s->model->segment_count; g++)
        largest = base_max_i64(largest, s->model->segments[g].elements);
    return base_max_i64(standard, count * largest);
}

static overlap_kind kind_of(const overlap_state *o, const plan_instruction *in,
                            const plan_operand *operands) {
    if (in->segment < 0 || in->action == PLAN_SUM || in->span == PLAN_TENSORS)
        return OVERLAP_VALUES;
    if (in->span == PLAN_REPLICAS) return OVERLAP_REPLICAS;
    if (in->action == PLAN_REDUCE) return OVERLAP_REDUCE;
    const plan_buffer *whole = &o->s->buffers[operands[in->first_operand + 1].buffer];
    return whole->class == PLAN_GATHERED ? OVERLAP_AHEAD : OVERLAP_UPDATE;
}

static sifr_status wait_for(overlap_state *o, size_t which, sifr_error *error) {
    int32_t index = o->pending[which];
    base_assert(which < o->pending_count);
    o->pending_count--;
    memmove(o->pending + which, o->pending + which + 1,
            (o->pending_count - which) * sizeof *o->pending);
    memmove(o->begun + which, o->begun + which + 1, (o->pending_count - which) * sizeof *o->begun);
    return plan_add_wait(o->s, index, error);
}

/* Part of a sum that tensor ranks make by tiles (lower_overlap.c), of which others are computed
 * meanwhile, in the same buffer. */
static bool is_tile(const overlap_state *o, const plan_instruction *in) {
    return o->s->settings.step.mesh.tp_overlap_comm && in->segment < 0 &&
           in->span == PLAN_TENSORS && (in->action == PLAN_REDUCE || in->action == PLAN_GATHER);
}

/* Bytes of its buffer, from an operand's place on, that an instruction touches. */
static int64_t extent_of(const plan_schedule *s, const plan_instruction *in, int32_t index,
                         const plan_operand *operand) {
    int64_t ranks = plan_mesh_ranks(&s->settings.mesh, (plan_span)in->span);
    if (in->call >= 0) {
        const device_matrix *m = plan_role_matrix(&s->calls[in->call], (plan_role)operand->role);
        return ((m->rows - 1) * m->stride + m->columns) * base_dtype_bytes(m->dtype);
    }
    if (in->action == PLAN_GATHER) return in->bytes * (index ? ranks : 1);
    return index ? plan_summed_bytes(in) : in->bytes * ranks;
}

static bool overlap(const overlap_state *o, const plan_instruction *in, int32_t a,
                    const plan_instruction *tile, int32_t b) {
    const plan_operand *x = &o->old.operands[in->first_operand + a];
    const plan_operand *y = &o->s->operands[tile->first_operand + b];
    bool part = in->call >= 0 || in->action == PLAN_GATHER || in->action == PLAN_REDUCE;
    if (!part) return true;
    return x->offset < y->offset + extent_of(o->s, tile, b, y) &&
           y->offset < x->offset + extent_of(o->s, in, a, x);
}

/* Two gathers of one unit's slice may run at the same time: they only read it. */
static bool touches(const overlap_state *o, const plan_instruction *in, int32_t transfer) {
    const plan_instruction *t = &o->s->instructions[transfer];
    bool gathers = in->action == PLAN_GATHER && t->action == PLAN_GATHER;
    for (int32_t a = 0; a < in->operands; a++) {
        int32_t buffer = o->old.operands[in->first_operand + a].buffer;
        for (int32_t b = gathers; b < t->operands; b++) {
            if (o->s->operands[t->first_operand + b].buffer != buffer) continue;
            if (!is_tile(o, t) || overlap(o, in, a, t, b)) return true;
        }
    }
    return false;
}

/* The second half of a sum begins at its wait (executor.c), so all ranks must come to the waits in
 * one order: before the norm, whatever each has of the sums before. Of parts of gradients one rank
 * reads these sums and another one those, so the first one that is read waits for all. */
static sifr_status wait_for_sums(overlap_state *o, sifr_error *error) {
    for (size_t p = 0; p < o->pending_count;) {
        if (o->s->instructions[o->pending[p]].action == PLAN_SUM)
            BASE_TRY(wait_for(o, p, error));
        else
            p++;
    }
    return SIFR_OK;
}

static sifr_status wait_before(overlap_state *o, const plan_instruction *in, sifr_error *error) {
    bool parts = false;
    for (size_t p = 0; p < o->pending_count; p++) {
        const plan_instruction *t = &o->s->instructions[o->pending[p]];
        parts |= t->action == PLAN_SUM && t->segment >= 0 && touches(o, in, o->pending[p]);
    }
    if (parts) BASE_TRY(wait_for_sums(o, error));
    for (size_t p = o->pending_count; p-- > 0;) {
        if (touches(o, in, o->pending[p])) BASE_TRY(wait_for(o, p, error));
    }
    return SIFR_OK;
}

static sifr_status give_up_places(overlap_state *o, sifr_error *error) {
    while (o->pending_count && o->transfers_begun - o->begun[0] >= BEHIND) {
        bool sum = o->s->instructions[o->pending[0]].action == PLAN_SUM;
        BASE_TRY(sum ? wait_for_sums(o, error) : wait_for(o, 0, error));
    }
    return SIFR_OK;
}

/* Waits for the oldest transfers of a kind until one more fits. Where sums are slices each
 * reduction in flight holds a unit's whole gradient, so one is enough. */
static sifr_status make_space(overlap_state *o, overlap_kind kind, int64_t elements,
                              sifr_error *error) {
    int64_t limits[OVERLAP_KINDS] = {INT64_MAX, o->transfers->allgather_bucket_size,
                                     o->most_reduced, INT64_MAX, INT64_MAX};
    bool one = kind == OVERLAP_REDUCE && plan_cuts(&o->s->settings, PLAN_CUT_SUMS);
    size_t most = one ? 1 : FLIGHT, count = 0;
    int64_t capacity = limits[kind] - elements;
    for (size_t p = o->pending_count; p-- > 0;) {
        const plan_instruction *t = &o->s->instructions[o->pending[p]];
        if (kind_of(o, t, o->s->operands) != kind) continue;
        capacity -= elements_of(o, t);
        if (++count >= most || capacity < 0) BASE_TRY(wait_for(o, p, error));
    }
    return SIFR_OK;
}

static sifr_status put(overlap_state *o, const plan_instruction *in, sifr_error *error) {
    bool transfer = plan_is_collective(in), at_once = !o->transfers->overlap_comm;
    plan_operand *operands;
    if (in->action == PLAN_NORM) BASE_TRY(wait_for_sums(o, error));
    BASE_TRY(wait_before(o, in, error));
    if (transfer) {
        overlap_kind kind = kind_of(o, in, o->old.operands);
        BASE_TRY(make_space(o, kind, elements_of(o, in), error));
        if (kind == OVERLAP_AHEAD) o->ahead += elements_of(o, in), o->live += elements_of(o, in);
        if (kind == OVERLAP_REDUCE) at_once |= elements_of(o, in) > o->most_reduced;
        BASE_TRY(give_up_places(o, error));
        o->begun[o->pending_count] = o->transfers_begun++;
        o->pending[o->pending_count++] = (int32_t)o->s->instruction_count;
    }
    BASE_TRY(plan_add_operands(o->s, &o->old, in, &operands, error));
    BASE_TRY(plan_add_instruction(o->s, *in, error));
    at_once &= !is_tile(o, in);
    return transfer && at_once ? wait_for(o, o->pending_count - 1, error) : SIFR_OK;
}

/* Whether the second copy that a gather takes is not made yet; then it cannot begin. */
static bool lacks_copy(const overlap_state *o, const plan_instruction *in) {
    return o->lacks[o->old.operands[in->first_operand].buffer];
}

/* Stage 3: starts further gathers up to prefetch_bucket_size elements ahead of their use. */
static sifr_status gather_ahead(overlap_state *o, sifr_error *error) {
    const sifr_zero *t = o->transfers;
    while (t->overlap_comm && o->ahead < t->prefetch_bucket_size) {
        const plan_instruction *in = NULL;
        for (; o->next < o->old.count; o->next++) {
            in = &o->old.instructions[o->next];
            if (!o->started[o->next] && plan_is_gather_for_use(o->s, &o->old, in)) break;
        }
        if (o->next == o->old.count || o->live + elements_of(o, in) > o->most_live) return SIFR_OK;
        if (lacks_copy(o, in)) return SIFR_OK;
        o->started[o->next] = true;
        BASE_TRY(put(o, in, error));
    }
    return SIFR_OK;
}

/* Parameters gathered for `in` are no longer ahead. */
static void begin_use(overlap_state *o, const plan_instruction *in) {
    for (int32_t i = in->first_operand; i < in->first_operand + in->operands; i++) {
        int32_t buffer = o->old.operands[i].buffer;
        if (o->last_use[buffer] < 0 || o->used[buffer]) continue;
        o->used[buffer] = true;
        o->ahead -= o->s->model->segments[o->s->buffers[buffer].segment].elements;
    }
}

static void end_use(overlap_state *o, const plan_instruction *in) {
    int32_t index = (int32_t)(in - o->old.instructions);
    for (int32_t i = in->first_operand; i < in->first_operand + in->operands; i++) {
        int32_t buffer = o->old.operands[i].buffer;
        if (o->last_use[buffer] != index) continue;
        o->last_use[buffer] = -1;
        o->live -= o->s->model->segments[o->s->buffers[buffer].segment].elements;
    }
}

static sifr_status rewrite(overlap_state *o, sifr_error *error) {
    for (size_t i = 0; i < o->old.count; i++) {
        const plan_instruction *in = &o->old.instructions[i];
        if (o->started[i]) continue;
        o->started[i] = true;
        if (plan_is_collective(in)) {
            BASE_TRY(put(o, in, error));
            continue;
        }
        begin_use(o, in);
        BASE_TRY(gather_ahead(o, error));
        BASE_TRY(put(o, in, error));
        end_use(o, in);
        if (in->action == PLAN_KEEP)
            o->lacks[o->old.operands[in->first_operand + 1].buffer] = false;
    }
    while (o->pending_count) BASE_TRY(wait_for(o, 0, error));
    base_assert(o->ahead == 0 && o->live == 0); /* all gathered parameters were used */
    return SIFR_OK;
}

static void find_last_uses(overlap_state *o) {
    const plan_schedule *s = o->s;
    for (size_t b = 0; b < s->buffer_count; b++) {
        o->last_use[b] = -1;
        o->lacks[b] = s->buffers[b].class == PLAN_SECONDARY;
    }
    for (size_t i = 0; i < o->old.count; i++) {
        const plan_instruction *in = &o->old.instructions[i];
        for (int32_t a = in->first_operand; a < in->first_operand + in->operands; a++) {
            int32_t buffer = o->old.operands[a].buffer;
            if (s->buffers[buffer].class == PLAN_GATHERED) o->last_use[buffer] = (int32_t)i;
        }
    }
}

sifr_status plan_pass_overlap(plan_schedule *s, sifr_error *error) {
    if (plan_mesh_ranks(&s->settings.mesh, (plan_span)(PLAN_WORLD & ~(unsigned)PLAN_STAGES)) == 1)
        return SIFR_OK;
    overlap_state o = {.s = s, .transfers = &s->settings.step.zero};
    size_t count = s->instruction_count, buffers = s->buffer_count;
    sifr_status status;
    o.most_live = limit_of(s, o.transfers->max_live_parameters, LIVE, 2);
    o.most_reduced = limit_of(s, o.transfers->reduce_bucket_size, REDUCED, 1);
    BASE_TRY_GOTO(status, base_alloc(count, sizeof *o.started, &o.started, error), done);
    BASE_TRY_GOTO(status, base_alloc(count, sizeof *o.pending, &o.pending, error), done);
    BASE_TRY_GOTO(status, base_alloc(count, sizeof *o.begun, &o.begun, error), done);
    BASE_TRY_GOTO(status, base_alloc(buffers, sizeof *o.last_use, &o.last_use, error), done);
    BASE_TRY_GOTO(status, base_alloc(buffers, sizeof *o.used, &o.used, error), done);
    BASE_TRY_GOTO(status, base_alloc(buffers, sizeof *o.lacks, &o.lacks, error), done);
    o.old = plan_take_list(s);
    find_last_uses(&o);
    status = rewrite(&o, error);
done:
    plan_free_list(&o.old);
    free(o.started);
    free(o.pending);
    free(o.begun);
    free(o.last_use);
    free(o.used);
    free(o.lacks);
    return status;
}

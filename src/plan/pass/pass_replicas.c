/* HSDP (Zhao et al., PyTorch FSDP, VLDB 2023) and MiCS (Zhang et al., VLDB 2022): copies of what
 * ZeRO cuts, each cut over a group of neighbours.
 *
 * plan_pass_zero has added gradients up within a copy. Here the owner of a slice adds the slices of
 * all copies: a reduction along PLAN_REPLICAS and a gather in place, once a step for each segment.
 * A copy's micro batches follow each other in the global batch, so their sum is a branch of the
 * tree of all sums if the number of copies is a power of two: the bits are those of one copy.
 *
 * With stages, the sums of a tied weight are sent to its owner when all copies are in them.
 *
 * A transfer of a slice waits for the one before. So that computing does not wait, too, the
 * reduction starts when the next slice is complete, and the gather when the one after is. */
#include <stdlib.h>

#include "base/assert.h"
#include "base/heap.h"
#include "plan/list.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "plan/schedule.h"

/* A slice of sums over this copy's micro batches. */
typedef struct replica_sum {
    int32_t buffer, segment, micro_batch;
    int64_t offset, bytes; /* of this rank's slice */
    int32_t last;          /* old instruction that completes it */
} replica_sum;

typedef struct replica_pass {
    plan_schedule *s;
    plan_list old;
    int32_t ranks, place;
    int32_t *sum_of; /* by buffer; -1: none */
    replica_sum *sums;
    size_t count, capacity;
    /* Sums in the order in which they are complete: those before `gathered` are done, those before
     * `reduced` lack their gather, those before `complete` both. */
    int32_t *order;
    size_t gathered, reduced, complete;
} replica_pass;

/* Sums of one use of a segment's weights, over all micro batches, have slot 0. */
static bool makes_sum(const replica_pass *r, const plan_instruction *in) {
    if (in->action != PLAN_REDUCE || in->segment < 0) return false;
    const plan_buffer *b = &r->s->buffers[r->old.operands[in->first_operand + 1].buffer];
    return b->class == PLAN_GRADIENTS && b->index == 0;
}

static sifr_status find_sums(replica_pass *r, sifr_error *error) {
    int64_t sum = base_dtype_bytes(plan_sum_type(&r->s->settings));
    for (size_t i = 0; i < r->old.count; i++) {
        const plan_instruction *in = &r->old.instructions[i];
        if (makes_sum(r, in)) {
            const plan_operand *slice = &r->old.operands[in->first_operand + 1];
            int64_t elements = plan_encoded_values((plan_code)in->encoding, in->bytes);
            base_assert(r->sum_of[slice->buffer] < 0);
            BASE_TRY(base_grow(&r->sums, &r->capacity, r->count + 1, sizeof *r->sums, error));
            r->sum_of[slice->buffer] = (int32_t)r->count;
            r->sums[r->count++] = (replica_sum){.buffer = slice->buffer,
                                                .segment = r->s->buffers[slice->buffer].segment,
                                                .micro_batch = in->micro_batch,
                                                .offset = slice->offset,
                                                .bytes = elements * sum};
        }
        for (int32_t o = in->first_operand; o < in->first_operand + in->operands; o++) {
            int32_t k = r->sum_of[r->old.operands[o].buffer];
            if (k >= 0 && in->micro_batch >= 0 && in->action != PLAN_SEND)
                r->sums[k].last = (int32_t)i;
        }
    }
    return SIFR_OK;
}

/* The slice's parts are the copies' own: each adds one. */
static sifr_status emit_reduce(replica_pass *r, const replica_sum *sum, sifr_error *error) {
    plan_schedule *s = r->s;
    int64_t part = sum->bytes / r->ranks,
            elements = part / base_dtype_bytes(plan_sum_type(&s->settings));
    int32_t from = sum->buffer;
    int64_t offset = sum->offset;
    plan_code sent = plan_sent_sums(&s->settings);
    if (plan_converts_gradients(&s->settings)) {
        BASE_TRY(plan_add_narrow(s, sum->buffer, sum->offset, sum->bytes / 4, sum->micro_batch,
                                 &from, error));
        offset = 0;
    }
    BASE_TRY(plan_add_operand(s, PLAN_X0, from, offset, error));
    BASE_TRY(plan_add_operand(s, PLAN_Y, sum->buffer, sum->offset + r->place * part, error));
    return plan_add_collective(s,
                               &(plan_collective){.action = PLAN_REDUCE,
                                                  .span = PLAN_REPLICAS,
                                                  .encoding = sent,
                                                  .sum = plan_sum_type(&s->settings),
                                                  .segment = sum->segment,
                                                  .micro_batch = sum->micro_batch,
                                                  .bytes = plan_encoded_bytes(sent, elements)},
                               error);
}

static sifr_status emit_gather(replica_pass *r, const replica_sum *sum, sifr_error *error) {
    int64_t part = sum->bytes / r->ranks;
    BASE_TRY(plan_add_operand(r->s, PLAN_X0, sum->buffer, sum->offset + r->place * part, error));
    BASE_TRY(plan_add_operand(r->s, PLAN_Y, sum->buffer, sum->offset, error));
    return plan_add_collective(
        r->s,
        &(plan_collective){.action = PLAN_GATHER,
                           .span = PLAN_REPLICAS,
                           .encoding = plan_code_of(plan_sum_type(&r->s->settings)),
                           .segment = sum->segment,
                           .micro_batch = sum->micro_batch,
                           .bytes = part},
        error);
}

/* Gathers what was reduced before, and reduces complete sums but the last `behind`. */
static sifr_status advance(replica_pass *r, size_t behind, sifr_error *error) {
    while (r->gathered < r->reduced)
        BASE_TRY(emit_gather(r, &r->sums[r->order[r->gathered++]], error));
    while (r->reduced + behind < r->complete)
        BASE_TRY(emit_reduce(r, &r->sums[r->order[r->reduced++]], error));
    return SIFR_OK;
}

static sifr_status finish(replica_pass *r, sifr_error *error) {
    BASE_TRY(advance(r, 0, error));
    return advance(r, 0, error);
}

static bool touches(const replica_pass *r, const plan_instruction *in) {
    for (size_t n = r->gathered; n < r->complete; n++) {
        for (int32_t o = in->first_operand; o < in->first_operand + in->operands; o++)
            if (r->old.operands[o].buffer == r->sums[r->order[n]].buffer) return true;
    }
    return false;
}

static sifr_status rewrite(replica_pass *r, sifr_error *error) {
    plan_operand *operands;
    for (size_t i = 0; i < r->old.count; i++) {
        const plan_instruction *in = &r->old.instructions[i];
        if (touches(r, in)) BASE_TRY(finish(r, error));
        BASE_TRY(plan_add_operands(r->s, &r->old, in, &operands, error));
        BASE_TRY(plan_add_instruction(r->s, *in, error));
        size_t before = r->complete;
        for (int32_t o = in->first_operand; o < in->first_operand + in->operands; o++) {
            int32_t k = r->sum_of[r->old.operands[o].buffer];
            bool seen = r->complete > before && r->order[r->complete - 1] == k;
            if (k < 0 || seen || r->sums[k].last != (int32_t)i) continue;
            r->order[r->complete++] = k;
        }
        if (r->complete > before) BASE_TRY(advance(r, 1, error));
    }
    base_assert(r->gathered == r->count); /* the squares or the update have used each */
    return SIFR_OK;
}

sifr_status plan_pass_replicas(plan_schedule *s, sifr_error *error) {
    const plan_mesh *mesh = &s->settings.mesh;
    replica_pass r = {.s = s,
                      .ranks = plan_mesh_ranks(mesh, PLAN_REPLICAS),
                      .place = plan_mesh_place(mesh, PLAN_REPLICAS)};
    sifr_status status;
    if (r.ranks == 1 || s->settings.mode != PLAN_TRAIN) return SIFR_OK;
    size_t buffers = s->buffer_count;
    BASE_TRY_GOTO(status, base_alloc(buffers, sizeof *r.sum_of, &r.sum_of, error), done);
    for (size_t b = 0; b < buffers; b++) r.sum_of[b] = -1;
    r.old = plan_take_list(s);
    BASE_TRY_GOTO(status, find_sums(&r, error), done);
    BASE_TRY_GOTO(status, base_alloc(r.count, sizeof *r.order, &r.order, error), done);
    status = rewrite(&r, error);
done:
    plan_free_list(&r.old);
    free(r.sum_of);
    free(r.sums);
    free(r.order);
    return status;
}

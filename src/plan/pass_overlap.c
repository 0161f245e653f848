/* Communication beside computing: gathers of parameters start one unit ahead, and nothing is waited
 * for before something else touches what it moves. A wait is an instruction with the operands of
 * what it waits for, so buffers live until their transfer is over. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "plan/schedule.h"

/* Reductions under way at a time: each holds a unit's whole gradient. */
enum { REDUCTIONS = 1 };

typedef struct overlap_state {
    plan_schedule *s;
    const plan_instruction *old;
    const plan_operand *old_operands;
    size_t old_count;
    bool *started;    /* by old instruction: a gather that was moved forward */
    int32_t *pending; /* new instructions that are not waited for, oldest first */
    size_t pending_count;
} overlap_state;

static bool is_transfer(const plan_instruction *in) {
    return in->action == PLAN_GATHER || in->action == PLAN_REDUCE;
}

static sifr_status put(overlap_state *o, const plan_instruction *in, sifr_error *error) {
    for (int32_t i = 0; i < in->operands; i++) {
        const plan_operand *operand = &o->old_operands[in->first_operand + i];
        BASE_TRY(plan_add_operand(o->s, (plan_role)operand->role, operand->buffer, operand->offset,
                                  error));
    }
    if (is_transfer(in)) o->pending[o->pending_count++] = (int32_t)o->s->instruction_count;
    return plan_add_instruction(o->s, *in, error);
}

static sifr_status wait_for(overlap_state *o, size_t which, sifr_error *error) {
    plan_schedule *s = o->s;
    int32_t index = o->pending[which];
    plan_instruction started = s->instructions[index];
    o->pending_count--;
    memmove(o->pending + which, o->pending + which + 1,
            (o->pending_count - which) * sizeof *o->pending);
    for (int32_t i = 0; i < started.operands; i++) {
        plan_operand operand = s->operands[started.first_operand + i];
        BASE_TRY(
            plan_add_operand(s, (plan_role)operand.role, operand.buffer, operand.offset, error));
    }
    return plan_add_instruction(s,
                                (plan_instruction){.action = PLAN_WAIT,
                                                   .queue = PLAN_COMPUTE,
                                                   .unit = started.unit,
                                                   .micro_batch = started.micro_batch,
                                                   .node = -1,
                                                   .call = -1,
                                                   .wait = index},
                                error);
}

static bool touches(const overlap_state *o, const plan_instruction *in, int32_t transfer) {
    const plan_instruction *t = &o->s->instructions[transfer];
    for (int32_t a = 0; a < in->operands; a++) {
        int32_t buffer = o->old_operands[in->first_operand + a].buffer;
        for (int32_t b = 0; b < t->operands; b++) {
            if (o->s->operands[t->first_operand + b].buffer == buffer) return true;
        }
    }
    return false;
}

/* Waits for whatever moves a buffer of `in`, and for older reductions before another one. */
static sifr_status wait_before(overlap_state *o, const plan_instruction *in, sifr_error *error) {
    size_t reductions = 0;
    for (size_t p = o->pending_count; p-- > 0;) {
        bool reduction = o->s->instructions[o->pending[p]].action == PLAN_REDUCE;
        /* Parameters' slices are only read by gathers: two of one unit may be under way. */
        bool shared =
            in->action == PLAN_GATHER && !reduction && in->unit >= 0 && o->s->settings.stage == 3;
        bool full = in->action == PLAN_REDUCE && reduction && ++reductions >= REDUCTIONS;
        if ((touches(o, in, o->pending[p]) && !shared) || full) BASE_TRY(wait_for(o, p, error));
    }
    return SIFR_OK;
}

/* Stage 3: the gathers of the next unit's run, which stand together at its beginning. */
static sifr_status start_next(overlap_state *o, size_t after, sifr_error *error) {
    size_t i = after;
    while (i < o->old_count && o->old[i].action != PLAN_GATHER) i++;
    for (; i < o->old_count && o->old[i].action == PLAN_GATHER; i++) {
        if (o->started[i]) return SIFR_OK;
        o->started[i] = true;
        BASE_TRY(wait_before(o, &o->old[i], error));
        BASE_TRY(put(o, &o->old[i], error));
    }
    return SIFR_OK;
}

static sifr_status rewrite(overlap_state *o, sifr_error *error) {
    bool ahead = o->s->settings.stage == 3;
    for (size_t i = 0; i < o->old_count; i++) {
        const plan_instruction *in = &o->old[i];
        bool gather = in->action == PLAN_GATHER;
        if (!o->started[i]) {
            BASE_TRY(wait_before(o, in, error));
            BASE_TRY(put(o, in, error));
            o->started[i] = true;
        }
        bool last_of_run = gather && (i + 1 == o->old_count || o->old[i + 1].action != PLAN_GATHER);
        if (ahead && last_of_run) BASE_TRY(start_next(o, i + 1, error));
    }
    while (o->pending_count) BASE_TRY(wait_for(o, 0, error));
    return SIFR_OK;
}

sifr_status plan_pass_overlap(plan_schedule *s, sifr_error *error) {
    if (s->settings.world_size == 1) return SIFR_OK;
    plan_instruction *old = s->instructions;
    plan_operand *old_operands = s->operands;
    overlap_state o = {
        .s = s, .old = old, .old_operands = old_operands, .old_count = s->instruction_count};
    sifr_status status;
    BASE_TRY_GOTO(status, base_alloc(o.old_count, sizeof *o.started, &o.started, error), done);
    BASE_TRY_GOTO(status, base_alloc(o.old_count, sizeof *o.pending, &o.pending, error), done);
    for (size_t b = 0; b < s->buffer_count; b++) {
        if (s->buffers[b].first < 0) continue;
        s->buffers[b].first = INT32_MAX; /* lifetimes are those of the new list */
        s->buffers[b].last = -1;
    }
    s->instructions = NULL;
    s->operands = NULL;
    s->instruction_count = s->instruction_room = s->operand_count = s->operand_room = 0;
    status = rewrite(&o, error);
    free(old);
    free(old_operands);
done:
    free(o.started);
    free(o.pending);
    return status;
}

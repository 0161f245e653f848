/* Transfers between the stages of a pipeline: when they start, and when they are waited for.
 *
 * A receive starts when the one before it has arrived, so that it travels beside the computing of
 * what arrived before. A send is over before the next one to the same stage begins: a stage is at
 * most one ahead of what its neighbour has taken. */
#include <stdlib.h>

#include "base/heap.h"
#include "plan/list.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"

typedef struct stages_state {
    plan_schedule *s;
    plan_list old;
    int32_t *moved;   /* by old instruction: its new index */
    int32_t *started; /* by old instruction: the new index of a receive; -1: not yet */
    int32_t *sent;    /* by stage: the send that is under way; -1: none */
    size_t next;      /* old instruction from which on to look for the next receive */
} stages_state;

static sifr_status start(stages_state *p, size_t index, int32_t *out, sifr_error *error) {
    const plan_instruction *in = &p->old.instructions[index];
    plan_operand *operands;
    BASE_TRY(plan_add_operands(p->s, &p->old, in, &operands, error));
    *out = (int32_t)p->s->instruction_count;
    return plan_add_instruction(p->s, *in, error);
}

/* What is received into memory that earlier instructions use starts where it stands: tied weights
 * and their gradients. */
static bool may_start_early(const stages_state *p, size_t index) {
    const plan_instruction *in = &p->old.instructions[index];
    return in->action == PLAN_RECEIVE && in->unit < 0;
}

static sifr_status start_next(stages_state *p, sifr_error *error) {
    while (p->next < p->old.count && p->old.instructions[p->next].action != PLAN_RECEIVE) p->next++;
    if (p->next == p->old.count || !may_start_early(p, p->next)) return SIFR_OK;
    return start(p, p->next, &p->started[p->next], error);
}

static sifr_status receive(stages_state *p, size_t index, sifr_error *error) {
    if (p->started[index] < 0) BASE_TRY(start(p, index, &p->started[index], error));
    BASE_TRY(plan_add_wait(p->s, p->started[index], error));
    if (p->next <= index) p->next = index + 1;
    return start_next(p, error);
}

static sifr_status end_send(stages_state *p, int32_t stage, sifr_error *error) {
    int32_t sent = p->sent[stage];
    p->sent[stage] = -1;
    return sent < 0 ? SIFR_OK : plan_add_wait(p->s, sent, error);
}

static sifr_status rewrite(stages_state *p, sifr_error *error) {
    BASE_TRY(start_next(p, error));
    for (size_t i = 0; i < p->old.count; i++) {
        const plan_instruction *in = &p->old.instructions[i];
        if (in->action == PLAN_RECEIVE) {
            BASE_TRY(receive(p, i, error));
        } else if (in->action == PLAN_SEND) {
            BASE_TRY(end_send(p, in->peer, error));
            BASE_TRY(start(p, i, &p->sent[in->peer], error));
            /* weights and sums, whose memory is written again */
            if (in->unit >= 0) BASE_TRY(end_send(p, in->peer, error));
        } else {
            BASE_TRY(plan_keep(p->s, &p->old, i, p->moved, error));
        }
    }
    for (int32_t stage = 0; stage < p->s->settings.pipeline.stages; stage++)
        BASE_TRY(end_send(p, stage, error));
    return SIFR_OK;
}

sifr_status plan_pass_stages(plan_schedule *s, sifr_error *error) {
    if (plan_parts(&s->settings.pipeline) == 1) return SIFR_OK;
    stages_state p = {.s = s};
    size_t count = s->instruction_count, stages = (size_t)s->settings.pipeline.stages;
    sifr_status status;
    BASE_TRY_GOTO(status, base_alloc(count, sizeof *p.moved, &p.moved, error), done);
    BASE_TRY_GOTO(status, base_alloc(count, sizeof *p.started, &p.started, error), done);
    BASE_TRY_GOTO(status, base_alloc(stages, sizeof *p.sent, &p.sent, error), done);
    for (size_t i = 0; i < count; i++) p.started[i] = -1;
    for (size_t i = 0; i < stages; i++) p.sent[i] = -1;
    p.old = plan_take_list(s);
    status = rewrite(&p, error);
done:
    plan_free_list(&p.old);
    free(p.moved);
    free(p.started);
    free(p.sent);
    return status;
}

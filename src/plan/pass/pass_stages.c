/* Transfers between the stages of a pipeline: when they start, and when they are waited for.
 *
 * All that a micro batch carries over a border (DeBERTa's hidden states and relative positions) is
 * a group. The receives of a group start when the group before it has arrived, so that it travels
 * beside the computing of what arrived before. The sends of a group are over before the next group
 * to the same stage begins: a stage is at most one ahead of what its neighbour has taken. Within a
 * group no transfer waits for another: a stage would come to the second one only where it uses the
 * first, and with several parts a stage both ends would wait.
 *
 * Transfers take places in a line by turns (comm/worker.h), and none keeps its place for long: no
 * receive starts more than a few sends before its use, and no send is waited for more than a few
 * transfers later. GPipe's first stage has all its sends before its first receive, and no send
 * behind it. */
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "plan/list.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"

enum { FEW = 16 }; /* of the COMM_LINE places of a rank's transfers */

typedef struct stages_sent {
    int32_t index; /* of the new list */
    size_t begun;  /* transfers that had begun then */
} stages_sent;

typedef struct stages_state {
    plan_schedule *s;
    plan_list old;
    int32_t *moved;           /* by old instruction: its new index */
    int32_t *started;         /* by old instruction: the new index of a receive; -1: not yet */
    stages_sent *sent;        /* the sends that are under way, in order */
    size_t sent_count, begun; /* begun: transfers so far */
    size_t next;              /* old instruction from which on to look for the next receive */
    bool due;                 /* it starts where it is near */
} stages_state;

static sifr_status end_old_sends(stages_state *p, sifr_error *error) {
    size_t old = 0;
    while (old < p->sent_count && p->begun - p->sent[old].begun >= FEW)
        BASE_TRY(plan_add_wait(p->s, p->sent[old++].index, error));
    p->sent_count -= old;
    memmove(p->sent, p->sent + old, p->sent_count * sizeof *p->sent);
    return SIFR_OK;
}

static sifr_status start(stages_state *p, size_t index, int32_t *out, sifr_error *error) {
    const plan_instruction *in = &p->old.instructions[index];
    plan_operand *operands;
    BASE_TRY(end_old_sends(p, error));
    p->begun++;
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

static bool is_of_group(const plan_instruction *a, const plan_instruction *b) {
    return a->action == b->action && a->peer == b->peer && a->stream == b->stream &&
           a->micro_batch == b->micro_batch;
}

/* The first receive from an old instruction on; the list's end if there is none. */
static size_t find_receive(const stages_state *p, size_t from) {
    while (from < p->old.count && p->old.instructions[from].action != PLAN_RECEIVE) from++;
    return from;
}

static sifr_status start_next(stages_state *p, sifr_error *error) {
    size_t first = find_receive(p, p->next), i = first;
    p->next = first;
    while (i < p->old.count && may_start_early(p, i) &&
           is_of_group(&p->old.instructions[first], &p->old.instructions[i])) {
        BASE_TRY(start(p, i, &p->started[i], error));
        p->next = i + 1;
        i = find_receive(p, i + 1);
    }
    return SIFR_OK;
}

/* Whether few sends come from old instruction `at` on before the next receive. */
static bool is_near(const stages_state *p, size_t at) {
    int sends = 0;
    for (; at < p->old.count && sends <= FEW; at++) {
        if (at >= p->next && p->old.instructions[at].action == PLAN_RECEIVE) return true;
        sends += p->old.instructions[at].action == PLAN_SEND;
    }
    return sends <= FEW;
}

/* Before old instruction `at`. */
static sifr_status start_due(stages_state *p, size_t at, sifr_error *error) {
    if (!p->due || !is_near(p, at)) return SIFR_OK;
    p->due = false;
    return start_next(p, error);
}

static sifr_status receive(stages_state *p, size_t index, sifr_error *error) {
    if (p->started[index] < 0) BASE_TRY(start(p, index, &p->started[index], error));
    BASE_TRY(plan_add_wait(p->s, p->started[index], error));
    if (p->next <= index) p->next = index + 1;
    p->due = find_receive(p, index + 1) >= p->next; /* else there is more of this group */
    return start_due(p, index + 1, error);
}

static const plan_instruction *sent_at(const stages_state *p, size_t at) {
    return &p->s->instructions[p->sent[at].index];
}

static sifr_status end_sends(stages_state *p, int32_t stage, sifr_error *error) {
    size_t left = 0;
    for (size_t i = 0; i < p->sent_count; i++) {
        if (sent_at(p, i)->peer == stage)
            BASE_TRY(plan_add_wait(p->s, p->sent[i].index, error));
        else
            p->sent[left++] = p->sent[i];
    }
    p->sent_count = left;
    return SIFR_OK;
}

static sifr_status send(stages_state *p, size_t index, sifr_error *error) {
    const plan_instruction *in = &p->old.instructions[index];
    bool follows = false;
    for (size_t i = 0; i < p->sent_count; i++) follows |= is_of_group(sent_at(p, i), in);
    if (!follows) BASE_TRY(end_sends(p, in->peer, error));
    int32_t at;
    BASE_TRY(start(p, index, &at, error));
    p->sent[p->sent_count++] = (stages_sent){at, p->begun};
    /* weights and sums, whose memory is written again */
    return in->unit >= 0 ? end_sends(p, in->peer, error) : SIFR_OK;
}

static sifr_status rewrite(stages_state *p, sifr_error *error) {
    p->due = true;
    BASE_TRY(start_due(p, 0, error));
    for (size_t i = 0; i < p->old.count; i++) {
        const plan_instruction *in = &p->old.instructions[i];
        if (in->action == PLAN_RECEIVE) {
            BASE_TRY(receive(p, i, error));
        } else if (in->action == PLAN_SEND) {
            BASE_TRY(start_due(p, i, error));
            BASE_TRY(send(p, i, error));
        } else {
            BASE_TRY(plan_keep(p->s, &p->old, i, p->moved, error));
        }
    }
    for (int32_t stage = 0; stage < p->s->settings.pipeline.stages; stage++)
        BASE_TRY(end_sends(p, stage, error));
    return SIFR_OK;
}

sifr_status plan_pass_stages(plan_schedule *s, sifr_error *error) {
    if (plan_parts(&s->settings.pipeline) == 1) return SIFR_OK;
    stages_state p = {.s = s};
    size_t count = s->instruction_count;
    sifr_status status;
    BASE_TRY_GOTO(status, base_alloc(count, sizeof *p.moved, &p.moved, error), done);
    BASE_TRY_GOTO(status, base_alloc(count, sizeof *p.started, &p.started, error), done);
    BASE_TRY_GOTO(status, base_alloc(count, sizeof *p.sent, &p.sent, error), done);
    for (size_t i = 0; i < count; i++) p.started[i] = -1;
    p.old = plan_take_list(s);
    status = rewrite(&p, error);
done:
    plan_free_list(&p.old);
    free(p.moved);
    free(p.started);
    free(p.sent);
    return status;
}

/* Values of no segment that collectives move: activations and their gradients. A kernel leaves a
 * value of this rank alone, which is a part of a sum where a reduction takes it, and a collective
 * one of all ranks that take part. So what is added up twice, or was read before the ranks' parts
 * were added up, is found. */
#include "base/checked.h"
#include "plan/queries.h"
#include "plan/verify/content_state.h"

plan_content content_value(plan_reach reach) {
    return (plan_content){
        .vector = PLAN_VECTOR_VALUE, .reach = (uint8_t)reach, .size = 1, .segment = -1};
}

static bool is_of_values(const plan_instruction *in) {
    return plan_is_collective(in) && in->segment < 0;
}

void content_find_values(content_state *c) {
    const plan_schedule *s = c->s;
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        for (int32_t o = 0; o < in->operands && is_of_values(in); o++)
            c->moved[s->operands[in->first_operand + o].buffer] = true;
    }
}

/* What a kernel reads is no longer to be added up, and what it writes is its own. */
sifr_status content_use_values(const content_state *c, const plan_access *accesses, int count,
                               sifr_error *error) {
    for (int i = 0; i < count; i++) {
        const plan_access *a = &accesses[i];
        const plan_run *run;
        if (!c->moved[a->buffer] || a->writes) continue;
        plan_range range = content_range(a);
        while (range.from < range.to && (run = plan_contents_find(&c->of[a->buffer], range.from)) &&
               run->from < range.to) {
            plan_content is = run->is;
            plan_range piece = {base_max_i64(range.from, run->from),
                                base_min_i64(range.to, run->to)};
            if (is.reach == PLAN_REACH_RANK) is.version = CONTENT_READ;
            range.from = piece.to;
            BASE_TRY(plan_contents_put(&c->of[a->buffer], piece, &is, error));
        }
    }
    plan_content is = content_value(PLAN_REACH_RANK);
    for (int i = 0; i < count; i++) {
        if (c->moved[accesses[i].buffer] && accesses[i].writes)
            BASE_TRY(content_leave(c, &accesses[i], &is, error));
    }
    return SIFR_OK;
}

/* Any value may be gathered or exchanged. Only parts that nothing has read are added up. */
sifr_status content_move_values(const content_state *c, size_t index, const plan_access *accesses,
                                int count, sifr_error *error) {
    plan_content part = content_value(PLAN_REACH_RANK), whole = content_value(PLAN_REACH_ALL);
    plan_action action = (plan_action)c->s->instructions[index].action;
    bool adds = action == PLAN_REDUCE || action == PLAN_SUM;
    for (int i = 0; i < count; i++) {
        if (accesses[i].reads && adds)
            BASE_TRY(content_expect(c, index, &accesses[i], &part, error));
    }
    for (int i = 0; i < count; i++) {
        if (accesses[i].writes) BASE_TRY(content_leave(c, &accesses[i], &whole, error));
    }
    return SIFR_OK;
}

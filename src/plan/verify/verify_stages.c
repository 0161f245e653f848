/* The stages of a pipeline finish together: their lists are run side by side, without kernels. A
 * transfer starts when its stage comes to it, and has ended when the other stage has come to the
 * same one of its stream. */
#include <stdlib.h>

#include "base/heap.h"
#include "plan/pass/passes.h"
#include "plan/peers.h"
#include "plan/verify/verify_private.h"

typedef struct stages_run {
    const plan_schedule *const *plans;
    size_t count;
    size_t *at; /* by stage: its next instruction */
    plan_peers peers;
} stages_run;

static const char *name_end(const plan_schedule *s, int32_t index, char *out) {
    if (index < 0) return "the end of its list";
    return verify_name_instruction(s, (size_t)index, out);
}

static sifr_status fail_peers(const stages_run *r, const plan_peers_fault *fault,
                              sifr_error *error) {
    char one[VERIFY_NAME_LENGTH], two[VERIFY_NAME_LENGTH];
    return base_fail(error, SIFR_FAILED,
                     VERIFY_FAULT("stage %zu comes to %s where stage %zu comes to %s"), fault->from,
                     name_end(r->plans[fault->from], fault->send, one), fault->to,
                     name_end(r->plans[fault->to], fault->receive, two));
}

static bool all_are_there(const stages_run *r, plan_action action) {
    for (size_t s = 0; s < r->count; s++) {
        if (r->at[s] == r->plans[s]->instruction_count) return false;
        if (r->plans[s]->instructions[r->at[s]].action != action) return false;
    }
    return true;
}

/* Whether stage s can go beyond its next instruction. */
static bool can_pass(const stages_run *r, size_t s) {
    const plan_schedule *plan = r->plans[s];
    const plan_instruction *in = &plan->instructions[r->at[s]];
    if (plan_is_of_all(in)) return all_are_there(r, (plan_action)in->action);
    if (in->action != PLAN_WAIT || !plan_is_peer(&plan->instructions[in->wait])) return true;
    size_t peer = (size_t)plan->instructions[in->wait].peer;
    return r->at[peer] > (size_t)r->peers.other[s][in->wait];
}

static void pass_together(stages_run *r) {
    for (size_t s = 0; s < r->count; s++) r->at[s]++;
}

static bool step(stages_run *r, size_t s) {
    const plan_schedule *plan = r->plans[s];
    if (r->at[s] == plan->instruction_count || !can_pass(r, s)) return false;
    if (plan_is_of_all(&plan->instructions[r->at[s]]))
        pass_together(r);
    else
        r->at[s]++;
    return true;
}

static sifr_status run_together(stages_run *r, sifr_error *error) {
    char name[VERIFY_NAME_LENGTH];
    bool moved = true;
    while (moved) {
        moved = false;
        for (size_t s = 0; s < r->count; s++) {
            while (step(r, s)) moved = true;
        }
    }
    for (size_t s = 0; s < r->count; s++) {
        if (r->at[s] == r->plans[s]->instruction_count) continue;
        return base_fail(error, SIFR_FAILED, VERIFY_FAULT("stage %zu waits for ever at %s"), s,
                         verify_name_instruction(r->plans[s], r->at[s], name));
    }
    return SIFR_OK;
}

sifr_status plan_verify_stages(const plan_schedule *const *schedules, size_t count,
                               sifr_error *error) {
    stages_run r = {.plans = schedules, .count = count};
    plan_peers_fault fault;
    sifr_status status = base_alloc(count, sizeof *r.at, &r.at, error);
    if (status == SIFR_OK) status = plan_join_peers(schedules, count, &r.peers, &fault, error);
    if (status == SIFR_FAILED) status = fail_peers(&r, &fault, error);
    if (status == SIFR_OK) status = run_together(&r, error);
    plan_free_peers(&r.peers);
    free(r.at);
    return status;
}

sifr_status plan_check_stages(const sifr_model *model, device *dev, const plan_settings *settings,
                              sifr_error *error) {
    size_t count = (size_t)settings->mesh.ranks[PLAN_AXIS_STAGE];
    plan_schedule **plans;
    BASE_TRY(base_alloc(count, sizeof *plans, &plans, error));
    sifr_status status = plan_lower_stages(model, dev, settings, plans, error);
    if (status == SIFR_OK)
        status = plan_verify_stages((const plan_schedule *const *)plans, count, error);
    for (size_t s = 0; s < count; s++) plan_free(plans[s]);
    free(plans);
    return status;
}

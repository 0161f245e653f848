#include <stdlib.h>

#include "api/plan/plan_make.h"
#include "base/heap.h"
#include "plan/queries.h"

/* What else is asked, the longest answers first; of one rank there are no stages. */
enum {
    ASK_LENGTH,
    ASK_SEQUENCES,
    ASK_BETWEEN,
    ASK_STAGES,
    MOST_ASKED = ASK_STAGES + API_PLAN_STAGES + PLAN_NEIGHBOURS
};

static void ask_largest(const plan_outcome *own, plan_setter *set, int64_t near, int64_t last,
                        plan_trial *out) {
    *out = (plan_trial){.question = PLAN_ASK_LARGEST, .settings = own->settings};
    out->settings.mesh.place[PLAN_AXIS_STAGE] = own->fullest;
    out->set = set;
    out->near = near;
    out->last = last;
}

static size_t ask_stages(const api_plan_report *r, plan_trial *trials) {
    size_t count = plan_mesh_ranks(&r->own.settings.mesh, PLAN_WORLD) == 1 ? 0 : API_PLAN_STAGES;
    for (size_t i = 0; i < count; i++) {
        trials[i].settings = r->own.settings;
        plan_choose(&r->search, &trials[i].settings, PLAN_CHOICE_STAGE, (int32_t)i);
    }
    return count;
}

/* The stages beside each other, the settings next to these, the limits. */
sifr_status api_plan_others(api_plan_report *r, sifr_error *error) {
    const plan_settings *own = &r->own.settings;
    plan_trial *trials;
    if (r->has_others) return SIFR_OK;
    BASE_TRY(base_alloc(MOST_ASKED, sizeof *trials, &trials, error));
    ask_largest(&r->own, plan_set_length, own->step.seq_length,
                INT32_MAX / own->step.micro_batch_size, &trials[ASK_LENGTH]);
    ask_largest(&r->own, plan_set_sequences, own->step.micro_batch_size,
                INT32_MAX / own->step.seq_length, &trials[ASK_SEQUENCES]);
    trials[ASK_BETWEEN] = (plan_trial){.question = PLAN_ASK_BETWEEN, .settings = *own};
    plan_trial *stages = trials + ASK_STAGES;
    size_t stage_count = ask_stages(r, stages);
    plan_trial *neighbours = stages + stage_count;
    r->change_count = plan_neighbours(&r->search, own, neighbours);
    sifr_status status =
        plan_try_all(&r->search, trials, ASK_STAGES + stage_count + r->change_count, error);
    r->largest_length = trials[ASK_LENGTH].largest;
    int64_t sequences = trials[ASK_SEQUENCES].largest;
    r->largest_sequences = sequences - sequences % plan_joined_sequences(r->model);
    for (size_t i = 0; i < API_PLAN_STAGES; i++) {
        bool others = i < stage_count && (int32_t)i != own->step.zero.stage;
        r->stages[i] = others ? stages[i].outcome : r->own;
    }
    for (size_t i = 0; i < r->change_count; i++) r->changes[i] = neighbours[i].outcome;
    if (trials[ASK_BETWEEN].is_between) r->changes[r->change_count++] = trials[ASK_BETWEEN].outcome;
    free(trials);
    r->has_others = status == SIFR_OK;
    return status;
}

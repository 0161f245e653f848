/* Copies of the state in plan_fit. A copy takes memory and saves transfers: it never makes a step
 * fit that does not fit without. So only steps that fit are tried with copies, and of those the
 * fastest of each ZeRO stage, since stages differ in what they transfer. */
#include "plan/search/fit_private.h"

/* The fastest step of a ZeRO stage among the first `count`; NULL: none fits. */
static const plan_outcome *fastest_of(const fit_list *list, size_t count, int stage) {
    const plan_outcome *best = NULL;
    for (size_t i = 0; i < count; i++) {
        const plan_outcome *o = &list->all[i];
        if (!o->fits || o->settings.step.zero.stage != stage) continue;
        if (!best || fit_is_better(o, best)) best = o;
    }
    return best;
}

static sifr_status try_size(plan_search *search, const plan_settings *from, int32_t size,
                            fit_list *list, sifr_error *error) {
    plan_settings settings = *from;
    plan_outcome tried;
    sifr_error why = {0};
    settings.step.mesh.shard_size = size;
    settings.pipeline = (plan_pipeline){0};
    int32_t world = plan_mesh_ranks(&from->mesh, PLAN_WORLD);
    int32_t place = plan_mesh_place(&from->mesh, PLAN_WORLD);
    if (plan_mesh_of(&settings.step, world, place, &settings.mesh, &why) != SIFR_OK) return SIFR_OK;
    plan_mesh_place_hosts(&settings.mesh, search->machine->ranks_per_host);
    BASE_TRY(plan_try_fitting(search, &settings, &tried, error));
    return tried.fits ? fit_add(list, &tried, error) : SIFR_OK;
}

sifr_status fit_try_copies(plan_search *search, fit_list *list, sifr_error *error) {
    size_t count = list->count;
    for (int stage = 1; stage <= 3; stage++) {
        const plan_outcome *best = fastest_of(list, count, stage);
        if (!best) continue;
        plan_settings from = best->settings; /* the list may move */
        int32_t ranks = plan_mesh_ranks(&from.mesh, PLAN_DATA);
        for (int32_t copies = 2; copies <= ranks / 2; copies *= 2) /* others change bits */
            if (ranks % copies == 0) BASE_TRY(try_size(search, &from, ranks / copies, list, error));
    }
    return SIFR_OK;
}

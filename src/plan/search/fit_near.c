/* Second copies of the parameters in plan_fit (zero_hpz_partition_size). As copies of the state
 * they take memory and save transfers between hosts, so only the fastest step of stage 3 that fits
 * is tried with them, and with neighbours of one host: among several, gathers cross again. */
#include "plan/queries.h"
#include "plan/search/fit_private.h"

/* NULL: none fits. */
static const plan_outcome *fastest(const fit_list *list) {
    const plan_outcome *best = NULL;
    for (size_t i = 0; i < list->count; i++) {
        const plan_outcome *o = &list->all[i];
        if (!o->fits || !plan_cuts(&o->settings, PLAN_CUT_WEIGHTS)) continue;
        if (!best || fit_is_better(o, best)) best = o;
    }
    return best;
}

static sifr_status try_size(plan_search *search, const plan_settings *from, int32_t size,
                            fit_list *list, sifr_error *error) {
    plan_settings settings = *from;
    plan_outcome tried;
    settings.step.zero.hpz_partition_size = size;
    settings.mesh.near = plan_mesh_near(&settings.step.zero, &settings.mesh);
    if (plan_mesh_check_near(&settings.mesh, search->machine->ranks_per_host, NULL) != SIFR_OK)
        return SIFR_OK;
    BASE_TRY(plan_try_fitting(search, &settings, &tried, error));
    return tried.fits ? fit_add(list, &tried, error) : SIFR_OK;
}

sifr_status fit_try_near(plan_search *search, fit_list *list, sifr_error *error) {
    const plan_outcome *best = fastest(list);
    int32_t here = search->machine->ranks_per_host;
    if (!best || !plan_mesh_crosses(&best->settings.mesh, PLAN_STATE, here)) return SIFR_OK;
    plan_settings from = best->settings; /* the list may move */
    int32_t ranks = plan_mesh_ranks(&from.mesh, PLAN_STATE);
    for (int32_t size = 2; size <= here && size < ranks; size++)
        if (ranks % size == 0) BASE_TRY(try_size(search, &from, size, list, error));
    return SIFR_OK;
}

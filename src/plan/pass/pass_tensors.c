/* Tensor ranks have some weights alike (norms, an embedding), and with them the gradients: each
 * updates its own copy, and the norm counts the squares of one. Until here all ranks' lists have
 * the same squares, before which the passes put transfers that all ranks make. */
#include <stdlib.h>

#include "base/heap.h"
#include "plan/list.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"

static bool is_dropped(const plan_schedule *s, const plan_instruction *in) {
    return in->action == PLAN_SQUARES && !plan_counts_segment(s, in->segment);
}

sifr_status plan_pass_tensors(plan_schedule *s, sifr_error *error) {
    bool first = plan_mesh_place(&s->settings.mesh, PLAN_TENSORS) == 0;
    if (first || s->settings.mode != PLAN_TRAIN) return SIFR_OK;
    plan_list old = plan_take_list(s);
    int32_t *moved;
    sifr_status status = base_alloc(old.count, sizeof *moved, &moved, error);
    for (size_t i = 0; i < old.count && status == SIFR_OK; i++)
        if (!is_dropped(s, &old.instructions[i])) status = plan_keep(s, &old, i, moved, error);
    free(moved);
    plan_free_list(&old);
    return status;
}

/* What a step moves between ranks. */
#include "base/assert.h"
#include "base/checked.h"
#include "plan/queries.h"

static void add_wire(const plan_schedule *s, const plan_instruction *in, int64_t *gathered,
                     int64_t *reduced) {
    if (in->action != PLAN_GATHER && in->action != PLAN_REDUCE) return;
    int64_t others = plan_mesh_ranks(&s->settings.mesh, (plan_span)in->span) - 1;
    *(in->action == PLAN_GATHER ? gathered : reduced) += in->bytes * others;
}

void plan_wire(const plan_schedule *s, int64_t *gathered, int64_t *reduced) {
    *gathered = *reduced = 0;
    for (size_t i = 0; i < s->instruction_count; i++)
        add_wire(s, &s->instructions[i], gathered, reduced);
}

void plan_wire_of(const plan_schedule *s, plan_span span, int64_t *gathered, int64_t *reduced) {
    *gathered = *reduced = 0;
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (in->span == span) add_wire(s, in, gathered, reduced);
    }
}

int64_t plan_wire_crossing(const plan_schedule *s, plan_span span, int32_t ranks_per_host) {
    const plan_mesh *mesh = &s->settings.mesh;
    int32_t ranks = plan_mesh_ranks(mesh, span), world = plan_mesh_ranks(mesh, PLAN_WORLD);
    int32_t here = plan_mesh_neighbours(mesh, span, ranks_per_host);
    base_assert(here >= 1 && here <= ranks);
    bool even = ranks_per_host > 0 && world % ranks_per_host == 0 && ranks % here == 0;
    bool whole = plan_narrow_gradients(&s->settings) || plan_converts_gradients(&s->settings);
    int64_t gathered, reduced;
    plan_wire_of(s, span, &gathered, &reduced);
    if (ranks == 1 || here == ranks) return 0;
    int32_t of_gather = even ? ranks / here - 1 : ranks - here;
    int32_t of_reduction =
        even && !whole && base_is_power_of_two(here) ? ranks / here - 1 : ranks - here;
    return gathered / (ranks - 1) * of_gather + reduced / (ranks - 1) * of_reduction;
}

void plan_calls(const plan_schedule *s, int64_t *gathers, int64_t *reductions) {
    *gathers = *reductions = 0;
    for (size_t i = 0; i < s->instruction_count; i++) {
        *gathers += s->instructions[i].action == PLAN_GATHER;
        *reductions += s->instructions[i].action == PLAN_REDUCE;
    }
}

#include "plan/numbers.h"

int64_t plan_part_bytes(const plan_schedule *s) {
    return device_part_bytes(s->settings.step.gradient_accumulation_steps);
}

int64_t plan_begin_bytes(void) {
    return (int64_t)(offsetof(plan_numbers, losses) - offsetof(plan_numbers, step));
}

int64_t plan_own_number_bytes(const plan_schedule *s) {
    return (int64_t)offsetof(plan_numbers, squares) + plan_part_bytes(s);
}

int64_t plan_number_bytes(const plan_schedule *s) {
    int64_t ranks = plan_mesh_ranks(&s->settings.mesh, PLAN_WORLD);
    bool several = s->settings.mode == PLAN_TRAIN && ranks > 1;
    return plan_own_number_bytes(s) + (several ? ranks * plan_part_bytes(s) : 0);
}

void *plan_all_parts(const plan_schedule *s, plan_numbers *numbers) {
    if (plan_mesh_ranks(&s->settings.mesh, PLAN_WORLD) == 1) return &numbers->squares;
    return (char *)numbers + plan_own_number_bytes(s);
}

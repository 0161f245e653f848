/* Which state is on which tier. */
#include "base/checked.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "plan/schedule.h"

bool plan_persists(const plan_schedule *s, int32_t unit, int64_t *room) {
    int64_t elements = s->model->units[unit].elements;
    bool small = elements <= s->settings.zero.param_persistence_threshold && elements <= *room;
    if (s->settings.stage < 3 || !small) return false;
    *room -= elements;
    return true;
}

static void assign(plan_schedule *s, int32_t buffer, plan_tier tier) {
    if (buffer >= 0) s->buffers[buffer].tier = tier;
}

/* Elements of the units whose optimizer state stays, at most. */
static int64_t kept_state(const plan_schedule *s) {
    int64_t all = 0;
    for (size_t u = 0; u < s->model->unit_count; u++) all += s->unit_elements[u];
    return (int64_t)(s->settings.offload.kept_state * (double)all);
}

void plan_assign_tiers(plan_schedule *s) {
    const plan_settings *settings = &s->settings;
    const plan_offload *f = &settings->offload;
    int64_t room = settings->zero.model_persistence_threshold, kept = f->kept,
            state = kept_state(s);
    for (int32_t u = 0; u < (int32_t)s->model->unit_count; u++) {
        bool stays_whole = s->unit_elements[u] <= state;
        plan_tier moments = stays_whole || f->moments_stay ? PLAN_DEVICE : f->moments;
        if (stays_whole) state -= s->unit_elements[u];
        assign(s, s->masters[u], stays_whole || f->masters_stay ? PLAN_DEVICE : f->masters);
        assign(s, s->first_moments[u], moments);
        assign(s, s->second_moments[u], moments);
        if (settings->stage < 3 || plan_persists(s, u, &room)) continue;
        int64_t slice = s->unit_elements[u] / settings->world_size;
        bool stays = f->parameters == PLAN_NVME && slice <= kept;
        if (stays) kept -= slice;
        assign(s, s->parameters[u], stays ? PLAN_HOST : f->parameters);
    }
}

bool plan_is_away(const plan_schedule *s, int32_t buffer) {
    return plan_is_away_tier(s, s->buffers[buffer].tier);
}

bool plan_is_away_tier(const plan_schedule *s, plan_tier tier) {
    return tier == PLAN_NVME || (tier == PLAN_HOST && device_is_separate(s->dev));
}

plan_queue plan_queue_of(const plan_schedule *s, int32_t buffer) {
    return s->buffers[buffer].tier == PLAN_NVME ? PLAN_DISK : PLAN_COPY;
}

bool plan_parameters_away(const plan_schedule *s) {
    for (size_t u = 0; u < s->model->unit_count; u++) {
        if (plan_is_away(s, s->parameters[u])) return true;
    }
    return false;
}

void plan_away_classes(const plan_schedule *s, plan_tier tier, int64_t bytes[PLAN_CLASSES]) {
    for (int c = 0; c < PLAN_CLASSES; c++) bytes[c] = 0;
    for (size_t b = 0; b < s->buffer_count; b++) {
        const plan_buffer *buffer = &s->buffers[b];
        if (buffer->tier == tier && plan_is_away(s, (int32_t)b))
            bytes[buffer->class] += base_ceil_to(buffer->bytes, PLAN_DISK_ALIGNMENT);
    }
}

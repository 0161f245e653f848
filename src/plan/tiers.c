/* Gives each state its tier. */
#include "base/assert.h"
#include "base/checked.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "plan/schedule.h"

bool plan_quantises(const plan_schedule *s, int32_t segment) {
    bool asked =
        s->settings.step.zero.quantized_weights && plan_cuts(&s->settings, PLAN_CUT_WEIGHTS);
    return asked && s->model->segments[segment].coding == MODEL_UNCODED;
}

bool plan_persists(const plan_schedule *s, int32_t segment, int64_t *capacity) {
    base_assert(segment >= 0 && *capacity >= 0);
    int64_t elements = s->model->segments[segment].elements;
    bool small =
        elements <= s->settings.step.zero.param_persistence_threshold && elements <= *capacity;
    if (!plan_cuts(&s->settings, PLAN_CUT_WEIGHTS) || !small) return false;
    *capacity -= elements;
    return true;
}

bool plan_quantises_some(const plan_schedule *s) {
    int64_t capacity = s->settings.step.zero.model_persistence_threshold;
    bool some = false;
    for (int32_t g = 0; g < (int32_t)s->model->segment_count; g++)
        some |= !plan_persists(s, g, &capacity) && plan_quantises(s, g);
    return some;
}

static void assign(plan_schedule *s, int32_t buffer, plan_tier tier) {
    if (buffer >= 0) s->buffers[buffer].tier = tier;
}

plan_tier plan_tier_of(sifr_tier tier) {
    return tier == SIFR_TIER_NVME ? PLAN_NVME : tier == SIFR_TIER_CPU ? PLAN_HOST : PLAN_DEVICE;
}

plan_tier plan_master_tier(const plan_settings *settings) {
    const sifr_offload_optimizer *o = &settings->step.offload.optimizer;
    return o->state == SIFR_STATE_MOMENTS ? PLAN_DEVICE : plan_tier_of(o->device);
}

plan_tier plan_moment_tier(const plan_settings *settings) {
    const sifr_offload_optimizer *o = &settings->step.offload.optimizer;
    return o->state == SIFR_STATE_MASTER_WEIGHTS ? PLAN_DEVICE : plan_tier_of(o->device);
}

/* Whether this stage updates a segment. */
static bool is_updated_here(const plan_schedule *s, int32_t segment) {
    const model_segment *of = &s->model->segments[segment];
    return !of->frozen && plan_has_unit(&s->settings.pipeline, of->unit);
}

/* The most elements of segments whose optimizer state stays in memory. */
static int64_t state_that_stays(const plan_schedule *s) {
    int64_t all = 0;
    for (int32_t g = 0; g < (int32_t)s->model->segment_count; g++)
        all += is_updated_here(s, g) ? s->segment_elements[g] : 0;
    return (int64_t)((1 - s->settings.step.offload.optimizer.ratio) * (double)all);
}

/* Whether several stages of a pipeline read a segment. Updated parameters go from stage to stage,
 * from memory to memory. */
static bool is_shared(const plan_schedule *s, int32_t segment) {
    const plan_pipeline *p = &s->settings.pipeline;
    const sifr_model *model = s->model;
    int32_t owner = plan_stage_of(p, model->segments[segment].unit);
    for (size_t n = 0; plan_parts(p) > 1 && n < model->node_count; n++) {
        const model_node *node = &model->nodes[n];
        bool reads = node->w[0] >= 0 && model->weights[node->w[0]].segment == segment;
        if (reads && plan_stage_of(p, node->unit) != owner) return true;
    }
    return false;
}

void plan_assign_tiers(plan_schedule *s) {
    const sifr_settings *step = &s->settings.step;
    plan_tier masters = plan_master_tier(&s->settings), moments = plan_moment_tier(&s->settings);
    plan_tier parameters = plan_tier_of(step->offload.param.device);
    int64_t capacity = step->zero.model_persistence_threshold,
            in_cpu = step->offload.param.max_in_cpu, state = state_that_stays(s);
    int32_t ranks = plan_mesh_ranks(&s->settings.mesh, PLAN_STATE);
    for (int32_t g = 0; g < (int32_t)s->model->segment_count; g++) {
        bool stays_whole = is_updated_here(s, g) && s->segment_elements[g] <= state;
        if (stays_whole) state -= s->segment_elements[g];
        assign(s, s->masters[g], stays_whole ? PLAN_DEVICE : masters);
        for (int i = 0; i < OPTIM_STATES; i++) {
            /* averages of rows and columns, all of which each update of a weight changes */
            bool few = s->states[i][g] >= 0 && plan_row(s, g)->states[i].axis;
            assign(s, s->states[i][g], stays_whole || few ? PLAN_DEVICE : moments);
        }
        if (!plan_cuts(&s->settings, PLAN_CUT_WEIGHTS) || plan_persists(s, g, &capacity)) continue;
        if (parameters != PLAN_DEVICE && is_shared(s, g)) continue;
        int64_t slice = s->segment_elements[g] / ranks;
        bool stays = parameters == PLAN_NVME && slice <= in_cpu;
        if (stays) in_cpu -= slice;
        assign(s, s->parameters[g], stays ? PLAN_HOST : parameters);
    }
}

bool plan_is_offloaded(const plan_schedule *s, int32_t buffer) {
    base_assert(buffer >= 0);
    return plan_is_offloaded_tier(s, s->buffers[buffer].tier);
}

bool plan_is_offloaded_tier(const plan_schedule *s, plan_tier tier) {
    return tier == PLAN_NVME || (tier == PLAN_HOST && device_is_separate(s->dev));
}

plan_queue plan_queue_of(const plan_schedule *s, int32_t buffer) {
    base_assert(plan_is_offloaded(s, buffer));
    return s->buffers[buffer].tier == PLAN_NVME ? PLAN_DISK : PLAN_COPY;
}

bool plan_parameters_offloaded(const plan_schedule *s) {
    for (size_t g = 0; g < s->model->segment_count; g++) {
        if (plan_is_offloaded(s, s->parameters[g])) return true;
    }
    return false;
}

void plan_offloaded_classes(const plan_schedule *s, plan_tier tier, int64_t bytes[PLAN_CLASSES]) {
    for (int c = 0; c < PLAN_CLASSES; c++) bytes[c] = 0;
    for (size_t b = 0; b < s->buffer_count; b++) {
        const plan_buffer *buffer = &s->buffers[b];
        if (buffer->tier == tier && plan_is_offloaded(s, (int32_t)b))
            bytes[buffer->class] += base_ceil_to(buffer->bytes, PLAN_DISK_ALIGNMENT);
    }
}

/* What all ranks come to in a step: their parts become those of the decision. */
#include <string.h>

#include "engine/executor/executor_private.h"
#include "plan/queries.h"

int64_t executor_before_last(const engine_executor *e) {
    const plan_mesh *mesh = &e->schedule->settings.mesh;
    int64_t ranks = plan_mesh_ranks(mesh, PLAN_WORLD) / mesh->ranks[PLAN_AXIS_STAGE];
    return ranks * (mesh->ranks[PLAN_AXIS_STAGE] - 1) * plan_part_bytes(e->schedule);
}

/* The last stage has the losses. Its parts take over the squares of the other stages' ranks with
 * the same places, so they are the whole decision's. */
static void join_stages(const engine_executor *e, void *parts) {
    int64_t bytes = plan_part_bytes(e->schedule), last = executor_before_last(e);
    int64_t stages = e->schedule->settings.mesh.ranks[PLAN_AXIS_STAGE];
    int64_t stage = stages > 1 ? last / (stages - 1) : 0;
    for (int64_t at = 0; at < last; at += bytes) {
        char *to = (char *)parts + last + at % stage;
        base_exact_merge((base_exact_sum *)(void *)to,
                         (base_exact_sum *)(void *)((char *)parts + at));
    }
}

static double *losses_of(void *part) {
    return (double *)(void *)((char *)part + sizeof(base_exact_sum));
}

/* Ranks that share a batch, context by context and in each tensor by tensor, have squares of their
 * own. Context ranks have losses of their own, too, tensor ranks the same. The first one's part
 * takes over those of the others, and the parts of the data ranks follow each other. */
static void join_batches(const engine_executor *e, void *parts) {
    const plan_mesh *mesh = &e->schedule->settings.mesh;
    int32_t micro_batches = e->schedule->settings.step.gradient_accumulation_steps;
    int64_t bytes = plan_part_bytes(e->schedule);
    int32_t tensors = plan_mesh_ranks(mesh, PLAN_TENSORS), data = plan_mesh_ranks(mesh, PLAN_DATA);
    int32_t sharing = tensors * plan_mesh_ranks(mesh, PLAN_CONTEXTS);
    char *first = (char *)parts + executor_before_last(e);
    for (int32_t d = 0; sharing > 1 && d < data; d++) {
        char *from = first + d * sharing * bytes, *to = first + d * bytes;
        if (to != from) memcpy(to, from, (size_t)bytes);
        for (int32_t r = 1; r < sharing; r++) {
            base_exact_merge((base_exact_sum *)(void *)to,
                             (base_exact_sum *)(void *)(from + r * bytes));
            for (int32_t j = 0; r % tensors == 0 && j < micro_batches; j++)
                losses_of(to)[j] += losses_of(from + r * bytes)[j];
        }
    }
}

/* The losses of whole sequences, of which this rank made a part. No plan of a model has context
 * ranks where the host does not reach the numbers. */
static void note_losses(const engine_executor *e, void *parts) {
    const plan_settings *settings = &e->schedule->settings;
    char *first = (char *)parts + executor_before_last(e);
    int64_t own = plan_mesh_place(&settings->mesh, PLAN_DATA) * plan_part_bytes(e->schedule);
    if (e->parts || plan_mesh_ranks(&settings->mesh, PLAN_CONTEXTS) == 1) return;
    plan_numbers *numbers = engine_buffer(e, e->schedule->numbers);
    memcpy(numbers->losses, losses_of(first + own),
           (size_t)settings->step.gradient_accumulation_steps * sizeof(double));
}

void executor_join_parts(const engine_executor *e, void *parts) {
    join_stages(e, parts);
    join_batches(e, parts);
    note_losses(e, parts);
}

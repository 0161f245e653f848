/* What is idle between the steps of a training plan, and the plan of an evaluation that uses it. */
#include "base/checked.h"
#include "plan/queries.h"

enum { PAGE = 4096 };

int64_t plan_idle_start(const plan_schedule *s) {
    int64_t end = 0;
    for (size_t b = 0; b < s->buffer_count; b++) {
        const plan_buffer *buffer = &s->buffers[b];
        if (buffer->first >= 0 || buffer->class == PLAN_SCRATCH || plan_is_offloaded(s, (int32_t)b))
            continue;
        end = base_max_i64(end, buffer->offset + buffer->bytes);
    }
    return base_ceil_to(end, PAGE);
}

plan_settings plan_evaluation_of(const plan_settings *training, bool logits) {
    plan_settings settings = *training;
    settings.mode = PLAN_EVALUATE;
    settings.logits = logits;
    settings.step.gradient_accumulation_steps = 1;
    settings.step.step_order = SIFR_STEP_BATCH;
    settings.step.recompute = SIFR_RECOMPUTE_NONE;
    settings.external_parameters = true;
    return settings;
}

/* Stage 3: parameters of a segment stay gathered if little else is gathered before their next use,
 * as with DeepSpeed's stage3_max_reuse_distance. This applies mostly to those of the last units,
 * between their forward and backward pass.
 */
#include <stdlib.h>

#include "base/heap.h"
#include "plan/list.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "plan/schedule.h"

typedef struct reuse_state {
    plan_schedule *s;
    plan_list old;
    int32_t *kept;    /* by segment: the buffer that holds its parameters; -1: none yet */
    int64_t *seen;    /* by segment: elements gathered up to its last gather */
    int32_t *instead; /* by buffer: its replacement */
} reuse_state;

/* Whether the parameters that `in` gathers are still held. If not, its buffer holds them from now
 * on. */
static bool is_there(reuse_state *r, const plan_instruction *in, int64_t *gathered) {
    const plan_schedule *s = r->s;
    int32_t segment = in->segment, buffer = r->old.operands[in->first_operand + 1].buffer;
    bool near = r->kept[segment] >= 0 &&
                *gathered - r->seen[segment] < s->settings.step.zero.max_reuse_distance;
    if (near)
        r->instead[buffer] = r->kept[segment];
    else
        r->kept[segment] = buffer;
    *gathered += s->model->segments[segment].elements;
    r->seen[segment] = *gathered;
    return near;
}

static sifr_status rewrite(reuse_state *r, sifr_error *error) {
    plan_schedule *s = r->s;
    plan_operand *operands;
    int64_t gathered = 0;
    for (size_t i = 0; i < r->old.count; i++) {
        const plan_instruction *in = &r->old.instructions[i];
        if (plan_is_gather_for_use(s, &r->old, in) && is_there(r, in, &gathered)) continue;
        BASE_TRY(plan_add_operands(s, &r->old, in, &operands, error));
        for (int32_t o = 0; o < in->operands; o++)
            operands[o].buffer = r->instead[operands[o].buffer];
        BASE_TRY(plan_add_instruction(s, *in, error));
    }
    return SIFR_OK;
}

sifr_status plan_pass_reuse(plan_schedule *s, sifr_error *error) {
    const plan_settings *settings = &s->settings;
    if (!plan_cuts(settings, PLAN_CUT_WEIGHTS)) return SIFR_OK;
    if (settings->step.zero.max_reuse_distance <= 0) return SIFR_OK;
    reuse_state r = {.s = s};
    size_t segments = s->model->segment_count, buffers = s->buffer_count;
    sifr_status status;
    BASE_TRY_GOTO(status, base_alloc(segments, sizeof *r.kept, &r.kept, error), done);
    BASE_TRY_GOTO(status, base_alloc(segments, sizeof *r.seen, &r.seen, error), done);
    BASE_TRY_GOTO(status, base_alloc(buffers, sizeof *r.instead, &r.instead, error), done);
    for (size_t g = 0; g < segments; g++) r.kept[g] = -1;
    for (size_t b = 0; b < buffers; b++) r.instead[b] = (int32_t)b;
    r.old = plan_take_list(s);
    status = rewrite(&r, error);
done:
    plan_free_list(&r.old);
    free(r.kept);
    free(r.seen);
    free(r.instead);
    return status;
}

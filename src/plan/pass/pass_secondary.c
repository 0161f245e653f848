/* hpZ of ZeRO++ (Wang et al., 2023): a second copy of the parameters, cut over a few neighbours.
 *
 * The first gather of a segment in a step brings it from all ranks of PLAN_STATE. Behind it each
 * rank keeps a part of what was gathered, one of as many as PLAN_HOSTS has ranks, and every later
 * gather of the step brings the segment from these neighbours: for the backward pass, for
 * recomputation, for further micro batches. Weights do not change within a step, so all gathers
 * bring the same bytes. The copy lives until the last of them, and is never older than its step.
 *
 * A segment that is gathered once, or stays gathered (pass_reuse.c), needs no copy. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/heap.h"
#include "plan/list.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "plan/schedule.h"

typedef struct secondary_pass {
    plan_schedule *s;
    plan_list old;
    int64_t ranks, place, all; /* of PLAN_HOSTS; ranks of PLAN_STATE */
    int32_t *gathers;          /* by segment: how many are still to come */
    int32_t *copy;             /* by segment: the buffer of this rank's part; -1: none */
} secondary_pass;

static bool is_gather(const secondary_pass *p, const plan_instruction *in) {
    return plan_is_gather_for_use(p->s, &p->old, in) && in->span == PLAN_STATE;
}

/* Bytes of this rank's part, of a gather of slices of `slice`. */
static int64_t part_bytes(const secondary_pass *p, int64_t slice) {
    return slice * (p->all / p->ranks);
}

/* Codes are moved as words. */
static device_matrix part_matrix(const secondary_pass *p, int32_t segment, int64_t bytes) {
    bool coded = p->s->model->segments[segment].coding != MODEL_UNCODED;
    base_dtype type = coded ? BASE_FP32 : plan_dtype(&p->s->settings);
    int64_t count = bytes / base_dtype_bytes(type);
    base_assert(bytes % base_dtype_bytes(type) == 0);
    return (device_matrix){.rows = 1, .columns = count, .stride = count, .dtype = type};
}

/* Behind the first gather. */
static sifr_status emit_copy(secondary_pass *p, const plan_instruction *gather, sifr_error *error) {
    plan_schedule *s = p->s;
    int32_t segment = gather->segment;
    int64_t bytes = part_bytes(p, gather->bytes);
    const plan_operand *whole = &p->old.operands[gather->first_operand + 1];
    plan_instruction in = {.action = PLAN_KEEP,
                           .queue = PLAN_COMPUTE,
                           .unit = gather->unit,
                           .micro_batch = gather->micro_batch,
                           .node = -1,
                           .wait = -1};
    device_call call;
    memset(&call, 0, sizeof call);
    call.kernel = DEVICE_CONVERT;
    call.x[0] = call.y = part_matrix(p, segment, bytes);
    BASE_TRY(plan_add_segment_buffer(s, PLAN_SECONDARY, bytes, segment, -1, false,
                                     &p->copy[segment], error));
    BASE_TRY(plan_add_operand(s, PLAN_X0, whole->buffer, whole->offset + p->place * bytes, error));
    BASE_TRY(plan_add_operand(s, PLAN_Y, p->copy[segment], 0, error));
    BASE_TRY(plan_add_call(s, call, &in.call, error));
    return plan_add_instruction(s, in, error);
}

/* In place of a later one. */
static sifr_status emit_gather(secondary_pass *p, const plan_instruction *gather,
                               sifr_error *error) {
    const plan_operand *whole = &p->old.operands[gather->first_operand + 1];
    BASE_TRY(plan_add_operand(p->s, PLAN_X0, p->copy[gather->segment], 0, error));
    BASE_TRY(plan_add_operand(p->s, PLAN_Y, whole->buffer, whole->offset, error));
    return plan_add_collective(p->s,
                               &(plan_collective){.action = PLAN_GATHER,
                                                  .span = PLAN_HOSTS,
                                                  .encoding = (plan_code)gather->encoding,
                                                  .segment = gather->segment,
                                                  .micro_batch = gather->micro_batch,
                                                  .bytes = part_bytes(p, gather->bytes)},
                               error);
}

static sifr_status rewrite(secondary_pass *p, sifr_error *error) {
    plan_operand *operands;
    for (size_t i = 0; i < p->old.count; i++) {
        const plan_instruction *in = &p->old.instructions[i];
        bool gathers = is_gather(p, in);
        if (gathers) p->gathers[in->segment]--;
        if (gathers && p->copy[in->segment] >= 0) {
            BASE_TRY(emit_gather(p, in, error));
            continue;
        }
        BASE_TRY(plan_add_operands(p->s, &p->old, in, &operands, error));
        BASE_TRY(plan_add_instruction(p->s, *in, error));
        if (gathers && p->gathers[in->segment] > 0) BASE_TRY(emit_copy(p, in, error));
    }
    return SIFR_OK;
}

sifr_status plan_pass_secondary(plan_schedule *s, sifr_error *error) {
    const plan_mesh *mesh = &s->settings.mesh;
    secondary_pass p = {.s = s,
                        .ranks = plan_mesh_ranks(mesh, PLAN_HOSTS),
                        .place = plan_mesh_place(mesh, PLAN_HOSTS),
                        .all = plan_mesh_ranks(mesh, PLAN_STATE)};
    size_t segments = s->model->segment_count;
    sifr_status status;
    if (p.ranks == 1 || s->settings.mode != PLAN_TRAIN) return SIFR_OK;
    base_assert(p.all % p.ranks == 0);
    BASE_TRY_GOTO(status, base_alloc(segments, sizeof *p.gathers, &p.gathers, error), done);
    BASE_TRY_GOTO(status, base_alloc(segments, sizeof *p.copy, &p.copy, error), done);
    for (size_t g = 0; g < segments; g++) p.copy[g] = -1;
    p.old = plan_take_list(s);
    for (size_t i = 0; i < p.old.count; i++)
        if (is_gather(&p, &p.old.instructions[i])) p.gathers[p.old.instructions[i].segment]++;
    status = rewrite(&p, error);
done:
    plan_free_list(&p.old);
    free(p.gathers);
    free(p.copy);
    return status;
}

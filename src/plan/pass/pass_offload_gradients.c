/* Offloaded gradients, on disk or in host memory (Rajbhandari et al., ZeRO-Infinity, SC21): a slice
 * of gradient sums is written as soon as it is final, and the update reads it back with the rest of
 * its state.
 *
 * The squares for the norm are computed before the slice is written. One slice is written beside
 * the backward pass of the next unit. All writes end before the norm. Sums that further micro
 * batches add to stay in memory; in step order "unit" these are the sums of one unit. An optimizer
 * that reads the gradients of whole weights has a segment's slice in memory during its update. */
#include <stdlib.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "plan/list.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "plan/schedule.h"

typedef struct gradient_sum {
    int32_t buffer, file;
    int32_t squares; /* old instruction that computes them */
    int32_t final;   /* old instruction after which it is final */
    int32_t back;    /* for updates that read whole weights: where it is in memory again; -1: no */
} gradient_sum;

typedef struct gradient_offload {
    plan_schedule *s;
    plan_list old;
    int32_t *moved;  /* by old instruction: the new one */
    int32_t *sum_of; /* by buffer: its sum; -1: none */
    int32_t *after;  /* by old instruction: the sum that it makes final; -1: none */
    gradient_sum *sums;
    size_t count, capacity;
    int32_t writing; /* new instruction still running; -1: none */
} gradient_offload;

static bool is_squares(const plan_instruction *in) {
    return in->action == PLAN_SQUARES;
}

static sifr_status find_sums(gradient_offload *p, sifr_error *error) {
    plan_schedule *s = p->s;
    for (size_t i = 0; i < p->old.count; i++) {
        const plan_instruction *in = &p->old.instructions[i];
        if (!is_squares(in)) continue;
        int32_t buffer = p->old.operands[in->first_operand].buffer;
        gradient_sum sum = {.buffer = buffer, .squares = (int32_t)i, .final = -1, .back = -1};
        BASE_TRY(base_grow(&p->sums, &p->capacity, p->count + 1, sizeof *p->sums, error));
        BASE_TRY(plan_add_segment_buffer(s, PLAN_GRADIENTS, s->buffers[buffer].bytes, in->segment,
                                         -1, true, &sum.file, error));
        s->buffers[sum.file].tier = plan_tier_of(s->settings.step.offload.gradients);
        p->sum_of[buffer] = (int32_t)p->count;
        p->sums[p->count++] = sum;
    }
    return SIFR_OK;
}

/* Finds the last instruction that uses a sum before its squares are computed. */
static void find_finals(gradient_offload *p) {
    bool updates = false;
    for (size_t i = 0; i < p->old.count; i++) {
        const plan_instruction *in = &p->old.instructions[i];
        p->after[i] = -1;
        updates |= in->action == PLAN_NORM;
        if (is_squares(in) || updates) continue;
        for (int32_t o = in->first_operand; o < in->first_operand + in->operands; o++) {
            int32_t k = p->sum_of[p->old.operands[o].buffer];
            if (k >= 0) p->sums[k].final = (int32_t)i;
        }
    }
    for (size_t k = 0; k < p->count; k++) {
        base_assert(p->sums[k].final >= 0);          /* some instruction makes it */
        base_assert(p->after[p->sums[k].final] < 0); /* and makes no other sum final */
        p->after[p->sums[k].final] = (int32_t)k;
    }
}

/* Transfers write whole pages. */
static void align_sums(gradient_offload *p) {
    for (size_t k = 0; k < p->count; k++) {
        plan_buffer *buffer = &p->s->buffers[p->sums[k].buffer];
        buffer->bytes = base_ceil_to(buffer->bytes, PLAN_DISK_ALIGNMENT) + PLAN_DISK_ALIGNMENT;
        buffer->aligned = true;
    }
}

static sifr_status wait_for_write(gradient_offload *p, sifr_error *error) {
    if (p->writing >= 0) BASE_TRY(plan_add_wait(p->s, p->writing, error));
    p->writing = -1;
    return SIFR_OK;
}

static sifr_status emit_squares_and_write(gradient_offload *p, const gradient_sum *sum,
                                          sifr_error *error) {
    plan_schedule *s = p->s;
    const plan_instruction *squares = &p->old.instructions[sum->squares];
    int64_t bytes = base_ceil_to(s->buffers[sum->file].bytes, PLAN_DISK_ALIGNMENT);
    BASE_TRY(plan_keep(s, &p->old, (size_t)sum->squares, p->moved, error));
    BASE_TRY(wait_for_write(p, error));
    p->writing = (int32_t)s->instruction_count;
    BASE_TRY(plan_add_operand(s, PLAN_X0, sum->buffer, 0, error));
    BASE_TRY(plan_add_operand(s, PLAN_Y, sum->file, 0, error));
    return plan_add_transfer(s, PLAN_WRITE, plan_queue_of(s, sum->file), squares->unit, -1, bytes,
                             error);
}

/* Brings back a sum of which a whole weight's gradient is read, or gathered. */
static sifr_status bring_back(gradient_offload *p, gradient_sum *sum, sifr_error *error) {
    plan_schedule *s = p->s;
    const plan_buffer file = s->buffers[sum->file];
    if (sum->back >= 0 || !plan_row(s, file.segment)->whole_gradient) return SIFR_OK;
    int32_t unit = s->model->segments[file.segment].unit, read;
    BASE_TRY(plan_add_disk_buffer(s, file.bytes, unit, &sum->back, error));
    read = (int32_t)s->instruction_count;
    BASE_TRY(plan_add_operand(s, PLAN_X0, sum->file, 0, error));
    BASE_TRY(plan_add_operand(s, PLAN_Y, sum->back, 0, error));
    BASE_TRY(plan_add_transfer(s, PLAN_READ, plan_queue_of(s, sum->file), unit, -1,
                               base_ceil_to(file.bytes, PLAN_DISK_ALIGNMENT), error));
    return plan_add_wait(s, read, error);
}

/* Whatever comes after the norm reads the sum from the file. */
static sifr_status emit_after_norm(gradient_offload *p, size_t index, sifr_error *error) {
    const plan_instruction *in = &p->old.instructions[index];
    for (int32_t o = in->first_operand; o < in->first_operand + in->operands; o++) {
        int32_t k = p->sum_of[p->old.operands[o].buffer];
        if (k >= 0) BASE_TRY(bring_back(p, &p->sums[k], error));
    }
    BASE_TRY(plan_keep(p->s, &p->old, index, p->moved, error));
    plan_operand *operands = &p->s->operands[p->s->operand_count - (size_t)in->operands];
    for (int32_t o = 0; o < in->operands; o++) {
        int32_t k = p->sum_of[operands[o].buffer];
        if (k >= 0) operands[o].buffer = p->sums[k].back >= 0 ? p->sums[k].back : p->sums[k].file;
    }
    return SIFR_OK;
}

static sifr_status rewrite(gradient_offload *p, sifr_error *error) {
    bool updates = false;
    for (size_t i = 0; i < p->old.count; i++) {
        const plan_instruction *in = &p->old.instructions[i];
        if (is_squares(in)) continue; /* computed when the sum became final */
        if (in->action == PLAN_NORM) BASE_TRY(wait_for_write(p, error));
        if (updates)
            BASE_TRY(emit_after_norm(p, i, error));
        else
            BASE_TRY(plan_keep(p->s, &p->old, i, p->moved, error));
        updates |= in->action == PLAN_NORM;
        if (p->after[i] >= 0) BASE_TRY(emit_squares_and_write(p, &p->sums[p->after[i]], error));
    }
    base_assert(p->writing < 0); /* the norm has waited for the last one */
    return SIFR_OK;
}

sifr_status plan_pass_offload_gradients(plan_schedule *s, sifr_error *error) {
    const plan_settings *settings = &s->settings;
    gradient_offload p = {.s = s, .writing = -1};
    sifr_status status;
    bool slices = !plan_sums_are_whole(settings);
    bool offloaded = plan_is_offloaded_tier(s, plan_tier_of(settings->step.offload.gradients));
    if (settings->mode != PLAN_TRAIN || !slices || !offloaded) return SIFR_OK;
    size_t count = s->instruction_count, buffers = s->buffer_count;
    BASE_TRY_GOTO(status, base_alloc(count, sizeof *p.moved, &p.moved, error), done);
    BASE_TRY_GOTO(status, base_alloc(count, sizeof *p.after, &p.after, error), done);
    BASE_TRY_GOTO(status, base_alloc(buffers, sizeof *p.sum_of, &p.sum_of, error), done);
    for (size_t b = 0; b < buffers; b++) p.sum_of[b] = -1;
    p.old = plan_take_list(s);
    BASE_TRY_GOTO(status, find_sums(&p, error), done);
    find_finals(&p);
    align_sums(&p);
    status = rewrite(&p, error);
done:
    plan_free_list(&p.old);
    free(p.moved);
    free(p.after);
    free(p.sum_of);
    free(p.sums);
    return status;
}

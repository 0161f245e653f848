/* Offloaded parameters, on disk or in host memory (Rajbhandari et al., ZeRO-Infinity, SC21): this
 * rank's slice of a unit is read before the unit is gathered.
 *
 * With several ranks a slice has a buffer of its own from its read to the end of its gather. One
 * rank has nothing to gather, and reads a unit to where kernels use it. Where gathers carry codes
 * (pass_quantise.c), these are made of what was read, and then it is no longer needed. Reads run
 * ahead in the order of the gathers, up to a number of slices in memory. Data on disk does not
 * change before the update at the end of the step. */
#include <stdlib.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "plan/list.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "plan/schedule.h"

typedef struct parameter_slice {
    int32_t gather, end; /* old instructions: its gather, or what makes codes of it, and the last
                            one that needs the slice */
    int64_t bytes;
    bool encoded;
    int32_t read;   /* new instruction */
    int32_t buffer; /* the read's target */
} parameter_slice;

typedef struct parameter_offload {
    plan_schedule *s;
    plan_list old;
    bool alone;        /* one rank */
    int32_t *moved;    /* by old instruction: the new one */
    int32_t *slice_of; /* by old instruction: the slice that it gathers; -1: none */
    int32_t *ends;     /* by old instruction: number of slices that are not needed after it */
    parameter_slice *slices;
    size_t count, capacity, next; /* next: the next slice to read */
    int32_t live, most;           /* slices in memory */
} parameter_offload;

static int64_t element_bytes(const parameter_offload *f) {
    return base_dtype_bytes(plan_dtype(&f->s->settings));
}

/* Whether codes that a gather carries are made of the slice here. */
static bool encodes_slice(const parameter_offload *f, const plan_instruction *in) {
    return in->action == PLAN_ENCODE &&
           plan_is_offloaded(f->s, f->old.operands[in->first_operand].buffer);
}

/* Whether the slice has a buffer between its read and the gather. */
static bool has_buffer(const parameter_offload *f, const parameter_slice *slice) {
    return !f->alone || slice->encoded;
}

static sifr_status find_slices(parameter_offload *f, sifr_error *error) {
    plan_schedule *s = f->s;
    for (size_t i = 0; i < f->old.count; i++) {
        const plan_instruction *in = &f->old.instructions[i];
        const plan_operand *operands = &f->old.operands[in->first_operand];
        f->slice_of[i] = -1;
        bool encodes = encodes_slice(f, in);
        bool gathers = plan_is_gather_for_use(s, &f->old, in);
        if (!encodes && !(gathers && plan_is_offloaded(s, operands[0].buffer))) continue;
        BASE_TRY(base_grow(&f->slices, &f->capacity, f->count + 1, sizeof *f->slices, error));
        f->slice_of[i] = (int32_t)f->count;
        f->slices[f->count] = (parameter_slice){
            .gather = (int32_t)i, .end = (int32_t)i, .bytes = in->bytes, .encoded = encodes};
        parameter_slice *slice = &f->slices[f->count++];
        slice->read = -1;
        slice->buffer = has_buffer(f, slice) ? -1 : operands[1].buffer;
        if (encodes) slice->bytes = s->calls[in->call].x[0].columns * element_bytes(f);
    }
    return SIFR_OK;
}

/* With one rank, a slice is needed until the last use of its unit. */
static sifr_status find_last_uses(parameter_offload *f, sifr_error *error) {
    int32_t *slice; /* by buffer, plus one */
    BASE_TRY(base_alloc(f->s->buffer_count, sizeof *slice, &slice, error));
    for (size_t k = 0; k < f->count; k++)
        if (f->slices[k].buffer >= 0) slice[f->slices[k].buffer] = (int32_t)k + 1;
    for (size_t i = 0; i < f->old.count; i++) {
        const plan_instruction *in = &f->old.instructions[i];
        for (int32_t o = in->first_operand; o < in->first_operand + in->operands; o++) {
            int32_t k = slice[f->old.operands[o].buffer] - 1;
            if (k >= 0) f->slices[k].end = (int32_t)i;
        }
    }
    free(slice);
    return SIFR_OK;
}

/* With several ranks, a slice is needed until its gather has ended. */
static void find_waits(parameter_offload *f) {
    for (size_t i = 0; i < f->old.count; i++) {
        const plan_instruction *in = &f->old.instructions[i];
        if (in->wait >= 0 && f->slice_of[in->wait] >= 0)
            f->slices[f->slice_of[in->wait]].end = (int32_t)i;
    }
}

/* The number of slices that are needed at a time without reading ahead. */
static int32_t count_needed(parameter_offload *f) {
    int32_t live = 0, most = 0;
    for (size_t k = 0; k < f->count; k++) f->ends[f->slices[k].end]++;
    for (size_t i = 0; i < f->old.count; i++) {
        live += f->slice_of[i] >= 0;
        if (live > most) most = live;
        live -= f->ends[i];
    }
    return most;
}

/* Names the largest slice, so that a user who enters its size is not refused again. */
static sifr_status check_size(const parameter_offload *f, sifr_error *error) {
    int64_t limit = f->s->settings.step.offload.param.buffer_size;
    const parameter_slice *largest = NULL;
    for (size_t k = 0; k < f->count; k++)
        if (!largest || f->slices[k].bytes > largest->bytes) largest = &f->slices[k];
    int64_t elements = largest ? largest->bytes / element_bytes(f) : 0;
    if (!limit || elements <= limit) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "offload_param: buffer_size %lld: a rank's slice of %s has %lld elements; "
                     "give at least that, or leave buffer_size out",
                     (long long)limit,
                     f->s->model->units[f->old.instructions[largest->gather].unit].name,
                     (long long)elements);
}

static sifr_status choose_capacity(parameter_offload *f, sifr_error *error) {
    const sifr_offload *offload = &f->s->settings.step.offload;
    int32_t needed = count_needed(f);
    BASE_TRY(check_size(f, error));
    f->most = offload->param.buffer_count ? offload->param.buffer_count : needed + 1;
    if (f->most >= needed) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "offload_param: buffer_count %d: %d slices are %s at a time; give at least "
                     "that, or %d to read one ahead, or leave buffer_count out",
                     (int)f->most, (int)needed, f->alone ? "in use" : "being gathered",
                     (int)needed + 1);
}

/* A disk read directly into the buffer that kernels use needs whole pages. */
static void align_places(parameter_offload *f) {
    for (size_t k = 0; k < f->count; k++) {
        if (has_buffer(f, &f->slices[k])) continue;
        plan_buffer *buffer = &f->s->buffers[f->slices[k].buffer];
        buffer->bytes = base_ceil_to(buffer->bytes, PLAN_DISK_ALIGNMENT) + PLAN_DISK_ALIGNMENT;
        buffer->aligned = true;
    }
}

static sifr_status emit_read(parameter_offload *f, sifr_error *error) {
    plan_schedule *s = f->s;
    parameter_slice *slice = &f->slices[f->next++];
    const plan_instruction *gather = &f->old.instructions[slice->gather];
    int32_t from = f->old.operands[gather->first_operand].buffer;
    if (has_buffer(f, slice))
        BASE_TRY(plan_add_disk_buffer(s, slice->bytes, gather->unit, &slice->buffer, error));
    slice->read = (int32_t)s->instruction_count;
    f->live++;
    BASE_TRY(plan_add_operand(s, PLAN_X0, from, 0, error));
    BASE_TRY(plan_add_operand(s, PLAN_Y, slice->buffer, 0, error));
    return plan_add_transfer(s, PLAN_READ, plan_queue_of(s, from), gather->unit,
                             gather->micro_batch, base_ceil_to(slice->bytes, PLAN_DISK_ALIGNMENT),
                             error);
}

static sifr_status emit_gather(parameter_offload *f, size_t index, sifr_error *error) {
    plan_schedule *s = f->s;
    const plan_instruction *gather = &f->old.instructions[index];
    const parameter_slice *slice = &f->slices[f->slice_of[index]];
    BASE_TRY(plan_add_wait(s, slice->read, error));
    if (!has_buffer(f, slice)) return SIFR_OK;
    const plan_operand *whole = &f->old.operands[gather->first_operand + 1];
    BASE_TRY(plan_add_operand(s, PLAN_X0, slice->buffer, 0, error));
    BASE_TRY(plan_add_operand(s, PLAN_Y, whole->buffer, whole->offset, error));
    f->moved[index] = (int32_t)s->instruction_count;
    return plan_add_instruction(s, *gather, error);
}

static sifr_status rewrite(parameter_offload *f, sifr_error *error) {
    for (size_t i = 0; i < f->old.count; i++) {
        const plan_instruction *in = &f->old.instructions[i];
        while (f->next < f->count && f->live < f->most) BASE_TRY(emit_read(f, error));
        if (f->slice_of[i] >= 0)
            BASE_TRY(emit_gather(f, i, error));
        else if (in->wait >= 0 && f->slice_of[in->wait] >= 0)
            BASE_TRY(plan_add_wait(f->s, f->moved[in->wait], error));
        else
            BASE_TRY(plan_keep(f->s, &f->old, i, f->moved, error));
        f->live -= f->ends[i];
        base_assert(f->live >= 0 && f->live <= f->most);
    }
    base_assert(f->next == f->count && f->live == 0);
    return SIFR_OK;
}

sifr_status plan_pass_offload_parameters(plan_schedule *s, sifr_error *error) {
    parameter_offload f = {.s = s, .alone = plan_mesh_ranks(&s->settings.mesh, PLAN_STATE) == 1};
    sifr_status status;
    if (!plan_parameters_offloaded(s)) return SIFR_OK;
    size_t count = s->instruction_count;
    BASE_TRY_GOTO(status, base_alloc(count, sizeof *f.moved, &f.moved, error), done);
    BASE_TRY_GOTO(status, base_alloc(count, sizeof *f.slice_of, &f.slice_of, error), done);
    BASE_TRY_GOTO(status, base_alloc(count, sizeof *f.ends, &f.ends, error), done);
    f.old = plan_take_list(s);
    BASE_TRY_GOTO(status, find_slices(&f, error), done);
    if (f.alone)
        BASE_TRY_GOTO(status, find_last_uses(&f, error), done);
    else
        find_waits(&f);
    BASE_TRY_GOTO(status, choose_capacity(&f, error), done);
    align_places(&f);
    status = rewrite(&f, error);
done:
    plan_free_list(&f.old);
    free(f.moved);
    free(f.slice_of);
    free(f.ends);
    free(f.slices);
    return status;
}

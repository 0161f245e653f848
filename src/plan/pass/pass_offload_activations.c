/* Offloaded activations, on disk or in host memory (Rajbhandari et al., ZeRO-Infinity, SC21): a
 * result kept for the backward pass is written after its last use in the forward pass, and read
 * back, in the order of the backward pass, before it is needed.
 *
 * One limit bounds the bytes of results that wait to be written, or are read and not yet used up:
 * the most that the backward pass uses at a time, plus half of a unit's results. The results that
 * the backward pass needs first are within that limit from the start and are not written at all.
 *
 * In a stage of a pipeline, passes of other micro batches lie between the forward and the backward
 * pass of a micro batch. Then all of its results are written: any that stayed would take memory
 * beside those of the other micro batches. They are read as early as the limit allows, also during
 * the forward pass of a later micro batch.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "plan/list.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "plan/schedule.h"

/* A disk moves at least a page, and results much smaller than the largest one are not worth a
 * transfer. */
enum { SMALL = 256 };

typedef struct kept_result {
    int32_t buffer, copy; /* the forward pass's result; the buffer that it is read into */
    /* Old instructions: the last use in the forward pass, the start of the next backward pass, and
     * the first and last use in that pass. */
    int32_t done, backward_from, wanted, last;
    int64_t bytes, place; /* whole pages, in the file */
    int32_t write, read;  /* new instructions */
    bool stays;           /* in memory */
    bool written;         /* the write has been waited for */
    bool live;            /* counted in activation_offload.live */
} kept_result;

typedef struct activation_offload {
    plan_schedule *s;
    plan_list old;
    int32_t *moved;       /* by old instruction: the new one */
    int32_t *result_of;   /* by buffer: its result; -1: none */
    kept_result *results; /* in the order in which the backward pass needs them */
    size_t count, capacity;
    int32_t file;     /* buffer that is offloaded: on disk, or in host memory */
    int64_t window;   /* bytes that may be live */
    int64_t live;     /* bytes of results that wait to be written, or are read and not used up */
    size_t next;      /* result to be read */
    size_t arrived;   /* results before this one have arrived */
    int32_t *writing; /* results on their way to the disk, oldest first */
    size_t first_writing, writing_end;
} activation_offload;

static int64_t bytes_of(const kept_result *r) {
    return r->bytes + PLAN_DISK_ALIGNMENT;
}

static bool is_backward(const plan_instruction *in) {
    return in->action == PLAN_BACKWARD || in->action == PLAN_RECOMPUTE;
}

/* --- what goes to disk --- */

static void note_use(kept_result *uses, const plan_instruction *in, int32_t index, int32_t buffer) {
    kept_result *use = &uses[buffer];
    bool backward = is_backward(in);
    if (in->action == PLAN_FORWARD && use->wanted < 0) use->done = index;
    if (backward && use->wanted < 0) use->wanted = index;
    use->last = index;
}

/* Finds the uses of activations, by buffer. */
static void find_uses(const activation_offload *p, kept_result *uses) {
    const plan_schedule *s = p->s;
    for (size_t b = 0; b < s->buffer_count; b++) uses[b].done = uses[b].wanted = -1;
    for (size_t i = 0; i < p->old.count; i++) {
        const plan_instruction *in = &p->old.instructions[i];
        for (int32_t o = in->first_operand; o < in->first_operand + in->operands; o++) {
            int32_t buffer = p->old.operands[o].buffer;
            if (s->buffers[buffer].class == PLAN_ACTIVATIONS)
                note_use(uses, in, (int32_t)i, buffer);
        }
    }
}

/* Finds for each old instruction the next one of a backward pass. */
static void find_backward(const activation_offload *p, int32_t *backward) {
    int32_t backward_from = (int32_t)p->old.count;
    for (size_t i = p->old.count; i-- > 0; backward[i] = backward_from) {
        if (is_backward(&p->old.instructions[i])) backward_from = (int32_t)i;
    }
}

static sifr_status add_results(activation_offload *p, const kept_result *uses,
                               const int32_t *backward, sifr_error *error) {
    const plan_schedule *s = p->s;
    int64_t largest = 0;
    for (size_t b = 0; b < s->buffer_count; b++) {
        if (uses[b].done >= 0 && uses[b].wanted >= 0)
            largest = base_max_i64(largest, s->buffers[b].bytes);
    }
    int64_t least = base_max_i64(PLAN_DISK_ALIGNMENT, largest / SMALL);
    for (size_t b = 0; b < s->buffer_count; b++) {
        kept_result r = uses[b];
        if (r.done < 0 || r.wanted < 0 || s->buffers[b].bytes < least) continue;
        r.buffer = (int32_t)b;
        r.copy = r.write = r.read = -1;
        r.bytes = base_ceil_to(s->buffers[b].bytes, PLAN_DISK_ALIGNMENT);
        r.backward_from = backward[r.done];
        BASE_TRY(base_grow(&p->results, &p->capacity, p->count + 1, sizeof *p->results, error));
        p->results[p->count++] = r;
    }
    return SIFR_OK;
}

static int compare_results(const void *a, const void *b) {
    const kept_result *x = a, *y = b;
    if (x->wanted != y->wanted) return x->wanted < y->wanted ? -1 : 1;
    return x->buffer < y->buffer ? -1 : x->buffer > y->buffer;
}

static sifr_status find_results(activation_offload *p, sifr_error *error) {
    kept_result *uses = NULL; /* by buffer */
    int32_t *backward = NULL;
    sifr_status status;
    BASE_TRY_GOTO(status, base_alloc(p->s->buffer_count, sizeof *uses, &uses, error), done);
    BASE_TRY_GOTO(status, base_alloc(p->old.count, sizeof *backward, &backward, error), done);
    find_uses(p, uses);
    find_backward(p, backward);
    status = add_results(p, uses, backward, error);
done:
    free(uses);
    free(backward);
    if (p->count) qsort(p->results, p->count, sizeof *p->results, compare_results);
    return status;
}

/* The most bytes that a backward pass uses at a time. */
static sifr_status find_needed(const activation_offload *p, int64_t *needed, sifr_error *error) {
    int64_t *change, live = 0; /* by old instruction */
    BASE_TRY(base_alloc(p->old.count + 1, sizeof *change, &change, error));
    for (size_t k = 0; k < p->count; k++) {
        base_assert(p->results[k].done < p->results[k].wanted);
        change[p->results[k].wanted] += bytes_of(&p->results[k]);
        change[p->results[k].last + 1] -= bytes_of(&p->results[k]);
    }
    *needed = 0;
    for (size_t i = 0; i < p->old.count; i++) {
        live += change[i];
        *needed = base_max_i64(*needed, live);
    }
    free(change);
    return SIFR_OK;
}

static bool same_unit(const activation_offload *p, const kept_result *a, const kept_result *b) {
    const plan_instruction *x = &p->old.instructions[a->wanted];
    const plan_instruction *y = &p->old.instructions[b->wanted];
    return x->unit == y->unit && x->micro_batch == y->micro_batch;
}

static sifr_status choose_window(activation_offload *p, sifr_error *error) {
    int64_t needed, unit = 0, most = 0, largest = 0;
    BASE_TRY(find_needed(p, &needed, error));
    for (size_t k = 0; k < p->count; k++) {
        if (k && !same_unit(p, &p->results[k - 1], &p->results[k])) unit = 0;
        unit += bytes_of(&p->results[k]);
        most = base_max_i64(most, unit);
        largest = base_max_i64(largest, bytes_of(&p->results[k]));
    }
    p->window = needed + base_max_i64(largest, most / 2);
    return SIFR_OK;
}

/* The results of one forward pass: neighbours in the order in which they are needed. */
typedef struct kept_group {
    size_t first, end;   /* results */
    int32_t begin, over; /* old instructions: the least `done` of those that are written, and the
                            greatest `wanted` */
    int64_t place, bytes;
} kept_group;

static bool is_staged(const activation_offload *p) {
    return plan_parts(&p->s->settings.pipeline) > 1;
}

/* Whether two instructions are of the same part of the model and the same micro batch. */
static bool same_pass(const activation_offload *p, int32_t a, int32_t b) {
    const plan_instruction *x = &p->old.instructions[a], *y = &p->old.instructions[b];
    const plan_pipeline *pipeline = &p->s->settings.pipeline;
    return x->micro_batch == y->micro_batch && x->unit >= 0 && y->unit >= 0 &&
           plan_part_of(pipeline, x->unit) == plan_part_of(pipeline, y->unit);
}

static bool same_group(const activation_offload *p, const kept_result *a, const kept_result *b) {
    return a->backward_from == b->backward_from &&
           (!is_staged(p) || same_pass(p, a->wanted, b->wanted));
}

/* Whether the backward pass of a result is the next one after its forward pass. */
static bool comes_next(const activation_offload *p, const kept_result *r) {
    return !is_staged(p) || same_pass(p, r->backward_from, r->wanted);
}

/* The results needed first stay in memory, the others get places one after the other. */
static void fill_group(activation_offload *p, kept_group *g) {
    int64_t staying = 0;
    for (size_t k = g->first; k < g->end; k++) {
        kept_result *r = &p->results[k];
        staying += bytes_of(r);
        r->stays = comes_next(p, r) && staying <= p->window;
        g->over = (int32_t)base_max_i64(g->over, r->wanted);
        if (r->stays) continue;
        g->begin = (int32_t)base_min_i64(g->begin, r->done);
        r->place = g->bytes;
        g->bytes += r->bytes;
    }
}

static int compare_groups(const void *a, const void *b) {
    const kept_group *x = a, *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static int compare_places(const void *a, const void *b) {
    const kept_group *x = *(const kept_group *const *)a, *y = *(const kept_group *const *)b;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* Places a group in the first gap beside those that are in the file at its time: `there`, by place.
 * Returns the new number of them. */
static size_t place_group(kept_group *g, kept_group **there, size_t count) {
    base_assert(g->begin <= g->over && g->bytes > 0);
    size_t left = 0;
    for (size_t i = 0; i < count; i++)
        if (there[i]->over >= g->begin) there[left++] = there[i];
    for (size_t i = 0; i < left && there[i]->place < g->place + g->bytes; i++)
        g->place = there[i]->place + there[i]->bytes;
    there[left++] = g;
    qsort(there, left, sizeof *there, compare_places);
    return left;
}

/* *file_bytes is 0 if all stay in memory. */
static sifr_status choose_places(activation_offload *p, int64_t *file_bytes, sifr_error *error) {
    kept_group *groups = NULL, **there = NULL;
    size_t count = 0, capacity = 0, left = 0;
    sifr_status status = SIFR_OK;
    *file_bytes = 0;
    for (size_t k = 0; k < p->count; k++) {
        if (k == 0 || !same_group(p, &p->results[k - 1], &p->results[k])) {
            BASE_TRY_GOTO(status, base_grow(&groups, &capacity, count + 1, sizeof *groups, error),
                          done);
            groups[count++] = (kept_group){.first = k, .begin = INT32_MAX};
        }
        groups[count - 1].end = k + 1;
    }
    BASE_TRY_GOTO(status, base_alloc(count, sizeof(kept_group *), &there, error), done);
    for (size_t i = 0; i < count; i++) fill_group(p, &groups[i]);
    if (count) qsort(groups, count, sizeof *groups, compare_groups);
    for (size_t i = 0; i < count; i++) {
        kept_group *g = &groups[i];
        if (g->bytes == 0) continue;
        left = place_group(g, there, left);
        for (size_t k = g->first; k < g->end; k++) p->results[k].place += g->place;
        *file_bytes = base_max_i64(*file_bytes, g->place + g->bytes);
    }
done:
    free(groups);
    free(there);
    return status;
}

static sifr_status add_buffers(activation_offload *p, int64_t file_bytes, sifr_error *error) {
    plan_schedule *s = p->s;
    size_t before = s->buffer_count;
    BASE_TRY(base_alloc(before, sizeof *p->result_of, &p->result_of, error));
    for (size_t b = 0; b < before; b++) p->result_of[b] = -1;
    BASE_TRY(plan_add_buffer(s, PLAN_ACTIVATIONS, file_bytes, -1, -1, true, &p->file, error));
    s->buffers[p->file].tier = plan_tier_of(s->settings.step.offload.activations);
    for (size_t k = 0; k < p->count; k++) {
        kept_result *r = &p->results[k];
        plan_buffer *buffer = &s->buffers[r->buffer];
        p->result_of[r->buffer] = (int32_t)k;
        if (r->stays) continue;
        buffer->bytes = bytes_of(r);
        buffer->aligned = true;
        BASE_TRY(plan_add_buffer(s, PLAN_ACTIVATIONS, bytes_of(r), buffer->unit, buffer->index,
                                 false, &r->copy, error));
        s->buffers[r->copy].aligned = true;
    }
    return SIFR_OK;
}

/* --- the new list --- */

static void begin_life(activation_offload *p, kept_result *r) {
    if (!r->live) p->live += bytes_of(r);
    r->live = true;
}

static void end_life(activation_offload *p, kept_result *r) {
    if (r->live) p->live -= bytes_of(r);
    base_assert(p->live >= 0);
    r->live = false;
}

static sifr_status wait_for_oldest(activation_offload *p, sifr_error *error) {
    kept_result *r = &p->results[p->writing[p->first_writing++]];
    base_assert(r->write >= 0 && !r->written);
    BASE_TRY(plan_add_wait(p->s, r->write, error));
    r->written = true;
    end_life(p, r);
    return SIFR_OK;
}

/* Waits for writes until no more than `bytes` are live, or none is running. */
static sifr_status make_space(activation_offload *p, int64_t bytes, sifr_error *error) {
    while (p->live > bytes && p->first_writing < p->writing_end)
        BASE_TRY(wait_for_oldest(p, error));
    return SIFR_OK;
}

static sifr_status emit_write(activation_offload *p, kept_result *r, sifr_error *error) {
    base_assert(!r->stays && r->write < 0);
    plan_schedule *s = p->s;
    r->write = (int32_t)s->instruction_count;
    p->writing[p->writing_end++] = (int32_t)(r - p->results);
    BASE_TRY(plan_add_operand(s, PLAN_X0, r->buffer, 0, error));
    BASE_TRY(plan_add_operand(s, PLAN_Y, p->file, r->place, error));
    return plan_add_transfer(s, PLAN_WRITE, plan_queue_of(s, p->file), s->buffers[r->buffer].unit,
                             p->old.instructions[r->done].micro_batch, r->bytes, error);
}

static sifr_status emit_read(activation_offload *p, kept_result *r, sifr_error *error) {
    base_assert(r->written && r->read < 0);
    const plan_instruction *user = &p->old.instructions[r->wanted];
    begin_life(p, r);
    r->read = (int32_t)p->s->instruction_count;
    BASE_TRY(plan_add_operand(p->s, PLAN_X0, p->file, r->place, error));
    BASE_TRY(plan_add_operand(p->s, PLAN_Y, r->copy, 0, error));
    return plan_add_transfer(p->s, PLAN_READ, plan_queue_of(p->s, p->file), user->unit,
                             user->micro_batch, r->bytes, error);
}

/* Starts reads before old instruction `index`, as far ahead as the window has room. There is always
 * room for results needed now. Without stages the first read starts after all writes have ended,
 * since the results that stay leave no room for it before. A forward pass waits for no write to
 * make room for a read. */
static sifr_status read_ahead(activation_offload *p, int32_t index, sifr_error *error) {
    bool forward = is_staged(p) && !is_backward(&p->old.instructions[index]);
    for (; p->next < p->count; p->next++) {
        kept_result *r = &p->results[p->next];
        if (r->backward_from > index) return SIFR_OK;
        if (r->stays) continue;
        if (forward && (!r->written || p->live + bytes_of(r) > p->window)) return SIFR_OK;
        BASE_TRY(make_space(p, p->window - bytes_of(r), error));
        if (r->wanted > index && p->live + bytes_of(r) > p->window) return SIFR_OK;
        while (!r->written) BASE_TRY(wait_for_oldest(p, error));
        BASE_TRY(emit_read(p, r, error));
    }
    return SIFR_OK;
}

static sifr_status wait_for_reads(activation_offload *p, int32_t index, sifr_error *error) {
    for (; p->arrived < p->count && p->results[p->arrived].wanted <= index; p->arrived++) {
        const kept_result *r = &p->results[p->arrived];
        if (!r->stays) BASE_TRY(plan_add_wait(p->s, r->read, error));
    }
    return SIFR_OK;
}

/* Adds the instruction, with copies in place of results that were read back. */
static sifr_status emit_use(activation_offload *p, size_t index, sifr_error *error) {
    plan_instruction in = p->old.instructions[index];
    plan_operand *operands;
    if (in.call < 0) return plan_keep(p->s, &p->old, index, p->moved, error);
    BASE_TRY(plan_add_operands(p->s, &p->old, &in, &operands, error));
    for (int32_t o = 0; o < in.operands; o++) {
        int32_t k = p->result_of[operands[o].buffer];
        if (k >= 0 && !p->results[k].stays && (int32_t)index > p->results[k].done)
            operands[o].buffer = p->results[k].copy;
    }
    p->moved[index] = (int32_t)p->s->instruction_count;
    return plan_add_instruction(p->s, in, error);
}

/* After the last use of a result, writes or releases it. */
static sifr_status end_use(activation_offload *p, int32_t index, sifr_error *error) {
    const plan_instruction *in = &p->old.instructions[index];
    for (int32_t o = in->first_operand; o < in->first_operand + in->operands; o++) {
        int32_t k = p->result_of[p->old.operands[o].buffer];
        kept_result *r = k >= 0 ? &p->results[k] : NULL;
        if (r && r->last == index) end_life(p, r);
        bool before = r && (r->live || r->written); /* a result may be two operands */
        if (!r || r->done != index || before) continue;
        begin_life(p, r);
        if (!r->stays) BASE_TRY(emit_write(p, r, error));
        BASE_TRY(make_space(p, p->window, error));
    }
    return SIFR_OK;
}

static sifr_status rewrite(activation_offload *p, sifr_error *error) {
    for (size_t i = 0; i < p->old.count; i++) {
        BASE_TRY(read_ahead(p, (int32_t)i, error));
        BASE_TRY(wait_for_reads(p, (int32_t)i, error));
        BASE_TRY(emit_use(p, i, error));
        BASE_TRY(end_use(p, (int32_t)i, error));
    }
    base_assert(p->next == p->count && p->arrived == p->count); /* all were read ... */
    base_assert(p->first_writing == p->writing_end);            /* ... after all had been written */
    return SIFR_OK;
}

static sifr_status offload_results(activation_offload *p, sifr_error *error) {
    plan_schedule *s = p->s;
    int64_t file_bytes = 0;
    p->old = (plan_list){s->instructions, s->operands, s->instruction_count}; /* not owned here */
    sifr_status status = find_results(p, error);
    if (status == SIFR_OK) status = choose_window(p, error);
    if (status == SIFR_OK) status = choose_places(p, &file_bytes, error);
    p->old = (plan_list){0};
    if (status != SIFR_OK || file_bytes == 0) return status;
    BASE_TRY(base_alloc(s->instruction_count, sizeof *p->moved, &p->moved, error));
    BASE_TRY(base_alloc(p->count, sizeof *p->writing, &p->writing, error));
    BASE_TRY(add_buffers(p, file_bytes, error));
    p->old = plan_take_list(s);
    return rewrite(p, error);
}

sifr_status plan_pass_offload_activations(plan_schedule *s, sifr_error *error) {
    const plan_settings *settings = &s->settings;
    activation_offload p = {.s = s};
    if (settings->mode != PLAN_TRAIN ||
        !plan_is_offloaded_tier(s, plan_tier_of(settings->step.offload.activations)))
        return SIFR_OK;
    sifr_status status = offload_results(&p, error);
    plan_free_list(&p.old);
    free(p.moved);
    free(p.result_of);
    free(p.results);
    free(p.writing);
    return status;
}

/* Addresses for every buffer, and the peak.
 *
 * Buffers that live always come first. The others are placed in order of birth, best fit, from two
 * ends: those that outlive everything at the bottom (gradient sums, the gradient of the residual
 * stream) from the top down, everything else from the bottom up. So what is left at the bottom dies
 * in the order of a stack, and the block is as large as the largest sum of both heights. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "plan/schedule.h"

enum { ALIGNMENT = 256 };

/* Free ranges of one end, by rising offset; the last one has no end. */
typedef struct end_space {
    int64_t *offset, *bytes;
    size_t count, offset_room, bytes_room;
} end_space;

static sifr_status space_insert(end_space *space, size_t at, int64_t offset, int64_t bytes,
                                sifr_error *error) {
    BASE_TRY(base_grow(&space->offset, &space->offset_room, space->count + 1, sizeof *space->offset,
                       error));
    BASE_TRY(base_grow(&space->bytes, &space->bytes_room, space->count + 1, sizeof *space->bytes,
                       error));
    size_t tail = space->count - at;
    memmove(space->offset + at + 1, space->offset + at, tail * sizeof *space->offset);
    memmove(space->bytes + at + 1, space->bytes + at, tail * sizeof *space->bytes);
    space->offset[at] = offset;
    space->bytes[at] = bytes;
    space->count++;
    return SIFR_OK;
}

static void space_remove(end_space *space, size_t at) {
    size_t tail = space->count - at - 1;
    memmove(space->offset + at, space->offset + at + 1, tail * sizeof *space->offset);
    memmove(space->bytes + at, space->bytes + at + 1, tail * sizeof *space->bytes);
    space->count--;
}

/* The smallest free range that fits; the endless one only if no other does. */
static int64_t space_take(end_space *space, int64_t bytes) {
    size_t best = space->count - 1;
    for (size_t i = 0; i + 1 < space->count; i++) {
        if (space->bytes[i] < bytes) continue;
        if (best == space->count - 1 || space->bytes[i] < space->bytes[best]) best = i;
    }
    int64_t offset = space->offset[best];
    space->offset[best] += bytes;
    space->bytes[best] -= bytes;
    if (space->bytes[best] == 0) space_remove(space, best);
    return offset;
}

static sifr_status space_give(end_space *space, int64_t offset, int64_t bytes, sifr_error *error) {
    size_t at = 0, high = space->count;
    while (at < high) {
        size_t middle = (at + high) / 2;
        if (space->offset[middle] < offset)
            at = middle + 1;
        else
            high = middle;
    }
    BASE_TRY(space_insert(space, at, offset, bytes, error));
    if (at + 1 < space->count && offset + bytes == space->offset[at + 1]) {
        space->bytes[at] += space->bytes[at + 1];
        space_remove(space, at + 1);
    }
    if (at > 0 && space->offset[at - 1] + space->bytes[at - 1] == offset) {
        space->bytes[at - 1] += space->bytes[at];
        space_remove(space, at);
    }
    return SIFR_OK;
}

static int64_t space_height(const end_space *space) {
    return space->offset[space->count - 1];
}

/* An event: a buffer is born at an instruction or dies after it. */
typedef struct lifetime_event {
    int32_t instruction, buffer;
    bool death;
} lifetime_event;

static int compare_events(const void *a, const void *b) {
    const lifetime_event *x = a, *y = b;
    if (x->instruction != y->instruction) return x->instruction < y->instruction ? -1 : 1;
    if (x->death != y->death) return x->death ? 1 : -1; /* all births of an instruction first */
    return x->buffer < y->buffer ? -1 : x->buffer > y->buffer;
}

static int64_t room_of(const plan_buffer *buffer) {
    return base_ceil_to(buffer->bytes, ALIGNMENT);
}

/* The largest sum of live bytes, and its classes. */
static void record_peak(plan_schedule *s, const int64_t *live, int64_t *largest,
                        int32_t instruction) {
    int64_t sum = 0;
    for (int c = 0; c < PLAN_CLASSES; c++) sum += live[c];
    if (sum <= *largest) return;
    *largest = sum;
    memcpy(s->peak_bytes, live, sizeof s->peak_bytes);
    s->peak_instruction = instruction;
}

static int32_t first_of(const plan_schedule *s, plan_action action) {
    for (size_t i = 0; i < s->instruction_count; i++) {
        if (s->instructions[i].action == action) return (int32_t)i;
    }
    return INT32_MAX;
}

sifr_status plan_memory(plan_schedule *s, sifr_error *error) {
    lifetime_event *events = NULL;
    end_space ends[2] = {0};
    int64_t live[PLAN_CLASSES] = {0}, largest = -1, permanent = 0, height = 0;
    int32_t last_at_bottom = -1; /* death of the longest-lived buffer placed there so far */
    int32_t update = first_of(s, PLAN_SQUARES); /* gradient sums that it reads live longest */
    bool *top = NULL;
    size_t count = 0;
    sifr_status status;
    BASE_TRY_GOTO(status, base_alloc(2 * s->buffer_count, sizeof *events, &events, error), done);
    BASE_TRY_GOTO(status, base_alloc(s->buffer_count, sizeof *top, &top, error), done);
    for (int e = 0; e < 2; e++) {
        BASE_TRY_GOTO(status, space_insert(&ends[e], 0, 0, INT64_MAX / 2, error), done);
    }
    for (size_t b = 0; b < s->buffer_count; b++) {
        plan_buffer *buffer = &s->buffers[b];
        if (buffer->first < 0) {
            buffer->offset = permanent;
            permanent += room_of(buffer);
            live[buffer->class] += room_of(buffer);
        } else if (buffer->last >= 0) {
            events[count++] = (lifetime_event){buffer->first, (int32_t)b, false};
            events[count++] = (lifetime_event){buffer->last, (int32_t)b, true};
        }
    }
    if (count) qsort(events, count, sizeof *events, compare_events);
    record_peak(s, live, &largest, -1);
    for (size_t i = 0; i < count; i++) {
        plan_buffer *buffer = &s->buffers[events[i].buffer];
        bool *at_top = &top[events[i].buffer];
        int64_t room = room_of(buffer);
        if (room == 0) continue;
        if (!events[i].death) {
            bool alone = last_at_bottom < buffer->first;
            bool kept = buffer->class == PLAN_GRADIENTS && buffer->last >= update;
            *at_top = kept || (!alone && buffer->last > last_at_bottom);
            if (!*at_top) last_at_bottom = (int32_t)base_max_i64(last_at_bottom, buffer->last);
        }
        end_space *end = &ends[*at_top];
        if (events[i].death) {
            BASE_TRY_GOTO(status, space_give(end, buffer->offset, room, error), done);
            live[buffer->class] -= room;
            continue;
        }
        buffer->offset = space_take(end, room);
        live[buffer->class] += room;
        record_peak(s, live, &largest, events[i].instruction);
        height = base_max_i64(height, space_height(&ends[0]) + space_height(&ends[1]));
    }
    for (size_t b = 0; b < s->buffer_count; b++) {
        plan_buffer *buffer = &s->buffers[b];
        if (buffer->first < 0 || buffer->last < 0) continue;
        if (top[b]) buffer->offset = height - buffer->offset - room_of(buffer);
        buffer->offset += permanent;
    }
    s->total_bytes = permanent + height;
done:
    free(events);
    free(top);
    for (int e = 0; e < 2; e++) {
        free(ends[e].offset);
        free(ends[e].bytes);
    }
    return status;
}

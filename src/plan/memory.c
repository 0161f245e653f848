/* Addresses for every buffer, and the peak.
 *
 * Buffers that live always come first. The others are placed in order of birth, best fit, from two
 * ends: those that outlive everything at the bottom (gradient sums, the gradient of the residual
 * stream) from the top down, everything else from the bottom up. So what is left at the bottom dies
 * in the order of a stack, and the block is as large as the largest sum of both heights.
 *
 * What lives on over the end of the step (pass_defer.c) is a gradient sum at the top, which grows
 * in the backward pass and shrinks in the next step's forward pass, while the bottom does the
 * opposite: the top is placed from where that is gone, round over the end of the step.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "plan/schedule.h"

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

/* The smallest free range that fits; the endless one, which is the last, only if no other does. */
static size_t space_find(const end_space *space, int64_t bytes) {
    size_t best = space->count - 1;
    for (size_t i = 0; i + 1 < space->count; i++) {
        if (space->bytes[i] < bytes) continue;
        if (best == space->count - 1 || space->bytes[i] < space->bytes[best]) best = i;
    }
    return best;
}

static int64_t space_take(end_space *space, int64_t bytes) {
    size_t best = space_find(space, bytes);
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

/* By instruction, all births of one before its deaths, and those in the order of buffers, in which
 * they come: where each kind of each instruction begins is counted first. */
static sifr_status sort_events(const lifetime_event *from, size_t count, size_t instructions,
                               lifetime_event *to, sifr_error *error) {
    size_t *begin;
    BASE_TRY(base_alloc(2 * instructions + 1, sizeof *begin, &begin, error));
    for (size_t i = 0; i < count; i++) begin[2 * from[i].instruction + from[i].death + 1]++;
    for (size_t k = 1; k <= 2 * instructions; k++) begin[k] += begin[k - 1];
    for (size_t i = 0; i < count; i++)
        to[begin[2 * from[i].instruction + from[i].death]++] = from[i];
    free(begin);
    return SIFR_OK;
}

/* Streams that a multiple of 128 MiB lies between fall on the same banks of memory: AdamW over four
 * of them then runs at a quarter of its speed (AMD EPYC), and at full speed with 16 KiB more
 * between each two. Large buffers of equal size end with such a gap, so that rows of them differ.
 */
enum { LARGE = 32 << 20, APART = 17 << 10 };

int64_t plan_room(int64_t bytes) {
    return base_ceil_to(bytes + (bytes >= LARGE ? APART : 0), PLAN_ALIGNMENT);
}

static int64_t room_of(const plan_buffer *buffer) {
    return plan_room(buffer->bytes);
}

/* The largest sum of live bytes and its classes, and the largest of each. */
static void record_peak(plan_schedule *s, const int64_t *live, int64_t *largest,
                        int32_t instruction) {
    int64_t sum = 0;
    for (int c = 0; c < PLAN_CLASSES; c++) {
        sum += live[c];
        if (instruction >= 0 && live[c] <= s->largest_bytes[c]) continue;
        s->largest_bytes[c] = live[c];
        s->largest_instruction[c] = instruction;
    }
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

typedef struct placement {
    plan_schedule *s;
    const lifetime_event *events;
    size_t count, start; /* start: the event at which the placing of the top begins */
    int32_t start_at;    /* and its instruction */
    bool *top;           /* by buffer: its offset counts down from the top */
    int32_t update;      /* gradient sums that live up to here live longest */
    int64_t *offset;     /* by buffer */
    int64_t *heights;    /* by event: of both ends after it */
    int64_t height;
} placement;

static bool lives_on(const plan_buffer *buffer) {
    return buffer->last < buffer->first;
}

/* Which end: what outlives all that is at the bottom goes to the top, and gathered parameters where
 * `gathered` says so. Buffers of updates that are read ahead of them outlive all. */
static bool belongs_to_top(const placement *p, const plan_buffer *buffer, int32_t last_at_bottom,
                           bool gathered) {
    bool gradient = buffer->class == PLAN_GRADIENTS, swap = buffer->class == PLAN_SWAP;
    bool kept = (gradient || (swap && buffer->first < p->update)) && buffer->last >= p->update;
    if (lives_on(buffer)) return true;
    if (buffer->deferred || (buffer->first < p->start_at && buffer->last >= p->start_at))
        return false;
    if (kept || (gathered && buffer->class == PLAN_GATHERED)) return true;
    return last_at_bottom >= buffer->first && buffer->last > last_at_bottom;
}

static void choose_ends(placement *p, bool gathered) {
    int32_t last_at_bottom = -1; /* death of the longest-lived buffer placed there so far */
    for (size_t i = 0; i < p->count; i++) {
        int32_t b = p->events[i].buffer;
        const plan_buffer *buffer = &p->s->buffers[b];
        if (p->events[i].death || room_of(buffer) == 0) continue;
        p->top[b] = belongs_to_top(p, buffer, last_at_bottom, gathered);
        if (!p->top[b] && !buffer->deferred) /* those are gone before what is above them */
            last_at_bottom = (int32_t)base_max_i64(last_at_bottom, buffer->last);
    }
}

/* The buffers of one end, from event `start` on and round. What is deferred comes to the top where
 * that has a gap for it. */
static sifr_status place_end(placement *p, bool top, size_t start, sifr_error *error) {
    end_space space = {0};
    sifr_status status = space_insert(&space, 0, 0, INT64_MAX / 2, error);
    for (size_t k = 0; k < p->count && status == SIFR_OK; k++) {
        size_t i = start + k < p->count ? start + k : start + k - p->count;
        int32_t b = p->events[i].buffer;
        const plan_buffer *buffer = &p->s->buffers[b];
        if (top && buffer->deferred && !p->events[i].death)
            p->top[b] = space_find(&space, room_of(buffer)) + 1 < space.count;
        int64_t room = p->top[b] == top ? room_of(buffer) : 0;
        if (room && p->events[i].death)
            status = space_give(&space, p->offset[b], room, error);
        else if (room)
            p->offset[b] = space_take(&space, room);
        p->heights[i] += space_height(&space);
    }
    free(space.offset);
    free(space.bytes);
    return status;
}

static sifr_status place(placement *p, bool gathered, sifr_error *error) {
    choose_ends(p, gathered);
    for (size_t i = 0; i < p->count; i++) p->heights[i] = 0;
    BASE_TRY(place_end(p, true, p->start, error));
    BASE_TRY(place_end(p, false, 0, error));
    p->height = 0;
    for (size_t i = 0; i < p->count; i++) p->height = base_max_i64(p->height, p->heights[i]);
    return SIFR_OK;
}

static void adopt(const placement *p, int64_t permanent) {
    plan_schedule *s = p->s;
    for (size_t b = 0; b < s->buffer_count; b++) {
        plan_buffer *buffer = &s->buffers[b];
        if (buffer->first < 0 || buffer->last < 0) continue;
        int64_t offset = p->offset[b];
        if (p->top[b]) offset = p->height - offset - room_of(buffer);
        buffer->offset = permanent + offset;
    }
    s->total_bytes = permanent + p->height;
}

static bool has_gathered(const plan_schedule *s) {
    for (size_t b = 0; b < s->buffer_count; b++)
        if (s->buffers[b].class == PLAN_GATHERED) return true;
    return false;
}

/* Two ways, the lower one counts: which one it is depends on the sizes. */
static sifr_status place_best(placement *p, int64_t permanent, sifr_error *error) {
    BASE_TRY(place(p, true, error));
    adopt(p, permanent);
    int64_t height = p->height;
    if (!has_gathered(p->s)) return SIFR_OK;
    BASE_TRY(place(p, false, error));
    if (p->height <= height) adopt(p, permanent);
    return SIFR_OK;
}

/* What is away lies one after the other, in the file or in its block of host memory. */
static void place_away(plan_schedule *s) {
    s->nvme_bytes = s->host_bytes = 0;
    for (size_t b = 0; b < s->buffer_count; b++) {
        plan_buffer *buffer = &s->buffers[b];
        if (!plan_is_away(s, (int32_t)b)) continue;
        int64_t *end = buffer->tier == PLAN_NVME ? &s->nvme_bytes : &s->host_bytes;
        buffer->offset = *end;
        *end += base_ceil_to(buffer->bytes, PLAN_DISK_ALIGNMENT);
    }
}

static void find_peak(plan_schedule *s, const lifetime_event *events, size_t count) {
    int64_t live[PLAN_CLASSES] = {0}, largest = -1;
    for (size_t b = 0; b < s->buffer_count; b++) {
        if (s->buffers[b].first < 0 && !plan_is_away(s, (int32_t)b))
            live[s->buffers[b].class] += room_of(&s->buffers[b]);
    }
    record_peak(s, live, &largest, -1);
    for (size_t i = 0; i < count; i++) { /* each of what lives on, by its death */
        const plan_buffer *buffer = &s->buffers[events[i].buffer];
        if (events[i].death && lives_on(buffer)) live[buffer->class] += room_of(buffer);
    }
    record_peak(s, live, &largest, 0);
    for (size_t i = 0; i < count; i++) {
        const plan_buffer *buffer = &s->buffers[events[i].buffer];
        int64_t room = room_of(buffer);
        live[buffer->class] += events[i].death ? -room : room;
        if (!events[i].death) record_peak(s, live, &largest, events[i].instruction);
    }
}

/* Where the last of what lives on is gone. */
static void find_start(placement *p) {
    for (size_t b = 0; b < p->s->buffer_count; b++) {
        const plan_buffer *buffer = &p->s->buffers[b];
        if (buffer->last >= p->start_at && lives_on(buffer)) p->start_at = buffer->last + 1;
    }
    while (p->start < p->count && p->events[p->start].instruction < p->start_at) p->start++;
}

sifr_status plan_memory(plan_schedule *s, sifr_error *error) {
    lifetime_event *found = NULL, *events = NULL;
    placement p = {.s = s, .update = first_of(s, PLAN_NORM)};
    int64_t permanent = 0;
    sifr_status status;
    place_away(s);
    BASE_TRY_GOTO(status, base_alloc(2 * s->buffer_count, sizeof *found, &found, error), done);
    BASE_TRY_GOTO(status, base_alloc(2 * s->buffer_count, sizeof *events, &events, error), done);
    BASE_TRY_GOTO(status, base_alloc(s->buffer_count, sizeof *p.top, &p.top, error), done);
    BASE_TRY_GOTO(status, base_alloc(s->buffer_count, sizeof *p.offset, &p.offset, error), done);
    BASE_TRY_GOTO(status, base_alloc(2 * s->buffer_count, sizeof *p.heights, &p.heights, error),
                  done);
    for (size_t b = 0; b < s->buffer_count; b++) {
        plan_buffer *buffer = &s->buffers[b];
        if (plan_is_away(s, (int32_t)b)) continue;
        if (buffer->first < 0) {
            buffer->offset = permanent;
            permanent += room_of(buffer);
        } else if (buffer->last >= 0) {
            found[p.count++] = (lifetime_event){buffer->first, (int32_t)b, false};
            found[p.count++] = (lifetime_event){buffer->last, (int32_t)b, true};
        }
    }
    BASE_TRY_GOTO(status, sort_events(found, p.count, s->instruction_count, events, error), done);
    p.events = events;
    find_start(&p);
    find_peak(s, events, p.count);
    status = place_best(&p, permanent, error);
done:
    free(found);
    free(events);
    free(p.top);
    free(p.offset);
    free(p.heights);
    return status;
}

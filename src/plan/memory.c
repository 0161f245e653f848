/* Gives every buffer an address, and computes the peak.
 *
 * Persistent buffers come first, and scratch last of them, so that it and what follows is idle
 * between steps as one (plan_idle_start). The others are placed in order of birth, best fit, from
 * two ends of the block: buffers that outlive everything at the bottom (gradient sums, the gradient
 * of the residual stream) from the top down, all others from the bottom up. So the buffers at the
 * bottom die in the order of a stack, and the block is as large as the largest sum of both heights.
 *
 * Buffers that live past the end of the step (pass_delay_update.c) are gradient sums at the top.
 * The top then grows in the backward pass and shrinks in the next step's forward pass, while the
 * bottom does the opposite. Placing the top starts where those buffers have died and wraps around
 * the end of the step.
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "plan/schedule.h"

typedef struct free_range {
    int64_t offset, bytes;
} free_range;

/* Free ranges of one end, by rising offset; the last one has no end. */
typedef struct end_space {
    free_range *ranges;
    size_t count, capacity;
} end_space;

static sifr_status space_insert(end_space *space, size_t at, free_range range, sifr_error *error) {
    base_assert(at <= space->count);
    BASE_TRY(base_grow(&space->ranges, &space->capacity, space->count + 1, sizeof *space->ranges,
                       error));
    memmove(space->ranges + at + 1, space->ranges + at, (space->count - at) * sizeof range);
    space->ranges[at] = range;
    space->count++;
    return SIFR_OK;
}

static void space_remove(end_space *space, size_t at) {
    base_assert(at < space->count);
    space->count--;
    memmove(space->ranges + at, space->ranges + at + 1,
            (space->count - at) * sizeof *space->ranges);
}

/* The smallest free range that fits; the endless one, which is the last, only if no other does. */
static size_t space_find(const end_space *space, int64_t bytes) {
    size_t best = space->count - 1;
    int64_t least = INT64_MAX;
    for (size_t i = 0; i + 1 < space->count; i++) {
        int64_t here = space->ranges[i].bytes;
        if (here < bytes || here >= least) continue;
        best = i;
        least = here;
    }
    return best;
}

static int64_t space_take(end_space *space, int64_t bytes) {
    size_t best = space_find(space, bytes);
    free_range *range = &space->ranges[best];
    int64_t offset = range->offset;
    base_assert(bytes > 0 && range->bytes >= bytes);
    range->offset += bytes;
    range->bytes -= bytes;
    if (range->bytes == 0) space_remove(space, best);
    return offset;
}

static sifr_status space_give(end_space *space, int64_t offset, int64_t bytes, sifr_error *error) {
    size_t at = 0, high = space->count;
    while (at < high) {
        size_t middle = (at + high) / 2;
        if (space->ranges[middle].offset < offset)
            at = middle + 1;
        else
            high = middle;
    }
    free_range *after = &space->ranges[at], *before = at > 0 ? after - 1 : NULL;
    bool meets_after = at < space->count && offset + bytes == after->offset;
    base_assert(!before || before->offset + before->bytes <= offset); /* it was taken */
    base_assert(at == space->count || offset + bytes <= after->offset);
    if (before && before->offset + before->bytes == offset) {
        before->bytes += bytes;
        if (!meets_after) return SIFR_OK;
        before->bytes += after->bytes;
        space_remove(space, at);
        return SIFR_OK;
    }
    if (!meets_after) return space_insert(space, at, (free_range){offset, bytes}, error);
    after->offset = offset;
    after->bytes += bytes;
    return SIFR_OK;
}

static int64_t space_height(const end_space *space) {
    base_assert(space->count > 0);
    return space->ranges[space->count - 1].offset;
}

/* An event: a buffer is born at an instruction or dies after it. */
typedef struct lifetime_event {
    int32_t instruction, buffer;
    bool death;
} lifetime_event;

/* The events of all buffers that are used, not persistent and not offloaded. Sorted by instruction,
 * births before deaths, and then by buffer: a counting sort by instruction and kind. */
static sifr_status sort_events(const plan_schedule *s, lifetime_event *to, size_t *count,
                               sifr_error *error) {
    size_t *begin, kinds = 2 * s->instruction_count;
    BASE_TRY(base_alloc(kinds + 1, sizeof *begin, &begin, error));
    for (size_t b = 0; b < s->buffer_count; b++) {
        const plan_buffer *buffer = &s->buffers[b];
        if (!plan_comes_and_goes(s, (int32_t)b)) continue;
        begin[2 * buffer->first + 1]++;
        begin[2 * buffer->last + 2]++;
    }
    for (size_t k = 1; k <= kinds; k++) begin[k] += begin[k - 1];
    *count = begin[kinds];
    for (size_t b = 0; b < s->buffer_count; b++) {
        const plan_buffer *buffer = &s->buffers[b];
        if (!plan_comes_and_goes(s, (int32_t)b)) continue;
        to[begin[2 * buffer->first]++] = (lifetime_event){buffer->first, (int32_t)b, false};
        to[begin[2 * buffer->last + 1]++] = (lifetime_event){buffer->last, (int32_t)b, true};
    }
    free(begin);
    return SIFR_OK;
}

/* Streams at distances of a multiple of 128 MiB use the same memory banks: AdamW over four such
 * streams runs at a quarter of its speed (AMD EPYC), and at full speed if each two are 16 KiB
 * further apart. Large buffers end with such a gap, so that equal buffers in a row have other
 * distances. */
enum { LARGE = 32 << 20, APART = 17 << 10 };

int64_t plan_capacity(int64_t bytes) {
    return base_ceil_to(bytes + (bytes >= LARGE ? APART : 0), PLAN_ALIGNMENT);
}

static void record_largest(plan_schedule *s, const int64_t *live, int class, int32_t instruction) {
    if (instruction >= 0 && live[class] <= s->largest_bytes[class]) return;
    s->largest_bytes[class] = live[class];
    s->largest_instruction[class] = instruction;
}

/* The largest sum of live bytes, and its classes. */
static void record_peak(plan_schedule *s, const int64_t *live, int64_t sum, int64_t *largest,
                        int32_t instruction) {
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
    int64_t *capacity; /* by buffer: bytes in the block, up to the next buffer */
    const lifetime_event *events;
    size_t count, start; /* start: the event at which the placing of the top begins */
    int32_t start_at;    /* and its instruction */
    bool *top;           /* by buffer: its offset counts down from the top */
    int32_t update;      /* gradient sums that live up to here live longest */
    int64_t *offset;     /* by buffer */
    int64_t *heights;    /* by event: of both ends after it */
    int64_t height;      /* the largest sum so far */
    int64_t limit;       /* a height that is no improvement: placing stops there */
    bool defers;         /* some buffer is deferred */
} placement;

static bool lives_on(const plan_buffer *buffer) {
    return buffer->last < buffer->first;
}

/* Placing the top, which wraps around, would begin in the middle of this buffer's life. */
static bool is_cut(const placement *p, const plan_buffer *buffer) {
    return buffer->first < p->start_at && buffer->last >= p->start_at;
}

/* Parameters that are there while a unit runs. */
static bool is_for_a_run(const plan_buffer *buffer) {
    return buffer->class == PLAN_GATHERED || buffer->class == PLAN_DECODED;
}

/* Chooses the end: buffers that outlive everything at the bottom go to the top, and so do gathered
 * parameters if `gathered` is set. Buffers of updates that are read ahead outlive everything. */
static bool belongs_to_top(const placement *p, const plan_buffer *buffer, int32_t last_at_bottom,
                           bool gathered) {
    bool gradient = buffer->class == PLAN_GRADIENTS, swap = buffer->class == PLAN_SWAP;
    bool kept = (gradient || (swap && buffer->first < p->update)) && buffer->last >= p->update;
    if (lives_on(buffer)) return true;
    if (buffer->deferred || is_cut(p, buffer)) return false;
    if (kept || (gathered && is_for_a_run(buffer))) return true;
    return last_at_bottom >= buffer->first && buffer->last > last_at_bottom;
}

static void choose_ends(placement *p, bool gathered) {
    int32_t last_at_bottom = -1; /* death of the longest-lived buffer placed there so far */
    for (size_t i = 0; i < p->count; i++) {
        int32_t b = p->events[i].buffer;
        const plan_buffer *buffer = &p->s->buffers[b];
        if (p->events[i].death || p->capacity[b] == 0) continue;
        p->top[b] = belongs_to_top(p, buffer, last_at_bottom, gathered);
        if (!p->top[b] && !buffer->deferred) /* those are gone before what is above them */
            last_at_bottom = (int32_t)base_max_i64(last_at_bottom, buffer->last);
    }
}

/* Places the buffers of one end, from event `start` on and around. Buffers of deferred instructions
 * go to the top if it has a gap for them. */
static sifr_status place_end(placement *p, bool top, size_t start, sifr_error *error) {
    base_assert(start <= p->count);
    end_space space = {0};
    int64_t height = 0;
    p->height = 0;
    sifr_status status = space_insert(&space, 0, (free_range){0, INT64_MAX / 2}, error);
    for (size_t k = 0; k < p->count && status == SIFR_OK && p->height < p->limit; k++) {
        size_t i = start + k < p->count ? start + k : start + k - p->count;
        int32_t b = p->events[i].buffer;
        bool death = p->events[i].death;
        int64_t capacity = p->capacity[b];
        const plan_buffer *buffer = &p->s->buffers[b];
        if (p->defers && top && !death && buffer->deferred)
            p->top[b] = !is_cut(p, buffer) && space_find(&space, capacity) + 1 < space.count;
        if (p->top[b] == top && capacity) {
            if (death)
                status = space_give(&space, p->offset[b], capacity, error);
            else
                p->offset[b] = space_take(&space, capacity);
            height = space_height(&space);
        }
        p->heights[i] += height;
        p->height = base_max_i64(p->height, p->heights[i]);
    }
    free(space.ranges);
    return status;
}

static sifr_status place(placement *p, bool gathered, sifr_error *error) {
    choose_ends(p, gathered);
    for (size_t i = 0; i < p->count; i++) p->heights[i] = 0;
    BASE_TRY(place_end(p, true, p->start, error));
    if (p->height >= p->limit) return SIFR_OK;
    return place_end(p, false, 0, error);
}

static void adopt(const placement *p, int64_t permanent) {
    plan_schedule *s = p->s;
    for (size_t b = 0; b < s->buffer_count; b++) {
        plan_buffer *buffer = &s->buffers[b];
        if (!plan_comes_and_goes(s, (int32_t)b)) continue;
        int64_t offset = p->offset[b];
        if (p->top[b]) offset = p->height - offset - p->capacity[b];
        base_assert(offset >= 0 && offset + p->capacity[b] <= p->height);
        buffer->offset = permanent + offset;
    }
    s->total_bytes = permanent + p->height;
}

static bool has_gathered(const plan_schedule *s) {
    for (size_t b = 0; b < s->buffer_count; b++)
        if (is_for_a_run(&s->buffers[b])) return true;
    return false;
}

/* Tries two ways and takes the lower one; which one that is depends on the sizes. Neither is below
 * `least`. */
static sifr_status place_best(placement *p, int64_t permanent, int64_t least, sifr_error *error) {
    bool gathered = has_gathered(p->s);
    BASE_TRY(place(p, !gathered, error));
    adopt(p, permanent);
    if (!gathered || permanent + p->height <= least) return SIFR_OK;
    p->limit = p->height;
    BASE_TRY(place(p, true, error));
    if (p->height < p->limit) adopt(p, permanent);
    return SIFR_OK;
}

/* Buffers that are offloaded lie one after the other, in the file or in the block of host memory.
 */
static void place_offloaded(plan_schedule *s) {
    s->nvme_bytes = s->host_bytes = 0;
    for (size_t b = 0; b < s->buffer_count; b++) {
        plan_buffer *buffer = &s->buffers[b];
        if (!plan_is_offloaded(s, (int32_t)b)) continue;
        int64_t *end = buffer->tier == PLAN_NVME ? &s->nvme_bytes : &s->host_bytes;
        buffer->offset = *end;
        *end += base_ceil_to(buffer->bytes, PLAN_DISK_ALIGNMENT);
    }
}

/* Returns the largest sum of live bytes: no block is smaller. */
static int64_t find_peak(plan_schedule *s, const placement *p) {
    int64_t live[PLAN_CLASSES] = {0}, sum = 0, largest = -1;
    for (size_t b = 0; b < s->buffer_count; b++) {
        if (s->buffers[b].first >= 0 || plan_is_offloaded(s, (int32_t)b)) continue;
        live[s->buffers[b].class] += p->capacity[b];
        sum += p->capacity[b];
    }
    for (int c = 0; c < PLAN_CLASSES; c++) record_largest(s, live, c, -1);
    record_peak(s, live, sum, &largest, -1);
    for (size_t i = 0; i < p->count;
         i++) { /* each buffer that lives past the step's end, by its death */
        int32_t b = p->events[i].buffer;
        if (!p->events[i].death || !lives_on(&s->buffers[b])) continue;
        live[s->buffers[b].class] += p->capacity[b];
        sum += p->capacity[b];
    }
    for (int c = 0; c < PLAN_CLASSES; c++) record_largest(s, live, c, 0);
    record_peak(s, live, sum, &largest, 0);
    for (size_t i = 0; i < p->count; i++) {
        const lifetime_event *event = &p->events[i];
        plan_class class = s->buffers[event->buffer].class;
        int64_t capacity = event->death ? -p->capacity[event->buffer] : p->capacity[event->buffer];
        live[class] += capacity;
        sum += capacity;
        if (event->death) continue;
        record_largest(s, live, class, event->instruction);
        record_peak(s, live, sum, &largest, event->instruction);
    }
    return largest;
}

/* The event at which the last of those buffers dies. */
static void find_start(placement *p) {
    for (size_t b = 0; b < p->s->buffer_count; b++) {
        const plan_buffer *buffer = &p->s->buffers[b];
        if (buffer->last >= p->start_at && lives_on(buffer)) p->start_at = buffer->last + 1;
    }
    while (p->start < p->count && p->events[p->start].instruction < p->start_at) p->start++;
}

/* Scratch, or all others. Returns where they end. */
static int64_t place_permanent(plan_schedule *s, const int64_t *capacity, bool scratch,
                               int64_t at) {
    for (size_t b = 0; b < s->buffer_count; b++) {
        plan_buffer *buffer = &s->buffers[b];
        if (buffer->first >= 0 || plan_is_offloaded(s, (int32_t)b)) continue;
        if ((buffer->class == PLAN_SCRATCH) != scratch) continue;
        buffer->offset = at;
        at += capacity[b];
    }
    return at;
}

sifr_status plan_place(plan_schedule *s, sifr_error *error) {
    lifetime_event *events = NULL;
    placement p = {.s = s, .update = first_of(s, PLAN_NORM), .limit = INT64_MAX};
    int64_t permanent;
    sifr_status status;
    place_offloaded(s);
    BASE_TRY_GOTO(status, base_alloc(2 * s->buffer_count, sizeof *events, &events, error), done);
    BASE_TRY_GOTO(status, base_alloc(s->buffer_count, sizeof *p.capacity, &p.capacity, error),
                  done);
    BASE_TRY_GOTO(status, base_alloc(s->buffer_count, sizeof *p.top, &p.top, error), done);
    BASE_TRY_GOTO(status, base_alloc(s->buffer_count, sizeof *p.offset, &p.offset, error), done);
    BASE_TRY_GOTO(status, base_alloc(2 * s->buffer_count, sizeof *p.heights, &p.heights, error),
                  done);
    for (size_t b = 0; b < s->buffer_count; b++) {
        if (plan_is_offloaded(s, (int32_t)b)) continue;
        p.capacity[b] = plan_capacity(s->buffers[b].bytes);
        p.defers |= s->buffers[b].deferred;
    }
    permanent = place_permanent(s, p.capacity, true, place_permanent(s, p.capacity, false, 0));
    BASE_TRY_GOTO(status, sort_events(s, events, &p.count, error), done);
    p.events = events;
    find_start(&p);
    int64_t least = find_peak(s, &p);
    status = place_best(&p, permanent, least, error);
done:
    free(events);
    free(p.capacity);
    free(p.top);
    free(p.offset);
    free(p.heights);
    return status;
}

void plan_find_lives(plan_schedule *s) {
    for (size_t b = 0; b < s->buffer_count; b++) {
        if (s->buffers[b].first < 0) continue;
        s->buffers[b].first = INT32_MAX;
        s->buffers[b].last = -1;
    }
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        for (int32_t o = in->first_operand; o < in->first_operand + in->operands; o++) {
            plan_buffer *buffer = &s->buffers[s->operands[o].buffer];
            if (buffer->first < 0) continue;
            if (buffer->last < 0) buffer->first = (int32_t)i;
            buffer->last = (int32_t)i;
        }
    }
}

bool plan_comes_and_goes(const plan_schedule *s, int32_t buffer) {
    base_assert(buffer >= 0 && (size_t)buffer < s->buffer_count);
    const plan_buffer *b = &s->buffers[buffer];
    return b->first >= 0 && b->last >= 0 && !plan_is_offloaded(s, buffer);
}

sifr_status plan_memory(plan_schedule *s, sifr_error *error) {
    plan_find_lives(s);
    return plan_place(s, error);
}

bool plan_lives_at(const plan_schedule *s, int32_t buffer, int32_t instruction) {
    const plan_buffer *b = &s->buffers[buffer];
    if (plan_is_offloaded(s, buffer)) return false;
    if (b->first < 0) return true;
    if (!plan_comes_and_goes(s, buffer)) return false;
    bool begun = b->first <= instruction, ends_later = instruction <= b->last;
    return lives_on(b) ? begun || ends_later : begun && ends_later;
}

int64_t plan_gap_bytes(const plan_schedule *schedule) {
    int64_t gaps = schedule->total_bytes;
    for (int c = 0; c < PLAN_CLASSES; c++) gaps -= schedule->peak_bytes[c];
    base_assert(gaps >= 0);
    return gaps;
}

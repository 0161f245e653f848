#include "support/queue_order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "plan/queries.h"
#include "plan/verify/access.h"

/* A range of one memory: of the device, of the host, or of the file. */
typedef struct order_range {
    plan_tier space;
    bool reads, writes;
    int64_t from, to;
    size_t first, last; /* pieces; last: after the last one */
} order_range;

/* What each queue did last in a piece of memory that every access covers whole or not at all:
 * numbers of the queue's own instructions, 0: nothing. An earlier one of a queue is ordered before
 * a later one, so the last one stands for all. */
typedef struct order_piece {
    int32_t read[ORDER_QUEUES], written[ORDER_QUEUES];
} order_piece;

typedef int32_t order_clock[ORDER_QUEUES];

struct queue_order {
    const plan_schedule *s;
    order_range *ranges;
    size_t *begin; /* by instruction: its ranges; one more at the end */
    order_piece *pieces;
    size_t piece_count;
    order_clock *done;            /* by instruction: what is known when it is over */
    int32_t *names[ORDER_QUEUES]; /* by number: the instruction */
};

static void *take(size_t count, size_t size) {
    void *block = calloc(count ? count : 1, size);
    if (!block) {
        fputs("queue_order: out of memory\n", stderr);
        abort();
    }
    return block;
}

order_queue queue_order_of(const plan_instruction *in) {
    switch ((plan_queue)in->queue) {
    case PLAN_COMMUNICATION:
        return ORDER_EXCHANGE;
    case PLAN_NEAR:
        return ORDER_NEAR;
    case PLAN_DISK:
        return ORDER_DISK;
    case PLAN_COPY:
        return in->action == PLAN_READ ? ORDER_IN : ORDER_OUT;
    default:
        return ORDER_COMPUTE;
    }
}

/* --- where accesses are --- */

/* The place that the executor gives it (executor_memory.c). Buffers of other schedules have none.
 */
static order_range range_of(const plan_schedule *s, const plan_access *a) {
    const plan_buffer *buffer = &s->buffers[a->buffer];
    bool offloaded = plan_is_offloaded(s, a->buffer);
    int64_t at = buffer->offset;
    if (buffer->bytes == 0 || a->rows == 0) return (order_range){0};
    if (buffer->aligned && !offloaded) at = base_ceil_to(at, PLAN_DISK_ALIGNMENT);
    return (order_range){.space = offloaded ? buffer->tier : PLAN_DEVICE,
                         .reads = a->reads,
                         .writes = a->writes,
                         .from = at + a->offset,
                         .to = at + plan_access_end(a)};
}

static void list_ranges(queue_order *o) {
    const plan_schedule *s = o->s;
    size_t count = 0;
    o->begin = take(s->instruction_count + 1, sizeof *o->begin);
    o->ranges = take(s->instruction_count * PLAN_ACCESSES, sizeof *o->ranges);
    for (size_t i = 0; i < s->instruction_count; i++) {
        plan_access accesses[PLAN_ACCESSES];
        int found = plan_accesses(s, &s->instructions[i], accesses);
        o->begin[i] = count;
        for (int a = 0; a < found; a++) {
            o->ranges[count] = range_of(s, &accesses[a]);
            count += o->ranges[count].from < o->ranges[count].to;
        }
    }
    o->begin[s->instruction_count] = count;
}

static int ascending(const void *left, const void *right) {
    const int64_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

static size_t find(const int64_t *borders, size_t count, int64_t at) {
    const int64_t *found = bsearch(&at, borders, count, sizeof at, ascending);
    return (size_t)(found - borders);
}

/* Cuts a memory where a range begins or ends. */
static void cut(queue_order *o, plan_tier space) {
    size_t ranges = o->begin[o->s->instruction_count], count = 0, kept = 0;
    int64_t *borders = take(2 * ranges, sizeof *borders);
    for (size_t r = 0; r < ranges; r++) {
        if (o->ranges[r].space != space) continue;
        borders[count++] = o->ranges[r].from;
        borders[count++] = o->ranges[r].to;
    }
    qsort(borders, count, sizeof *borders, ascending);
    for (size_t b = 0; b < count; b++) {
        if (kept == 0 || borders[kept - 1] != borders[b]) borders[kept++] = borders[b];
    }
    for (size_t r = 0; r < ranges; r++) {
        order_range *range = &o->ranges[r];
        if (range->space != space) continue;
        range->first = o->piece_count + find(borders, kept, range->from);
        range->last = o->piece_count + find(borders, kept, range->to);
    }
    o->piece_count += kept;
    free(borders);
}

queue_order *queue_order_open(const plan_schedule *schedule) {
    queue_order *o = take(1, sizeof *o);
    o->s = schedule;
    list_ranges(o);
    for (int space = 0; space < PLAN_TIERS; space++) cut(o, (plan_tier)space);
    o->pieces = take(o->piece_count, sizeof *o->pieces);
    o->done = take(schedule->instruction_count, sizeof *o->done);
    for (int q = 0; q < ORDER_QUEUES; q++)
        o->names[q] = take(QUEUE_STEPS * schedule->instruction_count + 1, sizeof *o->names[q]);
    return o;
}

void queue_order_close(queue_order *o) {
    for (int q = 0; q < ORDER_QUEUES; q++) free(o->names[q]);
    free(o->done);
    free(o->pieces);
    free(o->begin);
    free(o->ranges);
    free(o);
}

/* --- the run --- */

static void follow(order_clock queue, const order_clock other) {
    for (int q = 0; q < ORDER_QUEUES; q++) {
        if (other[q] > queue[q]) queue[q] = other[q];
    }
}

/* Returns the instruction that the access is not ordered after; -1: none. */
static int32_t touch(queue_order *o, const order_range *range, order_queue own,
                     const order_clock knows) {
    int32_t found = -1;
    for (size_t p = range->first; p < range->last; p++) {
        order_piece *piece = &o->pieces[p];
        for (int q = 0; q < ORDER_QUEUES; q++) {
            int32_t last = piece->written[q];
            if (range->writes && piece->read[q] > last) last = piece->read[q];
            if (last > knows[q]) found = o->names[q][last];
        }
        if (range->reads) piece->read[own] = knows[own];
        if (range->writes) piece->written[own] = knows[own];
    }
    return found;
}

static bool run_instruction(queue_order *o, int32_t index, const queue_mistake *mistake,
                            order_clock *queues, int32_t pair[2]) {
    const plan_instruction *in = &o->s->instructions[index];
    order_queue own = queue_order_of(in);
    int32_t other = -1;
    if (in->action == PLAN_WAIT) {
        if (index != mistake->left_out) follow(queues[ORDER_COMPUTE], o->done[in->wait]);
        return true;
    }
    if (!mistake->early) follow(queues[own], queues[ORDER_COMPUTE]);
    o->names[own][++queues[own][own]] = index;
    for (size_t r = o->begin[index]; r < o->begin[index + 1]; r++) {
        int32_t found = touch(o, &o->ranges[r], own, queues[own]);
        if (found >= 0) other = found;
    }
    memcpy(o->done[index], queues[own], sizeof o->done[index]);
    if (other < 0) return true;
    if (pair && pair[0] < 0) pair[0] = other, pair[1] = index;
    return false;
}

int64_t queue_order_run(queue_order *o, int steps, const queue_mistake *mistake, int32_t pair[2]) {
    order_clock queues[ORDER_QUEUES] = {{0}};
    int64_t faults = 0;
    if (pair) pair[0] = pair[1] = -1;
    memset(o->pieces, 0, o->piece_count * sizeof *o->pieces);
    for (int step = 0; step < steps; step++) {
        for (size_t i = 0; i < o->s->instruction_count; i++) {
            if (step == 0 && o->s->instructions[i].deferred) continue;
            faults += !run_instruction(o, (int32_t)i, mistake, queues, pair);
        }
    }
    return faults;
}

/* --- from the list alone --- */

static bool meet(const order_range *a, const order_range *b) {
    return a->space == b->space && (a->writes || b->writes) && a->from < b->to && b->from < a->to;
}

static bool instructions_meet(const queue_order *o, size_t x, size_t y) {
    for (size_t a = o->begin[x]; a < o->begin[x + 1]; a++) {
        for (size_t b = o->begin[y]; b < o->begin[y + 1]; b++) {
            if (meet(&o->ranges[a], &o->ranges[b])) return true;
        }
    }
    return false;
}

/* Whether the transfer that starts in `step` needs the wait. */
static bool needs_in(const queue_order *o, int32_t wait, int step) {
    const plan_schedule *s = o->s;
    int32_t transfer = s->instructions[wait].wait;
    order_queue queue = queue_order_of(&s->instructions[transfer]);
    size_t count = s->instruction_count;
    if (step == 0 && s->instructions[transfer].deferred) return false;
    for (size_t n = step * count + (size_t)transfer + 1; n < QUEUE_STEPS * count; n++) {
        size_t i = n % count;
        const plan_instruction *in = &s->instructions[i];
        if (n < count && in->deferred) continue;
        if (in->action != PLAN_WAIT) {
            if (queue_order_of(in) != queue && instructions_meet(o, (size_t)transfer, i))
                return true;
            continue;
        }
        size_t started = n - i + (size_t)in->wait; /* in the wait's own step */
        bool same = queue_order_of(&s->instructions[in->wait]) == queue;
        if ((int32_t)i != wait && same && started >= step * count + (size_t)transfer) return false;
    }
    return false;
}

bool queue_order_needs(const queue_order *o, int32_t wait) {
    return needs_in(o, wait, 0) || needs_in(o, wait, 1);
}

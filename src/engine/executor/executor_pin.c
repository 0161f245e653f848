/* Pins the ranges of the executor's block that disk transfers use. There should be few ranges,
 * since a ring searches all of them for each request and counts a huge page once for every range
 * that touches it.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "engine/executor/executor_private.h"

enum {
    MOST_RANGES = 256,
    LONGEST_PIECE = 1 << 30, /* that the kernel takes */
};

typedef struct pin_range {
    char *start, *end;
} pin_range;

typedef struct pin_ask {
    bool optimizer, parameters;
} pin_ask;

typedef struct pin_list {
    pin_range *ranges;
    size_t count;
    struct iovec *pieces;
    unsigned piece_count;
    int64_t bytes;
} pin_list;

static bool is_asked_for(pin_ask ask, plan_class of) {
    if (of == PLAN_PARAMETERS) return ask.parameters;
    return of != PLAN_ACTIVATIONS && ask.optimizer;
}

/* By buffer: bytes used by disk transfers; 0: not to be pinned. */
static void find_touched(const engine_executor *e, pin_ask ask, int64_t *touched) {
    const plan_schedule *s = e->schedule;
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (!executor_is_move(in) || in->queue != PLAN_DISK) continue;
        bool read = in->action == PLAN_READ;
        const plan_operand *file = &s->operands[in->first_operand + !read];
        const plan_operand *memory = &s->operands[in->first_operand + read];
        if (!is_asked_for(ask, s->buffers[file->buffer].class)) continue;
        int64_t *bytes = &touched[memory->buffer];
        *bytes = base_max_i64(*bytes, memory->offset + in->bytes);
    }
}

static int compare_ranges(const void *a, const void *b) {
    const pin_range *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* Merges sorted ranges with at most `gap` bytes between them. */
static void merge(pin_list *list, int64_t gap) {
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        base_assert(i == 0 || list->ranges[i - 1].start <= list->ranges[i].start);
        pin_range *last = &list->ranges[kept - (kept > 0)], range = list->ranges[i];
        if (kept && range.start - last->end <= gap) {
            if (range.end > last->end) last->end = range.end;
        } else {
            list->ranges[kept++] = range;
        }
    }
    list->count = kept;
}

static sifr_status find_ranges(const engine_executor *e, pin_ask ask, pin_list *list,
                               sifr_error *error) {
    size_t buffers = e->schedule->buffer_count;
    int64_t *touched;
    BASE_TRY(base_alloc(buffers, sizeof *touched, &touched, error));
    find_touched(e, ask, touched);
    sifr_status status = base_alloc(buffers, sizeof *list->ranges, &list->ranges, error);
    for (size_t b = 0; b < buffers && status == SIFR_OK; b++) {
        if (touched[b])
            list->ranges[list->count++] = (pin_range){e->base[b], e->base[b] + touched[b]};
    }
    free(touched);
    if (!list->count) return status;
    qsort(list->ranges, list->count, sizeof *list->ranges, compare_ranges);
    int64_t gap = 2 * PLAN_DISK_ALIGNMENT; /* what aligns neighbours */
    for (merge(list, gap); list->count > MOST_RANGES; merge(list, gap)) gap *= 2;
    return status;
}

/* Where transfers go through host memory, that is what the disk touches. */
static sifr_status find_staging(const engine_staging *staging, pin_ask ask, pin_list *list,
                                sifr_error *error) {
    struct iovec memory[2];
    engine_staging_memory(staging, memory);
    BASE_TRY(base_alloc(2, sizeof *list->ranges, &list->ranges, error));
    for (int d = 0; d < 2 && (ask.optimizer || ask.parameters); d++) {
        char *start = memory[d].iov_base;
        if (start) list->ranges[list->count++] = (pin_range){start, start + memory[d].iov_len};
    }
    return SIFR_OK;
}

static sifr_status cut_pieces(pin_list *list, sifr_error *error) {
    size_t count = 0;
    for (size_t r = 0; r < list->count; r++) {
        int64_t bytes = list->ranges[r].end - list->ranges[r].start;
        base_assert(bytes > 0);
        count += (size_t)((bytes - 1) / LONGEST_PIECE + 1);
    }
    BASE_TRY(base_alloc(count, sizeof *list->pieces, &list->pieces, error));
    for (size_t r = 0; r < list->count; r++) {
        const pin_range *range = &list->ranges[r];
        int64_t bytes;
        for (char *at = range->start; at < range->end; at += bytes) {
            bytes = base_min_i64(range->end - at, LONGEST_PIECE);
            list->pieces[list->piece_count++] = (struct iovec){at, (size_t)bytes};
            list->bytes += bytes;
        }
    }
    base_assert(list->piece_count == count);
    return SIFR_OK;
}

/* `out->asked` is the amount of the first request. */
static sifr_status pin(engine_executor *e, pin_ask ask, engine_pinned *out, sifr_error *error) {
    pin_list list = {0};
    sifr_status status;
    int number;
    const engine_staging *staging = engine_swap_staging(e->swap);
    status = staging ? find_staging(staging, ask, &list, error) : find_ranges(e, ask, &list, error);
    if (status != SIFR_OK) goto done;
    BASE_TRY_GOTO(status, cut_pieces(&list, error), done);
    if (!out->asked) out->asked = list.bytes;
    if (engine_io_pin(engine_swap_io(e->swap), list.pieces, list.piece_count, &number))
        out->bytes = list.bytes;
    else if (!out->number)
        out->number = number;
done:
    free(list.ranges);
    free(list.pieces);
    return status;
}

sifr_status engine_pin(engine_executor *e, bool optimizer, bool parameters, engine_pinned *out,
                       sifr_error *error) {
    *out = (engine_pinned){0};
    BASE_TRY(pin(e, (pin_ask){optimizer, parameters}, out, error));
    bool fewer = optimizer && parameters && !out->bytes && out->number;
    return fewer ? pin(e, (pin_ask){.optimizer = true}, out, error) : SIFR_OK;
}

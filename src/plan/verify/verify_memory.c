/* Buffers are live while they are used, reachable for their users, and overlap no other live
 * buffer. */
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "plan/queries.h"
#include "plan/verify/access.h"
#include "plan/verify/verify_private.h"

static bool is_alive(const plan_buffer *b, int32_t index) {
    if (b->first < 0) return true;
    if (verify_lives_on(b)) return index >= b->first || index <= b->last;
    return index >= b->first && index <= b->last;
}

static sifr_status check_lives(const plan_schedule *s, size_t index, sifr_error *error) {
    const plan_instruction *in = &s->instructions[index];
    char name[VERIFY_NAME_LENGTH], buffer[VERIFY_NAME_LENGTH];
    for (int32_t o = in->first_operand; o < in->first_operand + in->operands; o++) {
        int32_t b = s->operands[o].buffer;
        const plan_buffer *of = &s->buffers[b];
        if (is_alive(of, (int32_t)index)) continue;
        return base_fail(error, SIFR_FAILED, VERIFY_FAULT("%s: %s lives from #%d to #%d only"),
                         verify_name_instruction(s, index, name), verify_name_buffer(s, b, buffer),
                         of->first, of->last);
    }
    return SIFR_OK;
}

/* Kernels and collectives cannot reach a buffer that is offloaded. A read comes from one, a write
 * goes to one. */
static sifr_status check_reach(const plan_schedule *s, size_t index, sifr_error *error) {
    const plan_instruction *in = &s->instructions[index];
    char name[VERIFY_NAME_LENGTH], buffer[VERIFY_NAME_LENGTH];
    for (int32_t o = 0; o < in->operands && in->action != PLAN_WAIT; o++) {
        int32_t b = s->operands[in->first_operand + o].buffer;
        bool offloaded =
            (in->action == PLAN_READ && o == 0) || (in->action == PLAN_WRITE && o == 1);
        if (plan_is_offloaded(s, b) == offloaded) continue;
        return base_fail(error, SIFR_FAILED, VERIFY_FAULT("%s uses %s, which is %s"),
                         verify_name_instruction(s, index, name), verify_name_buffer(s, b, buffer),
                         offloaded ? "in the device's memory" : "outside the device's memory");
    }
    return SIFR_OK;
}

/* Start of a buffer's life before an instruction, or its end after an instruction. */
typedef struct verify_event {
    int32_t at, buffer;
    bool death;
} verify_event;

/* Live buffers at an instruction, by ascending address. */
typedef struct verify_space {
    const plan_schedule *s;
    plan_tier tier;
    int64_t bytes;
    int32_t *live;
    size_t count;
} verify_space;

static int compare_events(const void *a, const void *b) {
    const verify_event *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    if (x->death != y->death) return x->death ? 1 : -1;
    return x->buffer < y->buffer ? -1 : x->buffer > y->buffer;
}

static plan_tier space_of(const plan_schedule *s, size_t buffer) {
    return plan_is_offloaded(s, (int32_t)buffer) ? s->buffers[buffer].tier : PLAN_DEVICE;
}

static sifr_status fail_overlap(const verify_space *space, int32_t a, int32_t b,
                                sifr_error *error) {
    char one[VERIFY_NAME_LENGTH], two[VERIFY_NAME_LENGTH];
    const plan_buffer *x = &space->s->buffers[a], *y = &space->s->buffers[b];
    return base_fail(error, SIFR_FAILED,
                     VERIFY_FAULT("%s, #%d to #%d, is at bytes %lld to %lld, and %s, #%d to #%d, "
                                  "at bytes %lld to %lld"),
                     verify_name_buffer(space->s, a, one), x->first, x->last, (long long)x->offset,
                     (long long)(x->offset + x->bytes), verify_name_buffer(space->s, b, two),
                     y->first, y->last, (long long)y->offset, (long long)(y->offset + y->bytes));
}

/* The index of a buffer, or where to insert it. */
static size_t find_live(const verify_space *space, int32_t buffer) {
    const plan_buffer *all = space->s->buffers;
    size_t low = 0, high = space->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (all[space->live[middle]].offset < all[buffer].offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static sifr_status add_live(verify_space *space, int32_t buffer, sifr_error *error) {
    const plan_buffer *all = space->s->buffers, *b = &all[buffer];
    size_t at = find_live(space, buffer);
    if (b->offset < 0 || b->offset + b->bytes > space->bytes) {
        char name[VERIFY_NAME_LENGTH];
        return base_fail(error, SIFR_FAILED, VERIFY_FAULT("%s is at bytes %lld to %lld of %lld"),
                         verify_name_buffer(space->s, buffer, name), (long long)b->offset,
                         (long long)(b->offset + b->bytes), (long long)space->bytes);
    }
    for (size_t i = at > 0 ? at - 1 : 0; i < space->count && i <= at; i++) {
        const plan_buffer *other = &all[space->live[i]];
        if (other->offset < b->offset + b->bytes && b->offset < other->offset + other->bytes)
            return fail_overlap(space, space->live[i], buffer, error);
    }
    memmove(space->live + at + 1, space->live + at, (space->count - at) * sizeof *space->live);
    space->live[at] = buffer;
    space->count++;
    return SIFR_OK;
}

static void remove_live(verify_space *space, int32_t buffer) {
    size_t at = find_live(space, buffer);
    space->count--;
    memmove(space->live + at, space->live + at + 1, (space->count - at) * sizeof *space->live);
}

/* Events of one memory. A buffer that lives past the end of a step is live at its start. */
static size_t find_events(const plan_schedule *s, plan_tier tier, verify_event *to) {
    size_t count = 0;
    for (size_t b = 0; b < s->buffer_count; b++) {
        const plan_buffer *buffer = &s->buffers[b];
        bool always = buffer->first < 0, used = always || buffer->last >= 0;
        int32_t index = (int32_t)b;
        if (space_of(s, b) != tier || buffer->bytes == 0 || !used) continue;
        if (always || verify_lives_on(buffer)) to[count++] = (verify_event){-1, index, false};
        if (always) continue;
        to[count++] = (verify_event){buffer->first, index, false};
        to[count++] = (verify_event){buffer->last, index, true};
    }
    qsort(to, count, sizeof *to, compare_events);
    return count;
}

static sifr_status check_space(const plan_schedule *s, plan_tier tier, int64_t bytes,
                               sifr_error *error) {
    verify_space space = {.s = s, .tier = tier, .bytes = bytes};
    verify_event *events = NULL;
    sifr_status status = base_alloc(3 * s->buffer_count, sizeof *events, &events, error);
    if (status == SIFR_OK)
        status = base_alloc(s->buffer_count + 1, sizeof *space.live, &space.live, error);
    size_t count = status == SIFR_OK ? find_events(s, tier, events) : 0;
    for (size_t e = 0; e < count && status == SIFR_OK; e++) {
        if (events[e].death)
            remove_live(&space, events[e].buffer);
        else
            status = add_live(&space, events[e].buffer, error);
    }
    free(events);
    free(space.live);
    return status;
}

sifr_status verify_memory(const plan_schedule *s, sifr_error *error) {
    for (size_t i = 0; i < s->instruction_count; i++) {
        BASE_TRY(check_lives(s, i, error));
        BASE_TRY(check_reach(s, i, error));
    }
    BASE_TRY(check_space(s, PLAN_DEVICE, s->total_bytes, error));
    BASE_TRY(check_space(s, PLAN_HOST, s->host_bytes, error));
    return check_space(s, PLAN_NVME, s->nvme_bytes, error);
}

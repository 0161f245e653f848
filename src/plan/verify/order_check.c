/* Vector clocks (Mattern 1989), as in race detectors: each stream numbers its instructions, and
 * keeps for each other stream the number up to which it is ordered after that stream. Only the
 * clock of the compute stream has to be stored. A later instruction starts after all that the
 * compute stream is ordered after, and a transfer knows of other streams only what the compute
 * stream knew at its start. So an access can be unordered only against transfers in flight: those
 * that the compute stream has not waited for. */
#include "plan/verify/order_check.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/heap.h"
#include "plan/queries.h"
#include "plan/verify/access.h"
#include "plan/verify/byte_ranges.h"
#include "plan/verify/verify_private.h"

/* A range of memory of the device, of the host, or of the file. */
typedef struct order_place {
    plan_tier space;
    plan_range bytes;
    bool writes;
    int32_t buffer;
} order_place;

typedef struct order_flight {
    int32_t instruction;
    order_place places[2];
} order_flight;

enum { STREAM_COMPUTE, STREAM_COMMUNICATION, STREAM_NEAR, STREAM_MOVES };

/* Bytes of a buffer that the step has accessed before the update of the previous step. */
typedef struct order_touched {
    plan_ranges reads, writes;
} order_touched;

typedef struct order_state {
    const plan_schedule *s;
    int32_t *known;   /* by stream: the last number that computing is ordered after */
    int32_t *number;  /* by instruction: the number of its transfer in its stream */
    int32_t *started; /* by stream: the last number given */
    order_flight *flights;
    size_t count, capacity;
    order_touched *touched; /* by buffer; NULL: no update is deferred */
    bool again;             /* the second run */
} order_state;

static size_t stream_of(const plan_schedule *s, int32_t index) {
    plan_queue queue = (plan_queue)s->instructions[index].queue;
    if (queue == PLAN_COMPUTE) return STREAM_COMPUTE;
    if (queue == PLAN_COMMUNICATION) return STREAM_COMMUNICATION;
    if (queue == PLAN_NEAR) return STREAM_NEAR;
    return STREAM_MOVES + (size_t)index;
}

/* The place that the executor gives it (executor_memory.c). */
static order_place place_of(const plan_schedule *s, const plan_access *a) {
    const plan_buffer *buffer = &s->buffers[a->buffer];
    bool offloaded = plan_is_offloaded(s, a->buffer);
    int64_t at = buffer->offset;
    if (buffer->aligned && !offloaded) at = base_ceil_to(at, PLAN_DISK_ALIGNMENT);
    if (buffer->bytes == 0) return (order_place){0}; /* belongs to another schedule */
    return (order_place){.space = offloaded ? buffer->tier : PLAN_DEVICE,
                         .bytes = {at + a->offset, at + plan_access_end(a)},
                         .writes = a->writes,
                         .buffer = a->buffer};
}

static bool conflict(const order_place *a, const order_place *b) {
    return a->space == b->space && (a->writes || b->writes) && a->bytes.from < b->bytes.to &&
           b->bytes.from < a->bytes.to;
}

static sifr_status fail(const order_state *o, const order_flight *flight, size_t index,
                        const order_place *place, sifr_error *error) {
    char moving[VERIFY_NAME_LENGTH], touching[VERIFY_NAME_LENGTH], buffer[VERIFY_NAME_LENGTH];
    return base_fail(error, SIFR_FAILED,
                     VERIFY_FAULT("%s %s bytes of %s that %s moves, and no wait orders them"),
                     verify_name_instruction(o->s, index, touching),
                     place->writes ? "writes" : "reads",
                     verify_name_buffer(o->s, place->buffer, buffer),
                     verify_name_instruction(o->s, (size_t)flight->instruction, moving));
}

/* Compares an access with all transfers in flight. */
static sifr_status check_place(const order_state *o, int32_t index, const order_place *place,
                               sifr_error *error) {
    size_t stream = stream_of(o->s, index);
    for (size_t f = 0; f < o->count; f++) {
        const order_flight *flight = &o->flights[f];
        if (stream_of(o->s, flight->instruction) == stream) continue;
        for (int p = 0; p < 2; p++) {
            if (conflict(&flight->places[p], place))
                return fail(o, flight, (size_t)index, place, error);
        }
    }
    return SIFR_OK;
}

/* Orders computing after the transfer, and after all transfers before it in its stream. */
static void wait_for(order_state *o, int32_t transfer) {
    size_t stream = stream_of(o->s, transfer), left = 0;
    o->known[stream] = o->number[transfer];
    for (size_t f = 0; f < o->count; f++) {
        int32_t i = o->flights[f].instruction;
        if (o->number[i] > o->known[stream_of(o->s, i)]) o->flights[left++] = o->flights[f];
    }
    o->count = left;
}

/* Deferred instructions belong to the previous step, so they must come before all instructions of
 * this step that conflict. */
static sifr_status check_deferred(const order_state *o, size_t index, const plan_access *a,
                                  sifr_error *error) {
    char name[VERIFY_NAME_LENGTH], buffer[VERIFY_NAME_LENGTH];
    plan_range range = {a->offset, plan_access_end(a)};
    const order_touched *t = &o->touched[a->buffer];
    bool late = plan_ranges_meet(&t->writes, range);
    if (!late && !(a->writes && plan_ranges_meet(&t->reads, range))) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     VERIFY_FAULT("%s, of the step before, %s %s after this step has %s it"),
                     verify_name_instruction(o->s, index, name), a->writes ? "writes" : "reads",
                     verify_name_buffer(o->s, a->buffer, buffer), late ? "written" : "read");
}

static sifr_status note_step(order_state *o, size_t index, const plan_access *a,
                             sifr_error *error) {
    plan_range range = {a->offset, plan_access_end(a)};
    order_touched *t = &o->touched[a->buffer];
    if (a->role == PLAN_ROLES) return SIFR_OK; /* scratch keeps nothing between calls */
    if (o->s->instructions[index].deferred) return check_deferred(o, index, a, error);
    if (a->reads) BASE_TRY(plan_ranges_add(&t->reads, range, error));
    if (a->writes) BASE_TRY(plan_ranges_add(&t->writes, range, error));
    return SIFR_OK;
}

static sifr_status run_instruction(order_state *o, int32_t index, sifr_error *error) {
    const plan_instruction *in = &o->s->instructions[index];
    plan_access accesses[PLAN_ACCESSES];
    order_flight flight = {.instruction = index};
    if (in->action == PLAN_WAIT) {
        wait_for(o, in->wait);
        return SIFR_OK;
    }
    int count = plan_accesses(o->s, in, accesses);
    for (int a = 0; a < count; a++) {
        order_place place = place_of(o->s, &accesses[a]);
        BASE_TRY(check_place(o, index, &place, error));
        if (o->again) BASE_TRY(note_step(o, (size_t)index, &accesses[a], error));
        if (plan_is_transfer(in)) flight.places[a] = place;
    }
    if (!plan_is_transfer(in)) return SIFR_OK;
    o->number[index] = ++o->started[stream_of(o->s, index)];
    BASE_TRY(base_grow(&o->flights, &o->capacity, o->count + 1, sizeof *o->flights, error));
    o->flights[o->count++] = flight;
    return SIFR_OK;
}

static sifr_status run(order_state *o, sifr_error *error) {
    const plan_schedule *s = o->s;
    for (int time = 0; time < (o->touched ? 2 : 1); time++) {
        o->again = time > 0;
        for (size_t i = 0; i < s->instruction_count; i++) {
            bool first = o->touched && !o->again; /* no previous step */
            if (first && s->instructions[i].deferred) continue;
            BASE_TRY(run_instruction(o, (int32_t)i, error));
        }
    }
    return SIFR_OK;
}

static sifr_status allocate(order_state *o, sifr_error *error) {
    const plan_schedule *s = o->s;
    size_t count = s->instruction_count, streams = STREAM_MOVES + count;
    BASE_TRY(base_alloc(streams, sizeof *o->known, &o->known, error));
    BASE_TRY(base_alloc(streams, sizeof *o->started, &o->started, error));
    BASE_TRY(base_alloc(count, sizeof *o->number, &o->number, error));
    if (s->spread == 0) return SIFR_OK;
    return base_alloc(s->buffer_count, sizeof *o->touched, &o->touched, error);
}

sifr_status plan_check_order(const plan_schedule *s, sifr_error *error) {
    order_state o = {.s = s};
    sifr_status status = allocate(&o, error);
    if (status == SIFR_OK) status = run(&o, error);
    for (size_t b = 0; o.touched && b < s->buffer_count; b++) {
        plan_ranges_free(&o.touched[b].reads);
        plan_ranges_free(&o.touched[b].writes);
    }
    free(o.touched);
    free(o.known);
    free(o.started);
    free(o.number);
    free(o.flights);
    return status;
}

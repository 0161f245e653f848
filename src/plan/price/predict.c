/* Predicted times on a machine, of instructions and of a step whose queues run in parallel. */
#include <stdlib.h>

#include "base/heap.h"
#include "plan/numbers.h"
#include "plan/peers.h"
#include "plan/price/price.h"
#include "plan/queries.h"

/* Assumed without measurement: the memory of one host between its ranks, Ethernet of 10 Gbit/s
 * between hosts. */
static const plan_link assumed_host = {.latency_seconds = 20e-6, .bytes_per_second = 5e9};
static const plan_link assumed_network = {.latency_seconds = 100e-6, .bytes_per_second = 1.1e9};

/* An average NVMe disk, shared by several ranks. */
static const double assumed_disk = 1e9;

/* 16 lanes of PCI Express 3. */
static const double assumed_copy = 12e9;

double plan_disk_speed(const plan_machine *machine) {
    return machine->disk_bytes > 0 ? machine->disk_bytes : assumed_disk;
}

double plan_copy_speed(const plan_machine *machine) {
    return machine->copy_bytes > 0 ? machine->copy_bytes : assumed_copy;
}

plan_link plan_link_of(const plan_machine *machine, bool crosses) {
    plan_link link = crosses ? machine->network : machine->host;
    if (link.bytes_per_second > 0) return link;
    return crosses ? assumed_network : assumed_host;
}

static double call_price(const plan_schedule *s, const device_call *call,
                         const plan_machine *machine) {
    double operations, bytes;
    plan_cost(s, call, &operations, &bytes);
    bool narrow = plan_dtype(&s->settings) == BASE_BF16 && machine->bf16_operations > 0;
    double computing = operations / (narrow ? machine->bf16_operations : machine->fp32_operations);
    double moving = bytes / machine->memory_bytes;
    return computing > moving ? computing : moving;
}

/* How much longer than its bytes say a collective of a span takes on the link between hosts. A
 * link's figure is that of a gather among all ranks, which brings over it, once for all ranks of a
 * host, what the host lacks. The groups of another span of which a host has ranks share the link:
 * together they bring more than one rank gets. */
static double crowding(const plan_mesh *mesh, plan_span span, int32_t ranks_per_host) {
    double world = plan_mesh_ranks(mesh, PLAN_WORLD), ranks = plan_mesh_ranks(mesh, span);
    double here = ranks_per_host, near = plan_mesh_neighbours(mesh, span, ranks_per_host);
    double crossing = (ranks - near) * (here / near);
    if (near == ranks) return 1; /* of uneven hosts: others of its groups cross */
    return crossing * (world - 1) / (world - here) / (ranks - 1);
}

/* One collective among the ranks of `span`, which delivers `bytes` to a rank. */
static double delivery_price(const plan_schedule *s, plan_span span, int64_t bytes,
                             const plan_machine *machine) {
    const plan_mesh *mesh = &s->settings.mesh;
    if (plan_mesh_ranks(mesh, span) == 1) return 0;
    bool crosses = plan_mesh_crosses(mesh, span, machine->ranks_per_host);
    plan_link link = plan_link_of(machine, crosses);
    double moved = (double)bytes;
    if (crosses) moved *= crowding(mesh, span, machine->ranks_per_host);
    return link.latency_seconds + moved / link.bytes_per_second;
}

/* The same, to which each rank gives `bytes`. */
static double collective_price(const plan_schedule *s, plan_span span, int64_t bytes,
                               const plan_machine *machine) {
    int64_t others = plan_mesh_ranks(&s->settings.mesh, span) - 1;
    return delivery_price(s, span, bytes * others, machine);
}

/* The parts of an exchange that cross: each rank of a host gets its own over the host's link. */
static double crossing_price(const plan_schedule *s, int64_t far, const plan_machine *machine) {
    double world = plan_mesh_ranks(&s->settings.mesh, PLAN_WORLD), here = machine->ranks_per_host;
    plan_link link = plan_link_of(machine, true);
    double whole = (double)far * here * (world - 1) / (world - here);
    return link.latency_seconds + whole / link.bytes_per_second;
}

/* What comes from this host and what comes from others arrive side by side. */
static double exchange_price(const plan_schedule *s, const plan_instruction *i,
                             const plan_machine *machine) {
    int64_t far = plan_exchange_crossing(s, i, machine->ranks_per_host);
    int64_t near = plan_delivered(s, i) - far;
    plan_link host = plan_link_of(machine, false);
    double inside = near ? host.latency_seconds + (double)near / host.bytes_per_second : 0;
    double across = far ? crossing_price(s, far, machine) : 0;
    return inside > across ? inside : across;
}

static double transfer_price(const plan_schedule *s, const plan_instruction *i,
                             const plan_machine *machine) {
    bool training = s->settings.mode == PLAN_TRAIN;
    switch ((plan_action)i->action) {
    case PLAN_GATHER:
    case PLAN_REDUCE:
        return delivery_price(s, (plan_span)i->span, plan_delivered(s, i), machine);
    case PLAN_EXCHANGE:
        return exchange_price(s, i, machine);
    case PLAN_SUM: /* one after the other */
        return collective_price(s, (plan_span)i->span, i->bytes, machine) +
               collective_price(s, (plan_span)i->span, plan_summed_bytes(i), machine);
    case PLAN_COUNT:
        return collective_price(s, PLAN_DATA, sizeof(int64_t), machine);
    case PLAN_NORM:
        return collective_price(s, PLAN_WORLD, plan_part_bytes(s) * training, machine);
    default:
        return 0;
    }
}

static bool is_move(const plan_instruction *i) {
    return i->action == PLAN_READ || i->action == PLAN_WRITE;
}

static double move_price(const plan_instruction *i, const plan_machine *machine) {
    bool copy = i->queue == PLAN_COPY;
    return (double)i->bytes / (copy ? plan_copy_speed(machine) : plan_disk_speed(machine));
}

double plan_price(const plan_schedule *s, size_t index, const plan_machine *machine) {
    const plan_instruction *i = &s->instructions[index];
    double seconds = machine->instruction_seconds;
    if (i->call >= 0) return seconds + call_price(s, &s->calls[i->call], machine);
    if (is_move(i)) return seconds + move_price(i, machine);
    return seconds + transfer_price(s, i, machine);
}

/* The clock of a move. A device that copies in both directions at a time has a clock for each. */
static double *clock_of(const plan_instruction *i, const plan_machine *machine, double *disk,
                        double copy[2]) {
    if (i->queue != PLAN_COPY) return disk;
    return &copy[machine->device == PLAN_MACHINE_CUDA && i->action == PLAN_WRITE];
}

/* The list of a stage on clocks, which tell when a queue is free: `compute`, `line` (collectives),
 * `near`, `disk` and `copy`. */
typedef struct predict_clock {
    const plan_schedule *s;
    const plan_machine *machine;
    double *prices; /* by call */
    double *over;   /* by instruction: the end of its transfer */
    double *begun;  /* by instruction: when a transfer between stages was started; -1: not yet */
    double compute, line, near, disk, copy[2];
    size_t at; /* the next instruction */
    plan_prediction *out;
    float *seconds;
} predict_clock;

static sifr_status open_clock(predict_clock *c, sifr_error *error) {
    size_t count = c->s->instruction_count;
    BASE_TRY(base_alloc(count, sizeof *c->over, &c->over, error));
    BASE_TRY(base_alloc(count, sizeof *c->begun, &c->begun, error));
    BASE_TRY(base_alloc(c->s->call_count, sizeof *c->prices, &c->prices, error));
    for (size_t i = 0; i < c->s->call_count; i++)
        c->prices[i] = call_price(c->s, &c->s->calls[i], c->machine);
    for (size_t i = 0; i < count; i++) c->begun[i] = -1;
    *c->out = (plan_prediction){0};
    return SIFR_OK;
}

static void close_clock(predict_clock *c) {
    free(c->prices);
    free(c->over);
    free(c->begun);
}

static double later(double a, double b) {
    return a > b ? a : b;
}

static void start_move(predict_clock *c, const plan_instruction *i) {
    double moving = move_price(i, c->machine);
    double *free = clock_of(i, c->machine, &c->disk, c->copy);
    c->over[c->at] = *free = later(*free, c->compute) + moving;
    *(i->queue == PLAN_COPY ? &c->out->copy : &c->out->disk) += moving;
    if (i->queue == PLAN_COPY && i->action == PLAN_WRITE) c->out->copy_out += moving;
}

/* Runs the next instruction. */
static void advance(predict_clock *c) {
    const plan_instruction *i = &c->s->instructions[c->at];
    if (!plan_runs(c->s, i)) {
        if (c->seconds) c->seconds[c->at] = 0;
        c->at++;
        return;
    }
    double before = c->compute, *line = i->queue == PLAN_NEAR ? &c->near : &c->line;
    c->compute += c->machine->instruction_seconds;
    double took = i->call < 0 && !is_move(i) ? transfer_price(c->s, i, c->machine) : 0;
    if (i->call >= 0) c->compute += c->prices[i->call];
    if (took > 0) {
        c->over[c->at] = *line = later(*line, c->compute) + took;
        c->out->communication += took;
    }
    if (is_move(i)) start_move(c, i);
    if (plan_is_peer(i)) c->begun[c->at] = c->compute;
    bool started = plan_is_collective(i);
    double until = i->action == PLAN_WAIT ? c->over[i->wait] : took > 0 && !started ? *line : 0;
    if (until > c->compute) {
        c->out->waiting += until - c->compute;
        if (i->action == PLAN_WAIT && plan_is_peer(&c->s->instructions[i->wait]))
            c->out->stages += until - c->compute;
        c->compute = until;
    }
    if (c->seconds) c->seconds[c->at] = (float)(c->compute - before);
    c->at++;
}

static void end_step(predict_clock *c) {
    plan_prediction *out = c->out;
    out->step_seconds = later(later(c->compute, later(c->line, c->near)), c->disk);
    for (int i = 0; i < 2; i++) out->step_seconds = later(out->step_seconds, c->copy[i]);
    out->computing = c->compute - out->waiting;
}

sifr_status plan_predict(const plan_schedule *s, const plan_machine *machine, plan_prediction *out,
                         float *seconds, sifr_error *error) {
    predict_clock c = {.s = s, .machine = machine, .out = out, .seconds = seconds};
    sifr_status status = open_clock(&c, error);
    while (status == SIFR_OK && c.at < s->instruction_count) advance(&c);
    if (status == SIFR_OK) end_step(&c);
    close_clock(&c);
    return status;
}

/* --- the stages of a pipeline together --- */

typedef struct predict_run {
    predict_clock *clocks;
    size_t count;
    plan_peers peers;
} predict_run;

/* A transfer between stages. Between hosts all ranks that a host has of a stage send at a time,
 * each its own bytes (crowding). */
static double peer_price(const predict_clock *c, int64_t bytes) {
    const plan_mesh *mesh = &c->s->settings.mesh;
    double world = plan_mesh_ranks(mesh, PLAN_WORLD), here = c->machine->ranks_per_host;
    double of_stage = world / plan_mesh_ranks(mesh, PLAN_STAGES), moved = (double)bytes;
    bool crosses = plan_mesh_crosses(mesh, PLAN_STAGES, c->machine->ranks_per_host);
    plan_link link = plan_link_of(c->machine, crosses);
    if (crosses) moved *= (here < of_stage ? here : of_stage) * (world - 1) / (world - here);
    return link.latency_seconds + moved / link.bytes_per_second;
}

/* When the transfer that a wait is for ends; false: the other stage has not come to it yet. A
 * transfer that waits for its other end holds up no other one. */
static bool end_peer(predict_run *r, size_t stage, int32_t index) {
    predict_clock *c = &r->clocks[stage];
    const plan_instruction *i = &c->s->instructions[index];
    size_t there = (size_t)i->peer;
    int32_t other = r->peers.other[stage][index];
    predict_clock *sender = i->action == PLAN_SEND ? c : &r->clocks[there];
    double mine = c->begun[index], theirs = r->clocks[there].begun[other];
    if (c->over[index] > 0) return true;
    if (theirs < 0) return false;
    double took = peer_price(c, i->bytes);
    c->over[index] = r->clocks[there].over[other] = later(mine, theirs) + took;
    sender->out->communication += took;
    return true;
}

/* All stages come to a count or a norm: they go on together. */
static bool meet(predict_run *r, plan_action action) {
    double last = 0;
    for (size_t s = 0; s < r->count; s++) {
        predict_clock *c = &r->clocks[s];
        if (c->at == c->s->instruction_count) return false;
        if (c->s->instructions[c->at].action != action) return false;
        last = later(last, c->compute);
    }
    for (size_t s = 0; s < r->count; s++) {
        predict_clock *c = &r->clocks[s];
        c->out->waiting += last - c->compute;
        c->out->stages += last - c->compute;
        c->compute = last;
        advance(c);
    }
    return true;
}

static bool step_stage(predict_run *r, size_t stage) {
    predict_clock *c = &r->clocks[stage];
    if (c->at == c->s->instruction_count) return false;
    const plan_instruction *i = &c->s->instructions[c->at];
    if (plan_is_of_all(i)) return meet(r, (plan_action)i->action);
    bool peer = i->action == PLAN_WAIT && plan_is_peer(&c->s->instructions[i->wait]);
    if (peer && !end_peer(r, stage, i->wait)) return false;
    advance(c);
    return true;
}

sifr_status plan_predict_stages(const plan_schedule *const *schedules, size_t count,
                                const plan_machine *machine, plan_prediction *out,
                                sifr_error *error) {
    predict_run r = {.count = count};
    plan_peers_fault fault;
    sifr_status status = base_alloc(count, sizeof *r.clocks, &r.clocks, error);
    for (size_t s = 0; s < count && status == SIFR_OK; s++) {
        r.clocks[s] = (predict_clock){.s = schedules[s], .machine = machine, .out = &out[s]};
        status = open_clock(&r.clocks[s], error);
    }
    if (status == SIFR_OK) status = plan_join_peers(schedules, count, &r.peers, &fault, error);
    if (status == SIFR_FAILED)
        status = base_fail(error, SIFR_FAILED, "the lists of stages %zu and %zu do not fit",
                           fault.from, fault.to);
    for (bool moved = status == SIFR_OK; moved;) {
        moved = false;
        for (size_t s = 0; s < count; s++) {
            while (step_stage(&r, s)) moved = true;
        }
    }
    for (size_t s = 0; r.clocks && s < count; s++) {
        if (status == SIFR_OK) end_step(&r.clocks[s]);
        close_clock(&r.clocks[s]);
    }
    plan_free_peers(&r.peers);
    free(r.clocks);
    return status;
}

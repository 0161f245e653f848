/* Predicted times on a machine, of instructions and of a step whose queues run in parallel. */
#include <stdlib.h>

#include "base/heap.h"
#include "plan/numbers.h"
#include "plan/price/price.h"

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

/* One collective among the ranks of `span`, of which each gives `bytes`. */
static double collective_price(const plan_schedule *s, plan_span span, int64_t bytes,
                               const plan_machine *machine) {
    const plan_mesh *mesh = &s->settings.mesh;
    int64_t others = plan_mesh_ranks(mesh, span) - 1;
    if (others == 0) return 0;
    plan_link link = plan_link_of(machine, plan_mesh_crosses(mesh, span, machine->ranks_per_host));
    return link.latency_seconds + (double)(bytes * others) / link.bytes_per_second;
}

static double transfer_price(const plan_schedule *s, const plan_instruction *i,
                             const plan_machine *machine) {
    bool training = s->settings.mode == PLAN_TRAIN;
    switch ((plan_action)i->action) {
    case PLAN_GATHER:
    case PLAN_REDUCE:
        return collective_price(s, (plan_span)i->span, i->bytes, machine);
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

/* Runs the list on clocks, which tell when a queue is free: `compute`, `line` (communication),
 * `disk` and `copy`. `prices` is by call. */
static void run_queues(const plan_schedule *s, const plan_machine *machine, const double *prices,
                       double *over, plan_prediction *out, float *seconds) {
    double compute = 0, line = 0, disk = 0, copy[2] = {0};
    for (size_t n = 0; n < s->instruction_count; n++) {
        const plan_instruction *i = &s->instructions[n];
        double before = compute;
        compute += machine->instruction_seconds;
        double took = i->call < 0 && !is_move(i) ? transfer_price(s, i, machine) : 0;
        if (i->call >= 0) compute += prices[i->call];
        if (took > 0) {
            line = (line > compute ? line : compute) + took;
            over[n] = line;
            out->communication += took;
        }
        if (is_move(i)) {
            double moving = move_price(i, machine);
            double *free = clock_of(i, machine, &disk, copy);
            over[n] = *free = (*free > compute ? *free : compute) + moving;
            *(i->queue == PLAN_COPY ? &out->copy : &out->disk) += moving;
            if (i->queue == PLAN_COPY && i->action == PLAN_WRITE) out->copy_out += moving;
        }
        bool started = i->action == PLAN_GATHER || i->action == PLAN_REDUCE;
        double until = i->action == PLAN_WAIT ? over[i->wait] : took > 0 && !started ? line : 0;
        if (until > compute) {
            out->waiting += until - compute;
            compute = until;
        }
        if (seconds) seconds[n] = (float)(compute - before);
    }
    out->step_seconds = compute > line ? compute : line;
    if (disk > out->step_seconds) out->step_seconds = disk;
    for (int c = 0; c < 2; c++) {
        if (copy[c] > out->step_seconds) out->step_seconds = copy[c];
    }
    out->computing = compute - out->waiting;
}

sifr_status plan_predict(const plan_schedule *s, const plan_machine *machine, plan_prediction *out,
                         float *seconds, sifr_error *error) {
    double *over, *prices = NULL; /* by instruction: end of its transfer; by call */
    *out = (plan_prediction){0};
    BASE_TRY(base_alloc(s->instruction_count, sizeof *over, &over, error));
    sifr_status status = base_alloc(s->call_count, sizeof *prices, &prices, error);
    for (size_t c = 0; c < s->call_count && status == SIFR_OK; c++)
        prices[c] = call_price(s, &s->calls[c], machine);
    if (status == SIFR_OK) run_queues(s, machine, prices, over, out, seconds);
    free(over);
    free(prices);
    return status;
}

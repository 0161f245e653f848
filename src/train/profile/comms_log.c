#include "train/profile/comms_log.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"
#include "base/text.h"
#include "plan/peers.h"
#include "plan/queries.h"

enum {
    CONTROL_SIZES = 32, /* different sizes of control messages */
    LEAST_CALLS = 4096, /* calls compared at a time, except in very long steps */
    PIECE = 256         /* of them exchanged at a time */
};

/* The config selects which operations are logged. */
_Static_assert((int)CONFIG_ALL_GATHER == COMM_ALL_GATHER &&
                   (int)CONFIG_REDUCE_SCATTER == COMM_REDUCE_SCATTER &&
                   (int)CONFIG_CONTROL == COMM_CONTROL && (int)CONFIG_SEND == COMM_SEND &&
                   (int)CONFIG_RECEIVE == COMM_RECEIVE &&
                   (int)CONFIG_ALL_TO_ALL == COMM_ALL_TO_ALL &&
                   (int)CONFIG_ALL_REDUCE == COMM_ALL_REDUCE &&
                   (int)CONFIG_OPERATIONS == COMM_OPERATIONS,
               "checks that both enums have the same order");

typedef struct comms_call {
    int32_t row;
    float seconds;
} comms_call;

struct train_comms_log {
    comm_group *group; /* of the ranks that run the same list; NULL: this one alone */
    const plan_mesh *mesh;
    const train_host *host;
    config_comms_logger settings;
    train_comms_row
        *rows; /* first a row for each operation, for sizes without a row of their own */
    size_t count, capacity;
    comms_call *calls; /* calls since the last comparison; the same on every rank */
    size_t called, call_capacity, step_calls;
    float *piece, *all; /* latencies of this rank; of every rank */
    int64_t bytes;
};

/* DeepSpeed's formulas (utils/comms_logging.py); the size is that of one rank's part. */
void train_comms_bandwidth(comm_operation operation, int64_t bytes, int32_t ranks, double seconds,
                           double *algorithm, double *bus) {
    double size = (double)bytes, n = (double)ranks;
    *algorithm = *bus = 0;
    if (seconds <= 0) return;
    bool whole = operation == COMM_ALL_GATHER || operation == COMM_REDUCE_SCATTER;
    if (whole) size *= n;
    if (operation == COMM_ALL_REDUCE) size *= 2; /* a reduction and a gather */
    *algorithm = 8e-9 * size / seconds;
    bool kept = whole || operation >= COMM_ALL_TO_ALL; /* a part of it stays where it is */
    *bus = kept ? *algorithm * (n - 1) / n : *algorithm;
}

/* --- opening --- */

/* A group of all ranks has one name. */
static plan_span name_span(const train_comms_log *log, plan_span span) {
    int32_t world = plan_mesh_ranks(log->mesh, PLAN_WORLD);
    return plan_mesh_ranks(log->mesh, span) == world ? PLAN_WORLD : span;
}

static train_comms_row *find_row(train_comms_log *log, comm_operation operation, plan_span span,
                                 int64_t bytes) {
    for (size_t i = COMM_OPERATIONS; i < log->count; i++) {
        train_comms_row *row = &log->rows[i];
        if (row->operation == operation && row->span == span && row->bytes == bytes) return row;
    }
    return NULL;
}

static train_comms_row *add_row(train_comms_log *log, comm_operation operation, plan_span span,
                                int64_t bytes) {
    train_comms_row *row = &log->rows[log->count++];
    *row = (train_comms_row){.operation = operation, .span = span, .bytes = bytes};
    return row;
}

/* Of a transfer between ranks; COMM_OPERATIONS: it is none. */
static comm_operation operation_of(const plan_instruction *in) {
    switch ((plan_action)in->action) {
    case PLAN_GATHER:
        return COMM_ALL_GATHER;
    case PLAN_REDUCE:
    case PLAN_SUM: /* and then a gather */
        return COMM_REDUCE_SCATTER;
    case PLAN_EXCHANGE:
        return COMM_ALL_TO_ALL;
    case PLAN_SEND:
        return COMM_SEND;
    case PLAN_RECEIVE:
        return COMM_RECEIVE;
    default:
        return COMM_OPERATIONS;
    }
}

static sifr_status add_size(train_comms_log *log, comm_operation operation, plan_span span,
                            int64_t bytes, sifr_error *error) {
    span = name_span(log, span);
    if (find_row(log, operation, span, bytes)) return SIFR_OK;
    BASE_TRY(base_grow(&log->rows, &log->capacity, log->count + 1 + CONTROL_SIZES,
                       sizeof *log->rows, error));
    add_row(log, operation, span, bytes);
    return SIFR_OK;
}

/* Makes a row for every transfer size of the schedule, and room for sizes of control messages. */
static sifr_status make_rows(train_comms_log *log, const plan_schedule *s, sifr_error *error) {
    BASE_TRY(base_grow(&log->rows, &log->capacity, COMM_OPERATIONS + CONTROL_SIZES,
                       sizeof *log->rows, error));
    for (int o = 0; o < COMM_OPERATIONS; o++) add_row(log, (comm_operation)o, PLAN_WORLD, -1);
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *n = &s->instructions[i];
        comm_operation operation = operation_of(n);
        if (operation == COMM_OPERATIONS) continue;
        plan_span span = plan_is_peer(n) ? PLAN_STAGES : (plan_span)n->span;
        BASE_TRY(add_size(log, operation, span, n->bytes, error));
        if (n->action == PLAN_SUM)
            BASE_TRY(add_size(log, COMM_ALL_GATHER, span, plan_summed_bytes(n), error));
    }
    return SIFR_OK;
}

static size_t calls_of_step(const plan_schedule *s) {
    size_t calls = 0;
    for (size_t i = 0; i < s->instruction_count; i++) {
        uint8_t action = s->instructions[i].action;
        calls += operation_of(&s->instructions[i]) != COMM_OPERATIONS;
        calls += action == PLAN_SUM;
        if (action == PLAN_COUNT || action == PLAN_NORM) calls += 4;
    }
    return calls;
}

sifr_status train_comms_log_open(const plan_schedule *schedule, comm_group *group,
                                 const config_comms_logger *settings, const train_host *host,
                                 train_comms_log **out, sifr_error *error) {
    train_comms_log *log;
    sifr_status status;
    size_t ranks = group ? (size_t)comm_size(group) : 1;
    BASE_TRY(base_alloc(1, sizeof *log, &log, error));
    log->group = group;
    log->mesh = &schedule->settings.mesh;
    log->host = host;
    log->settings = *settings;
    log->step_calls = calls_of_step(schedule);
    log->call_capacity = log->step_calls < LEAST_CALLS ? LEAST_CALLS : log->step_calls;
    BASE_TRY_GOTO(status, make_rows(log, schedule, error), fail);
    BASE_TRY_GOTO(status, base_alloc(log->call_capacity, sizeof *log->calls, &log->calls, error),
                  fail);
    BASE_TRY_GOTO(status, base_alloc(PIECE, sizeof *log->piece, &log->piece, error), fail);
    BASE_TRY_GOTO(status, base_alloc(PIECE * ranks, sizeof *log->all, &log->all, error), fail);
    log->bytes =
        (int64_t)(log->capacity * sizeof *log->rows + log->call_capacity * sizeof *log->calls +
                  PIECE * (1 + ranks) * sizeof *log->all);
    *out = log;
    return SIFR_OK;
fail:
    train_comms_log_close(log);
    return status;
}

void train_comms_log_close(train_comms_log *log) {
    if (!log) return;
    free(log->rows);
    free(log->calls);
    free(log->piece);
    free(log->all);
    free(log);
}

const train_comms_row *train_comms_log_rows(const train_comms_log *log, size_t *count) {
    *count = log->count;
    return log->rows;
}

int64_t train_comms_log_bytes(const train_comms_log *log) {
    return log ? log->bytes : 0;
}

/* --- steps --- */

/* "all_gather", or of a group of the mesh "all_gather shards" */
static const char *name_of(comm_operation operation, plan_span span, char out[48]) {
    snprintf(out, 48, "%s%s%s", comm_operation_name(operation), span == PLAN_WORLD ? "" : " ",
             span == PLAN_WORLD ? "" : plan_span_name(span));
    return out;
}

static void say_call(const train_comms_log *log, plan_span span, const comm_event *event,
                     double seconds) {
    char size[32], name[48];
    double algorithm, bus;
    train_comms_bandwidth(event->operation, event->bytes, plan_mesh_ranks(log->mesh, span), seconds,
                          &algorithm, &bus);
    train_say(log->host,
              "comm op: %s | time (ms): %.2f | msg size: %s | algbw (Gbps): %.2f | busbw (Gbps): "
              "%.2f",
              name_of(event->operation, span, name), 1e3 * seconds,
              base_format_bytes((uint64_t)event->bytes, size), algorithm, bus);
}

void train_comms_log_hear(train_comms_log *log, plan_span span, const comm_event *event) {
    if (!log || !(log->settings.operations & 1U << event->operation)) return;
    train_comms_row *row = find_row(log, event->operation, span, event->bytes);
    if (!row)
        row = log->count < log->capacity ? add_row(log, event->operation, span, event->bytes)
                                         : &log->rows[event->operation];
    double seconds = event->ended - event->begun;
    row->calls++;
    row->moved += event->bytes;
    row->delivered += event->delivered;
    row->latency += seconds;
    if (log->called < log->call_capacity)
        log->calls[log->called++] = (comms_call){(int32_t)(row - log->rows), (float)seconds};
    if (log->settings.verbose) say_call(log, span, event, seconds);
}

/* Adds calls at … at + count - 1 of all ranks, whose latencies are in `all`. */
static void compare_piece(train_comms_log *log, size_t at, size_t count) {
    int32_t ranks = comm_size(log->group), mine = comm_rank(log->group);
    for (size_t i = 0; i < count; i++) {
        train_comms_row *row = &log->rows[log->calls[at + i].row];
        int32_t last = mine, group = plan_mesh_group(log->mesh, row->span);
        float least = INFINITY, most = 0;
        for (int32_t r = 0; r < ranks; r++) {
            plan_mesh there = plan_mesh_at(log->mesh, comm_world_rank(log->group, r));
            if (plan_mesh_group(&there, row->span) != group) continue; /* another call */
            float seconds = log->all[(size_t)r * count + i];
            if (seconds < least) least = seconds, last = r;
            if (seconds > most) most = seconds;
        }
        row->compared++;
        row->least += (double)least;
        row->straggler += (double)(most - least);
        row->last += last == mine;
    }
}

static sifr_status compare(train_comms_log *log, sifr_error *error) {
    for (size_t at = 0; log->group && at < log->called; at += PIECE) {
        size_t count = log->called - at < PIECE ? log->called - at : PIECE;
        for (size_t i = 0; i < count; i++) log->piece[i] = log->calls[at + i].seconds;
        BASE_TRY(comm_all_gather_control(log->group, log->piece,
                                         (int64_t)(count * sizeof *log->piece), log->all, error));
        compare_piece(log, at, count);
    }
    log->called = 0;
    return SIFR_OK;
}

sifr_status train_comms_log_step(train_comms_log *log, sifr_error *error) {
    if (!log || log->called + log->step_calls <= log->call_capacity) return SIFR_OK;
    return compare(log, error);
}

/* --- the end --- */

static const char *size_text(const train_comms_row *row, char out[32]) {
    if (row->bytes < 0) return strcpy(out, "other sizes");
    return base_format_bytes((uint64_t)row->bytes, out);
}

/* Of the first column. */
static int width_of(const train_comms_log *log) {
    bool groups = plan_mesh_ranks(log->mesh, PLAN_REPLICAS) > 1 ||
                  plan_mesh_ranks(log->mesh, PLAN_STAGES) > 1;
    return groups ? 24 : 16;
}

static void say_rows(const train_comms_log *log) {
    char size[32], bytes[32], name[48];
    int64_t calls[COMM_OPERATIONS] = {0};
    uint64_t delivered[COMM_OPERATIONS] = {0};
    train_say(log->host, "  %-*s %12s %8s %12s %12s %14s %14s", width_of(log), "comm op",
              "message size", "count", "total ms", "average ms", "algbw Gbit/s", "busbw Gbit/s");
    for (size_t i = 0; i < log->count; i++) {
        const train_comms_row *row = &log->rows[i];
        double algorithm, bus;
        if (!row->calls) continue;
        calls[row->operation] += row->calls;
        delivered[row->operation] += row->delivered;
        train_comms_bandwidth(row->operation, row->moved, plan_mesh_ranks(log->mesh, row->span),
                              row->latency, &algorithm, &bus);
        train_say(log->host, "  %-*s %12s %8lld %12.3f %12.4f %14.2f %14.2f", width_of(log),
                  name_of(row->operation, row->span, name), size_text(row, size),
                  (long long)row->calls, 1e3 * row->latency,
                  1e3 * row->latency / (double)row->calls, algorithm, bus);
    }
    for (int o = 0; o < COMM_OPERATIONS; o++) {
        if (!calls[o]) continue;
        train_say(log->host, "  %-16s all sizes: %lld calls, %s bytes delivered",
                  comm_operation_name((comm_operation)o), (long long)calls[o],
                  base_format_count((int64_t)delivered[o], bytes));
    }
}

static void say_stragglers(const train_comms_log *log, const train_spread *last) {
    char size[32], name[48];
    train_say(log->host, "  %-*s %12s %8s %12s %12s %14s %14s  %s", width_of(log), "stragglers",
              "message size", "count", "total ms", "average ms", "straggler ms", "average ms",
              "last to enter");
    for (size_t i = 0; i < log->count; i++) {
        const train_comms_row *row = &log->rows[i];
        if (!row->compared) continue;
        double calls = (double)row->compared;
        train_say(log->host, "  %-*s %12s %8lld %12.3f %12.4f %14.3f %14.4f  rank %d, %.0f%%",
                  width_of(log), name_of(row->operation, row->span, name), size_text(row, size),
                  (long long)row->compared, 1e3 * row->least, 1e3 * row->least / calls,
                  1e3 * row->straggler, 1e3 * row->straggler / calls, (int)last[i].most_rank,
                  100 * last[i].most / calls);
    }
}

sifr_status train_comms_log_say(train_comms_log *log, sifr_error *error) {
    double *figures = NULL;
    train_spread *last = NULL;
    if (!log) return SIFR_OK;
    BASE_TRY(compare(log, error));
    if (plan_mesh_ranks(log->mesh, PLAN_STAGES) > 1)
        train_say(log->host, "  of stage 0; the other stages run lists of their own");
    if (!log->group) {
        say_rows(log);
        return SIFR_OK;
    }
    sifr_status status = base_alloc(log->count, sizeof *figures, &figures, error);
    if (status == SIFR_OK) status = base_alloc(log->count, sizeof *last, &last, error);
    status = comm_agree_status(log->group, status, error);
    for (size_t i = 0; i < log->count && status == SIFR_OK; i++)
        figures[i] = (double)log->rows[i].last;
    if (status == SIFR_OK) status = train_spread_over(log->group, figures, log->count, last, error);
    if (status == SIFR_OK) {
        say_rows(log);
        if (comm_size(log->group) > 1) say_stragglers(log, last);
    }
    free(figures);
    free(last);
    return status;
}

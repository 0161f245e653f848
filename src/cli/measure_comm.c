#include "cli/measure_comm.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/device.h"

enum { LEAST_BYTES = 1024, RUNS = 5, MOST_CALLS = 2000, LARGE_PART = 16 };

static const double run_seconds = 0.05; /* approximate length of a run */

const char *cli_comm_kind_name(cli_comm_kind kind) {
    static const char *const names[CLI_COMM_KINDS] = {"gather", "reduce", "send"};
    return names[kind];
}

/* A whole buffer, followed by a slice. */
typedef struct operands {
    device *dev;
    comm_group *group;
    char *block;
    int64_t bytes, most;
} operands;

static sifr_status take_operands(operands *o, sifr_error *error) {
    int file;
    void *block;
    BASE_TRY(device_open_cpu(1, NULL, &o->dev, error));
    o->bytes = 2 * o->most + 4096;
    if (!comm_shares_memory(o->group)) {
        BASE_TRY(device_take(o->dev, o->bytes, &block, error));
        o->block = block;
        return SIFR_OK;
    }
    BASE_TRY(device_take_shared(o->dev, o->bytes, &block, &file, error));
    o->block = block;
    sifr_status status = comm_open_window(o->group, block, o->bytes, file, error);
    close(file);
    return status;
}

static void give_operands(operands *o) {
    if (o->block) {
        comm_close_window(o->group, o->block);
        device_give(o->dev, o->block, o->bytes);
    }
    device_close(o->dev);
}

/* Size of a rank's slice of `bytes`, in whole elements. */
static int64_t slice_of(const operands *o, int64_t bytes) {
    int64_t slice = bytes / comm_size(o->group) / 4 * 4;
    return slice ? slice : 4;
}

static sifr_status run_once(const operands *o, const cli_comm_measure *m, sifr_error *error) {
    comm_handle handle;
    int64_t slice = slice_of(o, m->bytes);
    char *apart = o->block + o->most + 2048;
    switch (m->kind) {
    case CLI_COMM_GATHER:
        BASE_TRY(comm_start_all_gather(o->group, o->block + comm_rank(o->group) * slice, slice,
                                       o->block, &handle, error));
        return comm_wait(handle, error);
    case CLI_COMM_REDUCE:
        BASE_TRY(comm_start_reduce_scatter(o->group, (const float *)(const void *)o->block,
                                           slice / 4, (float *)(void *)apart, &handle, error));
        return comm_wait(handle, error);
    default:
        return comm_broadcast(o->group, 0, o->block, m->bytes, error);
    }
}

/* Seconds a call in a series of calls, on the slowest rank. */
static sifr_status run_many(const operands *o, const cli_comm_measure *m, int64_t calls,
                            double *seconds, double *all, sifr_error *error) {
    int64_t nothing = 0;
    BASE_TRY(comm_sum(o->group, &nothing, 1, error)); /* all begin together */
    double begun = base_seconds();
    for (int64_t i = 0; i < calls; i++) BASE_TRY(run_once(o, m, error));
    double mine = (base_seconds() - begun) / (double)calls;
    BASE_TRY(comm_all_gather_control(o->group, &mine, sizeof mine, all, error));
    *seconds = 0;
    for (int32_t r = 0; r < comm_size(o->group); r++)
        if (all[r] > *seconds) *seconds = all[r];
    return SIFR_OK;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static sifr_status measure(const operands *o, cli_comm_measure *m, double *all, sifr_error *error) {
    double runs[RUNS], first;
    int64_t size = comm_size(o->group);
    m->delivered = m->kind == CLI_COMM_SEND ? m->bytes : (size - 1) * slice_of(o, m->bytes);
    BASE_TRY(run_many(o, m, 1, &first, all, error)); /* warm-up: maps pages and makes connections */
    BASE_TRY(run_many(o, m, 1, &first, all, error));
    m->calls = first > 0 ? (int64_t)(run_seconds / first) : MOST_CALLS;
    if (m->calls < 1) m->calls = 1;
    if (m->calls > MOST_CALLS) m->calls = MOST_CALLS;
    for (int i = 0; i < RUNS; i++) BASE_TRY(run_many(o, m, m->calls, &runs[i], all, error));
    qsort(runs, RUNS, sizeof *runs, compare);
    m->seconds = runs[RUNS / 2];
    m->calls *= RUNS;
    return SIFR_OK;
}

sifr_status cli_measure_comm(comm_group *group, int64_t most, cli_comm_measure *out, int *count,
                             sifr_error *error) {
    operands o = {.group = group, .most = most};
    sifr_status status;
    double *all = calloc((size_t)comm_size(group), sizeof *all);
    *count = 0;
    if (!all) return base_fail(error, SIFR_NO_MEMORY, "out of memory");
    BASE_TRY_GOTO(status, take_operands(&o, error), done);
    for (int kind = 0; kind < CLI_COMM_KINDS; kind++) {
        int64_t bytes = LEAST_BYTES;
        for (int i = 0; i < CLI_COMM_SIZES && bytes <= most; i++, bytes *= 4) {
            cli_comm_measure *m = &out[(*count)++];
            *m = (cli_comm_measure){.kind = (cli_comm_kind)kind, .bytes = bytes};
            BASE_TRY_GOTO(status, measure(&o, m, all, error), done);
        }
    }
done:
    give_operands(&o);
    free(all);
    return status;
}

/* Averages over the largest sizes with equal weight. If noise has made a large call faster than a
 * small one, the latency is not subtracted. */
static double fit_bandwidth(const cli_comm_measure *measures, int count, double latency) {
    double seconds_a_byte = 0;
    int64_t largest = 0;
    int used = 0;
    for (int i = 0; i < count; i++)
        if (measures[i].bytes > largest) largest = measures[i].bytes;
    for (int i = 0; i < count; i++) {
        const cli_comm_measure *m = &measures[i];
        if (m->kind == CLI_COMM_SEND || m->bytes < largest / LARGE_PART) continue;
        double moving = m->seconds > latency ? m->seconds - latency : m->seconds;
        seconds_a_byte += moving / (double)m->delivered;
        used++;
    }
    return seconds_a_byte > 0 ? used / seconds_a_byte : 0;
}

void cli_fit_link(const cli_comm_measure *measures, int count, double *latency, double *bandwidth) {
    double sum = 0;
    int smallest = 0;
    for (int i = 0; i < count; i++) {
        if (measures[i].kind == CLI_COMM_SEND || measures[i].bytes != LEAST_BYTES) continue;
        sum += measures[i].seconds;
        smallest++;
    }
    *latency = smallest ? sum / smallest : 0;
    *bandwidth = fit_bandwidth(measures, count, *latency);
}

/* The ranks of an MPI launcher. */
#include <stdlib.h>

#include "base/checked.h"
#include "base/heap.h"
#include "comm/mpi/mpi_group.h"
#include "comm/mpi/mpi_ways.h"
#include "comm/transports.h"

static sifr_status all_gather(comm_group *group, const void *slice, int64_t bytes, void *whole,
                              comm_handle *out, sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_GATHER, .from = slice, .to = whole, .bytes = bytes};
    return comm_mpi_start(group, &task, out, error);
}

static sifr_status reduce_scatter(comm_group *group, const void *whole, base_dtype type,
                                  base_dtype sum, int64_t elements, void *slice, comm_handle *out,
                                  sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_REDUCE,
                      .from = whole,
                      .to = slice,
                      .elements = elements,
                      .type = type,
                      .sum = sum};
    return comm_mpi_start(group, &task, out, error);
}

static sifr_status all_reduce(comm_group *group, void *values, base_dtype type, int64_t elements,
                              comm_handle *out, sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_ALL_REDUCE,
                      .from = values,
                      .to = values,
                      .bytes = elements * group->size * base_dtype_bytes(type),
                      .elements = elements,
                      .type = type,
                      .sum = type,
                      .once = true};
    return comm_mpi_start(group, &task, out, error);
}

static sifr_status all_to_all(comm_group *group, const void *from, const comm_run *sent, void *to,
                              const comm_run *received, comm_handle *out, sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_ALL_TO_ALL,
                      .from = from,
                      .to = to,
                      .bytes = comm_runs_bytes(received, group->size),
                      .sent = sent,
                      .received = received};
    return comm_mpi_start(group, &task, out, error);
}

static sifr_status run_now(comm_group *group, const comm_task *task, sifr_error *error) {
    comm_handle handle;
    BASE_TRY(comm_mpi_start(group, task, &handle, error));
    return comm_mpi_wait(group, handle.id, error);
}

static sifr_status all_gather_control(comm_group *group, const void *mine, int64_t bytes, void *all,
                                      sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_GATHER_CONTROL, .from = mine, .to = all, .bytes = bytes};
    return run_now(group, &task, error);
}

static sifr_status start_control(comm_group *group, const void *mine, int64_t bytes, void *all,
                                 comm_handle *out, sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_GATHER_CONTROL, .from = mine, .to = all, .bytes = bytes};
    if (group->dev) BASE_TRY(device_mark_here(group->dev, DEVICE_COMPUTE, &task.after, error));
    return comm_mpi_start(group, &task, out, error);
}

static sifr_status broadcast(comm_group *group, int32_t root, void *data, int64_t bytes,
                             sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_BROADCAST, .to = data, .bytes = bytes, .root = root};
    return run_now(group, &task, error);
}

static sifr_status sum_on_the_way(comm_group *group, int64_t *values, int32_t count,
                                  sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_SUM, .from = values, .to = values};
    task.bytes = count * (int64_t)sizeof *values;
    return run_now(group, &task, error);
}

static sifr_status sum(comm_group *group, int64_t *values, int32_t count, sifr_error *error) {
    mpi_group *g = (mpi_group *)group;
    for (int32_t at = 0; at < count; at += COMM_SUM_VALUES) {
        int32_t part = (int32_t)base_min_i64(count - at, COMM_SUM_VALUES);
        if (!g->sums) {
            BASE_TRY(sum_on_the_way(group, values + at, part, error));
            continue;
        }
        BASE_TRY(
            all_gather_control(group, values + at, part * (int64_t)sizeof *values, g->sums, error));
        for (int32_t i = 0; i < part; i++) {
            uint64_t total = 0; /* unsigned, since it may wrap around */
            for (int32_t r = 0; r < group->size; r++) total += (uint64_t)g->sums[r * part + i];
            values[at + i] = (int64_t)total;
        }
    }
    return SIFR_OK;
}

/* What a rank that failed left in progress may never be met by the others, which then learn that
 * this rank has failed. */
static void finish_tasks(mpi_group *g, comm_worker *worker) {
    enum { PATIENCE = 5, FOREVER = 1 << 30 }; /* seconds */
    sifr_error error;
    if (comm_worker_finish(worker, &g->base, PATIENCE)) return;
    base_set_error(&error, SIFR_LOST_RANK, "rank %d has left collectives in progress",
                   (int)g->process->rank);
    comm_mpi_break(g->process, &error);
    (void)comm_worker_finish(worker, &g->base, FOREVER);
}

/* Windows belong to the process: they are closed with the group that opened them. */
static void close_group(comm_group *group) {
    mpi_group *g = (mpi_group *)group;
    mpi_process *p = g->process;
    finish_tasks(g, &g->lane->worker);
    comm_worker_forget(&g->lane->worker, group);
    if (group->peers) finish_tasks(g, &p->peers.worker);
    for (int i = 0; g->slot == 0 && i < COMM_WINDOWS; i++)
        comm_mpi_close_window(group, p->windows[i].block);
    p->slots &= ~comm_mpi_slots_of(g);
    if ((int32_t)(g->started - p->newest) > 0) p->newest = g->started;
    if (!atomic_load(&p->broken)) comm_mpi_free_group(g);
    comm_mpi_leave_process(p);
}

static sifr_status open_group(const comm_options *options, comm_group **out, sifr_error *error) {
    mpi_process *p;
    mpi_group *g;
    sifr_status status;
    *out = NULL;
    BASE_TRY(base_alloc(1, sizeof *g, &g, error));
    BASE_TRY_GOTO(status, comm_mpi_open_process(options, &p, error), fail);
    g->base.transport = &comm_transport_mpi;
    g->base.rank = p->rank;
    g->base.size = p->size;
    g->base.timeout = options->start.limit;
    BASE_TRY_GOTO(status, comm_mpi_take_group(g, p, COMM_BULK, error), fail);
    g->base.buffer_bytes += comm_mpi_process_bytes(p);
    *out = &g->base;
    return SIFR_OK;
fail:
    comm_mpi_free_group(g);
    return status;
}

static bool is_there(void) {
    mpi_library mpi;
    return mpi_library_open(&mpi, NULL) == SIFR_OK;
}

const comm_transport comm_transport_mpi = {.open = open_group,
                                           .is_there = is_there,
                                           .all_gather = all_gather,
                                           .reduce_scatter = reduce_scatter,
                                           .all_to_all = all_to_all,
                                           .all_reduce = all_reduce,
                                           .send = comm_mpi_send,
                                           .receive = comm_mpi_receive,
                                           .wait = comm_mpi_wait,
                                           .follow = comm_mpi_follow,
                                           .catch_up = comm_mpi_catch_up,
                                           .sum = sum,
                                           .all_gather_control = all_gather_control,
                                           .start_control = start_control,
                                           .broadcast = broadcast,
                                           .open_window = comm_mpi_open_window,
                                           .close_window = comm_mpi_close_window,
                                           .is_apart = comm_mpi_is_apart,
                                           .open_link = comm_mpi_open_link,
                                           .take_words = comm_mpi_take_words,
                                           .take_stage = comm_mpi_take_stage,
                                           .take_sends = comm_mpi_take_sends,
                                           .give_stage = comm_mpi_give_stage,
                                           .exchange = comm_mpi_exchange_of,
                                           .split = comm_mpi_split,
                                           .close = close_group};

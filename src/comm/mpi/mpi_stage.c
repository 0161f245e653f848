/* Transfers between ranks whose GPUs cannot read each other's memory: through host memory, with
 * MPI's messages between. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "comm/mpi/mpi_group.h"
#include "comm/mpi/mpi_ways.h"

enum { PLACE_ALIGNMENT = 256 };

static sifr_status take(mpi_group *g, int64_t bytes, const char *why, char **out,
                        sifr_error *error) {
    base_assert(bytes > 0);
    mpi_process *p = g->process;
    void *memory;
    BASE_TRY(device_take_host(g->base.dev, bytes, &memory, error));
    *out = memory;
    snprintf(g->stage_why, sizeof g->stage_why, "%s", why);
    if (p->rank == 0 && !p->staged)
        base_log(p->log, SIFR_LOG_WARNING,
                 "%s: what ranks exchange goes through host memory, each byte twice, which is "
                 "slower",
                 why);
    p->staged = true;
    return SIFR_OK;
}

sifr_status comm_mpi_take_stage(comm_group *group, const char *why, sifr_error *error) {
    mpi_group *g = (mpi_group *)group;
    int64_t largest = group->operands.largest;
    int64_t bytes = base_max_i64(largest + largest / group->size, group->operands.parts);
    if (g->stage || !bytes) return SIFR_OK;
    g->stage_bytes = bytes;
    if (group->operands.parts)
        BASE_TRY(base_alloc(2 * (size_t)group->size, sizeof *g->stage_runs, &g->stage_runs, error));
    return take(g, g->stage_bytes, why, &g->stage, error);
}

sifr_status comm_mpi_take_sends(comm_group *group, const char *why, sifr_error *error) {
    mpi_group *g = (mpi_group *)group;
    int32_t places = group->operands.sends < COMM_LINE ? group->operands.sends : COMM_LINE;
    if (g->places) return SIFR_OK;
    g->place_bytes = base_ceil_to(base_max_i64(group->operands.sent, 1), PLACE_ALIGNMENT);
    memset(g->place_taken, 0, sizeof g->place_taken);
    BASE_TRY(take(g, places * g->place_bytes, why, &g->places, error));
    g->place_count = places;
    return SIFR_OK;
}

void comm_mpi_give_stage(comm_group *group) {
    mpi_group *g = (mpi_group *)group;
    comm_mpi_close_link(g);
    comm_mpi_give_words(g);
    if (g->stage) device_give(group->dev, g->stage, g->stage_bytes);
    if (g->places) device_give(group->dev, g->places, g->place_count * g->place_bytes);
    free(g->stage_runs);
    g->stage_runs = NULL;
    g->stage = g->places = NULL;
}

comm_exchange comm_mpi_exchange_of(const comm_group *group, const char **why) {
    const mpi_group *g = (const mpi_group *)group;
    bool near = group->shares_memory && group->local_size == group->size;
    if (!group->dev) return near ? COMM_EXCHANGE_SHARED : COMM_EXCHANGE_MPI;
    const comm_operands *operands = &group->operands;
    if (!operands->largest && !operands->sends && !operands->parts) return COMM_EXCHANGE_NONE;
    if (!g->stage && !g->places) return g->link ? COMM_EXCHANGE_NCCL : COMM_EXCHANGE_IPC;
    *why = g->stage_why;
    return COMM_EXCHANGE_HOST;
}

static sifr_status copy(const mpi_group *g, void *to, const void *from, int64_t bytes,
                        sifr_error *error) {
    device *dev = g->base.dev;
    if (!bytes) return SIFR_OK;
    pthread_mutex_lock(&g->process->device);
    sifr_status status = device_start_copy(dev, DEVICE_EXCHANGE, to, from, bytes, error);
    if (status == SIFR_OK) status = device_finish_queue(dev, DEVICE_EXCHANGE, error);
    pthread_mutex_unlock(&g->process->device);
    return status;
}

static sifr_status gather(mpi_group *g, comm_task *task, sifr_error *error) {
    comm_task staged = *task;
    char *own = g->stage + g->base.rank * task->bytes;
    BASE_TRY(copy(g, own, task->from, task->bytes, error));
    staged.from = own;
    staged.to = g->stage;
    BASE_TRY(comm_mpi_move(g, &staged, error));
    task->delivered = staged.delivered;
    task->crossed = staged.crossed;
    return copy(g, task->to, g->stage, task->bytes * g->base.size, error);
}

static sifr_status reduce(mpi_group *g, comm_task *task, sifr_error *error) {
    comm_task staged = *task;
    int64_t slice = task->elements * base_dtype_bytes(task->type);
    base_assert(slice * g->base.size + task->elements * base_dtype_bytes(task->sum) <=
                g->stage_bytes);
    char *sum = g->stage + slice * g->base.size;
    BASE_TRY(copy(g, g->stage, task->from, slice * g->base.size, error));
    staged.from = g->stage;
    staged.to = sum;
    BASE_TRY(comm_mpi_move(g, &staged, error));
    task->delivered = staged.delivered;
    task->crossed = staged.crossed;
    return copy(g, task->to, sum, task->elements * base_dtype_bytes(task->sum), error);
}

static sifr_status all_reduce(mpi_group *g, comm_task *task, sifr_error *error) {
    comm_task staged = *task;
    base_assert(task->bytes <= g->stage_bytes);
    BASE_TRY(copy(g, g->stage, task->from, task->bytes, error));
    staged.from = staged.to = g->stage;
    BASE_TRY(comm_mpi_move(g, &staged, error));
    task->delivered = staged.delivered;
    task->crossed = staged.crossed;
    return copy(g, task->to, g->stage, task->bytes, error);
}

/* The parts of the others as they lie in the stage, from byte `at` on; returns where they end. */
static int64_t stage_parts(const mpi_group *g, const comm_run *parts, int64_t at, comm_run *out) {
    for (int32_t r = 0; r < g->base.size; r++) {
        out[r] = (comm_run){at, r == g->base.rank ? 0 : parts[r].bytes};
        at += out[r].bytes;
    }
    return at;
}

/* What this rank sends to itself stays on the device. */
static sifr_status all_to_all(mpi_group *g, comm_task *task, sifr_error *error) {
    comm_task staged = *task;
    int32_t size = g->base.size, rank = g->base.rank;
    comm_run *sent = g->stage_runs, *received = sent + size;
    const char *from = task->from;
    char *to = task->to;
    (void)stage_parts(g, task->received, stage_parts(g, task->sent, 0, sent), received);
    for (int32_t r = 0; r < size; r++)
        BASE_TRY(copy(g, g->stage + sent[r].at, from + task->sent[r].at, sent[r].bytes, error));
    staged.from = staged.to = g->stage;
    staged.sent = sent, staged.received = received;
    BASE_TRY(comm_mpi_move(g, &staged, error));
    task->delivered = staged.delivered;
    task->crossed = staged.crossed;
    for (int32_t r = 0; r < size; r++)
        BASE_TRY(copy(g, to + task->received[r].at, g->stage + received[r].at, received[r].bytes,
                      error));
    return copy(g, to + task->received[rank].at, from + task->sent[rank].at, task->sent[rank].bytes,
                error);
}

/* How much of the stage a task takes, and whether that is there. */
static bool fits(const mpi_group *g, const comm_task *task, int64_t *bytes) {
    const comm_run *sent = task->sent, *received = task->received;
    int32_t size = g->base.size, rank = g->base.rank;
    if (task->kind == COMM_TASK_ALL_TO_ALL) {
        *bytes = comm_runs_bytes(sent, size) - sent[rank].bytes + comm_runs_bytes(received, size) -
                 received[rank].bytes;
        return *bytes <= g->base.operands.parts;
    }
    *bytes = task->kind == COMM_TASK_GATHER ? task->bytes
                                            : task->elements * base_dtype_bytes(task->type);
    return *bytes <= g->base.operands.largest / size;
}

sifr_status comm_mpi_move_staged(mpi_group *g, comm_task *task, sifr_error *error) {
    int64_t bytes;
    if (!fits(g, task, &bytes))
        return base_fail(error, SIFR_FAILED, "%s: %lld bytes exceed what was staged for",
                         comm_mpi_task_name(task), (long long)bytes);
    BASE_TRY(device_finish(g->base.dev, task->after, error));
    if (task->kind == COMM_TASK_ALL_TO_ALL) return all_to_all(g, task, error);
    if (task->kind == COMM_TASK_ALL_REDUCE) return all_reduce(g, task, error);
    return task->kind == COMM_TASK_GATHER ? gather(g, task, error) : reduce(g, task, error);
}

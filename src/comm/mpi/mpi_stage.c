/* Transfers between ranks whose GPUs cannot read each other's memory: through host memory, with
 * MPI's messages between. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "comm/mpi/mpi_private.h"

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
    if (g->stage || !largest) return SIFR_OK;
    g->stage_bytes = largest + largest / group->size;
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
    g->stage = g->places = NULL;
}

comm_exchange comm_mpi_exchange_of(const comm_group *group, const char **why) {
    const mpi_group *g = (const mpi_group *)group;
    bool near = group->shares_memory && group->local_size == group->size;
    if (!group->dev) return near ? COMM_EXCHANGE_SHARED : COMM_EXCHANGE_MPI;
    if (!group->operands.largest && !group->operands.sends) return COMM_EXCHANGE_NONE;
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

sifr_status comm_mpi_move_staged(mpi_group *g, comm_task *task, sifr_error *error) {
    int64_t whole = task->kind == COMM_TASK_GATHER ? task->bytes
                                                   : task->elements * base_dtype_bytes(task->type);
    if (whole > g->base.operands.largest / g->base.size)
        return base_fail(error, SIFR_FAILED, "%s: %lld bytes exceed what was staged for",
                         comm_mpi_task_name(task), (long long)whole);
    BASE_TRY(device_finish(g->base.dev, task->after, error));
    return task->kind == COMM_TASK_GATHER ? gather(g, task, error) : reduce(g, task, error);
}

/* Collectives among the ranks of one host. Each rank posts where its operands lie and reads the
 * others' operands in place. A collective ends only when all ranks have finished reading.
 */
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "comm/mpi/mpi_ways.h"
#include "comm/reduce.h"

/* Visits ranks starting after this one, so that not all read from the same one. */
static int32_t neighbour(const mpi_group *g, int32_t distance) {
    base_assert(distance >= 0 && distance < g->base.local_size);
    return (g->base.local_rank + distance) % g->base.local_size;
}

sifr_status comm_mpi_see_posts(mpi_group *g, const comm_task *task, bool *usable,
                               sifr_error *error) {
    bool broadcast = task->kind == COMM_TASK_BROADCAST, gather = task->kind == COMM_TASK_GATHER;
    int32_t in_windows = 0, needed = 0;
    for (int32_t d = 0; d < g->base.local_size; d++) {
        int32_t s = neighbour(g, d);
        BASE_TRY(comm_mpi_await(g, s, &comm_mpi_slot(g, s)->posted, task->number, error));
        const comm_post *post = comm_mpi_post_of(g, s, task);
        if (broadcast && g->near[s] != task->root) continue;
        int32_t window = g->two_levels && gather ? post->to_window : post->window;
        needed++;
        in_windows += window != COMM_NOWHERE;
    }
    *usable = in_windows == needed;
    if (g->two_levels && task->kind != COMM_TASK_ALL_TO_ALL && in_windows && !*usable)
        return base_fail(
            error, SIFR_FAILED,
            "communication: operands of some ranks lie in a window, but those of others do not");
    return SIFR_OK;
}

static sifr_status gather(mpi_group *g, comm_task *task, sifr_error *error) {
    char *all = task->to, *own = all + g->base.rank * task->bytes;
    if (!task->bytes) return SIFR_OK;
    if (task->from != own) BASE_TRY(comm_mpi_place(g, task, own, task->from, task->bytes, error));
    for (int32_t d = 1; d < g->base.local_size; d++) {
        int32_t s = neighbour(g, d);
        BASE_TRY(comm_mpi_place(g, task, all + g->near[s] * task->bytes,
                                comm_mpi_operand(g, s, task), task->bytes, error));
        task->delivered += (uint64_t)task->bytes;
    }
    return SIFR_OK;
}

static sifr_status reduce(mpi_group *g, comm_task *task, sifr_error *error) {
    int64_t bytes = base_dtype_bytes(task->type) * task->elements;
    for (int32_t s = 0; s < g->base.local_size; s++)
        g->lane->rows[s] = (const char *)comm_mpi_operand(g, s, task) + g->base.rank * bytes;
    task->delivered += (uint64_t)(g->base.local_size - 1) * (uint64_t)bytes;
    device_sum sum = {task->type,         task->sum,      g->lane->rows,
                      g->base.local_size, task->elements, task->to};
    return comm_reduce_on(g->base.dev, &sum, error);
}

static void broadcast(mpi_group *g, comm_task *task) {
    int32_t root = 0;
    if (g->base.rank == task->root || !task->bytes) return;
    while (g->near[root] != task->root) root++;
    base_assert(root < g->base.local_size);
    memcpy(task->to, comm_mpi_operand(g, root, task), (size_t)task->bytes);
    task->delivered += (uint64_t)task->bytes;
}

static sifr_status move(mpi_group *g, comm_task *task, sifr_error *error) {
    base_assert(g->base.local_size == g->base.size);
    switch (task->kind) {
    case COMM_TASK_GATHER:
    case COMM_TASK_GATHER_CONTROL:
        return gather(g, task, error);
    case COMM_TASK_REDUCE:
        return reduce(g, task, error);
    case COMM_TASK_BROADCAST:
        broadcast(g, task);
        break;
    case COMM_TASK_ALL_TO_ALL:
        return comm_mpi_read_all_to_all(g, task, error);
    case COMM_TASK_ALL_REDUCE:
        return comm_mpi_all_reduce_shared(g, task, error);
    case COMM_TASK_SUM: /* by messages */
        return comm_mpi_move(g, task, error);
    case COMM_TASK_SEND:
    case COMM_TASK_RECEIVE:
        break; /* in a lane of their own */
    }
    return SIFR_OK;
}

/* Operands are posted when they have been computed, and read until this rank's queue is done with
 * them. */
static sifr_status move_on_device(mpi_group *g, comm_task *task, sifr_error *error) {
    device *dev = g->base.dev;
    bool usable;
    BASE_TRY(device_finish(dev, task->after, error));
    comm_mpi_post(g, task, task->number);
    BASE_TRY(comm_mpi_see_posts(g, task, &usable, error));
    if (!usable)
        return base_fail(error, SIFR_FAILED,
                         "communication: operands lie outside of what the ranks' GPUs share");
    if (task->kind == COMM_TASK_ALL_REDUCE) return comm_mpi_all_reduce_shared(g, task, error);
    pthread_mutex_lock(&g->process->device);
    sifr_status status = move(g, task, error);
    if (status == SIFR_OK) status = device_finish_queue(dev, DEVICE_EXCHANGE, error);
    pthread_mutex_unlock(&g->process->device);
    return status;
}

static sifr_status move_any(mpi_group *g, comm_task *task, sifr_error *error) {
    bool usable;
    bool whole = comm_task_has_data(task->kind), parts = task->kind == COMM_TASK_ALL_TO_ALL;
    bool narrow = task->kind == COMM_TASK_REDUCE && task->type != BASE_FP32;
    if (comm_mpi_on_device(g, task)) return move_on_device(g, task, error);
    if (g->base.dev) comm_mpi_post(g, task, task->number);
    bool sums = task->kind == COMM_TASK_ALL_REDUCE;
    if (g->two_levels && (!whole || narrow || sums)) return comm_mpi_move(g, task, error);
    BASE_TRY(comm_mpi_see_posts(g, task, &usable, error));
    if (parts) return comm_mpi_read_all_to_all(g, task, error);
    if (!usable) return comm_mpi_move(g, task, error);
    if (g->two_levels)
        return task->kind == COMM_TASK_GATHER ? comm_mpi_gather_levels(g, task, error)
                                              : comm_mpi_reduce_levels(g, task, error);
    return move(g, task, error);
}

sifr_status comm_mpi_let_go(mpi_group *g, const comm_task *task, sifr_error *error) {
    comm_host_advance(comm_mpi_own_slot(g), &comm_mpi_own_slot(g)->done, task->number);
    for (int32_t d = 1; d < g->base.local_size; d++) {
        int32_t s = neighbour(g, d);
        BASE_TRY(comm_mpi_await(g, s, &comm_mpi_slot(g, s)->done, task->number, error));
    }
    return SIFR_OK;
}

sifr_status comm_mpi_move_shared(mpi_group *g, comm_task *task, sifr_error *error) {
    BASE_TRY(move_any(g, task, error));
    return comm_mpi_let_go(g, task, error);
}

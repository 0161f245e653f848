/* Collectives among the ranks of one host: each says where its operands lie, and reads those of the
 * others in place. Nothing is over before all have read what they need. */
#include <string.h>

#include "comm/mpi/mpi_private.h"
#include "comm/tree.h"

static const double nap = 0.05; /* seconds of sleep between two looks at who lives */

/* What the others read of this rank's, and how much. */
static const void *read_part(const comm_group *group, const comm_task *task, int64_t *bytes) {
    switch (task->kind) {
    case COMM_TASK_REDUCE:
        *bytes = comm_type_bytes(task->type) * task->elements * group->size;
        return task->from;
    case COMM_TASK_BROADCAST:
        *bytes = task->bytes;
        return task->to;
    default:
        *bytes = task->bytes;
        return task->from;
    }
}

void comm_mpi_post(mpi_group *g, const comm_task *task, uint32_t number) {
    comm_seat *seat = comm_host_own(&g->host);
    comm_post *post = &seat->posts[number % COMM_LINE];
    int64_t bytes;
    const void *part = read_part(&g->base, task, &bytes);
    post->window = post->to_window = COMM_NOWHERE;
    if (bytes <= COMM_INLINE) {
        if (bytes) memcpy(post->bytes, part, (size_t)bytes);
        post->window = COMM_IN_SEAT;
    } else {
        post->window = comm_mpi_find_window(g, part, bytes, &post->offset);
    }
    if (task->kind == COMM_TASK_GATHER)
        post->to_window =
            comm_mpi_find_window(g, task->to, task->bytes * g->base.size, &post->to_offset);
    comm_host_advance(&g->host, &seat->posted, number);
}

static const comm_post *post_of(const mpi_group *g, int32_t seat, const comm_task *task) {
    return &g->host.seats[seat].posts[task->number % COMM_LINE];
}

const void *comm_mpi_operand(const mpi_group *g, int32_t seat, const comm_task *task) {
    const comm_post *post = post_of(g, seat, task);
    int64_t bytes;
    if (seat == g->host.mine) return read_part(&g->base, task, &bytes);
    if (post->window == COMM_IN_SEAT) return post->bytes;
    return g->windows[post->window].seen[seat] + post->offset;
}

const void *comm_mpi_target(const mpi_group *g, int32_t seat, const comm_task *task) {
    const comm_post *post = post_of(g, seat, task);
    return g->windows[post->to_window].seen[seat] + post->to_offset;
}

sifr_status comm_mpi_await(mpi_group *g, int32_t seat, _Atomic uint32_t *count, uint32_t number,
                           sifr_error *error) {
    comm_seat *theirs = &g->host.seats[seat];
    double begun = 0, left = 0;
    while (!comm_host_await(theirs, count, number, nap)) {
        if (begun == 0) begun = comm_seconds();
        if (atomic_load(&theirs->leaving) && !comm_host_await(theirs, count, number, 0))
            return comm_mpi_fail_left(g, g->rank_of[seat], error);
        BASE_TRY(comm_mpi_look(g, begun, &left, error));
    }
    return SIFR_OK;
}

/* The next seat after this rank's own, and so on: not all of them at the same one. */
static int32_t neighbour(const mpi_group *g, int32_t distance) {
    return (g->host.mine + distance) % g->host.size;
}

/* Waits for what all have posted. *usable: it lies where this host's ranks can read it; all of them
 * find the same. */
static sifr_status see_posts(mpi_group *g, const comm_task *task, bool *usable, sifr_error *error) {
    bool broadcast = task->kind == COMM_TASK_BROADCAST, gather = task->kind == COMM_TASK_GATHER;
    int32_t in_windows = 0, needed = 0;
    for (int32_t d = 0; d < g->host.size; d++) {
        int32_t s = neighbour(g, d);
        BASE_TRY(comm_mpi_await(g, s, &g->host.seats[s].posted, task->number, error));
        const comm_post *post = post_of(g, s, task);
        if (broadcast && g->rank_of[s] != task->root) continue;
        int32_t window = g->two_levels && gather ? post->to_window : post->window;
        needed++;
        in_windows += window != COMM_NOWHERE;
    }
    *usable = in_windows == needed;
    if (g->two_levels && in_windows && !*usable)
        return base_fail(error, SIFR_FAILED,
                         "communication: operands of some ranks lie in a window, those of others "
                         "do not");
    return SIFR_OK;
}

static void gather(mpi_group *g, comm_task *task) {
    char *all = task->to, *own = all + g->base.rank * task->bytes;
    if (!task->bytes) return;
    if (task->from != own) memmove(own, task->from, (size_t)task->bytes);
    for (int32_t d = 1; d < g->host.size; d++) {
        int32_t s = neighbour(g, d);
        memcpy(all + g->rank_of[s] * task->bytes, comm_mpi_operand(g, s, task),
               (size_t)task->bytes);
        task->delivered += (uint64_t)task->bytes;
    }
}

static void reduce(mpi_group *g, comm_task *task) {
    int64_t bytes = comm_type_bytes(task->type) * task->elements;
    for (int32_t s = 0; s < g->host.size; s++)
        g->rows[s] = (const char *)comm_mpi_operand(g, s, task) + g->base.rank * bytes;
    comm_tree_sum_typed(task->type, task->sum, g->rows, g->host.size, task->elements, task->to);
    task->delivered += (uint64_t)(g->host.size - 1) * (uint64_t)bytes;
}

static void broadcast(mpi_group *g, comm_task *task) {
    if (g->base.rank == task->root || !task->bytes) return;
    memcpy(task->to, comm_mpi_operand(g, g->seat_of[task->root], task), (size_t)task->bytes);
    task->delivered += (uint64_t)task->bytes;
}

static void move(mpi_group *g, comm_task *task) {
    switch (task->kind) {
    case COMM_TASK_GATHER:
    case COMM_TASK_GATHER_CONTROL:
        gather(g, task);
        break;
    case COMM_TASK_REDUCE:
        reduce(g, task);
        break;
    case COMM_TASK_BROADCAST:
        broadcast(g, task);
        break;
    }
}

static sifr_status move_any(mpi_group *g, comm_task *task, sifr_error *error) {
    bool usable;
    bool whole = task->kind == COMM_TASK_GATHER || task->kind == COMM_TASK_REDUCE;
    bool narrow = task->type != COMM_FP32;
    if (g->two_levels && (!whole || narrow)) return comm_mpi_move(g, task, error);
    BASE_TRY(see_posts(g, task, &usable, error));
    if (!usable) return comm_mpi_move(g, task, error);
    if (g->two_levels)
        return task->kind == COMM_TASK_GATHER ? comm_mpi_gather_levels(g, task, error)
                                              : comm_mpi_reduce_levels(g, task, error);
    move(g, task);
    return SIFR_OK;
}

sifr_status comm_mpi_move_shared(mpi_group *g, comm_task *task, sifr_error *error) {
    BASE_TRY(move_any(g, task, error));
    comm_host_advance(&g->host, &comm_host_own(&g->host)->done, task->number);
    for (int32_t d = 1; d < g->host.size; d++) {
        int32_t s = neighbour(g, d);
        BASE_TRY(comm_mpi_await(g, s, &g->host.seats[s].done, task->number, error));
    }
    return SIFR_OK;
}

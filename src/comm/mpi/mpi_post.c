/* Places of a collective's operands: written to this rank's slot, read from the others' slots. */
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "comm/mpi/mpi_members.h"

static const double nap = 0.05; /* seconds of sleep between two checks of which ranks are alive */

int32_t comm_mpi_find_window(const mpi_group *g, const void *at, int64_t bytes, int64_t *offset) {
    for (int32_t i = 0; i < COMM_WINDOWS; i++) {
        const comm_window *window = &g->process->windows[i];
        uintptr_t first = (uintptr_t)window->block, address = (uintptr_t)at;
        if (!window->block || address < first) continue;
        if ((int64_t)(address - first) > window->bytes - bytes) continue;
        *offset = (int64_t)(address - first);
        return i;
    }
    return COMM_NOWHERE;
}

/* This rank's operand that the others read, and its size. */
static const void *read_part(const comm_group *group, const comm_task *task, int64_t *bytes) {
    switch (task->kind) {
    case COMM_TASK_REDUCE:
        *bytes = base_dtype_bytes(task->type) * task->elements * group->size;
        return task->from;
    case COMM_TASK_BROADCAST:
        *bytes = task->bytes;
        return task->to;
    case COMM_TASK_ALL_TO_ALL:
        *bytes = comm_runs_end(task->sent, group->size);
        return task->from;
    default:
        *bytes = task->bytes;
        return task->from;
    }
}

/* The runs lie in the post, which is short. */
static void post_runs(const mpi_group *g, const comm_task *task, const void *part, int64_t bytes,
                      comm_post *post) {
    if (g->base.size > COMM_MOST_RUNS) return;
    memcpy(post->bytes, task->sent, (size_t)g->base.size * sizeof *task->sent);
    post->window = COMM_IN_SLOT; /* there is nothing to read */
    if (bytes) post->window = comm_mpi_find_window(g, part, bytes, &post->offset);
}

void comm_mpi_post(mpi_group *g, const comm_task *task, uint32_t number) {
    comm_slot *own = comm_mpi_own_slot(g);
    comm_post *post = &own->posts[number % COMM_LINE];
    int64_t bytes;
    const void *part = read_part(&g->base, task, &bytes);
    post->window = post->to_window = COMM_NOWHERE;
    if (task->kind == COMM_TASK_ALL_TO_ALL) {
        post_runs(g, task, part, bytes, post);
    } else if (bytes <= COMM_INLINE && !comm_mpi_on_device(g, task)) {
        if (bytes) memcpy(post->bytes, part, (size_t)bytes);
        post->window = COMM_IN_SLOT;
    } else {
        post->window = comm_mpi_find_window(g, part, bytes, &post->offset);
    }
    if (task->kind == COMM_TASK_ALL_REDUCE) /* in place */
        post->to_window = post->window, post->to_offset = post->offset;
    if (task->kind == COMM_TASK_GATHER)
        post->to_window =
            comm_mpi_find_window(g, task->to, task->bytes * g->base.size, &post->to_offset);
    comm_host_advance(own, &own->posted, number);
}

const comm_post *comm_mpi_post_of(const mpi_group *g, int32_t i, const comm_task *task) {
    return &comm_mpi_slot(g, i)->posts[task->number % COMM_LINE];
}

const void *comm_mpi_operand(const mpi_group *g, int32_t i, const comm_task *task) {
    const comm_post *post = comm_mpi_post_of(g, i, task);
    int64_t bytes;
    if (i == g->base.local_rank) return read_part(&g->base, task, &bytes);
    if (post->window == COMM_IN_SLOT) return post->bytes;
    base_assert(post->window >= 0 && g->process->windows[post->window].seen[g->near_seats[i]]);
    return g->process->windows[post->window].seen[g->near_seats[i]] + post->offset;
}

const void *comm_mpi_target(const mpi_group *g, int32_t i, const comm_task *task) {
    const comm_post *post = comm_mpi_post_of(g, i, task);
    base_assert(post->to_window >= 0 &&
                g->process->windows[post->to_window].seen[g->near_seats[i]]);
    return g->process->windows[post->to_window].seen[g->near_seats[i]] + post->to_offset;
}

sifr_status comm_mpi_place(const mpi_group *g, const comm_task *task, void *to, const void *from,
                           int64_t bytes, sifr_error *error) {
    if (comm_mpi_on_device(g, task))
        return device_start_copy(g->base.dev, DEVICE_EXCHANGE, to, from, bytes, error);
    memmove(to, from, (size_t)bytes);
    return SIFR_OK;
}

sifr_status comm_mpi_await(mpi_group *g, int32_t i, _Atomic uint32_t *count, uint32_t number,
                           sifr_error *error) {
    comm_slot *theirs = comm_mpi_slot(g, i);
    const comm_seat *seat = &g->process->host.seats[g->near_seats[i]];
    double begun = 0, left = 0;
    while (!comm_host_await(theirs, count, number, nap)) {
        if (begun == 0) begun = base_seconds();
        if (atomic_load(&seat->leaving) && !comm_host_await(theirs, count, number, 0))
            return comm_mpi_fail_left(g, &g->state, comm_mpi_world(g, g->near[i]), error);
        BASE_TRY(comm_mpi_look(g, begun, &left, error));
    }
    return SIFR_OK;
}

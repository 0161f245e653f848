/* All-reduces among the ranks of one host, in place: each rank sums its slice of all, where it
 * lies; then it reads the slices of the others. A slice is overwritten after the only rank that
 * reads it has summed it, so neither needs memory of its own. */
#include <string.h>

#include "base/assert.h"
#include "comm/mpi/mpi_ways.h"

static int64_t slice_bytes(const comm_task *task) {
    return task->elements * base_dtype_bytes(task->type);
}

static sifr_status add(mpi_group *g, const comm_task *task, int64_t at, int64_t elements,
                       sifr_error *error) {
    device_sum sum = {task->type,         task->type, g->lane->rows,
                      g->base.local_size, elements,   (char *)task->to + at};
    for (int32_t s = 0; s < g->base.local_size; s++)
        g->lane->rows[s] = (const char *)comm_mpi_operand(g, s, task) + at;
    if (comm_mpi_on_device(g, task)) return comm_reduce_on(g->base.dev, &sum, error);
    comm_mpi_add(task, &sum);
    return SIFR_OK;
}

static sifr_status sum_slice(mpi_group *g, const comm_task *task, sifr_error *error) {
    return add(g, task, g->base.rank * slice_bytes(task), task->elements, error);
}

static sifr_status read_slices(mpi_group *g, const comm_task *task, sifr_error *error) {
    for (int32_t d = 1; d < g->base.local_size; d++) {
        int32_t s = (g->base.local_rank + d) % g->base.local_size;
        int64_t at = g->near[s] * slice_bytes(task);
        BASE_TRY(comm_mpi_place(g, task, (char *)task->to + at,
                                (const char *)comm_mpi_operand(g, s, task) + at, slice_bytes(task),
                                error));
    }
    return SIFR_OK;
}

/* Of a device, until it is done; no other rank is waited for meanwhile. */
static sifr_status run(mpi_group *g, const comm_task *task,
                       sifr_status (*part)(mpi_group *g, const comm_task *task, sifr_error *error),
                       sifr_error *error) {
    if (!comm_mpi_on_device(g, task)) return part(g, task, error);
    pthread_mutex_lock(&g->process->device);
    sifr_status status = part(g, task, error);
    if (status == SIFR_OK) status = device_finish_queue(g->base.dev, DEVICE_EXCHANGE, error);
    pthread_mutex_unlock(&g->process->device);
    return status;
}

sifr_status comm_mpi_all_reduce_shared(mpi_group *g, comm_task *task, sifr_error *error) {
    base_assert(g->base.local_size == g->base.size);
    comm_slot *own = comm_mpi_own_slot(g);
    task->delivered = 2 * (uint64_t)slice_bytes(task) * (uint64_t)(g->base.size - 1);
    if (!task->bytes) return SIFR_OK;
    if (comm_mpi_post_of(g, g->base.local_rank, task)->window == COMM_IN_SLOT) /* all have all */
        return add(g, task, 0, task->elements * g->base.size, error);
    BASE_TRY(run(g, task, sum_slice, error));
    comm_host_advance(own, &own->arrived, task->number);
    for (int32_t s = 0; s < g->base.local_size; s++)
        BASE_TRY(comm_mpi_await(g, s, &comm_mpi_slot(g, s)->arrived, task->number, error));
    return run(g, task, read_slices, error);
}

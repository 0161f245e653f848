/* The queue of collectives, on the caller's side: starting, waiting, following. */
#include "comm/mpi/mpi_group.h"
#include "device/flag.h"

sifr_status comm_mpi_start(comm_group *group, const comm_task *task, comm_handle *out,
                           sifr_error *error) {
    mpi_group *g = (mpi_group *)group;
    comm_task labelled = *task;
    labelled.group = group;
    labelled.label = group->label;
    labelled.number = g->started + 1;
    BASE_TRY(comm_followed_reserve(&g->lane->worker, error));
    out->group = group;
    if (comm_mpi_on_device(g, task))
        BASE_TRY(device_mark_here(group->dev, DEVICE_COMPUTE, &labelled.after, error));
    BASE_TRY(comm_worker_start(&g->lane->worker, &labelled, &out->id, error));
    g->started++;
    if (g->shares && !group->dev) comm_mpi_post(g, task, g->started);
    return SIFR_OK;
}

sifr_status comm_mpi_wait(comm_group *group, int32_t id, sifr_error *error) {
    mpi_group *g = (mpi_group *)group;
    comm_task task = {0};
    bool peer = id & COMM_PEER_HANDLE;
    comm_worker *worker = peer ? &g->process->peers.worker : &g->lane->worker;
    sifr_status status = comm_worker_wait(worker, id & ~COMM_PEER_HANDLE, &task, error);
    if (status != SIFR_OK) return status;
    comm_worker_count(&task);
    return SIFR_OK;
}

/* With NCCL the host waits: NCCL's own streams may share a channel of the GPU with the computing
 * stream, and would then stand still with it. */
sifr_status comm_mpi_follow(comm_group *group, int32_t id, sifr_error *error) {
    mpi_group *g = (mpi_group *)group;
    mpi_process *p = g->process;
    if (!p->flags.work || p->links || id & COMM_PEER_HANDLE) {
        if (group->dev) device_note_host_wait(group->dev, p->links ? "NCCL" : "no flags");
        return comm_mpi_wait(group, id, error);
    }
    return comm_followed_start(&p->flags, (comm_lane)(g->lane - p->lanes), &g->lane->worker, id,
                               error);
}

sifr_status comm_mpi_catch_up(comm_group *group, sifr_error *error) {
    mpi_process *p = ((mpi_group *)group)->process;
    for (int i = 0; i < COMM_LANES; i++)
        BASE_TRY(comm_followed_catch_up(&p->lanes[i].worker, error));
    return SIFR_OK;
}

/* The group of all ranks has the flags of all groups. */
sifr_status comm_mpi_take_words(comm_group *group, sifr_error *error) {
    mpi_group *g = (mpi_group *)group;
    return g->slot == 0 ? comm_flags_take(&g->process->flags, group->dev, error) : SIFR_OK;
}

void comm_mpi_give_words(mpi_group *g) {
    mpi_process *p = g->process;
    if (g->slot != 0) return;
    for (int i = 0; i < COMM_LANES; i++)
        if (p->lanes[i].worker.running) comm_worker_forget(&p->lanes[i].worker, NULL);
    comm_flags_give(&p->flags);
}

sifr_status comm_mpi_tell(mpi_group *g, const void *mine, int64_t bytes, void *all,
                          sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_GATHER_CONTROL, .from = mine, .to = all, .bytes = bytes};
    comm_handle handle;
    BASE_TRY(comm_mpi_start(&g->base, &task, &handle, error));
    return comm_worker_wait(&g->lane->worker, handle.id, &task, error);
}

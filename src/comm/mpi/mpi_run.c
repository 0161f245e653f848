/* The queue of collectives, on the worker's thread: by which way each moves. */
#include <time.h>

#include "base/clock.h"
#include "comm/mpi/mpi_group.h"
#include "comm/mpi/mpi_ways.h"
#include "device/flag.h"

static void doze(double seconds) {
    struct timespec time = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&time, NULL);
}

static sifr_status move(mpi_group *g, comm_task *task, sifr_error *error) {
    if (task->kind == COMM_TASK_GATHER_CONTROL && task->after.number)
        BASE_TRY(device_finish(g->base.dev, task->after, error));
    if (comm_mpi_on_device(g, task) && g->stage) return comm_mpi_move_staged(g, task, error);
    if (comm_mpi_on_device(g, task) && g->link) return comm_mpi_move_linked(g, task, error);
    return g->shares ? comm_mpi_move_shared(g, task, error) : comm_mpi_move(g, task, error);
}

sifr_status comm_mpi_run(void *user, comm_task *task, sifr_error *error) {
    mpi_lane *lane = user;
    mpi_group *g = (mpi_group *)task->group;
    double begun = base_seconds();
    if (atomic_load(&lane->process->broken)) return comm_mpi_fail_again(lane->process, error);
    comm_mpi_publish(g, task, true);
    sifr_status status = move(g, task, error);
    if (status != SIFR_OK) comm_mpi_break(lane->process, error);
    if (comm_task_has_data(task->kind)) {
        double least = g->base.call_seconds + (double)task->delivered * g->base.byte_seconds;
        double rest = begun + least - base_seconds();
        if (rest > 0) doze(rest);
    }
    if (status == SIFR_OK) comm_mpi_publish(g, task, false);
    return status;
}

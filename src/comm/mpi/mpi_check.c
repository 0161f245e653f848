/* What fails: MPI's error codes as messages, and the first failure, which ends all lanes. */
#include "base/assert.h"
#include "comm/mpi/mpi_process.h"

sifr_status comm_mpi_check(const mpi_library *mpi, int code, const char *what, sifr_error *error) {
    char text[MPI_ERROR_TEXT];
    int length = 0;
    if (code == 0) return SIFR_OK;
    if (mpi->calls.error_text(mpi, code, text, &length) != 0) length = 0;
    return base_fail(error, SIFR_LOST_RANK, "%s: MPI: %.*s", what, length, text);
}

const char *comm_mpi_task_name(const comm_task *task) {
    base_assert((int)task->kind >= 0 && task->kind <= COMM_TASK_RECEIVE);
    static const char *const names[] = {[COMM_TASK_GATHER] = "all_gather",
                                        [COMM_TASK_REDUCE] = "reduce_scatter",
                                        [COMM_TASK_GATHER_CONTROL] = "control",
                                        [COMM_TASK_BROADCAST] = "broadcast",
                                        [COMM_TASK_SUM] = "control",
                                        [COMM_TASK_ALL_TO_ALL] = "all_to_all",
                                        [COMM_TASK_ALL_REDUCE] = "all_reduce",
                                        [COMM_TASK_SEND] = "send",
                                        [COMM_TASK_RECEIVE] = "receive"};
    return names[task->kind];
}

void comm_mpi_break(mpi_process *p, const sifr_error *error) {
    pthread_mutex_lock(&p->calls);
    if (!atomic_load(&p->broken) && error) p->failure = *error;
    atomic_store(&p->broken, true);
    pthread_mutex_unlock(&p->calls);
}

sifr_status comm_mpi_fail_again(mpi_process *p, sifr_error *error) {
    base_assert(atomic_load(&p->broken));
    pthread_mutex_lock(&p->calls);
    sifr_status status = base_fail(error, SIFR_LOST_RANK, "%s", p->failure.message);
    pthread_mutex_unlock(&p->calls);
    return status;
}

/* Hosts watch each other, whatever started the ranks. */
#include <stdlib.h>

#include "base/heap.h"
#include "comm/mpi/mpi_private.h"

static int32_t count_hosts(const mpi_process *p) {
    int32_t hosts = 0;
    for (int32_t r = 0; r < p->size; r++) hosts += p->host_of[r] == r;
    return hosts;
}

/* Rank 0 is the first rank of its host. `why` gets the reason if this rank has no lookout. */
static sifr_status meet(mpi_process *p, int32_t hosts, sifr_error *why, sifr_error *error) {
    comm_meeting meeting = {.addresses = 0};
    sifr_status status = SIFR_OK;
    if (p->rank == 0) status = comm_lookout_listen(0, hosts - 1, &meeting, &p->lookout, why);
    BASE_TRY(comm_mpi_check(MPI_Bcast(&meeting, (int)sizeof meeting, MPI_BYTE, 0, p->world),
                            "ranks", error));
    if (p->rank > 0 && p->host_of[p->rank] == p->rank && meeting.addresses)
        status = comm_lookout_join(p->rank, &meeting, &p->lookout, why);
    (void)status;
    return SIFR_OK;
}

sifr_status comm_mpi_open_lookout(mpi_process *p, sifr_error *error) {
    sifr_error why = {.message = ""};
    int32_t *all, hosts = count_hosts(p), blind = -1;
    if (hosts < 2) return SIFR_OK;
    BASE_TRY(base_alloc((size_t)p->size, sizeof *all, &all, error));
    sifr_status status = meet(p, hosts, &why, error);
    int32_t mine = why.message[0] != '\0';
    if (status == SIFR_OK)
        status = comm_mpi_check(MPI_Allgather(&mine, 1, MPI_INT32_T, all, 1, MPI_INT32_T, p->world),
                                "ranks", error);
    if (p->rank == 0 && p->lookout) comm_lookout_seal(p->lookout);
    for (int32_t r = p->size - 1; r >= 0 && status == SIFR_OK; r--)
        if (all[r]) blind = r;
    if (blind == p->rank) /* once, by the first of them */
        base_log(p->log, SIFR_LOG_WARNING,
                 "the hosts cannot watch each other (rank %d: %s): a rank that dies on another "
                 "host is noticed after sifr.collective_timeout only; let the hosts connect to "
                 "each other's TCP ports",
                 (int)p->rank, why.message);
    free(all);
    return status;
}

sifr_status comm_mpi_find_lost(const mpi_process *p, const char *name, sifr_error *error) {
    comm_lost lost;
    char host[COMM_HOST_NAME];
    if (!comm_lookout_lost(p->lookout, &lost)) return SIFR_OK;
    comm_host_name(host);
    if (!lost.silent)
        return base_fail(error, SIFR_LOST_RANK,
                         "%s: rank %d on host %s has died while rank %d waits for it", name,
                         (int)lost.rank, lost.host, (int)p->rank);
    return base_fail(error, SIFR_LOST_RANK,
                     "%s: rank %d on host %s has not answered for %d s while rank %d waits for it: "
                     "that host is down, or it or this one (%s) is cut off from the network",
                     name, (int)lost.rank, lost.host, (int)lost.silent, (int)p->rank, host);
}

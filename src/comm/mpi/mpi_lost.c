/* Which rank of another host is lost, as hosts that watch each other know. */
#include <string.h>

#include "comm/mpi/mpi_process.h"

bool comm_mpi_has_lost(const mpi_process *p, comm_lost *lost) {
    return comm_lookout_lost(p->lookout, lost) ||
           (p->host.seats && comm_loss_read(&p->host.seats[0].loss, lost));
}

sifr_status comm_mpi_find_lost(const mpi_process *p, const char *name, sifr_error *error) {
    comm_lost lost;
    char own[COMM_HOST_NAME];
    if (!comm_mpi_has_lost(p, &lost)) return SIFR_OK;
    comm_host_name(own);
    if (!lost.silent)
        return base_fail(error, SIFR_LOST_RANK,
                         "%s: rank %d on host %s has died while rank %d waits for it", name,
                         (int)lost.rank, lost.host, (int)p->rank);
    if (p->host_of[lost.rank] == p->host_of[p->rank]) /* told by a third one */
        return base_fail(
            error, SIFR_LOST_RANK,
            "%s: host %s has had no answer from this one (%s) for %d s: one of both is "
            "cut off from the network",
            name, lost.finder, own, (int)lost.silent);
    bool here = strcmp(own, lost.finder) == 0;
    return base_fail(error, SIFR_LOST_RANK,
                     "%s: rank %d on host %s has not answered %s%sfor %d s while rank %d waits for "
                     "it: that host is down, or it or %s%s%s is cut off from the network",
                     name, (int)lost.rank, lost.host, here ? "" : lost.finder, here ? "" : " ",
                     (int)lost.silent, (int)p->rank, here ? "this one (" : "", lost.finder,
                     here ? ")" : "");
}

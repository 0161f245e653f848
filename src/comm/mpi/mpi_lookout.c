/* Hosts begin to watch each other, whatever started the ranks. */
#include <stdlib.h>

#include "base/heap.h"
#include "comm/mpi/mpi_members.h"

static int32_t count_hosts(const mpi_process *p) {
    int32_t hosts = 0;
    for (int32_t r = 0; r < p->size; r++) hosts += p->host_of[r] == r;
    return hosts;
}

/* Hosts are numbered by their first ranks; -1: this rank is not the first one of its host. */
static int32_t own_host(const mpi_process *p) {
    int32_t host = 0;
    if (p->host_of[p->rank] != p->rank) return -1;
    for (int32_t r = 0; r < p->rank; r++) host += p->host_of[r] == r;
    return host;
}

static int32_t count_watched(int32_t mine, int32_t hosts) {
    int32_t count = 0;
    for (int32_t h = 0; h < hosts; h++) count += comm_lookout_watches(mine, h, hosts);
    return count;
}

/* The meetings of all hosts, of their first ranks. */
static sifr_status exchange(mpi_process *p, const comm_meeting *own, comm_meeting *all,
                            sifr_error *error) {
    int *counts, at = 0, bytes = (int)sizeof *own;
    BASE_TRY(base_alloc(2 * (size_t)p->size, sizeof *counts, &counts, error));
    int *places = counts + p->size;
    for (int32_t r = 0; r < p->size; r++) {
        counts[r] = p->host_of[r] == r ? bytes : 0;
        places[r] = at;
        at += counts[r];
    }
    int code =
        p->mpi.calls.gather_parts(&p->mpi, own, counts[p->rank], all, counts, places, p->world);
    sifr_status status = comm_mpi_check_start(p, code, error);
    free(counts);
    return status;
}

/* Of each two hosts the later one connects. The first one that is not reached is the last one
 * tried, since each of them takes seconds. */
static void join(mpi_process *p, int32_t mine, const comm_meeting *all, int32_t hosts,
                 sifr_error *why) {
    sifr_status status = SIFR_OK;
    for (int32_t h = 0; h < mine && p->lookout && status == SIFR_OK; h++)
        if (all[h].addresses && comm_lookout_watches(mine, h, hosts))
            status = comm_lookout_join(p->lookout, &all[h], why);
}

/* `why` gets the reason if this rank cannot watch all that it should. */
static sifr_status meet(mpi_process *p, int32_t hosts, sifr_error *why, sifr_error *error) {
    comm_meeting own = {.addresses = 0}, *all;
    int32_t mine = own_host(p);
    BASE_TRY(base_alloc((size_t)hosts, sizeof *all, &all, error));
    if (mine >= 0 &&
        comm_lookout_listen(p->rank, count_watched(mine, hosts), &own, &p->lookout, why) != SIFR_OK)
        own.addresses = 0;
    if (p->lookout && p->host.seats) comm_lookout_share(p->lookout, &p->host.seats[0].loss);
    sifr_status status = exchange(p, &own, all, error);
    if (status == SIFR_OK && mine > 0) join(p, mine, all, hosts, why);
    free(all);
    return status;
}

sifr_status comm_mpi_open_lookout(mpi_process *p, sifr_error *error) {
    sifr_error why = {.message = ""};
    int32_t *all, hosts = count_hosts(p), blind = -1;
    if (hosts < 2) return SIFR_OK;
    BASE_TRY(base_alloc((size_t)p->size, sizeof *all, &all, error));
    sifr_status status = meet(p, hosts, &why, error);
    int32_t mine = why.message[0] != '\0';
    if (status == SIFR_OK) {
        int code = p->mpi.calls.gather(&p->mpi, &mine, (int)sizeof mine, all, p->world);
        status = comm_mpi_check_start(p, code, error);
    }
    if (p->lookout) comm_lookout_seal(p->lookout);
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

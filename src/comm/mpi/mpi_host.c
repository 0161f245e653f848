/* The hosts of all ranks, and the seats of this one. */
#include <fcntl.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/heap.h"
#include "comm/mpi/mpi_members.h"

/* Data that a rank sends to all others when MPI is opened. */
typedef struct host_notice {
    int32_t first; /* rank of its host */
    int32_t seated;
} host_notice;

static sifr_status place_ranks(mpi_process *p, mpi_comm local, sifr_error *error) {
    const mpi_library *mpi = &p->mpi;
    int size;
    mpi->calls.rank(mpi, local, &p->host.mine);
    mpi->calls.size(mpi, local, &size);
    p->host.size = size;
    BASE_TRY(base_alloc((size_t)p->size, sizeof *p->seat_of, &p->seat_of, error));
    BASE_TRY(base_alloc((size_t)p->size, sizeof *p->host_of, &p->host_of, error));
    BASE_TRY(base_alloc((size_t)size, sizeof *p->rank_of, &p->rank_of, error));
    int code = mpi->calls.gather(mpi, &p->rank, (int)sizeof p->rank, p->rank_of, local);
    BASE_TRY(comm_mpi_check(mpi, code, "ranks", error));
    for (int32_t r = 0; r < p->size; r++) p->seat_of[r] = -1;
    for (int32_t s = 0; s < size; s++) p->seat_of[p->rank_of[s]] = s;
    base_assert(p->seat_of[p->rank] == p->host.mine);
    return SIFR_OK;
}

/* `why` gets the reason if this rank has no seat. */
static sifr_status take_seat(mpi_process *p, mpi_comm local, sifr_error *why, sifr_error *error) {
    const mpi_library *mpi = &p->mpi;
    int32_t size = p->host.size, mine = p->host.mine;
    sifr_status status = SIFR_OK;
    comm_file file = {.file = -1};
    if (mine == 0) {
        status = comm_host_create(&p->host, size, why);
        if (status == SIFR_OK) file = comm_host_name_file(p->host.file);
    }
    int code = mpi->calls.broadcast(mpi, &file, (int)sizeof file, 0, local);
    BASE_TRY(comm_mpi_check(mpi, code, "ranks", error));
    if (mine > 0 && file.file >= 0) status = comm_host_join(&p->host, size, mine, &file, why);
    if (mine > 0 && file.file < 0)
        base_set_error(why, SIFR_FAILED, "rank %d could not make any", (int)p->rank_of[0]);
    (void)status;
    return SIFR_OK;
}

static sifr_status take_tables(mpi_process *p, sifr_error *error) {
    size_t seats = (size_t)p->host.size, count = COMM_WINDOWS * seats;
    BASE_TRY(base_alloc(count, sizeof *p->seen_blocks, &p->seen_blocks, error));
    BASE_TRY(base_alloc(count, sizeof *p->mapped_bytes, &p->mapped_bytes, error));
    for (size_t i = 0; i < COMM_WINDOWS; i++) {
        p->windows[i].seen = p->seen_blocks + i * seats;
        p->windows[i].mapped = p->mapped_bytes + i * seats;
    }
    return SIFR_OK;
}

sifr_status comm_mpi_open_host(mpi_process *p, mpi_comm local, const comm_options *options,
                               sifr_error *error) {
    host_notice mine, *all;
    sifr_error why = {.message = ""};
    sifr_status status;
    int32_t size = p->size, standing = -1;
    BASE_TRY(place_ranks(p, local, error));
    BASE_TRY(base_alloc((size_t)size, sizeof *all, &all, error));
    if (!options->only_mpi) BASE_TRY_GOTO(status, take_seat(p, local, &why, error), done);
    mine = (host_notice){.first = p->rank_of[0], .seated = p->host.seats != NULL};
    int code = p->mpi.calls.gather(&p->mpi, &mine, (int)sizeof mine, all, p->world);
    BASE_TRY_GOTO(status, comm_mpi_check(&p->mpi, code, "ranks", error), done);
    for (int32_t r = size - 1; r >= 0; r--) {
        p->host_of[r] = all[r].first;
        standing = all[r].seated ? standing : r;
    }
    if (standing < 0) {
        status = take_tables(p, error);
    } else if (!options->only_mpi) {
        if (standing == p->rank) /* once, by the first of them */
            base_log(p->log, SIFR_LOG_WARNING,
                     "rank %d cannot share memory with the ranks of its host (%s); all bytes go "
                     "through MPI, which is slower",
                     (int)p->rank, why.message);
        comm_host_close(&p->host);
    }
done:
    free(all);
    return status;
}

/* --- groups --- */

/* Whether `count` ranks from `first` on are a node of the tree that halving makes over `size`
 * ranks. */
static bool is_node(int32_t first, int32_t count, int32_t size) {
    base_assert(first >= 0 && count >= 1 && first + count <= size);
    int32_t begin = 0;
    while (size > count && size % 2 == 0) {
        size /= 2;
        if (first >= begin + size) begin += size;
    }
    return begin == first && size == count;
}

/* The ranks of each host, if they are neighbours and as many on all; else 0. All ranks of the group
 * find the same. */
static int32_t find_per_host(const mpi_group *g) {
    const int32_t *host_of = g->process->host_of;
    int32_t size = g->base.size, count = 0;
    while (count < size && host_of[comm_mpi_world(g, count)] == host_of[comm_mpi_world(g, 0)])
        count++;
    if (size % count != 0) return 0;
    for (int32_t first = 0; first < size; first += count) {
        int32_t host = host_of[comm_mpi_world(g, first)];
        for (int32_t r = first + 1; r < first + count; r++)
            if (host_of[comm_mpi_world(g, r)] != host) return 0;
        for (int32_t before = 0; before < first; before += count)
            if (host_of[comm_mpi_world(g, before)] == host) return 0;
    }
    return count;
}

/* Whether the ranks of each host are a node of the group's tree. */
static bool hosts_are_nodes(const mpi_group *g) {
    int32_t count = g->base.per_host;
    for (int32_t first = 0; count > 0 && first < g->base.size; first += count)
        if (!is_node(first, count, g->base.size)) return false;
    return count > 0;
}

sifr_status comm_mpi_place_group(mpi_group *g, sifr_error *error) {
    mpi_process *p = g->process;
    comm_group *base = &g->base;
    for (int32_t r = 0; r < base->size; r++) base->local_size += !comm_mpi_is_far(g, r);
    BASE_TRY(base_alloc((size_t)base->local_size, sizeof *g->near, &g->near, error));
    BASE_TRY(base_alloc((size_t)base->local_size, sizeof *g->near_seats, &g->near_seats, error));
    for (int32_t r = 0, i = 0; r < base->size; r++) {
        if (comm_mpi_is_far(g, r)) continue;
        if (r == base->rank) base->local_rank = i;
        g->near[i] = r;
        g->near_seats[i++] = p->seat_of[comm_mpi_world(g, r)];
        base_assert(g->near_seats[i - 1] >= 0);
    }
    base->per_host = find_per_host(g);
    g->shares = p->host.seats && base->local_size > 1 && hosts_are_nodes(g);
    g->two_levels = g->shares && base->local_size < base->size;
    base->shares_memory = g->shares;
    return SIFR_OK;
}

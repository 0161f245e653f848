/* The ranks of one host: their seats. */
#include <fcntl.h>
#include <stdlib.h>

#include "base/heap.h"
#include "comm/mpi/mpi_private.h"

/* Data that a rank sends to all others when the group is opened. */
typedef struct host_notice {
    int32_t first, size; /* first rank and number of its host's ranks if they are consecutive;
                            otherwise size 0 */
    int32_t seated;
} host_notice;

static sifr_status place_ranks(mpi_group *g, MPI_Comm local, sifr_error *error) {
    int mine, size;
    MPI_Comm_rank(local, &mine);
    MPI_Comm_size(local, &size);
    g->base.local_rank = mine;
    g->base.local_size = size;
    BASE_TRY(base_alloc((size_t)g->base.size, sizeof *g->seat_of, &g->seat_of, error));
    BASE_TRY(base_alloc((size_t)size, sizeof *g->rank_of, &g->rank_of, error));
    BASE_TRY(base_alloc((size_t)g->base.size, sizeof *g->seen, &g->seen, error));
    BASE_TRY(comm_mpi_check(
        MPI_Allgather(&g->base.rank, 1, MPI_INT32_T, g->rank_of, 1, MPI_INT32_T, local), "ranks",
        error));
    for (int32_t r = 0; r < g->base.size; r++) g->seat_of[r] = -1;
    for (int32_t s = 0; s < size; s++) g->seat_of[g->rank_of[s]] = s;
    return SIFR_OK;
}

/* `why` gets the reason if this rank has no seat. */
static sifr_status take_seat(mpi_group *g, MPI_Comm local, sifr_error *why, sifr_error *error) {
    int32_t size = g->base.local_size, mine = g->seat_of[g->base.rank];
    sifr_status status = SIFR_OK;
    comm_file file = {.file = -1};
    if (mine == 0) {
        status = comm_host_create(&g->host, size, why);
        if (status == SIFR_OK) file = comm_host_name_file(g->host.file);
    }
    BASE_TRY(
        comm_mpi_check(MPI_Bcast(&file, (int)sizeof file, MPI_BYTE, 0, local), "ranks", error));
    if (mine > 0 && file.file >= 0) status = comm_host_join(&g->host, size, mine, &file, why);
    if (mine > 0 && file.file < 0)
        base_set_error(why, SIFR_FAILED, "rank %d could not make any", (int)g->rank_of[0]);
    (void)status;
    return SIFR_OK;
}

static host_notice describe_host(const mpi_group *g) {
    host_notice notice = {.first = g->rank_of[0], .size = g->base.local_size};
    notice.seated = g->host.seats != NULL;
    for (int32_t s = 0; s < g->base.local_size; s++)
        if (g->rank_of[s] != notice.first + s) notice.size = 0;
    return notice;
}

/* Whether `count` ranks from `first` on are a node of the tree that halving makes over `size`
 * ranks. */
static bool is_node(int32_t first, int32_t count, int32_t size) {
    int32_t begin = 0;
    while (size > count && size % 2 == 0) {
        size /= 2;
        if (first >= begin + size) begin += size;
    }
    return begin == first && size == count;
}

/* All ranks must make the same decision. */
static bool hosts_are_nodes(const host_notice *all, int32_t size) {
    for (int32_t r = 0; r < size; r++)
        if (all[r].size != all[0].size || !is_node(all[r].first, all[r].size, size)) return false;
    return all[0].size > 0;
}

static sifr_status take_tables(mpi_group *g, sifr_error *error) {
    size_t seats = (size_t)g->host.size, count = COMM_WINDOWS * seats;
    BASE_TRY(base_alloc(count, sizeof *g->seen_blocks, &g->seen_blocks, error));
    BASE_TRY(base_alloc(count, sizeof *g->mapped_bytes, &g->mapped_bytes, error));
    for (size_t i = 0; i < COMM_WINDOWS; i++) {
        g->windows[i].seen = g->seen_blocks + i * seats;
        g->windows[i].mapped = g->mapped_bytes + i * seats;
    }
    return SIFR_OK;
}

sifr_status comm_mpi_open_host(mpi_group *g, MPI_Comm local, const comm_options *options,
                               sifr_error *error) {
    host_notice mine, *all;
    sifr_error why = {.message = ""};
    sifr_status status;
    int32_t size = g->base.size, standing = -1;
    BASE_TRY(place_ranks(g, local, error));
    if (options->only_mpi) return SIFR_OK;
    BASE_TRY(base_alloc((size_t)size, sizeof *all, &all, error));
    BASE_TRY_GOTO(status, take_seat(g, local, &why, error), done);
    mine = describe_host(g);
    BASE_TRY_GOTO(status,
                  comm_mpi_check(MPI_Allgather(&mine, (int)sizeof mine, MPI_BYTE, all,
                                               (int)sizeof mine, MPI_BYTE, g->world),
                                 "ranks", error),
                  done);
    for (int32_t r = size - 1; r >= 0; r--) standing = all[r].seated ? standing : r;
    if (standing >= 0) {
        if (standing == g->base.rank) /* once, by the first of them */
            base_log(g->log, SIFR_LOG_WARNING,
                     "rank %d cannot share memory with the ranks of its host (%s); all bytes go "
                     "through MPI, which is slower",
                     (int)g->base.rank, why.message);
        comm_host_close(&g->host);
        goto done;
    }
    g->shares = g->base.local_size > 1 && hosts_are_nodes(all, size);
    g->two_levels = g->shares && g->base.local_size < size;
    g->base.shares_memory = g->shares;
    g->base.buffer_bytes += g->host.bytes / g->host.size; /* all together have one */
    if (g->shares) status = take_tables(g, error);
done:
    free(all);
    return status;
}

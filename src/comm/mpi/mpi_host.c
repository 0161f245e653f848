/* The ranks of one host, and what a rank that waits can say of the others. */
#include <fcntl.h>
#include <stdlib.h>

#include "base/heap.h"
#include "comm/mpi/mpi_private.h"

static const double patience = 3; /* seconds for bytes of a rank that left to arrive */
static const double beat = 0.1;   /* seconds between two looks at who lives */

/* What a rank tells all others when it is opened. */
typedef struct host_notice {
    int32_t first, size; /* of its host's ranks, where they are one after the other; else size 0 */
    int32_t seated;
} host_notice;

static sifr_status place_ranks(mpi_group *g, MPI_Comm local, sifr_error *error) {
    int mine, size;
    MPI_Comm_rank(local, &mine);
    MPI_Comm_size(local, &size);
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

/* `why` gets the reason where this rank has no seat. */
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

/* Are `count` ranks from `first` on a node of the tree over `size` ranks that halving makes? */
static bool is_node(int32_t first, int32_t count, int32_t size) {
    int32_t begin = 0;
    while (size > count && size % 2 == 0) {
        size /= 2;
        if (first >= begin + size) begin += size;
    }
    return begin == first && size == count;
}

/* All ranks have to decide alike. */
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
                     "rank %d cannot share memory with the ranks of its host (%s): all bytes go "
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

void comm_mpi_publish(mpi_group *g, const comm_task *task, bool busy) {
    if (busy)
        g->state = comm_board_begin(task->number, comm_task_operation(task->kind), &task->label);
    g->state.busy = busy;
    g->state.since = comm_seconds();
    if (!g->host.seats) return;
    comm_board_write(&comm_host_own(&g->host)->entry, &g->state);
    atomic_store(&comm_host_own(&g->host)->runs, g->state.since);
}

static void describe(mpi_group *g, char *out, size_t room) {
    for (int32_t r = 0; r < g->base.size; r++) {
        int32_t seat = g->seat_of[r];
        g->seen[r] = (comm_sighting){.known = r == g->base.rank, .state = g->state};
        if (seat < 0 || seat == g->host.mine || !g->host.seats) continue;
        g->seen[r].known = true;
        g->seen[r].state = comm_board_read(&g->host.seats[seat].entry);
        g->seen[r].dead = comm_host_is_dead(&g->host, seat);
        if (g->seen[r].state.busy)
            g->seen[r].silent = comm_seconds() - atomic_load(&g->host.seats[seat].runs);
    }
    comm_board_describe(g->seen, g->base.size, &g->state, comm_seconds(), out, room);
}

/* A rank that left in good order first unlocks its seat, but says so before. */
static sifr_status find_dead(mpi_group *g, const char *name, sifr_error *error) {
    char last[96];
    for (int32_t s = 0; g->host.seats && s < g->host.size; s++) {
        comm_seat *seat = &g->host.seats[s];
        if (!comm_host_is_dead(&g->host, s) || atomic_load(&seat->leaving)) continue;
        comm_state state = comm_board_read(&seat->entry);
        comm_board_name(&state, last, sizeof last);
        return base_fail(error, SIFR_LOST_RANK,
                         "%s: rank %d has died while rank %d waits for it; it was last %s %s", name,
                         (int)g->rank_of[s], (int)g->base.rank,
                         !state.number ? "seen before"
                         : state.busy  ? "in"
                                       : "seen after",
                         state.number ? last : "any collective");
    }
    return SIFR_OK;
}

sifr_status comm_mpi_fail_left(const mpi_group *g, int32_t rank, sifr_error *error) {
    char name[96];
    comm_board_name(&g->state, name, sizeof name);
    return base_fail(error, SIFR_LOST_RANK,
                     "%s: rank %d has ended while rank %d waits for it: see what rank %d said",
                     name, (int)rank, (int)g->base.rank, (int)rank);
}

sifr_status comm_mpi_look(mpi_group *g, double begun, double *left, sifr_error *error) {
    char name[96], where[512];
    double now = comm_seconds();
    if (now - g->looked < beat) return SIFR_OK;
    g->looked = now;
    if (g->host.seats) atomic_store(&comm_host_own(&g->host)->runs, now);
    comm_board_name(&g->state, name, sizeof name);
    BASE_TRY(find_dead(g, name, error));
    if (g->gone < 0) {
        int there;
        MPI_Status status;
        BASE_TRY(comm_mpi_check(
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, g->farewell, &there, &status), name, error));
        if (there) g->gone = status.MPI_SOURCE;
    }
    if (g->gone >= 0 && *left == 0) *left = now;
    if (g->gone >= 0 && now - *left > patience) return comm_mpi_fail_left(g, g->gone, error);
    if (g->base.timeout > 0 && now - begun > g->base.timeout) {
        describe(g, where, sizeof where);
        return base_fail(error, SIFR_LOST_RANK,
                         "%s: not done after %.0f s on rank %d (sifr.collective_timeout): %s", name,
                         g->base.timeout, (int)g->base.rank, where);
    }
    return SIFR_OK;
}

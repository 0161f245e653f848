/* The ranks of one host, and what a rank that waits can say of the others. */
#include <fcntl.h>
#include <stdlib.h>

#include "base/memory.h"
#include "comm/mpi_private.h"

static const double patience = 3; /* seconds for bytes of a rank that left to arrive */
static const double beat = 0.1;   /* seconds between two looks at who lives */

/* All ranks of the world have to agree: one that could not share would wait for the others. */
static sifr_status all_well(MPI_Comm comm, int32_t size, char mine, char *all, bool *well,
                            sifr_error *error) {
    BASE_TRY(
        comm_mpi_check(MPI_Allgather(&mine, 1, MPI_CHAR, all, 1, MPI_CHAR, comm), "ranks", error));
    *well = true;
    for (int32_t r = 0; r < size; r++) *well = *well && all[r];
    return SIFR_OK;
}

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

sifr_status comm_mpi_open_host(mpi_group *g, MPI_Comm local, const comm_options *options,
                               sifr_error *error) {
    char *all;
    bool well;
    sifr_error why = {.message = ""};
    sifr_status status;
    BASE_TRY(place_ranks(g, local, error));
    if (options->only_mpi) return SIFR_OK;
    BASE_TRY(base_alloc((size_t)g->base.size, 1, &all, error));
    BASE_TRY_GOTO(status, take_seat(g, local, &why, error), done);
    BASE_TRY_GOTO(status,
                  all_well(g->world, g->base.size, g->host.seats != NULL, all, &well, error), done);
    if (!well) {
        if (!g->host.seats)
            base_log(options->log, SIFR_LOG_WARNING,
                     "rank %d cannot share memory with the ranks of its host (%s): all bytes go "
                     "through MPI, which is slower",
                     (int)g->base.rank, why.message);
        comm_host_close(&g->host);
    }
    g->base.buffer_bytes += g->host.bytes;
done:
    free(all);
    return status;
}

void comm_mpi_publish(mpi_group *g, const comm_task *task, bool busy) {
    if (busy)
        g->state = comm_board_begin(task->number, comm_mpi_operation(task->kind), &task->label);
    g->state.busy = busy;
    g->state.since = comm_seconds();
    if (g->host.seats) comm_board_write(&comm_host_own(&g->host)->entry, &g->state);
}

static void describe(mpi_group *g, char *out, size_t room) {
    for (int32_t r = 0; r < g->base.size; r++) {
        int32_t seat = g->seat_of[r];
        g->seen[r] = (comm_sighting){.known = r == g->base.rank, .state = g->state};
        if (seat < 0 || seat == g->host.mine || !g->host.seats) continue;
        g->seen[r].known = true;
        g->seen[r].state = comm_board_read(&g->host.seats[seat].entry);
        g->seen[r].dead = comm_host_is_dead(&g->host, seat);
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

sifr_status comm_mpi_look(mpi_group *g, double begun, double *left, sifr_error *error) {
    char name[96], where[512];
    double now = comm_seconds();
    if (now - g->looked < beat) return SIFR_OK;
    g->looked = now;
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
    if (g->gone >= 0 && now - *left > patience)
        return base_fail(error, SIFR_LOST_RANK,
                         "%s: rank %d has ended while rank %d waits for it: see what rank %d said",
                         name, (int)g->gone, (int)g->base.rank, (int)g->gone);
    if (g->base.timeout > 0 && now - begun > g->base.timeout) {
        describe(g, where, sizeof where);
        return base_fail(error, SIFR_LOST_RANK,
                         "%s: not done after %.0f s on rank %d (sifr.collective_timeout): %s", name,
                         g->base.timeout, (int)g->base.rank, where);
    }
    return SIFR_OK;
}

/* Watches which ranks are alive: this rank publishes its state while it works, and checks the
 * others while it waits.
 */
#include "base/clock.h"
#include "comm/mpi/mpi_private.h"

static const double patience =
    3;                          /* seconds in which bytes from a rank that left may still arrive */
static const double beat = 0.1; /* seconds between two checks of which ranks are alive */

void comm_mpi_publish(mpi_group *g, const comm_task *task, bool busy) {
    if (busy)
        g->state = comm_board_begin(task->number, comm_task_operation(task->kind), &task->label);
    g->state.busy = busy;
    g->state.since = base_seconds();
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
            g->seen[r].silent = base_seconds() - atomic_load(&g->host.seats[seat].runs);
    }
    comm_board_describe(g->seen, g->base.size, &g->state, base_seconds(), out, room);
}

/* A rank that leaves normally says farewell before it unlocks its seat. */
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
                     "%s: rank %d has ended while rank %d waits for it; see the message of rank %d",
                     name, (int)rank, (int)g->base.rank, (int)rank);
}

sifr_status comm_mpi_look(mpi_group *g, double begun, double *left, sifr_error *error) {
    char name[96], where[512];
    double now = base_seconds();
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

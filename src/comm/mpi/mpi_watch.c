/* Watches which ranks are alive: this rank publishes its state while it works, and checks the
 * others while it waits.
 */
#include <stdio.h>
#include <time.h>

#include "base/assert.h"
#include "base/clock.h"
#include "comm/mpi/mpi_members.h"

static const double patience =
    3; /* seconds in which bytes from a rank that left may still arrive */
static const double inquest =
    10; /* seconds in which a rank that died is found: COMM_SILENT and more */
static const double beat = 0.1; /* seconds between two checks of which ranks are alive */

void comm_mpi_publish(mpi_group *g, const comm_task *task, bool busy) {
    if (busy)
        g->state = comm_board_begin(g->base.name, task->number, comm_task_operation(task->kind),
                                    &task->label);
    g->state.busy = busy;
    g->state.since = base_seconds();
    const comm_host *host = &g->process->host;
    if (!host->seats) return;
    comm_board_write(&comm_host_own(host)->entries[g->slot], &g->state);
    atomic_store(&comm_host_own(host)->runs, g->state.since);
}

void comm_mpi_publish_none(mpi_group *g) {
    comm_state none = {.number = 0};
    snprintf(none.group, sizeof none.group, "%s", g->base.name);
    g->state = none;
    comm_board_write(&comm_host_own(&g->process->host)->entries[g->slot], &none);
}

/* A rank that waits in one lane may have ended a collective of another one since. */
static bool says_more(const comm_state *a, const comm_state *b) {
    if (!b->number || a->busy != b->busy) return !b->number || a->busy;
    return a->busy ? a->since < b->since : a->since > b->since;
}

/* What a rank of this host waits in for the longest time, in any group, or did last. */
static comm_state last_of(const comm_seat *seat) {
    comm_state last = comm_board_read(&seat->entries[0]);
    for (int i = 1; i < COMM_SLOTS; i++) {
        comm_state state = comm_board_read(&seat->entries[i]);
        if (state.number && says_more(&state, &last)) last = state;
    }
    return last;
}

bool comm_mpi_is_gone(const mpi_process *p, int32_t seat) {
    base_assert(seat >= 0 && seat < p->host.size);
    return atomic_load(&p->host.seats[seat].leaving) || comm_host_is_dead(&p->host, seat);
}

bool comm_mpi_is_busy(const mpi_process *p, int32_t seat) {
    base_assert(seat >= 0 && seat < p->host.size);
    return last_of(&p->host.seats[seat]).busy;
}

/* A rank that is missing from this group's collective may be in one of another group. */
static comm_state state_of(const comm_seat *seat, const mpi_group *g) {
    comm_state here = comm_board_read(&seat->entries[g->slot]), last = last_of(seat);
    if ((int32_t)(here.number - g->state.number) >= 0 || !last.number) return here;
    last.number = g->state.number - (g->state.number == 1 ? 2 : 1); /* behind; 0: nothing begun */
    return last;
}

static void describe(mpi_group *g, char *out, size_t capacity) {
    const mpi_process *p = g->process;
    comm_sighting *seen = g->lane->seen;
    for (int32_t r = 0; r < g->base.size; r++) {
        int32_t rank = comm_mpi_world(g, r), seat = p->seat_of[rank];
        seen[r] = (comm_sighting){.rank = rank, .known = r == g->base.rank, .state = g->state};
        if (seat < 0 || seat == p->host.mine || !p->host.seats) continue;
        seen[r].known = true;
        seen[r].state = state_of(&p->host.seats[seat], g);
        seen[r].dead = comm_host_is_dead(&p->host, seat);
        if (seen[r].state.busy)
            seen[r].silent = base_seconds() - atomic_load(&p->host.seats[seat].runs);
    }
    comm_board_describe(seen, g->base.size, &g->state, base_seconds(), out, capacity);
}

/* A rank that leaves normally says farewell before it unlocks its seat. */
static sifr_status find_dead(const mpi_process *p, const char *name, sifr_error *error) {
    char last[128];
    for (int32_t s = 0; p->host.seats && s < p->host.size; s++) {
        const comm_seat *seat = &p->host.seats[s];
        if (!comm_host_is_dead(&p->host, s) || atomic_load(&seat->leaving)) continue;
        comm_state state = last_of(seat);
        comm_lookout_tell(p->lookout, p->rank_of[s]);
        comm_board_name(&state, last, sizeof last);
        return base_fail(error, SIFR_LOST_RANK,
                         "%s: rank %d has died while rank %d waits for it; it was last %s %s", name,
                         (int)p->rank_of[s], (int)p->rank,
                         !state.number ? "seen before"
                         : state.busy  ? "in"
                                       : "seen after",
                         state.number ? last : "any collective");
    }
    return SIFR_OK;
}

static sifr_status find_cause(const mpi_process *p, const char *name, sifr_error *error) {
    BASE_TRY(find_dead(p, name, error));
    return comm_mpi_find_lost(p, name, error);
}

static sifr_status fail_left(const mpi_process *p, const char *name, int32_t rank,
                             sifr_error *error) {
    return base_fail(error, SIFR_LOST_RANK,
                     "%s: rank %d has ended while rank %d waits for it; see the message of rank %d",
                     name, (int)rank, (int)p->rank, (int)rank);
}

sifr_status comm_mpi_fail_left(const mpi_group *g, const comm_state *state, int32_t rank,
                               sifr_error *error) {
    const mpi_process *p = g->process;
    char name[128];
    comm_board_name(state, name, sizeof name);
    int32_t seat = p->host.seats ? p->seat_of[rank] : -1;
    if (seat >= 0 && atomic_load(&p->host.seats[seat].leaving) == COMM_LEFT_BEREFT)
        BASE_TRY(find_cause(p, name, error));
    return fail_left(p, name, rank, error);
}

/* Whether a rank has said farewell: MPI's code. */
static int hear_farewell(mpi_lane *lane) {
    mpi_process *p = lane->process;
    int there = 0;
    mpi_status status;
    if (lane->gone >= 0) return 0;
    pthread_mutex_lock(&p->calls);
    int code = p->mpi.calls.probe(&p->mpi, MPI_ANYWHERE, 0, p->farewell, &there, &status);
    pthread_mutex_unlock(&p->calls);
    if (code != 0 || !there) return code;
    lane->gone = status.source;
    lane->leaving = status.tag;
    return code;
}

/* A rank that failed by itself is the cause of what its launcher ends then; not so one that misses
 * another. */
static bool seeks_lost(const mpi_lane *lane) {
    return lane->gone < 0 || lane->leaving == COMM_LEFT_BEREFT;
}

/* MPI may fail before those who watch a rank have seen that it died. */
static sifr_status fail_call(mpi_process *p, mpi_lane *lane, int code, const char *name,
                             sifr_error *error) {
    const double begun = base_seconds();
    for (double waited = 0; waited < inquest; waited = base_seconds() - begun) {
        if (atomic_load(&p->broken)) return comm_mpi_fail_again(p, error);
        BASE_TRY(find_dead(p, name, error));
        if (lane) (void)hear_farewell(lane);
        if (!lane || seeks_lost(lane)) BASE_TRY(comm_mpi_find_lost(p, name, error));
        if (lane && lane->gone >= 0 && (!seeks_lost(lane) || waited > patience))
            return fail_left(p, name, lane->gone, error);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return comm_mpi_check(&p->mpi, code, name, error);
}

sifr_status comm_mpi_check_group(mpi_group *g, int code, sifr_error *error) {
    char name[128];
    if (code == 0) return SIFR_OK;
    comm_board_name(&g->state, name, sizeof name);
    return fail_call(g->process, g->lane, code, name, error);
}

static comm_state state_of_task(const comm_task *task) {
    return comm_board_begin(task->group->name, task->number, comm_task_operation(task->kind),
                            &task->label);
}

sifr_status comm_mpi_check_task(mpi_lane *lane, const comm_task *task, int code,
                                sifr_error *error) {
    char name[128];
    if (code == 0) return SIFR_OK;
    comm_state state = state_of_task(task);
    comm_board_name(&state, name, sizeof name);
    return fail_call(lane->process, lane, code, name, error);
}

sifr_status comm_mpi_check_start(mpi_process *p, int code, sifr_error *error) {
    return code == 0 ? SIFR_OK : fail_call(p, NULL, code, "ranks", error);
}

/* *looks: it is time again to look, and all ranks are there. */
static sifr_status look(mpi_lane *lane, const comm_state *state, double *left, bool *looks,
                        sifr_error *error) {
    char name[128];
    double now = base_seconds();
    mpi_process *p = lane->process;
    *looks = now - lane->looked >= beat;
    if (!*looks) return SIFR_OK;
    lane->looked = now;
    if (p->host.seats) atomic_store(&comm_host_own(&p->host)->runs, now);
    if (atomic_load(&p->broken)) return comm_mpi_fail_again(p, error); /* in another lane */
    comm_board_name(state, name, sizeof name);
    BASE_TRY(find_dead(p, name, error));
    int code = hear_farewell(lane);
    if (code != 0) return fail_call(p, lane, code, name, error);
    if (seeks_lost(lane)) BASE_TRY(comm_mpi_find_lost(p, name, error));
    if (lane->gone >= 0 && *left == 0) *left = now;
    if (lane->gone >= 0 && now - *left > patience) return fail_left(p, name, lane->gone, error);
    return SIFR_OK;
}

static sifr_status fail_late(const mpi_group *g, const comm_state *state, const char *where,
                             sifr_error *error) {
    char name[128];
    comm_board_name(state, name, sizeof name);
    return base_fail(error, SIFR_LOST_RANK,
                     "%s: not done after %.0f s on rank %d (sifr.collective_timeout): %s", name,
                     g->base.timeout, (int)g->process->rank, where);
}

static bool is_late(const mpi_group *g, double begun) {
    return g->base.timeout > 0 && base_seconds() - begun > g->base.timeout;
}

sifr_status comm_mpi_look(mpi_group *g, double begun, double *left, sifr_error *error) {
    char where[512];
    bool looks;
    BASE_TRY(look(g->lane, &g->state, left, &looks, error));
    if (!looks || !is_late(g, begun)) return SIFR_OK;
    describe(g, where, sizeof where);
    return fail_late(g, &g->state, where, error);
}

sifr_status comm_mpi_look_for_peer(mpi_lane *lane, const comm_task *task, sifr_error *error) {
    const mpi_group *g = (const mpi_group *)task->group;
    const mpi_process *p = lane->process;
    char where[512];
    bool looks;
    comm_state state = state_of_task(task);
    BASE_TRY(look(lane, &state, &lane->left, &looks, error));
    if (!looks || !is_late(g, task->started)) return SIFR_OK;
    int32_t rank = comm_mpi_world(g, task->root), seat = p->seat_of[rank];
    *lane->seen = (comm_sighting){.rank = rank};
    if (p->host.seats && seat >= 0) {
        lane->seen->known = true;
        lane->seen->state = last_of(&p->host.seats[seat]);
        lane->seen->dead = comm_host_is_dead(&p->host, seat);
        if (lane->seen->state.number) lane->seen->state.number = state.number - 1;
        if (lane->seen->state.number == 0 && state.number == 1) lane->seen->state.number--;
    }
    comm_board_describe(lane->seen, 1, &state, base_seconds(), where, sizeof where);
    return fail_late(g, &state, where, error);
}

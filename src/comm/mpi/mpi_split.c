/* Groups of some of a group's ranks. They need nothing of MPI: only a slot that is free on all
 * their ranks. */
#include <stdlib.h>

#include "base/assert.h"
#include "base/heap.h"
#include "comm/mpi/mpi_group.h"

/* Data that a rank of the parent tells the others. */
typedef struct split_notice {
    comm_member member;
    uint32_t slots;  /* taken on this rank */
    uint32_t newest; /* as in mpi_process */
} split_notice;

void comm_mpi_free_group(mpi_group *g) {
    free(g->base.world_of);
    free(g->near);
    free(g->near_seats);
    free(g->sums);
    free(g->sent);
    free(g->asked);
    free(g->engaged);
    free(g);
}

uint32_t comm_mpi_slots_of(const mpi_group *g) {
    base_assert(g->slot >= 0 && g->slot < COMM_SLOTS && g->peer_slot >= 0 &&
                g->peer_slot < COMM_SLOTS);
    return 1U << g->slot | (g->peer_slot ? 1U << g->peer_slot : 0);
}

static sifr_status take_slot(mpi_group *g, int32_t slot, sifr_error *error) {
    mpi_process *p = g->process;
    if (!p->host.seats) return SIFR_OK;
    g->base.buffer_bytes += comm_host_slot_bytes();
    return slot > 0 ? comm_host_take_slot(&p->host, slot, error) : SIFR_OK;
}

static sifr_status take_peers(mpi_group *g, sifr_error *error) {
    size_t size = (size_t)g->base.size;
    BASE_TRY(base_alloc(size, sizeof *g->sent, &g->sent, error));
    BASE_TRY(base_alloc(size, sizeof *g->asked, &g->asked, error));
    BASE_TRY(base_alloc(size, sizeof *g->engaged, &g->engaged, error));
    g->base.buffer_bytes += (int64_t)(3 * size * sizeof *g->sent);
    BASE_TRY(take_slot(g, g->peer_slot, error));
    return comm_mpi_open_peers(g->process, &g->base.buffer_bytes, error);
}

sifr_status comm_mpi_take_group(mpi_group *g, mpi_process *p, comm_lane lane, sifr_error *error) {
    size_t sums = (size_t)g->base.size * COMM_SUM_VALUES;
    g->process = p;
    g->lane = &p->lanes[lane];
    BASE_TRY(comm_mpi_place_group(g, error));
    bool on_the_way = g->base.size > p->direct && (!g->shares || g->two_levels);
    if (on_the_way) sums = 0;
    if (sums) BASE_TRY(base_alloc(sums, sizeof *g->sums, &g->sums, error));
    g->base.buffer_bytes = (int64_t)(sums * sizeof *g->sums + sizeof *g);
    BASE_TRY(take_slot(g, g->slot, error));
    if (g->base.peers) BASE_TRY(take_peers(g, error));
    BASE_TRY(comm_mpi_open_lane(p, lane, &g->base.buffer_bytes, error));
    p->slots |= comm_mpi_slots_of(g);
    return SIFR_OK;
}

/* The next slot that is free on all ranks; all find the same. */
static int32_t next_slot(uint32_t *taken) {
    int32_t slot = 0;
    while (slot < COMM_SLOTS && *taken & 1U << slot) slot++;
    if (slot < COMM_SLOTS) *taken |= 1U << slot;
    return slot;
}

/* Members of this rank's group, this rank's place among them, and the slots. */
static sifr_status read_notices(mpi_group *g, const split_notice *all, int32_t size, int32_t color,
                                sifr_error *error) {
    mpi_process *p = g->process;
    comm_member *members;
    uint32_t taken = 0;
    for (int32_t r = 0; r < size; r++) {
        taken |= all[r].slots;
        if ((int32_t)(all[r].newest - g->started) > 0) g->started = all[r].newest;
    }
    g->slot = next_slot(&taken);
    if (g->base.peers) g->peer_slot = next_slot(&taken);
    if (g->slot == COMM_SLOTS || g->peer_slot == COMM_SLOTS)
        return base_fail(
            error, SIFR_FAILED,
            "communication: more than %d groups of ranks (those with peers count twice); "
            "close some first",
            (int)COMM_SLOTS);
    BASE_TRY(base_alloc((size_t)size, sizeof *members, &members, error));
    sifr_status status =
        base_alloc((size_t)size, sizeof *g->base.world_of, &g->base.world_of, error);
    if (status == SIFR_OK) {
        for (int32_t r = 0; r < size; r++) members[r] = all[r].member;
        g->base.size = comm_choose_members(members, size, color, g->base.world_of);
        while (g->base.world_of[g->base.rank] != p->rank) g->base.rank++;
        base_assert(g->base.rank < g->base.size);
    }
    free(members);
    return status;
}

/* Counts go on where those of an earlier group with this slot may have ended: a rank that still
 * waits for one of that group's finds it reached. */
static void prepare_slot(mpi_group *g) {
    if (!g->process->host.seats) return;
    comm_slot *own = comm_mpi_own_slot(g);
    atomic_store(&own->posted, g->started);
    atomic_store(&own->arrived, g->started);
    atomic_store(&own->done, g->started);
    own = comm_host_slot(&g->process->host, g->peer_slot, g->process->host.mine);
    for (int i = 0; i < COMM_LINE && g->peer_slot; i++)
        atomic_store(&own->mail[i].state, COMM_MAIL_FREE);
    comm_mpi_publish_none(g);
}

static sifr_status make_group(mpi_group *parent, mpi_group *g, const comm_part *part,
                              const split_notice *all, sifr_error *error) {
    if (!g) return SIFR_OK;
    g->process = parent->process;
    comm_inherit(&g->base, &parent->base, part);
    BASE_TRY(read_notices(g, all, parent->base.size, part->color, error));
    BASE_TRY(comm_mpi_take_group(g, parent->process, part->lane, error));
    prepare_slot(g);
    return SIFR_OK;
}

/* The second exchange tells what came of it, and that all slots are prepared. */
sifr_status comm_mpi_split(comm_group *base, const comm_part *part, comm_group **out,
                           sifr_error *error) {
    mpi_group *parent = (mpi_group *)base, *g = NULL;
    mpi_process *p = parent->process;
    split_notice mine = {{part->color, part->key, p->rank}, p->slots, p->newest}, *all = NULL;
    sifr_status status = base_alloc((size_t)base->size, sizeof *all, &all, error);
    if (status == SIFR_OK && part->color >= 0) status = base_alloc(1, sizeof *g, &g, error);
    BASE_TRY_GOTO(status, comm_agree_status(base, status, error), done);
    BASE_TRY_GOTO(status, comm_mpi_tell(parent, &mine, sizeof mine, all, error), done);
    status = make_group(parent, g, part, all, error);
    BASE_TRY_GOTO(status, comm_agree_status(base, status, error), done);
    if (g) {
        p->groups++;
        *out = &g->base;
        g = NULL;
    }
done:
    free(all);
    if (g && g->lane) p->slots &= ~(comm_mpi_slots_of(g) & ~mine.slots);
    if (g) comm_mpi_free_group(g);
    return status;
}

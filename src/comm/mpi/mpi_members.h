/* A group as its ranks see each other: who is in it and where, which of them are alive, and where
 * their operands lie. */
#ifndef COMM_MPI_MEMBERS_H
#define COMM_MPI_MEMBERS_H

#include "base/assert.h"
#include "comm/mpi/mpi_process.h"

typedef struct mpi_group {
    comm_group base;
    mpi_process *process;
    mpi_lane *lane;
    int32_t slot, peer_slot; /* peer_slot: of sends; 0: none */
    uint32_t *sent, *asked;  /* by rank, with peers: sends and receives started */
    uint32_t *engaged;       /* receives begun */
    bool shares, two_levels; /* ranks of a host read in place; several such hosts exchange */
    int32_t *near;           /* this host's ranks of the group, in order */
    int32_t *near_seats;     /* their seats */
    comm_state state;        /* its newest collective */
    comm_state peer_state;   /* of its sends and receives, the newest that got on */
    uint32_t started;        /* number of the newest collective started */
    char *stage; /* host memory for operands of a device; NULL: they are read in place */
    int64_t stage_bytes;
    comm_run *stage_runs; /* of an all-to-all: size sent, size received */
    char *places;         /* likewise for sends and receives; NULL: none is staged */
    int64_t place_bytes;  /* of each */
    int32_t place_count;
    bool place_taken[COMM_LINE];
    char stage_why[256];    /* why operands go through host memory, with `stage` or `places` */
    struct comm_link *link; /* between hosts by NCCL; NULL: none */
    int64_t *sums;          /* size x COMM_SUM_VALUES; NULL: many ranks, which add on the way */
} mpi_group;

/* The number of a group's rank among all ranks, by which MPI knows it. */
static inline int32_t comm_mpi_world(const mpi_group *g, int32_t rank) {
    return comm_world_rank(&g->base, rank);
}

/* Whether a rank of the group is on another host. */
static inline bool comm_mpi_is_far(const mpi_group *g, int32_t rank) {
    const mpi_process *p = g->process;
    return p->host_of[comm_mpi_world(g, rank)] != p->host_of[p->rank];
}

/* Slots of this host's ranks of the group, numbered from 0 as in `near`. */
static inline comm_slot *comm_mpi_slot(const mpi_group *g, int32_t near) {
    base_assert(near >= 0 && near < g->base.local_size);
    return comm_host_slot(&g->process->host, g->slot, g->near_seats[near]);
}

static inline comm_slot *comm_mpi_own_slot(const mpi_group *g) {
    return comm_host_slot(&g->process->host, g->slot, g->process->host.mine);
}

/* Finds a group's ranks of this host, and whether they read in place. */
sifr_status comm_mpi_place_group(mpi_group *g, sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_watch.c: which ranks are alive --- */

/* Publishes the worker's current state for the other ranks. */
void comm_mpi_publish(mpi_group *g, const comm_task *task, bool busy);

/* The group has begun nothing. */
void comm_mpi_publish_none(mpi_group *g);

/* Called from time to time while the task waits, since `begun`; *left belongs to the caller and
 * starts at 0. Fails if a rank has died or left, or after the timeout. */
sifr_status comm_mpi_look(mpi_group *g, double begun, double *left,
                          sifr_error *error) SIFR_MUST_CHECK;

/* The same for a send or receive, in its lane. */
sifr_status comm_mpi_look_for_peer(mpi_lane *lane, const comm_task *task,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* Whether a rank of this host, by its seat, has left or died; whether it is in a collective. */
bool comm_mpi_is_gone(const mpi_process *p, int32_t seat);
bool comm_mpi_is_busy(const mpi_process *p, int32_t seat);

/* As comm_mpi_check, but where MPI fails a rank may have died: that one is named, if it is found
 * within seconds. In a group's newest collective; of a task in its lane; and at the start, once the
 * seats are taken. */
sifr_status comm_mpi_check_group(mpi_group *g, int code, sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_check_task(mpi_lane *lane, const comm_task *task, int code,
                                sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_check_start(mpi_process *p, int code, sifr_error *error) SIFR_MUST_CHECK;

/* Returns SIFR_LOST_RANK: that rank has left while this one waits for it; if it left because it
 * misses another one, that one is named. */
sifr_status comm_mpi_fail_left(const mpi_group *g, const comm_state *state, int32_t rank,
                               sifr_error *error);

/* --- mpi_post.c: places of operands --- */

/* The window that holds the whole operand, and the offset in it; COMM_NOWHERE if there is none. */
int32_t comm_mpi_find_window(const mpi_group *g, const void *at, int64_t bytes, int64_t *offset);

/* Whether the task's operands lie in memory of the group's device. */
static inline bool comm_mpi_on_device(const mpi_group *g, const comm_task *task) {
    return g->base.dev && comm_task_has_data(task->kind);
}

/* Posts the places of the operands of collective `number`: when it starts; with a device, when the
 * operands have been computed. */
void comm_mpi_post(mpi_group *g, const comm_task *task, uint32_t number);

/* The places that rank near[i] posted for this collective. */
const comm_post *comm_mpi_post_of(const mpi_group *g, int32_t i, const comm_task *task);

/* The source and the destination of rank near[i], as addresses in this process. */
const void *comm_mpi_operand(const mpi_group *g, int32_t i, const comm_task *task);
const void *comm_mpi_target(const mpi_group *g, int32_t i, const comm_task *task);

/* Copies within this process's reach, for the operands of such a task. */
sifr_status comm_mpi_place(const mpi_group *g, const comm_task *task, void *to, const void *from,
                           int64_t bytes, sifr_error *error) SIFR_MUST_CHECK;

/* Waits for a count of the slot of rank near[i]. */
sifr_status comm_mpi_await(mpi_group *g, int32_t i, _Atomic uint32_t *count, uint32_t number,
                           sifr_error *error) SIFR_MUST_CHECK;

#endif

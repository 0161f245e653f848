/* The MPI transport, for its own files: what the groups of a process share, and a group. MPI only
 * moves bytes; its reductions are not used, since their order is not guaranteed. All groups'
 * messages travel in one communicator: the tag holds the group's slot.
 */
#ifndef COMM_MPI_PRIVATE_H
#define COMM_MPI_PRIVATE_H

#include <stdatomic.h>

#include "base/assert.h"
#include "comm/followed.h"
#include "comm/host/lookout.h"
#include "comm/host/seats.h"
#include "comm/mpi_library/mpi_library.h"

enum {
    COMM_SUM_VALUES = 64,  /* elements of a comm_sum that are exchanged at a time */
    COMM_ROUNDS = 4,       /* exchanges in progress at a time in a gather */
    COMM_WINDOWS = 8,      /* windows open at a time; further ones are not shared */
    COMM_DIRECT = 8,       /* in groups of at most so many ranks each sends to each */
    COMM_DIRECT_SUMS = 16, /* likewise in reductions, where pieces stay large enough */
    COMM_REQUESTS = 4 * COMM_DIRECT_SUMS, /* at most MPI_MOST_REQUESTS */
    COMM_PIECES_BYTES = 512 << 10,        /* they stay in the cache while they are added */
    COMM_MESSAGE_BYTES = 1 << 28          /* MPI counts in int */
};

/* The last part of a tag. */
enum {
    COMM_TAG_GATHER,
    COMM_TAG_REDUCE,
    COMM_TAG_CONTROL,
    COMM_TAG_BROADCAST,
    COMM_TAG_PEER,
    COMM_TAG_PARTS,
    COMM_TAGS
};

typedef struct comm_window {
    char *block; /* this rank's; NULL: no window */
    int64_t bytes;
    char **seen;     /* by seat: where its block is mapped here */
    int64_t *mapped; /* by seat: bytes */
} comm_window;

typedef struct mpi_process mpi_process;

/* A queue of collectives or of sends and receives, its thread, and what only that thread uses. */
typedef struct mpi_lane {
    mpi_process *process;
    comm_worker worker;
    double looked;         /* time of its last check that all ranks are alive */
    int32_t gone;          /* a rank that has left while this one waits, or -1 */
    int32_t leaving;       /* of `gone`: a comm_leaving */
    double left;           /* of the lane of sends: as for comm_mpi_look */
    uint32_t knocks;       /* likewise: those of its seat that it has followed */
    bool probes;           /* likewise: it looks for messages whose receives have not begun */
    comm_sighting *seen;   /* by rank: buffer for a report */
    float *pieces;         /* COMM_PIECES_BYTES: what others send in a reduction */
    const void **rows;     /* size */
    mpi_request *requests; /* COMM_REQUESTS; of sends: of each task in line */
} mpi_lane;

/* What all groups of a process share; it ends with the last of them. */
struct mpi_process {
    int32_t groups;              /* open ones */
    int32_t direct, direct_sums; /* COMM_DIRECT, COMM_DIRECT_SUMS, or as a test sets */
    int32_t rank, size;          /* among all ranks */
    mpi_library mpi;
    mpi_comm world;        /* of all messages */
    mpi_comm farewell;     /* carries the farewell of ranks that leave; its tag is a comm_leaving */
    bool started_mpi;      /* and so ends it */
    pthread_mutex_t calls; /* held in a call of MPI: lanes take turns */
    pthread_mutex_t device; /* held while a lane gives DEVICE_EXCHANGE work and waits for it */
    sifr_error failure;     /* why `broken`; under `calls` */
    atomic_bool broken;     /* a collective has failed */
    const sifr_log *log;
    const struct nccl_library *nccl; /* of tests; NULL: the one that is found */
    int32_t *host_of;                /* by rank: the first rank of its host */
    int32_t *seat_of;                /* by rank: its seat; -1: on another host */
    int32_t *rank_of;                /* by seat */
    comm_host host;                  /* without seats: no memory is shared */
    comm_lookout *lookout;           /* of a host's first rank, with several hosts; may be NULL */
    comm_window windows[COMM_WINDOWS];
    bool apart;         /* windows of hidden memory could not be mapped */
    int32_t links;      /* groups with a link */
    comm_flags flags;   /* of followed transfers */
    bool staged;        /* that operands go through host memory was logged */
    char **seen_blocks; /* of all windows */
    int64_t *mapped_bytes;
    uint32_t slots;  /* bit i: a group has slot i */
    uint32_t newest; /* no group that has been closed here had a collective of a higher number */
    mpi_lane lanes[COMM_LANES], peers; /* those in use have a running worker */
};

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

/* --- mpi_process.c --- */

/* Starts MPI if need be, and finds the hosts. *out has one group, the caller's. */
sifr_status comm_mpi_open_process(const comm_options *options, mpi_process **out,
                                  sifr_error *error) SIFR_MUST_CHECK;

/* The last of its groups takes leave of the other ranks and ends MPI, if no collective failed. */
void comm_mpi_leave_process(mpi_process *p);

int64_t comm_mpi_process_bytes(const mpi_process *p);

/* Opens a lane that is not open yet; adds its memory to *bytes. */
sifr_status comm_mpi_open_lane(mpi_process *p, comm_lane lane, int64_t *bytes,
                               sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_open_peers(mpi_process *p, int64_t *bytes, sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_environment.c --- */

/* Sets environment variables that MPI reads when it starts; existing ones are kept. */
void comm_mpi_prepare_environment(void);

/* --- mpi_check.c --- */

/* SIFR_LOST_RANK with MPI's own text if `code` is an error. */
sifr_status comm_mpi_check(const mpi_library *mpi, int code, const char *what,
                           sifr_error *error) SIFR_MUST_CHECK;

/* The name of a collective in messages. */
const char *comm_mpi_task_name(const comm_task *task);

/* The first failure of a collective ends all lanes: its message is theirs too. */
void comm_mpi_break(mpi_process *p, const sifr_error *error);
sifr_status comm_mpi_fail_again(mpi_process *p, sifr_error *error);

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

/* --- mpi_lookout.c: other hosts --- */

/* All ranks call it, when the hosts are known. If a host cannot be watched, that is logged. */
sifr_status comm_mpi_open_lookout(mpi_process *p, sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_lost.c --- */

/* Whether a rank of another host is lost, as far as this host knows. */
bool comm_mpi_has_lost(const mpi_process *p, comm_lost *lost);

/* SIFR_LOST_RANK if a rank of another host is lost. */
sifr_status comm_mpi_find_lost(const mpi_process *p, const char *name,
                               sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_order.c --- */

/* Numbers the ranks anew (order.h): p->world and p->rank. `local`: the ranks of this host. */
sifr_status comm_mpi_order_ranks(mpi_process *p, mpi_comm local, sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_host.c: hosts, and seats on this one --- */

/* Makes seats for the ranks of `local`, which all call it. If memory cannot be shared there are
 * none, and the reason is logged. */
sifr_status comm_mpi_open_host(mpi_process *p, mpi_comm local, const comm_options *options,
                               sifr_error *error) SIFR_MUST_CHECK;

/* Finds a group's ranks of this host, and whether they read in place. */
sifr_status comm_mpi_place_group(mpi_group *g, sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_peer.c: sends and receives --- */

sifr_status comm_mpi_send(comm_group *group, int32_t to, const void *data, int64_t bytes,
                          comm_handle *out, sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_receive(comm_group *group, int32_t from, void *data, int64_t bytes,
                             comm_handle *out, sifr_error *error) SIFR_MUST_CHECK;

enum { COMM_PEER_HANDLE = 1 << 16 }; /* in a handle's number: it is of a send or receive */

/* What the lane of sends does. */
sifr_status comm_mpi_turn(void *user, comm_task *task, bool *over, sifr_error *error);
void comm_mpi_rest(void *user);

/* --- mpi_split.c --- */

sifr_status comm_mpi_split(comm_group *parent, const comm_part *part, comm_group **out,
                           sifr_error *error) SIFR_MUST_CHECK;

/* Fills in a group of this process whose ranks and slots are known. */
sifr_status comm_mpi_take_group(mpi_group *g, mpi_process *p, comm_lane lane,
                                sifr_error *error) SIFR_MUST_CHECK;
void comm_mpi_free_group(mpi_group *g);
uint32_t comm_mpi_slots_of(const mpi_group *g); /* a mask */

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

/* --- mpi_messages.c --- */

/* Starts sending to one rank and receiving from another; `two` are the requests. */
sifr_status comm_mpi_exchange(mpi_group *g, const comm_task *task, int kind, const void *send,
                              int32_t to, void *receive, int32_t from, int64_t bytes,
                              mpi_request *two, sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_finish(mpi_group *g, mpi_request *requests, int count,
                            sifr_error *error) SIFR_MUST_CHECK;

/* A message in progress; `from` is the rank whose `bytes` it brings, -1 of a send. */
typedef struct mpi_part {
    mpi_request request;
    int64_t bytes;
    int32_t from;
} mpi_part;

/* Waits for messages of an all-to-all, and checks their sizes. */
sifr_status comm_mpi_finish_parts(mpi_group *g, mpi_part *parts, int count,
                                  sifr_error *error) SIFR_MUST_CHECK;

sifr_status comm_mpi_start_receive(mpi_group *g, const comm_task *task, int kind, void *to,
                                   int32_t from, int64_t bytes, mpi_request *request,
                                   sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_start_send(mpi_group *g, const comm_task *task, int kind, const void *from,
                                int32_t to, int64_t bytes, mpi_request *request,
                                sifr_error *error) SIFR_MUST_CHECK;

/* Counts bytes received from rank `from`. */
void comm_mpi_count(const mpi_group *g, comm_task *task, int32_t from, int64_t bytes);

/* --- mpi_all_to_all.c --- */

/* All parts by messages; of the others, those that neighbours cannot read in place. */
sifr_status comm_mpi_send_all_to_all(mpi_group *g, comm_task *task,
                                     sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_read_all_to_all(mpi_group *g, comm_task *task,
                                     sifr_error *error) SIFR_MUST_CHECK;

/* What rank near[i], which has posted, sends to the others, by rank. */
const comm_run *comm_mpi_runs_of(const mpi_group *g, int32_t i, const comm_task *task);

/* The part that rank near[i], which has posted, sends to this one. */
sifr_status comm_mpi_read_part(mpi_group *g, comm_task *task, int32_t i,
                               sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_move.c: by MPI messages --- */

sifr_status comm_mpi_move(mpi_group *g, comm_task *task, sifr_error *error) SIFR_MUST_CHECK;

/* A gather among ranks first, first + stride … */
sifr_status comm_mpi_gather(mpi_group *g, comm_task *task, int tag, int32_t first, int32_t stride,
                            sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_many.c: among many ranks --- */

sifr_status comm_mpi_gather_many(mpi_group *g, comm_task *task, int kind,
                                 sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_broadcast_many(mpi_group *g, comm_task *task,
                                    sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_sum_many(mpi_group *g, comm_task *task, sifr_error *error) SIFR_MUST_CHECK;

/* Ranks first, first + stride … reduce: `part` gives what this rank adds to `length` elements from
 * `at` of the slice of rank `target`, in the type of the sum; `weight` ranks' parts are in it. */
typedef struct comm_adders {
    int32_t first, stride, weight;
    void (*part)(mpi_group *g, const comm_task *task, int32_t target, int64_t at, int64_t length,
                 void *out);
} comm_adders;

sifr_status comm_mpi_reduce_many(mpi_group *g, comm_task *task, const comm_adders *adders,
                                 sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_reduce_apart(mpi_group *g, comm_task *task, sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_shared.c: by reading in place --- */

sifr_status comm_mpi_move_shared(mpi_group *g, comm_task *task, sifr_error *error) SIFR_MUST_CHECK;

/* Waits until all ranks of the host have posted. *usable: all operands lie where they can read
 * them; all ranks find the same. */
sifr_status comm_mpi_see_posts(mpi_group *g, const comm_task *task, bool *usable,
                               sifr_error *error) SIFR_MUST_CHECK;
/* This rank has read all that it needs; waits until the others of the host have, too. */
sifr_status comm_mpi_let_go(mpi_group *g, const comm_task *task, sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_link.c: between the GPUs of several hosts --- */

/* All ranks call it. *opened, the same on all; if it is not, `why` says so, or is "" where it was
 * not tried. */
sifr_status comm_mpi_open_link(comm_group *group, bool *opened, char *why, size_t size,
                               sifr_error *error) SIFR_MUST_CHECK;
void comm_mpi_close_link(mpi_group *g); /* harmless without */
sifr_status comm_mpi_move_linked(mpi_group *g, comm_task *task, sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_stage.c: through host memory, from and to a device --- */

/* Takes host memory for the largest operands; `why` is logged once. */
sifr_status comm_mpi_take_stage(comm_group *group, const char *why,
                                sifr_error *error) SIFR_MUST_CHECK;
/* The same for as many sends and receives as there are at a time. */
sifr_status comm_mpi_take_sends(comm_group *group, const char *why,
                                sifr_error *error) SIFR_MUST_CHECK;
void comm_mpi_give_stage(comm_group *group); /* both; harmless without */
comm_exchange comm_mpi_exchange_of(const comm_group *group, const char **why);
sifr_status comm_mpi_move_staged(mpi_group *g, comm_task *task, sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_levels.c: within hosts in place, between them by MPI --- */

sifr_status comm_mpi_gather_levels(mpi_group *g, comm_task *task,
                                   sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_reduce_levels(mpi_group *g, comm_task *task,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_queue.c: the queue of collectives, for callers --- */

/* Queues a collective; *out is its handle. comm_mpi_wait waits for it and counts it. */
sifr_status comm_mpi_start(comm_group *group, const comm_task *task, comm_handle *out,
                           sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_wait(comm_group *group, int32_t id, sifr_error *error) SIFR_MUST_CHECK;

/* As comm_follow and comm_catch_up. */
sifr_status comm_mpi_follow(comm_group *group, int32_t id, sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_catch_up(comm_group *group, sifr_error *error) SIFR_MUST_CHECK;

/* As comm_flags_take and comm_flags_give, for the group of all ranks. */
sifr_status comm_mpi_take_words(comm_group *group, sifr_error *error) SIFR_MUST_CHECK;
void comm_mpi_give_words(mpi_group *g);

/* comm_all_gather_control without counting in the ledger. */
sifr_status comm_mpi_tell(mpi_group *g, const void *mine, int64_t bytes, void *all,
                          sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_run.c --- */

/* Runs a task; on the worker's thread only. */
sifr_status comm_mpi_run(void *user, comm_task *task, sifr_error *error);

/* --- mpi_window.c --- */

sifr_status comm_mpi_open_window(comm_group *group, void *block, int64_t bytes, int file,
                                 sifr_error *error) SIFR_MUST_CHECK;
void comm_mpi_close_window(comm_group *group, void *block);
bool comm_mpi_is_apart(const comm_group *group);

#endif

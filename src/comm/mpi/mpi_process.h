/* The MPI transport, for its own files: what the groups of a process share. MPI only moves bytes;
 * its reductions are not used, since their order is not guaranteed. All groups' messages travel in
 * one communicator: the tag holds the group's slot.
 *
 * Four headers, each of which includes those before it: mpi_process.h, mpi_members.h (a group as
 * its ranks see each other: watching, posting), mpi_ways.h (how bytes move), and beside it
 * mpi_group.h (groups and their queues). */
#ifndef COMM_MPI_PROCESS_H
#define COMM_MPI_PROCESS_H

#include <stdatomic.h>

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

#endif

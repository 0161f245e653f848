/* The MPI transport's group, for its own files. MPI only moves bytes; its reductions are not used,
 * since their order is not guaranteed. Only MPI 3 calls are made.
 */
#ifndef COMM_MPI_PRIVATE_H
#define COMM_MPI_PRIVATE_H

#include <mpi.h>

#include "comm/host/seats.h"
#include "comm/transport.h"
#include "comm/worker.h"

enum {
    COMM_SUM_VALUES = 64, /* elements of a comm_sum that are exchanged at a time */
    COMM_ROUNDS = 4,      /* exchanges in progress at a time in a gather */
    COMM_WINDOWS = 8      /* windows open at a time; further ones are not shared */
};

enum { COMM_TAG_GATHER = 1, COMM_TAG_REDUCE, COMM_TAG_CONTROL };

typedef struct comm_window {
    char *block; /* this rank's; NULL: no window */
    int64_t bytes;
    char **seen;     /* by seat: where its block is mapped here */
    int64_t *mapped; /* by seat: bytes */
} comm_window;

typedef struct mpi_group {
    comm_group base;
    MPI_Comm world;    /* collectives */
    MPI_Comm farewell; /* carries the farewell of ranks that leave: one byte, 1 after a failure */
    bool started_mpi, broken;
    int32_t gone; /* a rank that has left while this one waits, or -1 */
    const sifr_log *log;
    comm_host host;
    bool shares, two_levels; /* ranks of a host read in place; several such hosts exchange */
    comm_window windows[COMM_WINDOWS];
    char **seen_blocks; /* of all windows */
    int64_t *mapped_bytes;
    int32_t *seat_of;    /* by rank: its seat; -1: on another host */
    int32_t *rank_of;    /* by seat */
    comm_state state;    /* the worker's current state */
    double looked;       /* time of its last check that all ranks are alive */
    comm_sighting *seen; /* by rank: buffer for a report */
    comm_worker worker;
    uint32_t started; /* collectives started, that is, the number of the newest one */
    char *stage;      /* host memory for operands of a device; NULL: they are read in place */
    int64_t stage_bytes;
    int64_t piece;         /* elements that a rank sends another at a time in a reduction */
    float *pieces;         /* two halves of (size - 1) x piece */
    const void **rows;     /* size */
    int64_t *sums;         /* size x COMM_SUM_VALUES */
    MPI_Request *requests; /* 4 x size, at least 2 x COMM_ROUNDS */
    MPI_Status *statuses;  /* as many; gcc warns about MPICH's constant for "ignore" */
    int32_t request_count;
} mpi_group;

/* Sets environment variables that MPI reads when it starts; existing ones are kept. */
void comm_mpi_prepare_environment(void);

/* --- mpi_check.c --- */

/* SIFR_LOST_RANK with MPI's own text if `code` is an error. */
sifr_status comm_mpi_check(int code, const char *what, sifr_error *error) SIFR_MUST_CHECK;

/* The name of a collective in messages. */
const char *comm_mpi_task_name(const comm_task *task);

/* --- mpi_watch.c: which ranks are alive --- */

/* Publishes the worker's current state for the other ranks. */
void comm_mpi_publish(mpi_group *g, const comm_task *task, bool busy);

/* Called from time to time while the task waits, since `begun`; *left belongs to the caller and
 * starts at 0. Fails if a rank has died or left, or after the timeout. */
sifr_status comm_mpi_look(mpi_group *g, double begun, double *left,
                          sifr_error *error) SIFR_MUST_CHECK;

/* Returns SIFR_LOST_RANK: that rank has left while this one waits for it. */
sifr_status comm_mpi_fail_left(const mpi_group *g, int32_t rank, sifr_error *error);

/* --- mpi_host.c: ranks of this host --- */

/* Makes seats for the ranks of `local`, which all call it. If memory cannot be shared there are
 * none, and the reason is logged. */
sifr_status comm_mpi_open_host(mpi_group *g, MPI_Comm local, const comm_options *options,
                               sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_post.c: places of operands --- */

/* The window that holds the whole operand, and the offset in it; COMM_NOWHERE if there is none. */
int32_t comm_mpi_find_window(const mpi_group *g, const void *at, int64_t bytes, int64_t *offset);

/* Whether the task's operands lie in memory of the group's device. */
static inline bool comm_mpi_on_device(const mpi_group *g, const comm_task *task) {
    return g->base.dev && (task->kind == COMM_TASK_GATHER || task->kind == COMM_TASK_REDUCE);
}

/* Posts the places of the operands of collective `number`: when it starts; with a device, when the
 * operands have been computed. */
void comm_mpi_post(mpi_group *g, const comm_task *task, uint32_t number);

/* The places that the rank of `seat` posted for this collective. */
const comm_post *comm_mpi_post_of(const mpi_group *g, int32_t seat, const comm_task *task);

/* The source and the destination of the rank of `seat`, as addresses in this process. */
const void *comm_mpi_operand(const mpi_group *g, int32_t seat, const comm_task *task);
const void *comm_mpi_target(const mpi_group *g, int32_t seat, const comm_task *task);

sifr_status comm_mpi_await(mpi_group *g, int32_t seat, _Atomic uint32_t *count, uint32_t number,
                           sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_move.c: by MPI messages --- */

sifr_status comm_mpi_move(mpi_group *g, comm_task *task, sifr_error *error) SIFR_MUST_CHECK;

/* Starts sending to one rank and receiving from another; `two` are the requests. */
sifr_status comm_mpi_exchange(mpi_group *g, const comm_task *task, int tag, const void *send,
                              int32_t to, void *receive, int32_t from, int64_t bytes,
                              MPI_Request *two, sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_finish(mpi_group *g, MPI_Request *requests, int count,
                            sifr_error *error) SIFR_MUST_CHECK;

/* A gather among ranks first, first + stride … */
sifr_status comm_mpi_gather(mpi_group *g, comm_task *task, int tag, int32_t first, int32_t stride,
                            sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_shared.c: by reading in place --- */

sifr_status comm_mpi_move_shared(mpi_group *g, comm_task *task, sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_stage.c: through host memory, from and to a device --- */

/* Takes host memory for the largest operands; `why` is logged once. */
sifr_status comm_mpi_take_stage(comm_group *group, const char *why,
                                sifr_error *error) SIFR_MUST_CHECK;
void comm_mpi_give_stage(comm_group *group); /* harmless without */
sifr_status comm_mpi_move_staged(mpi_group *g, comm_task *task, sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_levels.c: within hosts in place, between them by MPI --- */

sifr_status comm_mpi_gather_levels(mpi_group *g, comm_task *task,
                                   sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_reduce_levels(mpi_group *g, comm_task *task,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_queue.c: the queue of collectives --- */

/* Runs a task; on the worker's thread only. */
sifr_status comm_mpi_run(void *user, comm_task *task, sifr_error *error);

/* Queues a collective; *out is its handle. comm_mpi_wait waits for it and counts it. */
sifr_status comm_mpi_start(comm_group *group, const comm_task *task, comm_handle *out,
                           sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_wait(comm_group *group, int32_t id, sifr_error *error) SIFR_MUST_CHECK;

/* comm_all_gather_control without counting in the ledger. */
sifr_status comm_mpi_tell(mpi_group *g, const void *mine, int64_t bytes, void *all,
                          sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_window.c --- */

sifr_status comm_mpi_open_window(comm_group *group, void *block, int64_t bytes, int file,
                                 sifr_error *error) SIFR_MUST_CHECK;
void comm_mpi_close_window(comm_group *group, void *block);

#endif

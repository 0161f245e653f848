/* The MPI transport's group, for its own files. MPI only moves bytes here: no arithmetic of its
 * own, whose order it does not promise. Only calls of MPI 3 are made. */
#ifndef COMM_MPI_PRIVATE_H
#define COMM_MPI_PRIVATE_H

#include <mpi.h>

#include "comm/host/seats.h"
#include "comm/transport.h"
#include "comm/worker.h"

enum {
    COMM_SUM_VALUES = 64, /* of a comm_sum, exchanged at a time */
    COMM_ROUNDS = 4,      /* exchanges with neighbours under way at a time in a gather */
    COMM_WINDOWS = 8      /* open at a time; more are none */
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
    MPI_Comm farewell; /* who leaves tells it here: one byte, 1 where it leaves in failure */
    bool started_mpi, broken;
    int32_t gone; /* a rank that has left while this one waits, or -1 */
    const sifr_log *log;
    comm_host host;
    bool shares, two_levels; /* ranks of a host read in place; and several such hosts exchange */
    comm_window windows[COMM_WINDOWS];
    char **seen_blocks; /* of all windows */
    int64_t *mapped_bytes;
    int32_t *seat_of;    /* by rank: its seat; -1: on another host */
    int32_t *rank_of;    /* by seat */
    comm_state state;    /* the worker's: what it is doing */
    double looked;       /* when it last looked whether all live */
    comm_sighting *seen; /* by rank: room for a report */
    comm_worker worker;
    uint32_t started;      /* collectives, so the number of the newest one */
    int64_t piece;         /* elements that a rank sends another at a time in a reduction */
    float *pieces;         /* two halves of (size - 1) x piece */
    const void **rows;     /* size */
    int64_t *sums;         /* size x COMM_SUM_VALUES */
    MPI_Request *requests; /* 4 x size, at least 2 x COMM_ROUNDS */
    MPI_Status *statuses;  /* as many; gcc objects to MPICH's constant for none */
    int32_t request_count;
} mpi_group;

/* What MPI shall read from the environment when it starts; what is set already stays. */
void comm_mpi_prepare_environment(void);

/* --- mpi_check.c --- */

/* SIFR_LOST_RANK with MPI's own text, where `code` is an error. */
sifr_status comm_mpi_check(int code, const char *what, sifr_error *error) SIFR_MUST_CHECK;

/* A collective as messages call it. */
const char *comm_mpi_task_name(const comm_task *task);

/* --- mpi_watch.c: who lives --- */

/* What the worker does now, for the others to see. */
void comm_mpi_publish(mpi_group *g, const comm_task *task, bool busy);

/* Called now and then while the task waits, which it has done since `begun`; *left is the caller's,
 * 0 at first. Fails where a rank has died or left, or where the time is over. */
sifr_status comm_mpi_look(mpi_group *g, double begun, double *left,
                          sifr_error *error) SIFR_MUST_CHECK;

/* SIFR_LOST_RANK: that rank has left while this one waits for it. */
sifr_status comm_mpi_fail_left(const mpi_group *g, int32_t rank, sifr_error *error);

/* --- mpi_host.c: who is on this host --- */

/* Seats for the ranks of `local`, which all call it. Where memory cannot be shared there are none;
 * the log says why. */
sifr_status comm_mpi_open_host(mpi_group *g, MPI_Comm local, const comm_options *options,
                               sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_post.c: where operands lie --- */

/* The window that holds all of it, and where; COMM_NOWHERE where none does. */
int32_t comm_mpi_find_window(const mpi_group *g, const void *at, int64_t bytes, int64_t *offset);

/* Says where the others find the operands of collective `number`, when it starts. */
void comm_mpi_post(mpi_group *g, const comm_task *task, uint32_t number);

/* What the rank of `seat` said of the operands of this collective. */
const comm_post *comm_mpi_post_of(const mpi_group *g, int32_t seat, const comm_task *task);

/* What the rank of `seat` offers to be read, and the place that it gathers into, seen from here. */
const void *comm_mpi_operand(const mpi_group *g, int32_t seat, const comm_task *task);
const void *comm_mpi_target(const mpi_group *g, int32_t seat, const comm_task *task);

sifr_status comm_mpi_await(mpi_group *g, int32_t seat, _Atomic uint32_t *count, uint32_t number,
                           sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_move.c: by MPI's sends --- */

sifr_status comm_mpi_move(mpi_group *g, comm_task *task, sifr_error *error) SIFR_MUST_CHECK;

/* Starts to send to one rank and to receive from one; `two` are the requests. */
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

/* --- mpi_levels.c: within hosts in place, between them by MPI --- */

sifr_status comm_mpi_gather_levels(mpi_group *g, comm_task *task,
                                   sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_reduce_levels(mpi_group *g, comm_task *task,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_queue.c: the line of collectives --- */

/* The worker's: run on its thread only. */
sifr_status comm_mpi_run(void *user, comm_task *task, sifr_error *error);

/* Puts a collective in the line; *out stands for it. comm_mpi_wait waits for it, and counts it. */
sifr_status comm_mpi_start(comm_group *group, const comm_task *task, comm_handle *out,
                           sifr_error *error) SIFR_MUST_CHECK;
sifr_status comm_mpi_wait(comm_group *group, int32_t id, sifr_error *error) SIFR_MUST_CHECK;

/* comm_all_gather_control that no ledger counts. */
sifr_status comm_mpi_tell(mpi_group *g, const void *mine, int64_t bytes, void *all,
                          sifr_error *error) SIFR_MUST_CHECK;

/* --- mpi_window.c --- */

sifr_status comm_mpi_open_window(comm_group *group, void *block, int64_t bytes, int file,
                                 sifr_error *error) SIFR_MUST_CHECK;
void comm_mpi_close_window(comm_group *group, void *block);

#endif

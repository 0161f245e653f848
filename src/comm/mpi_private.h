/* The MPI transport's group, for its own files. MPI only moves bytes here: no arithmetic of its
 * own, whose order it does not promise. Only calls of MPI 3 are made. */
#ifndef COMM_MPI_PRIVATE_H
#define COMM_MPI_PRIVATE_H

#include <mpi.h>

#include "comm/host.h"
#include "comm/transport.h"
#include "comm/worker.h"

enum {
    COMM_SUM_VALUES = 64, /* of a comm_sum, exchanged at a time */
    COMM_WINDOW = 4       /* exchanges with neighbours under way at a time in a gather */
};

typedef struct mpi_group {
    comm_group base;
    MPI_Comm world;    /* collectives */
    MPI_Comm farewell; /* who leaves tells it here: one byte, 1 where it leaves in failure */
    bool started_mpi, broken;
    int32_t gone; /* a rank that has left while this one waits, or -1 */
    comm_host host;
    int32_t *seat_of;    /* by rank: its seat; -1: on another host */
    int32_t *rank_of;    /* by seat */
    comm_state state;    /* the worker's: what it is doing */
    double looked;       /* when it last looked whether all live */
    comm_sighting *seen; /* by rank: room for a report */
    comm_worker worker;
    int64_t piece;         /* elements that a rank sends another at a time in a reduction */
    float *pieces;         /* two halves of (size - 1) x piece */
    const float **rows;    /* size */
    int64_t *sums;         /* size x COMM_SUM_VALUES */
    MPI_Request *requests; /* 4 x size, at least 2 x COMM_WINDOW */
    MPI_Status *statuses;  /* as many; gcc objects to MPICH's constant for none */
    int32_t request_count;
} mpi_group;

/* The worker's: run on its thread only. */
sifr_status comm_mpi_run(void *user, comm_task *task, sifr_error *error);

/* What MPI shall read from the environment when it starts; what is set already stays. */
void comm_mpi_prepare_environment(void);

/* SIFR_LOST_RANK with MPI's own text, where `code` is an error. */
sifr_status comm_mpi_check(int code, const char *what, sifr_error *error) SIFR_MUST_CHECK;

comm_operation comm_mpi_operation(comm_task_kind kind);

/* --- mpi_host.c: who is on this host, and what the worker says of itself there --- */

/* Seats for the ranks of `local`, which all call it. Where memory cannot be shared there are none;
 * the log says why. */
sifr_status comm_mpi_open_host(mpi_group *g, MPI_Comm local, const comm_options *options,
                               sifr_error *error) SIFR_MUST_CHECK;

void comm_mpi_publish(mpi_group *g, const comm_task *task, bool busy);

/* Called now and then while the task waits, which it has done since `begun`; *left is the caller's,
 * 0 at first. Fails where a rank has died or left, or where the time is over. */
sifr_status comm_mpi_look(mpi_group *g, double begun, double *left,
                          sifr_error *error) SIFR_MUST_CHECK;

#endif

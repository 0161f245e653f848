/* Finds out which launcher started this process, from the environment only, without MPI's help. */
#ifndef COMM_LAUNCHER_H
#define COMM_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "comm/launcher_environment.h"
#include "comm/mpi_library/mpi_kind.h"

/* The MPI that this process has opened, or that its ranks will open (mpi_choice.h); only that MPI's
 * launcher can start them. COMM_NO_MPI: there is none, as far as that can be seen, or SIFR_MPI is
 * off. Opens one only as a task of srun, which does not tell. */
comm_mpi_kind comm_mpi_chosen(void);

/* Whether this is an Open MPI without plug-ins for Slurm's pmi1 and pmi2, under which it ends the
 * process. Opens MPI. */
bool comm_mpi_lacks_pmi(void);

/* True if an MPI launcher (mpirun, mpiexec, srun with an MPI plug-in) started this process. *ranks
 * (may be NULL) is the number of ranks that it started, which may be 1. The process of a Slurm
 * batch script is not a rank; only processes started by srun are. */
bool comm_under_launcher(int *ranks);

/* The environment variable that says so; NULL: none does. */
const char *comm_launcher_variable(void);

/* How Slurm starts ranks of that MPI: "srun --mpi=pmix". */
const char *comm_srun(void);

/* This process's rank from the launcher; -1 if it is not given. Before MPI is started, use it only
 * to decide which process prints. */
int comm_launcher_rank(void);

/* The number of ranks on this host from the launcher; 0 if it is not given. */
int comm_launcher_local_ranks(void);

/* The name and number of ranks of a launcher that is not an MPI launcher ("torchrun", or srun
 * without the plug-in that Open MPI needs); otherwise NULL. Such processes cannot communicate
 * through MPI, so refuse *ranks > 1. */
const char *comm_foreign_launcher(int *ranks);

/* Whether /dev/shm lacks the room that Open MPI and MPICH want there for `ranks` ranks; containers
 * often have only 64 MiB in all. */
bool comm_shared_memory_is_small(int ranks);

#endif

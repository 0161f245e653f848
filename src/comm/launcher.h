/* Finds out which launcher started this process, from the environment only, without MPI. */
#ifndef COMM_LAUNCHER_H
#define COMM_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The MPI that sifr was built with; only that MPI's launcher can start its ranks. */
typedef enum comm_mpi_kind { COMM_NO_MPI, COMM_OPEN_MPI, COMM_MPICH, COMM_OTHER_MPI } comm_mpi_kind;

comm_mpi_kind comm_mpi_built(void);

/* Whether this is an Open MPI without plug-ins for Slurm's pmi1 and pmi2, under which it ends the
 * process. */
bool comm_mpi_lacks_pmi(void);
const char *comm_mpi_name(comm_mpi_kind kind); /* "Open MPI", "MPICH", "MPI"; "no MPI" */

/* Memory in bytes that MPI takes of each rank, beside what the program takes without it. */
int64_t comm_mpi_bytes(comm_mpi_kind kind);

/* The first line of the library's version text; "" without MPI. MPI need not be started. */
void comm_mpi_version(char *out, size_t size);

/* True if an MPI launcher (mpirun, mpiexec, srun with an MPI plug-in) started this process. *ranks
 * (may be NULL) is the number of ranks that it started, which may be 1. The process of a Slurm
 * batch script is not a rank; only processes started by srun are. */
bool comm_under_launcher(int *ranks);

/* The environment variable that says so; NULL: none does. */
const char *comm_launcher_variable(void);

/* How Slurm starts ranks of the MPI that sifr was built with: "srun --mpi=pmix". */
const char *comm_srun(void);

/* Whether srun itself started this rank, and not a launcher inside one of its steps. */
bool comm_started_by_srun(void);

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

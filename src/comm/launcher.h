/* Who started this process: read from the environment alone, before and without any MPI. */
#ifndef COMM_LAUNCHER_H
#define COMM_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The MPI that this sifr was built with; only its own launcher can start ranks of it. */
typedef enum comm_mpi_kind { COMM_NO_MPI, COMM_OPEN_MPI, COMM_MPICH, COMM_OTHER_MPI } comm_mpi_kind;

comm_mpi_kind comm_mpi_built(void);
const char *comm_mpi_name(comm_mpi_kind kind); /* "Open MPI", "MPICH", "MPI"; "no MPI" */

/* The library's own first line about itself, "" where there is none; MPI need not be started. */
void comm_mpi_version(char *out, size_t size);

/* True where an MPI launcher (mpirun, mpiexec, srun with an MPI plug-in) started this process;
 * *ranks (may be NULL) is how many it started, 1 included. A batch script's own process under
 * Slurm is none: only what srun starts is. */
bool comm_under_launcher(int *ranks);

/* This process's rank, as the launcher says; -1 where it does not. Before MPI is started, only for
 * deciding who speaks. */
int comm_launcher_rank(void);

/* Ranks that the launcher put on this host, 0 where it does not say. */
int comm_launcher_local_ranks(void);

/* Whether /dev/shm lacks the room that Open MPI and MPICH want there for `ranks` ranks; containers
 * often have only 64 MiB in all. */
bool comm_shared_memory_is_small(int ranks);

/* The launcher's name where it is one that is not MPI's ("torchrun", srun without the plug-in that
 * Open MPI needs), with its number of ranks; NULL otherwise. Such a process has no MPI to talk
 * through: refuse where *ranks > 1. */
const char *comm_foreign_launcher(int *ranks);

#endif

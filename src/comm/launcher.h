/* Who started this process: read from the environment alone, before and without any MPI. */
#ifndef COMM_LAUNCHER_H
#define COMM_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

/* True where an MPI launcher (mpirun, mpiexec, srun with an MPI plug-in) started this process;
 * *ranks (may be NULL) is how many it started, 1 included. A batch script's own process under
 * Slurm is none: only what srun starts is. */
bool comm_under_launcher(int *ranks);

/* Ranks that the launcher put on this host, 0 where it does not say. */
int comm_launcher_local_ranks(void);

/* The launcher's name where it is one that is not MPI's ("torchrun"), with its number of ranks;
 * NULL otherwise. Such a process has no MPI to talk through: refuse where *ranks > 1. */
const char *comm_foreign_launcher(int *ranks);

#endif

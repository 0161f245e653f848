/* What the program does at signals. MPI libraries change it when they are loaded and started (UCX
 * catches SIGSEGV and others), and sifr gives it back: the library handles no signals. SIGUSR1
 * alone stays MPI's where the program leaves it at its default, which would end a rank. */
#ifndef COMM_MPI_SIGNALS_H
#define COMM_MPI_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

typedef struct mpi_signals {
    struct sigaction action[SIGSYS + 1]; /* by number */
    bool known[SIGSYS + 1];
} mpi_signals;

mpi_signals mpi_signals_of_program(void);
void mpi_signals_restore(const mpi_signals *signals);

#endif

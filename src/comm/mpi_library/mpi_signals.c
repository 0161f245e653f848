#include "comm/mpi_library/mpi_signals.h"

#include <stddef.h>

mpi_signals mpi_signals_of_program(void) {
    mpi_signals signals;
    for (int i = 1; i <= SIGSYS; i++)
        signals.known[i] = sigaction(i, NULL, &signals.action[i]) == 0;
    return signals;
}

void mpi_signals_restore(const mpi_signals *signals) {
    for (int i = 1; i <= SIGSYS; i++)
        if (signals->known[i] && i != SIGKILL && i != SIGSTOP)
            sigaction(i, &signals->action[i], NULL);
}

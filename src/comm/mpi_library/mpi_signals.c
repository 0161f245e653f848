#include "comm/mpi_library/mpi_signals.h"

#include <stddef.h>

mpi_signals mpi_signals_of_program(void) {
    mpi_signals signals;
    for (int i = 1; i <= SIGSYS; i++)
        signals.known[i] = sigaction(i, NULL, &signals.action[i]) == 0;
    return signals;
}

/* Hydra, MPICH's launcher, sends SIGUSR1 to all ranks when one has died, and MPICH catches it. */
static bool is_of_launcher(int signal, const struct sigaction *before) {
    return signal == SIGUSR1 && !(before->sa_flags & SA_SIGINFO) && before->sa_handler == SIG_DFL;
}

void mpi_signals_restore(const mpi_signals *signals) {
    for (int i = 1; i <= SIGSYS; i++)
        if (signals->known[i] && i != SIGKILL && i != SIGSTOP &&
            !is_of_launcher(i, &signals->action[i]))
            sigaction(i, &signals->action[i], NULL);
}

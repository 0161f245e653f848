#include "cli/launch/watch_rank.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/launch/launch_command.h"
#include "cli/options.h"
#include "comm/launcher.h"

/* The launcher's signals come to the whole process group: they are the rank's business. */
static void leave_signals_to_rank(void) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) signal(numbers[i], SIG_IGN);
}

/* The launcher takes a closed connection (PMI_FD) for a lost rank: it stays open here meanwhile. */
static int wait_for_rank(const char *name, pid_t rank) {
    const struct timespec said = {.tv_nsec = 200000000}; /* until the launcher has passed it on */
    int status;
    while (waitpid(rank, &status, 0) < 0) {
        if (errno != EINTR) return SIFR_LOST_RANK;
    }
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    cli_fail_with(name, SIFR_LOST_RANK, "rank %d was ended by signal %d (%s)", comm_launcher_rank(),
                  WTERMSIG(status), strsignal(WTERMSIG(status)));
    nanosleep(&said, NULL);
    return SIFR_LOST_RANK;
}

void cli_watch_rank(const char *name) {
    int ranks = 1;
    if (!comm_under_launcher(&ranks) || ranks < 2 || comm_mpi_chosen() != COMM_MPICH) return;
    pid_t parent = getpid(), rank = fork();
    if (rank < 0) return;
    if (rank == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(SIFR_LOST_RANK);
        return;
    }
    prctl(PR_SET_NAME, "sifr-watch");
    /* With the launcher's process on this host gone, nothing else would end the rank. Other
     * launchers than ours may start ranks from threads that end. */
    if (getenv(CLI_LAUNCHED)) prctl(PR_SET_PDEATHSIG, SIGKILL);
    leave_signals_to_rank();
    _exit(wait_for_rank(name, rank));
}

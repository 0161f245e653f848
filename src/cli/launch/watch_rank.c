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

#include "cli/launch/ignored_signals.h"
#include "cli/launch/launch_command.h"
#include "cli/launch/stop_signals.h"
#include "cli/options.h"
#include "comm/launcher.h"

static volatile sig_atomic_t watched; /* the rank's process */

static void hand_on(int number) {
    if (watched > 0) kill((pid_t)watched, number);
}

/* They are the rank's business, which has the same command line: whoever looks for it may find this
 * process. What comes to the whole process group the rank gets twice, as a repeat of one request;
 * SIGINT, of which the second one ends it, is not handed on. */
static void leave_signals_to_rank(pid_t rank) {
    struct sigaction action = {.sa_handler = hand_on, .sa_flags = SA_RESTART};
    watched = rank;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < CLI_STOP_SIGNALS; i++)
        if (!cli_is_ignored(cli_stop_signals[i])) sigaction(cli_stop_signals[i], &action, NULL);
    signal(SIGINT, SIG_IGN);
}

/* The launcher takes a closed connection (PMI_FD) for a lost rank: it stays open here meanwhile. */
static int wait_for_rank(const char *name, pid_t rank) {
    const struct timespec said = {.tv_nsec = 200000000}; /* until the launcher has passed it on */
    int status;
    while (waitpid(rank, &status, 0) < 0) {
        if (errno != EINTR) return SIFR_LOST_RANK;
    }
    watched = 0;
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
    leave_signals_to_rank(rank);
    _exit(wait_for_rank(name, rank));
}

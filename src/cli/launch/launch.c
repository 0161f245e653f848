#include "cli/launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/launch/launch_command.h"
#include "cli/options.h"
#include "comm/launcher.h"

/* MPICH's launcher passes SIGTERM on, waits, and ends ranks with SIGKILL when one is lost; the
 * signals that Open MPI's passes on would end it. */
static bool passes_sigterm(void) {
    return comm_mpi_built() == COMM_MPICH;
}

const cli_stop_signal *cli_stop_signals(void) {
    static const cli_stop_signal own[] = {{SIGINT, SIGINT}, {SIGTERM, SIGTERM}};
    static const cli_stop_signal passed_on[] = {{SIGUSR1, SIGINT}, {SIGUSR2, SIGTERM}};
    return getenv(CLI_LAUNCHED) && !passes_sigterm() ? passed_on : own;
}

int cli_fail_once(const char *name, const sifr_error *error) {
    if (comm_launcher_rank() <= 0) return cli_fail(name, error);
    sleep(1);
    return (int)error->status;
}

/* A launcher gives its ranks a terminal even where it has none itself: only sifr's own tells. */
bool cli_is_terminal(FILE *stream) {
    const char *own = getenv(CLI_LAUNCHED);
    if (own)
        return strcmp(own, fileno(stream) == STDERR_FILENO ? "stderr" : "stdout") == 0 ||
               strcmp(own, "both") == 0;
    return isatty(fileno(stream)) && !comm_under_launcher(NULL);
}

static const char *terminals(void) {
    bool out = isatty(STDOUT_FILENO), err = isatty(STDERR_FILENO);
    return out && err ? "both" : out ? "stdout" : err ? "stderr" : "none";
}

/* In the child: a process group of its own, so that a terminal's Ctrl-C comes once, through us. */
static void become_launcher(const cli_command_line *line, const sigset_t *mask, pid_t parent) {
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(SIFR_LOST_RANK);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
    setenv(CLI_LAUNCHED, terminals(), 1);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execv(line->words[0], (char *const *)(uintptr_t)line->words);
    _exit(127);
}

/* The first signal asks the ranks to save and stop, the second ends them. */
static int wait_for_ranks(pid_t child, const sigset_t *set, int *asked) {
    int status, number;
    *asked = 0;
    for (;;) {
        if (waitpid(child, &status, WNOHANG) == child) return status;
        if (sigwait(set, &number) != 0 || number == SIGCHLD) continue;
        if (*asked || number == SIGHUP || passes_sigterm())
            kill(child, SIGTERM);
        else
            kill(child, number == SIGINT ? SIGUSR1 : SIGUSR2);
        if (number != SIGHUP || !*asked) *asked = number;
    }
}

static int exit_code(const char *name, const char *launcher, int status, int asked) {
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    /* MPICH's launcher says 0 where it passed a signal on and all ranks left in order. */
    if (asked && (code == 128 + SIGTERM || (code == 0 && passes_sigterm()))) return 128 + asked;
    if (code == 0 || code == 128 + SIGINT || code == 128 + SIGTERM) return code;
    if (asked && code > 128) return 128 + asked; /* before they could catch it */
    if (code == 127) return cli_fail_with(name, SIFR_FAILED, "%s could not be run", launcher);
    if (code <= SIFR_LOST_RANK) return code;
    if (code > 128)
        return cli_fail_with(name, SIFR_LOST_RANK,
                             "a rank was ended by signal %d (%s), and all others with it: the "
                             "launcher's lines above name it",
                             code - 128, strsignal(code - 128));
    return cli_fail_with(name, SIFR_LOST_RANK,
                         "a rank ended with exit code %d, and all others with it: the launcher's "
                         "lines above name it",
                         code);
}

static int run_launcher(const char *name, const cli_command_line *line) {
    sigset_t set, mask;
    int status, asked, code;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, &mask);
    pid_t parent = getpid(), child = fork();
    if (child == 0) become_launcher(line, &mask, parent);
    if (child < 0) {
        code = cli_fail_with(name, SIFR_FAILED, "no process for mpirun: %s", strerror(errno));
    } else {
        status = wait_for_ranks(child, &set, &asked);
        code = exit_code(name, line->words[0], status, asked);
    }
    sigprocmask(SIG_SETMASK, &mask, NULL);
    return code;
}

static void say_ranks(const char *name, int ranks, const char *hosts) {
    fflush(stdout);
    if (hosts)
        fprintf(stderr, "sifr %s: %d ranks on %s\n", name, ranks, hosts);
    else
        fprintf(stderr, "sifr %s: %d ranks on this machine\n", name, ranks);
}

int cli_launch(int argc, char **argv, const cli_launch_choice *choice) {
    const char *name = argc > 0 ? argv[0] : "";
    cli_launcher launcher;
    cli_command_line line = {.count = 0};
    sifr_error error;
    int code;
    sifr_status status = cli_launcher_find(comm_mpi_built(), &launcher, &error);
    if (status == SIFR_OK)
        status = cli_command_line_make(&launcher, argc, argv, choice->ranks, choice->hosts, &line,
                                       &error);
    if (status == SIFR_OK) {
        say_ranks(name, choice->ranks, choice->hosts);
        code = run_launcher(name, &line);
    } else {
        code = cli_fail(name, &error);
    }
    cli_command_line_free(&line);
    return code;
}

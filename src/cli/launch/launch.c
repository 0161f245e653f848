#include "cli/launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/launch/launch_command.h"
#include "cli/launch/launcher_lines.h"
#include "cli/options.h"
#include "comm/launcher.h"

/* MPICH's launcher passes SIGTERM on, waits, and ends ranks with SIGKILL when one is lost; the
 * signals that Open MPI's passes on would end it. */
static bool passes_sigterm(void) {
    return comm_mpi_built() == COMM_MPICH;
}

/* What nohup has ignored stays so. */
static bool is_ignored(int number) {
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

size_t cli_stop_signals(const cli_stop_signal **out) {
    static const cli_stop_signal own[] = {
        {SIGINT, SIGINT, "SIGINT"}, {SIGTERM, SIGTERM, "SIGTERM"}, {SIGHUP, SIGHUP, "SIGHUP"}};
    static const cli_stop_signal passed_on[] = {{SIGUSR1, SIGINT, "SIGINT"},
                                                {SIGUSR2, SIGTERM, "SIGTERM or SIGHUP"}};
    static const cli_stop_signal sigterm[] = {{SIGTERM, SIGTERM, "a signal"}};
    if (getenv(CLI_LAUNCHED) && passes_sigterm()) {
        *out = sigterm;
        return 1;
    }
    *out = getenv(CLI_LAUNCHED) ? passed_on : own;
    return *out == own && !is_ignored(SIGHUP) ? 3 : 2;
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
static void become_launcher(const cli_command_line *line, const sigset_t *mask, pid_t parent,
                            int errors) {
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(SIFR_LOST_RANK);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
    setenv(CLI_LAUNCHED, terminals(), 1);
    dup2(errors, STDERR_FILENO);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execv(line->words[0], (char *const *)(uintptr_t)line->words);
    _exit(127);
}

/* The launcher while it runs. */
typedef struct launched {
    pid_t child;
    int signals, errors; /* descriptors: signals that came; the launcher's standard error */
    int asked;           /* the signal that asked the ranks to stop; 0: none */
    bool again;          /* and another one ended them */
    cli_launcher_lines lines;
} launched;

/* The first signal asks the ranks to save and stop, the second ends them. */
static void pass_signal(launched *l, int number) {
    if (l->asked || passes_sigterm())
        kill(l->child, SIGTERM);
    else
        kill(l->child, number == SIGINT ? SIGUSR1 : SIGUSR2);
    l->again = l->asked != 0;
    l->asked = number;
    l->lines.asked = true;
}

static void read_signals(launched *l) {
    struct signalfd_siginfo info;
    while (read(l->signals, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGCHLD) pass_signal(l, (int)info.ssi_signo);
}

/* All that is there; false at its end. */
static bool read_errors(launched *l) {
    char text[4096];
    ssize_t count;
    while ((count = read(l->errors, text, sizeof text)) > 0)
        cli_launcher_lines_pass(&l->lines, text, (size_t)count);
    return count < 0;
}

static int wait_for_ranks(launched *l) {
    int status;
    struct pollfd polled[] = {{.fd = l->signals, .events = POLLIN},
                              {.fd = l->errors, .events = POLLIN}};
    while (waitpid(l->child, &status, WNOHANG) != l->child) {
        poll(polled, 2, -1);
        read_signals(l);
        if (polled[1].fd >= 0 && !read_errors(l)) polled[1].fd = -1;
    }
    read_errors(l);
    cli_launcher_lines_end(&l->lines);
    return status;
}

static int say_ended(const char *name, const launched *l) {
    const char *signal = l->asked == SIGINT ? "SIGINT" : l->asked == SIGTERM ? "SIGTERM" : "SIGHUP";
    (void)cli_fail_with(
        name, SIFR_FAILED,
        l->again ? "ended at once by a second signal, %s" : "ended by %s, without saving", signal);
    return 128 + l->asked;
}

static int exit_code(const char *name, const char *launcher, int status, const launched *l) {
    int asked = l->asked;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (l->again) return say_ended(name, l);
    /* MPICH's launcher says 0 where it passed a signal on and all ranks left in order. */
    if (asked && (code == 128 + SIGTERM || (code == 0 && passes_sigterm()))) return 128 + asked;
    if (code == 0 || code == 128 + SIGINT || code == 128 + SIGTERM) return code;
    /* Before they could catch it. MPICH's launcher then ends with a code of its own, or with that
     * of cli_watch_rank. */
    if (asked && (code > 128 || (code >= SIFR_LOST_RANK && passes_sigterm())))
        return say_ended(name, l);
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

/* A pipe whose end for reading does not block. */
static bool make_pipe(int ends[2]) {
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    return fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

static int start_launcher(const char *name, const cli_command_line *line, const sigset_t *set,
                          const sigset_t *mask) {
    launched l = {.lines.out = STDERR_FILENO};
    int ends[2] = {-1, -1}, code;
    pid_t parent = getpid();
    l.signals = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
    l.child = l.signals >= 0 && make_pipe(ends) ? fork() : -1;
    if (l.child == 0) become_launcher(line, mask, parent, ends[1]);
    int number = errno;
    if (ends[1] >= 0) close(ends[1]);
    l.errors = ends[0];
    if (l.child < 0) {
        code = cli_fail_with(name, SIFR_FAILED, "no process for mpirun: %s", strerror(number));
    } else {
        int status = wait_for_ranks(&l);
        code = exit_code(name, line->words[0], status, &l);
    }
    if (l.signals >= 0) close(l.signals);
    if (l.errors >= 0) close(l.errors);
    return code;
}

static int run_launcher(const char *name, const cli_command_line *line) {
    sigset_t set, mask;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    if (!is_ignored(SIGHUP)) sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, &mask);
    int code = start_launcher(name, line, &set, &mask);
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

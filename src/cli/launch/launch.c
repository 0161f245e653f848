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
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/launch/launch_command.h"
#include "cli/launch/launcher_files.h"
#include "cli/launch/launcher_lines.h"
#include "cli/launch/launcher_trouble.h"
#include "cli/launch/pending_signal.h"
#include "cli/launch/stop_request.h"
#include "cli/launch/stop_signals.h"
#include "cli/options.h"
#include "cli/standard_output.h"
#include "comm/launcher.h"
#include "comm/siblings.h"

/* In microseconds. */
enum { SEEN = 1000000, LEFT_LATER = 1000000, TRIED_AGAIN = 50000, TRIES = 6 };
enum { LOOK = 1000 }; /* at signals of the launcher, in milliseconds */

bool cli_speaks(void) {
    if (comm_launcher_rank() <= 0) return true;
    for (int i = 0; i < TRIES; i++) {
        if (comm_siblings_lower()) return false;
        usleep(TRIED_AGAIN);
    }
    return true;
}

/* A launcher may end the others when one leaves: by SIGTERM srun, which then takes their 143 for
 * the job's exit code, the one of a run that is to be put back into the queue. */
static void wait_to_leave(useconds_t time) {
    signal(SIGTERM, SIG_IGN);
    usleep(time);
}

void cli_spoke(void) {
    fflush(NULL);
    if (comm_launcher_rank() >= 0) wait_to_leave(SEEN);
}

int cli_fail_once(const char *name, const sifr_error *error) {
    int code = (int)error->status;
    if (!cli_speaks()) {
        wait_to_leave(LEFT_LATER);
        return code;
    }
    code = cli_fail(name, error);
    cli_spoke();
    return code;
}

/* A rank that is silent leaves after the one that speaks, whose line a launcher may cut off else.
 */
void cli_start_late(const char *name, bool last, const char *line) {
    if (line[0]) fprintf(stderr, "sifr %s: %s%s\n", name, last ? "" : "warning: ", line);
    if (!last) return;
    if (!line[0]) wait_to_leave(LEFT_LATER);
    _exit(SIFR_LOST_RANK);
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

/* In the child: a process group of its own, so that a terminal's Ctrl-C comes once, through us.
 * Open MPI's launcher ends its ranks at SIGTERM, a second after it. It keeps SIGTERM blocked, and
 * not so its ranks: what goes to all processes of a run, as systemd's, does not end it. */
static void become_launcher(const cli_command_line *line, const cli_launcher_files *files,
                            const sigset_t *mask, bool mpich, pid_t parent, const int ends[2]) {
    sigset_t blocked = *mask;
    if (!mpich) sigaddset(&blocked, SIGTERM);
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, mpich ? SIGTERM : SIGINT);
    if (getppid() != parent) _exit(SIFR_LOST_RANK);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
    setenv(CLI_LAUNCHED, terminals(), 1);
    cli_launcher_files_hand_over(files);
    signal(SIGPIPE, SIG_DFL); /* ignored in us: what becomes of standard output is our affair */
    dup2(ends[0], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
    execv(line->words[0], (char *const *)(uintptr_t)line->words);
    _exit(127);
}

/* The launcher while it runs. */
typedef struct launched {
    pid_t child;
    bool mpich;
    int signals;    /* a descriptor: signals that came */
    int streams[2]; /* the launcher's standard output and standard error */
    cli_stop_request stop;
    cli_launcher_lines lines[2];
} launched;

/* MPICH's launcher writes its boxes to standard output. */
static void drop_launchers_lines(launched *l) {
    for (int i = !l->mpich; i < 2; i++) l->lines[i].asked = true;
}

static void take_signal(launched *l, int number) {
    if (cli_stop_request_take(&l->stop, number)) drop_launchers_lines(l);
}

static void read_signals(launched *l) {
    struct signalfd_siginfo info;
    while (read(l->signals, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGCHLD) take_signal(l, (int)info.ssi_signo);
}

/* All that is there; false at its end. */
static bool pass_on(launched *l, int stream) {
    char text[4096];
    ssize_t count;
    while ((count = read(l->streams[stream], text, sizeof text)) > 0) {
        cli_launcher_lines_pass(&l->lines[stream], text, (size_t)count);
        cli_stop_request_begin(&l->stop);
        if (l->lines[stream].stopped) drop_launchers_lines(l);
    }
    return count < 0;
}

/* One that Open MPI's launcher was sent itself waits there: it is a request like one to us. */
static void look_at_launcher(launched *l) {
    if (!l->mpich && !l->stop.asked && cli_is_pending(l->child, SIGTERM)) take_signal(l, SIGTERM);
}

/* How long to wait in milliseconds; -1: until something comes. */
static int pause_of(const launched *l) {
    return l->mpich || l->stop.asked ? cli_stop_request_wait(&l->stop) : LOOK;
}

static int wait_for_ranks(launched *l) {
    int status;
    struct pollfd polled[] = {{.fd = l->signals, .events = POLLIN},
                              {.fd = l->streams[0], .events = POLLIN},
                              {.fd = l->streams[1], .events = POLLIN}};
    while (waitpid(l->child, &status, WNOHANG) != l->child) {
        poll(polled, 3, pause_of(l));
        read_signals(l);
        look_at_launcher(l);
        for (int i = 0; i < 2; i++)
            if (polled[1 + i].fd >= 0 && !pass_on(l, i)) polled[1 + i].fd = -1;
        cli_stop_request_act(&l->stop);
    }
    for (int i = 0; i < 2; i++) {
        if (l->streams[i] >= 0) pass_on(l, i);
        cli_launcher_lines_end(&l->lines[i]);
    }
    return status;
}

static int say_ended(const char *name, const launched *l) {
    int asked = l->stop.asked;
    (void)cli_fail_with(name, SIFR_FAILED,
                        l->stop.again ? "ended at once by a second signal, %s"
                                      : "ended by %s, without saving",
                        cli_stop_name(asked));
    return 128 + asked;
}

static bool has_reason(const launched *l) {
    return l->lines[0].reason || l->lines[1].reason;
}

static int say_failed_itself(const char *name, const char *launcher, int status, int code) {
    char why[512];
    cli_launcher_trouble(why, sizeof why);
    if (WIFSIGNALED(status))
        return cli_fail_with(name, SIFR_LOST_RANK, "%s was itself ended by signal %d (%s)%s",
                             launcher, WTERMSIG(status), strsignal(WTERMSIG(status)), why);
    return cli_fail_with(name, (sifr_status)code,
                         "%s failed by itself with exit code %d, and no rank gave a reason; its "
                         "lines above may say why%s",
                         launcher, code, why);
}

static int exit_code(const char *name, const char *launcher, int status, const launched *l) {
    int asked = l->stop.asked;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (l->stop.again) return say_ended(name, l);
    /* MPICH's launcher says 0 where it passed a signal on and all ranks left in order. */
    if (asked && (code == 128 + SIGTERM || code == 128 + SIGINT || (code == 0 && l->mpich)))
        return 128 + asked;
    if (code == 0 || code == 128 + SIGINT || code == 128 + SIGTERM) return code;
    if (code > 128 && (l->lines[0].stopped || l->lines[1].stopped)) return code;
    /* Before they could catch it. MPICH's launcher then ends with a code of its own, or with that
     * of cli_watch_rank. */
    if (asked && (code > 128 || (code >= SIFR_LOST_RANK && l->mpich))) return say_ended(name, l);
    if (code == 127) return cli_fail_with(name, SIFR_FAILED, "%s could not be run", launcher);
    bool itself = code <= SIFR_LOST_RANK || WIFSIGNALED(status);
    if (itself && !asked && !has_reason(l)) return say_failed_itself(name, launcher, status, code);
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

/* Training has done its work whatever became of its lines; what others print is their work. */
static int end_output(const char *name, const launched *l) {
    bool lost = l->lines[0].lost;
    if (strcmp(name, "train") == 0)
        cli_forgive_output(name, lost);
    else if (lost)
        return cli_fail_with(name, SIFR_FAILED, "standard output: writing failed");
    return SIFR_OK;
}

/* A pipe whose end for reading does not block. */
static bool make_pipe(int ends[2]) {
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    return fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

static int start_launcher(const char *name, const cli_command_line *line,
                          const cli_launcher_files *files, const sigset_t *set,
                          const sigset_t *mask) {
    launched l = {.mpich = cli_launcher_passes_sigterm(),
                  .lines = {{.out = STDOUT_FILENO}, {.out = STDERR_FILENO}}};
    int out[2] = {-1, -1}, err[2] = {-1, -1}, code;
    pid_t parent = getpid();
    l.signals = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
    bool ready = l.signals >= 0 && make_pipe(out) && make_pipe(err);
    l.child = ready ? fork() : -1;
    if (l.child == 0) become_launcher(line, files, mask, l.mpich, parent, (int[]){out[1], err[1]});
    int number = errno;
    if (out[1] >= 0) close(out[1]);
    if (err[1] >= 0) close(err[1]);
    l.streams[0] = out[0];
    l.streams[1] = err[0];
    l.stop = (cli_stop_request){.launcher = l.child, .mpich = l.mpich};
    if (l.child < 0) {
        code = cli_fail_with(name, SIFR_FAILED, "no process for mpirun: %s", strerror(number));
    } else {
        int status = wait_for_ranks(&l);
        code = exit_code(name, line->words[0], status, &l);
        if (code == SIFR_OK) code = end_output(name, &l);
    }
    if (l.signals >= 0) close(l.signals);
    for (int i = 0; i < 2; i++)
        if (l.streams[i] >= 0) close(l.streams[i]);
    return code;
}

/* Signals are blocked from before the launcher's folders are made until they are removed. */
static int run_launcher(const char *name, const cli_launcher *launcher,
                        const cli_launch_choice *choice, const cli_command_line *line) {
    cli_launcher_files files;
    sigset_t set, mask;
    sigemptyset(&set);
    for (int i = 0; i < CLI_STOP_SIGNALS; i++)
        if (cli_stop_is_taken(cli_stop_signals[i])) sigaddset(&set, cli_stop_signals[i]);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, &mask);
    cli_launcher_files_make(name, launcher, choice, &files);
    int code = start_launcher(name, line, &files, &set, &mask);
    cli_launcher_files_remove(&files);
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

/* Open MPI's launcher maps files of 4 MiB, and waits for ever where it cannot. */
static sifr_status check_file_limit(sifr_error *error) {
    enum { LEAST = 8 << 20 };
    char bytes[32];
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= LEAST) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "`ulimit -f` allows files of %s only, and those of the launcher of ranks are "
                     "larger; allow 8 MiB at least (ulimit -f 8192), or run with one rank",
                     base_format_bytes(limit.rlim_cur, bytes));
}

int cli_launch(int argc, char **argv, const cli_launch_choice *choice) {
    const char *name = argc > 0 ? argv[0] : "";
    cli_launcher launcher;
    cli_command_line line = {.count = 0};
    sifr_error error;
    int code;
    sifr_status status = check_file_limit(&error);
    if (status == SIFR_OK) status = cli_launcher_find(&launcher, &error);
    if (status == SIFR_OK)
        status = cli_command_line_make(&launcher, argc, argv, choice->ranks, choice->hosts, &line,
                                       &error);
    if (status == SIFR_OK) {
        say_ranks(name, choice->ranks, choice->hosts);
        code = run_launcher(name, &launcher, choice, &line);
    } else {
        code = cli_fail(name, &error);
    }
    cli_command_line_free(&line);
    return code;
}

#include "cli/launch.h"

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

#include "base/system.h"
#include "cli/hostfile.h"
#include "cli/launch_command.h"
#include "cli/options.h"
#include "comm/launcher.h"

enum { RANK_LIMIT = 4096 };

const cli_stop_signal *cli_stop_signals(void) {
    static const cli_stop_signal own[] = {{SIGINT, SIGINT}, {SIGTERM, SIGTERM}};
    static const cli_stop_signal passed_on[] = {{SIGUSR1, SIGINT}, {SIGUSR2, SIGTERM}};
    return getenv(CLI_LAUNCHED) ? passed_on : own;
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

static int usable_processors(void) {
    base_system system;
    base_system_read(&system);
    int cpus = system.cpus;
    if (system.cpu_quota >= 1 && system.cpu_quota < cpus) cpus = (int)system.cpu_quota;
    return cpus;
}

int cli_threads_per_rank(int local_ranks) {
    int threads = usable_processors() / (local_ranks > 0 ? local_ranks : 1);
    return threads > 0 ? threads : 1;
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
        if (*asked || number == SIGHUP)
            kill(child, SIGTERM);
        else
            kill(child, number == SIGINT ? SIGUSR1 : SIGUSR2);
        if (number != SIGHUP || !*asked) *asked = number;
    }
}

static int exit_code(const char *name, const char *launcher, int status, int asked) {
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
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

/* The hosts that the ranks go to, and how many ranks: *out stays empty where this is one machine.
 */
static sifr_status choose_hosts(const cli_launch_request *request, cli_hosts *out, int *ranks,
                                sifr_error *error) {
    int64_t asked = request->ranks;
    *out = (cli_hosts){0};
    if (request->ranks_given && (asked < 1 || asked > RANK_LIMIT))
        return base_fail(error, SIFR_USAGE, "--ranks: %lld is not in 1 to %d", (long long)asked,
                         (int)RANK_LIMIT);
    *ranks = request->ranks_given ? (int)asked : 1;
    if (!request->hostfile) {
        if (request->include || request->exclude)
            return base_fail(error, SIFR_USAGE,
                             "--include and --exclude choose from the hosts of a --hostfile: give "
                             "one");
        return SIFR_OK;
    }
    BASE_TRY(cli_hosts_read(request->hostfile, out, error));
    BASE_TRY(cli_hosts_filter(out, request->include, request->exclude, error));
    int32_t slots = cli_hosts_slots(out);
    if (request->ranks_given && asked > slots)
        return base_fail(error, SIFR_USAGE, "--ranks: %lld, but %s has %d slot%s%s",
                         (long long)asked, request->hostfile, (int)slots, slots == 1 ? "" : "s",
                         request->include || request->exclude ? " left" : "");
    if (!request->ranks_given) *ranks = slots;
    cli_hosts_keep(out, *ranks);
    if (cli_hosts_are_here(out)) cli_hosts_free(out);
    return SIFR_OK;
}

static void say_ranks(const char *name, int ranks, const char *hosts) {
    fflush(stdout);
    if (hosts)
        fprintf(stderr, "sifr %s: %d ranks on %s\n", name, ranks, hosts);
    else
        fprintf(stderr, "sifr %s: %d ranks on this machine\n", name, ranks);
}

/* In a rank already: true where the request does not fit the launcher's number of ranks. One rank
 * says so. */
static bool contradicts(const char *name, const cli_launch_request *request, int *code) {
    int ranks;
    if (!comm_under_launcher(&ranks) || getenv(CLI_LAUNCHED)) return false;
    bool hosts = request->hostfile || request->include || request->exclude;
    if (!hosts && (!request->ranks_given || request->ranks == ranks)) return false;
    *code = SIFR_USAGE;
    if (comm_launcher_rank() > 0) return true;
    if (hosts)
        cli_fail_with(name, SIFR_USAGE,
                      "--hostfile, --include and --exclude start ranks, and this is one of %d that "
                      "a launcher started: give the hosts to the launcher",
                      ranks);
    else
        cli_fail_with(name, SIFR_USAGE,
                      "--ranks %lld, but the launcher started %d: leave --ranks out, it is for "
                      "starting without a launcher",
                      (long long)request->ranks, ranks);
    return true;
}

bool cli_launch(int argc, char **argv, const cli_launch_request *request, int *code) {
    const char *name = argc > 0 ? argv[0] : "";
    cli_hosts hosts;
    cli_launcher launcher;
    cli_command_line line = {.count = 0};
    char *list = NULL;
    sifr_error error;
    sifr_status status;
    int ranks = 1;
    if (comm_under_launcher(NULL)) return contradicts(name, request, code);
    BASE_TRY_GOTO(status, choose_hosts(request, &hosts, &ranks, &error), done);
    if (ranks == 1 && !hosts.count) { /* no MPI for one rank */
        cli_hosts_free(&hosts);
        return false;
    }
    if (hosts.count) BASE_TRY_GOTO(status, cli_hosts_list(&hosts, &list, &error), done);
    BASE_TRY_GOTO(status, cli_launcher_find(comm_mpi_built(), &launcher, &error), done);
    BASE_TRY_GOTO(status, cli_command_line_make(&launcher, argc, argv, ranks, list, &line, &error),
                  done);
    say_ranks(name, ranks, list);
    *code = run_launcher(name, &line);
done:
    if (status != SIFR_OK) *code = cli_fail(name, &error);
    cli_command_line_free(&line);
    free(list);
    cli_hosts_free(&hosts);
    return true;
}

int cli_launch_ranks(int argc, char **argv, int ranks) {
    cli_launch_request request = {.ranks = ranks, .ranks_given = true};
    int code = SIFR_OK;
    cli_launch(argc, argv, &request, &code);
    return code;
}

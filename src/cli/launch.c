#include "cli/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/system.h"
#include "cli/options.h"
#include "comm/comm.h"

enum { RANK_LIMIT = 4096, WORDS = 32 }; /* WORDS: more than the launcher's own options */

static const char launched[] = "SIFR_LAUNCHED"; /* set in the ranks of cli_launch_ranks */

const cli_stop_signal *cli_stop_signals(void) {
    static const cli_stop_signal own[] = {{SIGINT, SIGINT}, {SIGTERM, SIGTERM}};
    static const cli_stop_signal passed_on[] = {{SIGUSR1, SIGINT}, {SIGUSR2, SIGTERM}};
    return getenv(launched) ? passed_on : own;
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

/* The launcher's path, and whether it is Open MPI's (others know none of its options). */
static bool find_launcher(char path[BASE_PATH_LENGTH], bool *open_mpi) {
    static const char *const names[] = {"mpirun", "mpiexec"};
    const char *list = getenv("PATH");
    for (size_t n = 0; list && n < 2; n++) {
        for (const char *at = list; *at;) {
            size_t length = strcspn(at, ":");
            int used = snprintf(path, BASE_PATH_LENGTH, "%.*s/%s", (int)length, at, names[n]);
            if (length && used < BASE_PATH_LENGTH && access(path, X_OK) == 0) {
                char resolved[BASE_PATH_LENGTH] = "";
                char *real = realpath(path, NULL);
                if (real) snprintf(resolved, sizeof resolved, "%s", real);
                free(real);
                const char *name = strrchr(resolved, '/') ? strrchr(resolved, '/') + 1 : resolved;
                *open_mpi = !strstr(name, "hydra") && !strstr(name, "mpich");
                return true;
            }
            at += length + (at[length] == ':');
        }
    }
    return false;
}

/* Open MPI puts some 4 MiB a rank there; containers often have only 64 MiB in all. */
static bool shared_memory_is_small(int ranks) {
    struct statvfs fs;
    if (statvfs("/dev/shm", &fs) != 0) return true;
    return (uint64_t)fs.f_bavail * fs.f_frsize < ((uint64_t)ranks + 1) * (16 << 20);
}

typedef struct command_line {
    char launcher[BASE_PATH_LENGTH], program[BASE_PATH_LENGTH], ranks[16];
    const char **words;
    size_t count;
} command_line;

static void put(command_line *line, const char *word) {
    line->words[line->count++] = word;
}

static void put_setting(command_line *line, const char *name, const char *value) {
    put(line, "--mca");
    put(line, name);
    put(line, value);
}

static void make_command(command_line *line, bool open_mpi, int argc, char **argv, int ranks) {
    snprintf(line->ranks, sizeof line->ranks, "%d", ranks);
    put(line, line->launcher);
    put(line, "-n");
    put(line, line->ranks);
    if (open_mpi) { /* more ranks than cores are welcome, and waiting ones yield */
        put(line, "--oversubscribe");
        put(line, "--bind-to");
        put(line, "none");
        put_setting(line, "mpi_yield_when_idle", "1");
        put_setting(line, "btl_vader_single_copy_mechanism", "none");
        if (shared_memory_is_small(ranks)) {
            const char *directory = getenv("TMPDIR");
            put_setting(line, "btl_vader_backing_directory",
                        directory && *directory ? directory : "/tmp");
        }
    }
    put(line, line->program);
    for (int i = 0; i < argc; i++) put(line, argv[i]);
    put(line, NULL);
}

/* In the child: a process group of its own, so that a terminal's Ctrl-C comes once, through us. */
static void become_launcher(const command_line *line, const sigset_t *mask, pid_t parent) {
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(SIFR_LOST_RANK);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
    setenv(launched, "1", 1);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execv(line->launcher, (char *const *)(uintptr_t)line->words);
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

static int exit_code(const char *name, const command_line *line, int status, int asked) {
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (code == 0 || code == 128 + SIGINT || code == 128 + SIGTERM) return code;
    if (asked && code > 128) return 128 + asked; /* before they could catch it */
    if (code == 127) return cli_fail_with(name, SIFR_FAILED, "%s could not be run", line->launcher);
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

int cli_launch_ranks(int argc, char **argv, int ranks) {
    command_line line = {.count = 0};
    sigset_t set, mask;
    bool open_mpi;
    int asked;
    const char *name = argc > 0 ? argv[0] : "";
    if (ranks < 1 || ranks > RANK_LIMIT)
        return cli_fail_with(name, SIFR_USAGE, "--ranks: %d is not in 1 to %d", ranks,
                             (int)RANK_LIMIT);
    if (!comm_has_mpi())
        return cli_fail_with(name, SIFR_USAGE,
                             "--ranks: this sifr was built without MPI: install libopenmpi-dev and "
                             "openmpi-bin and build it again");
    if (!find_launcher(line.launcher, &open_mpi))
        return cli_fail_with(name, SIFR_USAGE,
                             "--ranks: there is neither mpirun nor mpiexec in PATH: install "
                             "openmpi-bin (or mpich)");
    ssize_t length = readlink("/proc/self/exe", line.program, sizeof line.program - 1);
    if (length <= 0) return cli_fail_with(name, SIFR_FAILED, "/proc/self/exe: %s", strerror(errno));
    line.program[length] = '\0';
    line.words = calloc((size_t)argc + WORDS, sizeof *line.words);
    if (!line.words) return cli_fail_with(name, SIFR_NO_MEMORY, "out of memory");
    make_command(&line, open_mpi, argc, argv, ranks);

    int threads = cli_threads_per_rank(ranks), processors = usable_processors();
    fflush(stdout);
    fprintf(stderr, "sifr %s: %d ranks on this machine, %d %s each, %d %s\n", name, ranks, threads,
            threads == 1 ? "thread" : "threads", processors,
            processors == 1 ? "processor" : "processors");

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, &mask);
    pid_t parent = getpid(), child = fork();
    if (child == 0) become_launcher(&line, &mask, parent);
    int code;
    if (child < 0) {
        code = cli_fail_with(name, SIFR_FAILED, "no process for mpirun: %s", strerror(errno));
    } else {
        int status = wait_for_ranks(child, &set, &asked);
        code = exit_code(name, &line, status, asked);
    }
    sigprocmask(SIG_SETMASK, &mask, NULL);
    free(line.words);
    return code;
}

#include "cli/launch/stop_signals.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cli/launch/ignored_signals.h"
#include "cli/launch/launch_command.h"

enum { STACK = 1 << 16 }; /* a frame with AMX's registers has 11 KiB */

const int cli_stop_signals[CLI_STOP_SIGNALS] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

static volatile sig_atomic_t came; /* set by the handler, read between steps */

/* Open MPI's launcher where sifr's own process stands in front of it. That passes one request
 * several times, and the launcher ends ranks by SIGTERM. 0: another parent. */
static pid_t passes_on;

static _Atomic int64_t since; /* see cli_stop_seen */
static _Atomic uint64_t kinds;

bool cli_stop_ends(const cli_stop_seen *seen, int number, int64_t now) {
    static const int64_t once = 2000000000; /* Slurm's come 7 to 20 ms apart */
    if (!(seen->kinds & (uint64_t)1 << number)) return false;
    return number == SIGINT || now - seen->since >= once;
}

int64_t cli_stop_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Once the handler is over. The kernel keeps it from the first process of a container. */
static void end(int number) {
    if (getpid() == 1) _exit(128 + number);
    signal(number, SIG_DFL);
    raise(number);
}

static void note(int number, siginfo_t *info, void *context) {
    (void)context;
    if (passes_on && info->si_pid == passes_on) {
        if (number == SIGTERM)
            end(number);
        else if (!came)
            came = number == SIGUSR2 ? SIGTERM : SIGINT;
        return;
    }
    int64_t now = cli_stop_clock();
    uint64_t bit = (uint64_t)1 << number;
    cli_stop_seen seen = {.kinds = atomic_fetch_or(&kinds, bit), .since = atomic_load(&since)};
    if (cli_stop_ends(&seen, number, now)) end(number);
    if (!(seen.kinds & bit)) atomic_store(&since, now);
    if (!came) came = number;
}

/* oneDNN's kernels for long sums point the stack at a buffer on the heap: a handler that ran there
 * would write its frame over what lies before that buffer. */
static void give_handlers_a_stack(void) {
    static char stack[STACK];
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
}

static bool is_passed_on(void) {
    return getenv(CLI_LAUNCHED) && !cli_launcher_passes_sigterm();
}

bool cli_stop_is_taken(int number) {
    return number == SIGINT || number == SIGTERM || !cli_is_ignored(number);
}

void cli_catch_stop_signals(void) {
    struct sigaction action = {.sa_sigaction = note,
                               .sa_flags = SA_RESTART | SA_ONSTACK | SA_SIGINFO};
    passes_on = is_passed_on() ? getppid() : 0;
    came = 0;
    atomic_store(&kinds, 0);
    sigemptyset(&action.sa_mask);
    give_handlers_a_stack();
    for (int i = 0; i < CLI_STOP_SIGNALS; i++)
        if (cli_stop_is_taken(cli_stop_signals[i])) sigaction(cli_stop_signals[i], &action, NULL);
}

int cli_stop_asked(void) {
    return came;
}

const char *cli_stop_name(int number) {
    static const char *const names[CLI_STOP_SIGNALS] = {"SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1",
                                                        "SIGUSR2"};
    if (number == SIGTERM && getenv(CLI_LAUNCHED)) return "a signal";
    for (int i = 0; i < CLI_STOP_SIGNALS; i++)
        if (cli_stop_signals[i] == number) return names[i];
    return "a signal";
}

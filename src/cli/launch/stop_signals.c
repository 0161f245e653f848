#include "cli/launch/stop_signals.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "cli/launch/hangup.h"
#include "cli/launch/launch_command.h"

enum { STACK = 1 << 16 }; /* a frame with AMX's registers has 11 KiB */

typedef struct stop_signal {
    int number, meaning;
    const char *name;
} stop_signal;

static volatile sig_atomic_t came; /* set by the handler, read between steps */

/* Whether what comes was passed on by sifr's own process in front of Open MPI's launcher. That
 * passes one request several times, and ends the ranks by SIGTERM. */
static volatile sig_atomic_t passed_on;

static _Atomic int64_t first; /* clock of the first one; 0: none came */
static _Atomic uint64_t seen; /* bit i: signal i came */

bool cli_stop_is_repeat(int number, int64_t after) {
    static const int64_t once = 2000000000; /* Slurm's come 7 to 20 ms apart */
    return number != SIGINT && after < once;
}

int64_t cli_stop_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* One that comes again and is no repeat ends the process, once the handler is over. */
static void note(int number) {
    int64_t none = 0, now = cli_stop_clock();
    uint64_t bit = (uint64_t)1 << number;
    bool again = atomic_fetch_or(&seen, bit) & bit;
    atomic_compare_exchange_strong(&first, &none, now);
    if (!again || passed_on) {
        came = number;
    } else if (!cli_stop_is_repeat(number, now - atomic_load(&first))) {
        signal(number, SIG_DFL);
        raise(number);
    }
}

/* Those of this process, and how many. */
static size_t stop_signals(const stop_signal **out) {
    static const stop_signal own[] = {
        {SIGINT, SIGINT, "SIGINT"}, {SIGTERM, SIGTERM, "SIGTERM"}, {SIGHUP, SIGHUP, "SIGHUP"}};
    static const stop_signal others[] = {{SIGUSR1, SIGINT, "SIGINT"},
                                         {SIGUSR2, SIGTERM, "SIGTERM or SIGHUP"}};
    static const stop_signal sigterm[] = {{SIGTERM, SIGTERM, "a signal"}};
    bool launched = getenv(CLI_LAUNCHED) != NULL;
    if (launched && cli_launcher_passes_sigterm()) {
        *out = sigterm;
        return 1;
    }
    *out = launched ? others : own;
    return launched || cli_hangup_ignored() ? 2 : 3;
}

/* oneDNN's kernels for long sums point the stack at a buffer on the heap: a handler that ran there
 * would write its frame over what lies before that buffer. */
static void give_handlers_a_stack(void) {
    static char stack[STACK];
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
}

void cli_catch_stop_signals(void) {
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART | SA_ONSTACK};
    const stop_signal *signals;
    size_t count = stop_signals(&signals);
    passed_on = signals[0].number == SIGUSR1;
    sigemptyset(&action.sa_mask);
    give_handlers_a_stack();
    for (size_t i = 0; i < count; i++) sigaction(signals[i].number, &action, NULL);
}

int cli_stop_asked(void) {
    const stop_signal *signals;
    int number = came;
    size_t count = number ? stop_signals(&signals) : 0;
    for (size_t i = 0; i < count; i++)
        if (signals[i].number == number) return signals[i].meaning;
    return 0;
}

const char *cli_stop_name(int meaning) {
    const stop_signal *signals;
    size_t count = stop_signals(&signals);
    for (size_t i = 0; i < count; i++)
        if (signals[i].meaning == meaning) return signals[i].name;
    return "a signal";
}

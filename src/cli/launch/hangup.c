#include "cli/launch/hangup.h"

#include <signal.h>
#include <stdbool.h>

static bool ignored;

/* Before constructors of libraries run: UCX, which Debian's MPICH uses, catches SIGHUP in one of
 * its own. So early no sanitizer is ready. */
__attribute__((no_sanitize("address", "thread", "undefined"))) static void
look(int argc, char **argv, char **environment) {
    struct sigaction action;
    (void)argc, (void)argv, (void)environment;
    ignored = sigaction(SIGHUP, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

__attribute__((section(".preinit_array"), used)) static void (*const first)(int, char **,
                                                                            char **) = look;

void cli_keep_hangup_ignored(void) {
    if (ignored) signal(SIGHUP, SIG_IGN);
}

bool cli_hangup_ignored(void) {
    struct sigaction action;
    return sigaction(SIGHUP, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

#include "cli/launch/ignored_signals.h"

#include <signal.h>
#include <stddef.h>

bool cli_is_ignored(int number) {
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

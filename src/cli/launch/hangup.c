#include "cli/launch/hangup.h"

#include <signal.h>
#include <stddef.h>

bool cli_hangup_ignored(void) {
    struct sigaction action;
    return sigaction(SIGHUP, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

#include "cli/truncation.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "sifr/status.h"

static void say_and_end(int number) {
    static const char line[] =
        "sifr: stopped because a file that is being read was cut short by another program, or its "
        "disk failed; what was written before is complete\n";
    (void)number;
    if (write(STDERR_FILENO, line, sizeof line - 1) < 0) _exit(SIFR_FAILED);
    _exit(SIFR_FAILED);
}

void cli_catch_truncation(void) {
    struct sigaction action = {.sa_handler = say_and_end};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

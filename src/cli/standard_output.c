#include "cli/standard_output.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <unistd.h>

void cli_begin_output(void) {
    signal(SIGXFSZ, SIG_IGN);
    for (int number = STDIN_FILENO; number <= STDERR_FILENO; number++) {
        if (fcntl(number, F_GETFD) >= 0) continue;
        int flags = number == STDERR_FILENO ? O_WRONLY : O_RDONLY;
        int file = open("/dev/null", flags); /* the lowest that is free: this one */
        if (file != number && file >= 0) close(file);
    }
}

void cli_outlive_readers(void) {
    signal(SIGPIPE, SIG_IGN);
}

int cli_output_is_written(void) {
    return fflush(stdout) == 0 && !ferror(stdout);
}

void cli_forgive_output(const char *name, int lost) {
    if (cli_output_is_written() && !lost) return;
    fprintf(stderr,
            "sifr %s: warning: standard output is closed or full, or its reader has ended: lines "
            "that were printed there are lost; the run does not depend on them\n",
            name);
    __fpurge(stdout);
    clearerr(stdout);
}

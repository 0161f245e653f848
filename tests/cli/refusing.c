/* Runs a program under a kernel that refuses something: refusing WHAT... -- PROGRAM ARGUMENT...
 * WHAT: rings-unknown, rings-forbidden, direct. Exit code 77 where no filter can be had. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/refuse_calls.h"

int main(int count, char **arguments) {
    refused_calls calls = {0};
    int i = 1;
    for (; i < count && strcmp(arguments[i], "--") != 0; i++) {
        if (strcmp(arguments[i], "rings-unknown") == 0)
            calls.rings = ENOSYS;
        else if (strcmp(arguments[i], "rings-forbidden") == 0)
            calls.rings = EPERM;
        else if (strcmp(arguments[i], "direct") == 0)
            calls.direct = true;
        else
            return 2;
    }
    if (i + 1 >= count) return 2;
    if (!refuse_calls(calls)) return REFUSE_SKIPPED;
    execvp(arguments[i + 1], &arguments[i + 1]);
    perror(arguments[i + 1]);
    return 2;
}

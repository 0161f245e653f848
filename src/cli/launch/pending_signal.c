#include "cli/launch/pending_signal.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool cli_is_pending(pid_t process, int number) {
    static const char of_process[] = "ShdPnd:";
    char path[64], line[128];
    uint64_t set = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)process);
    FILE *status = fopen(path, "re");
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, of_process, sizeof of_process - 1) == 0)
            set = strtoull(line + sizeof of_process - 1, NULL, 16);
    if (status) fclose(status);
    return set >> (number - 1) & 1;
}

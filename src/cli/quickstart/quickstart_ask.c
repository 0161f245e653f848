#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/quickstart/quickstart.h"

sifr_status quickstart_ask(const char *question, const char *fallback, const char **answer,
                           sifr_error *error) {
    char *line = NULL;
    size_t capacity = 0;
    if (fallback)
        printf("%s [%s]: ", question, fallback);
    else
        printf("%s: ", question);
    fflush(stdout);
    ssize_t length = getline(&line, &capacity, stdin);
    if (length < 0) {
        free(line);
        putchar('\n');
        return base_fail(error, SIFR_USAGE,
                         "the answers ended before the questions; nothing was written");
    }
    while (length > 0 && strchr(" \t\r\n", line[length - 1])) line[--length] = '\0';
    if (length == 0) {
        free(line);
        *answer = fallback;
        return SIFR_OK;
    }
    *answer = line; /* until the program ends, as an argument would be */
    return SIFR_OK;
}

/* A log for the time before it is known that the input can be used. */
#ifndef CLI_NOTES_H
#define CLI_NOTES_H

#include <jansson.h>

#include "cli/options.h"

/* Start with `name`, the command's, `keeps_warnings` and `warnings` alone. */
typedef struct cli_notes {
    const char *name;
    bool keeps_warnings;
    json_t *warnings; /* an array that gets them as well, or NULL */
    char text[2048];
    size_t used;
} cli_notes;

/* Information is kept until cli_notes_show, so that a failure is one line; warnings are printed at
 * once, unless they are kept. The log is good as long as *notes. */
sifr_log cli_notes_log(cli_notes *notes);
void cli_notes_show(cli_notes *notes);

#endif

/* SIGHUP as the program's parent left it: nohup has it ignored. */
#ifndef CLI_HANGUP_H
#define CLI_HANGUP_H

#include <stdbool.h>

/* Ignores SIGHUP if it was ignored when the program started, for this process and those that it
 * starts: libraries may have caught it since. Once, first in main. */
void cli_keep_hangup_ignored(void);

/* Whether this process ignores SIGHUP now. */
bool cli_hangup_ignored(void);

#endif

/* Signals as the program's parent left them: nohup has SIGHUP ignored, and so may a job's script
 * have those that its scheduler sends. */
#ifndef CLI_IGNORED_SIGNALS_H
#define CLI_IGNORED_SIGNALS_H

#include <stdbool.h>

/* Whether this process ignores the signal now. */
bool cli_is_ignored(int number);

#endif

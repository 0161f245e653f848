/* SIGHUP as the program's parent left it: nohup has it ignored. */
#ifndef CLI_HANGUP_H
#define CLI_HANGUP_H

#include <stdbool.h>

/* Whether this process ignores SIGHUP now. */
bool cli_hangup_ignored(void);

#endif

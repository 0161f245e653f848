/* Signals that another process has been sent, and blocks. */
#ifndef CLI_PENDING_SIGNAL_H
#define CLI_PENDING_SIGNAL_H

#include <stdbool.h>
#include <sys/types.h>

/* False also where the process cannot be looked at. */
bool cli_is_pending(pid_t process, int number);

#endif

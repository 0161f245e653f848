/* A request to stop, on its way from the process that started a launcher to the ranks. */
#ifndef CLI_STOP_REQUEST_H
#define CLI_STOP_REQUEST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/launch/stop_signals.h"

/* Zeroed but for the first two fields. */
typedef struct cli_stop_request {
    pid_t launcher;
    bool mpich;
    bool begun;   /* something came from the ranks */
    int asked;    /* the signal that asked them to stop; 0: none */
    bool again;   /* and a further one ends them */
    bool sent;    /* passed to the launcher at least once */
    int64_t next; /* when it is passed (again), and the pause after that */
    int64_t pause;
    cli_stop_seen seen;
} cli_stop_request;

/* The first signal asks the ranks to save and stop, a further one of its kind ends them; true where
 * it is one of these two. */
bool cli_stop_request_take(cli_stop_request *request, int number);

/* The ranks have begun: what was kept for them is passed now. */
void cli_stop_request_begin(cli_stop_request *request);

/* Passes it where it is time to. A launcher loses what comes before its ranks are there: Open MPI's
 * gets it again and again, which is the same request to its ranks; MPICH's, which then waits for
 * ever, gets it once, when they have begun. What does not end by the second signal is killed with
 * all that it started on this machine. */
void cli_stop_request_act(cli_stop_request *request);

/* Milliseconds until then; -1: nothing is to be done. */
int cli_stop_request_wait(const cli_stop_request *request);

#endif

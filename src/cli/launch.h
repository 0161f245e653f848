/* Starting a command on several ranks, of this machine or of several. */
#ifndef CLI_LAUNCH_H
#define CLI_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* What the user asked for; texts may be NULL. */
typedef struct cli_launch_request {
    int64_t ranks;
    bool ranks_given; /* else: as many as the hosts have slots, one without hosts */
    const char *hostfile, *include, *exclude; /* hostfile.h has the rules */
} cli_launch_request;

/* Where more ranks than this process are asked for: runs `sifr argv[0] argv[1] …` on them under the
 * MPI's own launcher, waits, and says true; *code is then the program's exit code: the ranks' own,
 * 4 where one was lost, 2 where the request was wrong. False: go on in this process, which is the
 * only rank, or one of those that a launcher started. SIGINT and SIGTERM reach the ranks as SIGUSR1
 * and SIGUSR2, so that they are not taken for what a launcher sends to end them: see
 * cli_stop_signals. */
bool cli_launch(int argc, char **argv, const cli_launch_request *request, int *code);

/* cli_launch with that many ranks of this machine, at least two, from a process that is no rank. */
int cli_launch_ranks(int argc, char **argv, int ranks);

/* The signals that ask this process to save and stop, and what each of them means: SIGINT and
 * SIGTERM themselves, or, in a rank that cli_launch started, SIGUSR1 and SIGUSR2; there a
 * SIGTERM comes from the launcher, whose other ranks are lost, and must end the process. */
typedef struct cli_stop_signal {
    int number, meaning;
} cli_stop_signal;

const cli_stop_signal *cli_stop_signals(void); /* two of them */

/* Whether lines that replace each other can be shown on this stream (stdout or stderr): it is a
 * terminal, also where a launcher stands between. */
bool cli_is_terminal(FILE *stream);

/* Threads for each of `local_ranks` ranks that share this machine's processors, at least 1. */
int cli_threads_per_rank(int local_ranks);

#endif

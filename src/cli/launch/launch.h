/* Starting a command on several ranks, of this machine or of several. */
#ifndef CLI_LAUNCH_H
#define CLI_LAUNCH_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/launch/launch_choice.h"

/* Runs `sifr argv[0] argv[1] …` on the chosen ranks under the MPI's own launcher, and waits; the
 * result is the program's exit code: the ranks' own, or 4 where one was lost. Under Open MPI
 * SIGINT reaches the ranks as SIGUSR1, others that ask to stop as SIGUSR2, so that they are not
 * taken for what its launcher sends to end them; under MPICH all come as SIGTERM: see
 * cli_catch_stop_signals. SIGTERM to Open MPI's launcher itself is one to this process.
 * After a signal the launcher's own messages are dropped: the ranks' line is the last one. */
int cli_launch(int argc, char **argv, const cli_launch_choice *choice);

/* Whether this process speaks for all: it is no rank, or the first one of its host that a launcher
 * started. Where a launcher's variables are left over it is that, whatever number they give it.
 * After its words it stays a second (cli_spoke), so that the others see it. */
bool cli_speaks(void);
void cli_spoke(void);

/* cli_fail for what every rank finds by itself before MPI is there: one of a host says it
 * (cli_speaks), and the others leave later, as a launcher may end all when one leaves. */
int cli_fail_once(const char *name, const sifr_error *error);

/* What comm_start calls: says the line, unless it is "", and ends this process with 4 after the
 * last one, since MPI's start cannot be left. */
void cli_start_late(const char *name, bool last, const char *line);

/* Whether lines that replace each other can be shown on this stream (stdout or stderr): it is a
 * terminal, also where a launcher stands between. */
bool cli_is_terminal(FILE *stream);

#endif

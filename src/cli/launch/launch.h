/* Starting a command on several ranks, of this machine or of several. */
#ifndef CLI_LAUNCH_H
#define CLI_LAUNCH_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/launch/launch_choice.h"

/* Runs `sifr argv[0] argv[1] …` on the chosen ranks under the MPI's own launcher, and waits; the
 * result is the program's exit code: the ranks' own, or 4 where one was lost. Under Open MPI
 * SIGINT reaches the ranks as SIGUSR1, SIGTERM and SIGHUP as SIGUSR2, so that they are not taken
 * for what its launcher sends to end them; under MPICH all come as SIGTERM: see cli_stop_signals.
 * After a signal the launcher's own messages are dropped: the ranks' line is the last one. */
int cli_launch(int argc, char **argv, const cli_launch_choice *choice);

/* A signal that asks this process to save and stop, what it means, and its name; "a signal" where
 * a launcher made it of several. */
typedef struct cli_stop_signal {
    int number, meaning;
    const char *name;
} cli_stop_signal;

/* Those of this process, and how many: SIGINT, SIGTERM and SIGHUP themselves (the last one unless
 * it was ignored at the start, as nohup has it), or those of cli_launch in a rank that it started.
 * In a rank under Open MPI a SIGTERM comes from the launcher, whose other ranks are lost, and must
 * end the process. */
size_t cli_stop_signals(const cli_stop_signal **out);

/* cli_fail for what every rank finds by itself before MPI is there: the first one says it, and the
 * others leave a second later, as a launcher may end all when one leaves. */
int cli_fail_once(const char *name, const sifr_error *error);

/* Whether lines that replace each other can be shown on this stream (stdout or stderr): it is a
 * terminal, also where a launcher stands between. */
bool cli_is_terminal(FILE *stream);

#endif

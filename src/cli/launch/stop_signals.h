/* Signals that ask `sifr train` to save and stop. */
#ifndef CLI_STOP_SIGNALS_H
#define CLI_STOP_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

/* Catches SIGINT, SIGTERM and SIGHUP (the last one unless it was ignored at the start, as nohup
 * has it), or what cli_launch makes of them in a rank that it started. Called by the main thread,
 * whose handlers then run on a stack of their own. In a rank under Open MPI a SIGTERM comes from
 * the launcher, whose other ranks are lost, and ends the process. The first signal is noted, the
 * second ends the process at once, unless it is a repeat of the first. */
void cli_catch_stop_signals(void);

/* What the signal that came asks for: SIGINT, SIGTERM or SIGHUP; 0: none came. */
int cli_stop_asked(void);

/* The name of such a signal; "a signal" where a launcher made it of several. */
const char *cli_stop_name(int meaning);

/* Whether a further signal, that many nanoseconds after the first, asks for nothing new: a
 * scheduler and what stands between it and a rank may each send a SIGTERM. A person's Ctrl-C is
 * meant. */
bool cli_stop_is_repeat(int number, int64_t after);
int64_t cli_stop_clock(void); /* in nanoseconds */

#endif

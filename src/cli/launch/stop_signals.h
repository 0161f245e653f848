/* Signals that ask `sifr train` to save and stop. */
#ifndef CLI_STOP_SIGNALS_H
#define CLI_STOP_SIGNALS_H

/* Catches SIGINT, SIGTERM and SIGHUP (the last one unless it was ignored at the start, as nohup
 * has it), or what cli_launch makes of them in a rank that it started. Called by the main thread,
 * whose handlers then run on a stack of their own. In a rank under Open MPI a SIGTERM comes from
 * the launcher, whose other ranks are lost, and ends the process. The first signal is noted, the
 * second ends the process at once. */
void cli_catch_stop_signals(void);

/* What the signal that came asks for: SIGINT, SIGTERM or SIGHUP; 0: none came. */
int cli_stop_asked(void);

/* The name of such a signal; "a signal" where a launcher made it of several. */
const char *cli_stop_name(int meaning);

#endif

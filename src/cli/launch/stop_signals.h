/* Signals that ask `sifr train` to save and stop. */
#ifndef CLI_STOP_SIGNALS_H
#define CLI_STOP_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* SIGINT, SIGTERM, SIGHUP, and those that schedulers send ahead of them by wish: SIGUSR1, SIGUSR2.
 */
enum { CLI_STOP_SIGNALS = 5 };
extern const int cli_stop_signals[CLI_STOP_SIGNALS];

/* Whether the signal asks this process to stop: SIGHUP, SIGUSR1 and SIGUSR2 do unless they were
 * ignored at the start. */
bool cli_stop_is_taken(int number);

/* Catches them; none has come yet. Called by the main thread, whose handlers then run on a stack of
 * their own. In a rank that cli_launch started under Open MPI, those that the launcher sends mean
 * something else: SIGUSR1 and SIGUSR2 are what cli_launch was asked, SIGTERM ends the process,
 * since other ranks are lost. The first signal is noted; a further one of its kind ends the process
 * at once. */
void cli_catch_stop_signals(void);

/* The signal that came first; 0: none came. */
int cli_stop_asked(void);

/* The name of such a signal; "a signal" where a launcher made it of several. */
const char *cli_stop_name(int number);

/* Signals that came: bit i is signal i, and when the newest kind of them came first. */
typedef struct cli_stop_seen {
    uint64_t kinds;
    int64_t since;
} cli_stop_seen;

/* Whether a signal that comes now ends what has seen those. One of another kind does not, nor a
 * repeat: a scheduler and what stands between it and a rank may each send a SIGTERM. A person's
 * Ctrl-C is meant. */
bool cli_stop_ends(const cli_stop_seen *seen, int number, int64_t now);
int64_t cli_stop_clock(void); /* in nanoseconds */

#endif

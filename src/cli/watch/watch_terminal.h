/* The terminal while `sifr watch` has it: its other screen, keys without echo, signals. What was on
 * it before is there again afterwards. */
#ifndef CLI_WATCH_TERMINAL_H
#define CLI_WATCH_TERMINAL_H

#include <stdbool.h>

typedef struct cli_window {
    int columns, rows;
} cli_window;

/* Of standard output; 80 by 24 where it does not say. */
cli_window cli_watch_window(void);

void cli_watch_begin(void);
/* Returns the signal that has asked to end it, also during a write that it cut; 0: none has. */
int cli_watch_end(void);

/* Shows the lines of `text` from the top, in place of those that were there. */
void cli_watch_show(const char *text, bool clear);

/* Waits for a key, a signal or that many milliseconds. True if the person wants to end it: by q or
 * Ctrl-D, or by a signal. After Ctrl-Z and fg the screen is begun anew, which *again says. */
bool cli_watch_wait(int milliseconds, bool *again);

#endif

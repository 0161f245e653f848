/* What a terminal can show, by its environment. */
#ifndef CLI_TERMINAL_KIND_H
#define CLI_TERMINAL_KIND_H

#include <stdbool.h>
#include <stdio.h>

/* By the locale: LC_ALL, else LC_CTYPE, else LANG. */
bool cli_shows_utf8(void);

/* TERM=dumb: it has no cursor to move. */
bool cli_is_dumb(void);

/* A terminal that says what it is, and moves its cursor. */
bool cli_draws(FILE *stream);

/* Whether bold and colours are wanted: not with NO_COLOR, unless that is empty. */
bool cli_wants_styles(void);

#endif

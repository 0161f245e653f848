/* A run that is followed, as the lines of a terminal. */
#ifndef TRAIN_VIEW_SCREEN_H
#define TRAIN_VIEW_SCREEN_H

#include <stdbool.h>

#include "train/view/view_follow.h"

typedef struct train_screen {
    int columns, rows;
    bool utf8;        /* charts in braille; else in ASCII */
    bool styled;      /* with bold and colours, by ANSI's sequences; else text alone */
    const char *foot; /* the last line; NULL: none */
} train_screen;

/* At most `rows` lines, each with a line feed, in fewer than `columns` columns each. What comes
 * from files is shown as text. *out is the caller's to free. */
sifr_status train_screen_draw(const train_screen *screen, const train_view_follow *follow,
                              char **out, sifr_error *error) SIFR_MUST_CHECK;

/* Without charts: what is new behind event number *events and record number *records, a line for
 * each event and one for the newest record and the run's state; "" if there is nothing. Both are
 * set to what has been told. */
sifr_status train_screen_news(const train_view_follow *follow, bool utf8, int64_t *events,
                              int64_t *records, char **out, sifr_error *error) SIFR_MUST_CHECK;

#endif

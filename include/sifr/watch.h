/* A run that is followed while it trains, or looked at after it: what `sifr watch` shows. It reads
 * what the run leaves in its output folder, and changes nothing there.
 *
 *     sifr_watch_open(context, "out", &watch, &error);
 *     do sifr_watch_look(watch, &state, &error); while (state.behind);
 *     sifr_watch_screen(watch, &(sifr_watch_options){.size = sizeof(sifr_watch_options),
 *                                                    .columns = 80, .rows = 24}, &text, &error);
 *
 * It takes the same memory for a run of any length: the log is thinned while it is read. */
#ifndef SIFR_WATCH_H
#define SIFR_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sifr/context.h"
#include "sifr/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sifr_watch sifr_watch;

typedef struct sifr_watch_state {
    size_t size;         /* sizeof(sifr_watch_state), set by the caller */
    bool there;          /* the folder has a log */
    bool behind;         /* the log has more already: look again before you show it */
    bool over;           /* the run has ended, as far as its folder tells; a killed one does not */
    int64_t records;     /* lines of the log that were read */
    int64_t step;        /* of the newest one; -1: none */
    int64_t total_steps; /* 0: not known */
    double left;         /* seconds to the end, by the last steps; NaN: not known */
} sifr_watch_state;

/* How the screen is drawn. Zeros: 80 columns by 24 rows of ASCII. */
typedef struct sifr_watch_options {
    size_t size; /* sizeof(sifr_watch_options) */
    int columns, rows;
    bool utf8;        /* charts in braille */
    bool styled;      /* bold, faint and a colour, by ANSI's sequences */
    const char *foot; /* the last line, without controls; NULL: none */
} sifr_watch_options;

/* The folder may be made later. SIFR_USAGE if `run` is something else than a folder. */
SIFR_API sifr_status sifr_watch_open(sifr_context *context, const char *run, sifr_watch **out,
                                     sifr_error *error) SIFR_MUST_CHECK;
SIFR_API void sifr_watch_close(sifr_watch *watch); /* harmless on NULL */

/* Reads what is new, at most 16 MiB of it. A log that was replaced or cut is read anew. */
SIFR_API sifr_status sifr_watch_look(sifr_watch *watch, sifr_watch_state *out,
                                     sifr_error *error) SIFR_MUST_CHECK;

/* At most options->rows lines, each with a line feed, narrower than options->columns: state and
 * figures, charts, the last events. What comes from files holds nothing that a terminal would act
 * on. options: NULL for zeros. Free *text with sifr_text_free. */
SIFR_API sifr_status sifr_watch_screen(sifr_watch *watch, const sifr_watch_options *options,
                                       char **text, sifr_error *error) SIFR_MUST_CHECK;

/* As lines to read one after the other: events that were not told yet, and the newest figures. */
SIFR_API sifr_status sifr_watch_news(sifr_watch *watch, char **text,
                                     sifr_error *error) SIFR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif

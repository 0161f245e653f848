/* A file of a run's records, a line each, that loses none: each line is flushed, what a full disk
 * refuses is written with the next line, and a kill leaves either the file from before a resume or
 * the one that goes on from it. One that is deleted meanwhile is made again by the next line. */
#ifndef TRAIN_KEPT_LINES_H
#define TRAIN_KEPT_LINES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/errors.h"

typedef struct train_lines { /* {0}: closed */
    FILE *file;
    char *path;
    int64_t bytes; /* of whole lines in the file */
    char *pending; /* lines that are not in the file */
    size_t pending_bytes;
    bool behind; /* the last write has failed */
    bool drops;  /* what cannot be written is lost */
    bool gone;   /* the file has been deleted: the next write makes one without what preceded */
} train_lines;

/* Begins OUTPUT/NAME anew, beside the file that is there. */
sifr_status train_lines_open(train_lines *lines, const char *output, const char *name,
                             sifr_error *error) SIFR_MUST_CHECK;
/* Puts the new file in the place of the old one. */
sifr_status train_lines_place(train_lines *lines, sifr_error *error) SIFR_MUST_CHECK;
void train_lines_close(train_lines *lines); /* also before it is in its place */

/* Goes on with the file `path` behind its first `bytes` bytes; the rest goes. There what cannot be
 * written is lost, and leaves no torn line. Where it fails, the lines are closed. */
sifr_status train_lines_go_on(train_lines *lines, const char *path, int64_t bytes,
                              sifr_error *error) SIFR_MUST_CHECK;

/* At the end: tries a last time to write what is not in the file. True: it lacks lines for good,
 * which `line` says as a line for the user; no half of one is left in it. */
bool train_lines_lack(train_lines *lines, char line[SIFR_ERROR_LENGTH]);

/* SIFR_FAILED if it cannot be written; it is written with the next line then. */
sifr_status train_lines_add(train_lines *lines, const char *text, size_t size,
                            sifr_error *error) SIFR_MUST_CHECK;

/* Calls `each` for the whole lines of a file that are JSON; a missing file has none. */
sifr_status train_lines_read(const char *path,
                             sifr_status (*each)(void *user, const json_t *record,
                                                 sifr_error *error),
                             void *user, sifr_error *error) SIFR_MUST_CHECK;

#endif

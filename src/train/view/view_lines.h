/* The whole lines of a file that may be long, and may be written meanwhile. */
#ifndef TRAIN_VIEW_LINES_H
#define TRAIN_VIEW_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

/* rest: bytes behind the last line feed; passed: lines that were too long. */
typedef struct train_view_lines {
    int64_t lines, passed;
    size_t rest;
} train_view_lines;

typedef struct train_view_reader { /* {0}: closed */
    int descriptor;
    const char *path; /* borrowed */
    char *buffer;
    size_t filled;
    bool inside; /* of a line that is too long */
} train_view_reader;

/* A regular file. */
sifr_status train_view_reader_open(train_view_reader *reader, const char *path,
                                   sifr_error *error) SIFR_MUST_CHECK;
void train_view_reader_close(train_view_reader *reader); /* harmless on a zeroed one */

/* Calls take(user, line, size) for each whole line behind those that were taken, without its line
 * feed, up to the file's present end or some `most` bytes. Lines of more than 64 KiB are not handed
 * on. A status of `take` that is not SIFR_OK ends it. *end: that the file has no more now. */
sifr_status train_view_reader_take(train_view_reader *reader, uint64_t most, void *user,
                                   sifr_status (*take)(void *user, const char *line, size_t size,
                                                       sifr_error *error),
                                   train_view_lines *out, bool *end,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* Of the whole file, in pieces. */
sifr_status train_view_each_line(const char *path, void *user,
                                 sifr_status (*take)(void *user, const char *line, size_t size,
                                                     sifr_error *error),
                                 train_view_lines *out, sifr_error *error) SIFR_MUST_CHECK;

#endif

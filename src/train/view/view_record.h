/* Lines of metrics.jsonl, read fast: a run of ten million steps has gigabytes of them. */
#ifndef TRAIN_VIEW_RECORD_H
#define TRAIN_VIEW_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

enum { TRAIN_VIEW_FIELDS = 64 }; /* of a record; more are left out, and counted */

typedef struct train_view_field {
    const char *key; /* [length], without escapes */
    size_t length;
    double value; /* NaN: null */
} train_view_field;

typedef struct train_view_record {
    int64_t step;
    size_t count, left_out;
    train_view_field fields[TRAIN_VIEW_FIELDS];
} train_view_record;

/* A flat object that has a whole "step" from 0 on. Members that are neither numbers nor null are
 * passed over. False: it is none. The keys lie in `line`. */
bool train_view_record_read(const char *line, size_t size, train_view_record *out);

/* Calls take(user, line, size) for each whole line of a regular file, without its line feed, and
 * holds no more than a piece of it. Lines of more than 64 KiB are not handed on. *rest: bytes
 * behind the last line feed; *passed: lines that were too long. A status of `take` that is not
 * SIFR_OK ends it. */
typedef struct train_view_lines {
    int64_t lines, passed;
    size_t rest;
} train_view_lines;
sifr_status train_view_each_line(const char *path, void *user,
                                 sifr_status (*take)(void *user, const char *line, size_t size,
                                                     sifr_error *error),
                                 train_view_lines *out, sifr_error *error) SIFR_MUST_CHECK;

#endif

/* Lines of metrics.jsonl, read fast: a run of ten million steps has gigabytes of them. */
#ifndef TRAIN_VIEW_RECORD_H
#define TRAIN_VIEW_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif

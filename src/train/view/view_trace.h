/* The trace of a run (`sifr train --trace`), summed up, and the spans of one of its steps. */
#ifndef TRAIN_VIEW_TRACE_H
#define TRAIN_VIEW_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/errors.h"

enum { TRAIN_VIEW_SUMS = 256, TRAIN_VIEW_TRACKS = 64 };

typedef enum train_view_sums {
    TRAIN_VIEW_CLASS,
    TRAIN_VIEW_UNIT,
    TRAIN_VIEW_WIRE,
    TRAIN_VIEW_TABLES
} train_view_sums;

/* Of a class: "backward linear_backward", of a unit "h.3", of the wire "gather". Microseconds. */
typedef struct train_view_sum {
    char name[128];
    int64_t calls;
    double time, bytes;
    double parts[3]; /* of a unit: forward, recompute, backward */
} train_view_sum;

typedef struct train_view_span {
    int32_t track; /* index in tracks */
    char kind;     /* the first letter of its category; 'w' also for waits */
    double start, length;
    char name[128];
} train_view_span;

typedef struct train_view_track {
    int64_t rank, queue;
    char name[64];
} train_view_track;

typedef struct train_view_trace {
    bool there;                  /* the file; else nothing below */
    char why[SIFR_ERROR_LENGTH]; /* it is there, and cannot be read or has no step; else "" */
    train_view_sum *sums[TRAIN_VIEW_TABLES];
    size_t sum_count[TRAIN_VIEW_TABLES];
    int64_t sums_left_out, tracks_left_out, spans_left_out, bad_lines;
    train_view_span *spans; /* of `step` */
    size_t span_count, span_capacity;
    train_view_track *tracks;
    size_t track_count;
    int64_t step; /* the first of the file; -1: none */
    double begin, end;
    int64_t steps_of_ranks; /* steps in the file, of all ranks together */
} train_view_trace;

/* A file that is not there, or no trace, is no error: see above. It holds at most `spans` of them.
 * SIFR_NO_MEMORY. */
sifr_status train_view_trace_open(train_view_trace *trace, const char *path, size_t spans,
                                  sifr_error *error) SIFR_MUST_CHECK;
void train_view_trace_close(train_view_trace *trace);

#endif

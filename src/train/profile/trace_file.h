/* The file of a trace, event by event. Private to trace*.c. What goes wrong while it is written is
 * kept, and comes out at the commit: whoever feeds it goes on, as the other ranks do. */
#ifndef TRAIN_TRACE_FILE_H
#define TRAIN_TRACE_FILE_H

#include "engine/executor/executor.h"

typedef struct train_trace_file train_trace_file;

/* One traced step of a rank. */
typedef struct train_trace_step {
    int64_t number; /* in the run, from 1 */
    engine_span span;
    int32_t controls, left_out; /* control messages: recorded, and those beyond the room */
} train_trace_step;

/* What ranks say of themselves. */
typedef struct train_trace_rank {
    double start; /* of its first traced step, by its own clock */
    char host[64];
} train_trace_rank;

/* Fills in the host. */
void train_trace_rank_name(train_trace_rank *rank);

/* SIFR_USAGE where no file can be made at `path`. */
sifr_status train_trace_file_check(const char *path, sifr_error *error) SIFR_MUST_CHECK;

/* The names of events are those of the schedule, which must outlive the file. */
sifr_status train_trace_file_open(const char *path, const plan_schedule *schedule,
                                  train_trace_file **out, sifr_error *error) SIFR_MUST_CHECK;

/* First: the ranks, how far their clocks are ahead, and the time that the file calls 0; borrowed.
 */
void train_trace_file_ranks(train_trace_file *file, const train_trace_rank *ranks,
                            const double *ahead, double origin);

/* Then, rank by rank and step by step. spans[count] are of instructions first, first + 1, … */
void train_trace_file_step(train_trace_file *file, int32_t rank, const train_trace_step *step);
void train_trace_file_spans(train_trace_file *file, int32_t rank, const train_trace_step *step,
                            size_t first, const engine_span *spans, size_t count);
void train_trace_file_control(train_trace_file *file, int32_t rank, const train_trace_step *step,
                              const comm_event *event);

sifr_status train_trace_file_commit(train_trace_file *file, sifr_error *error) SIFR_MUST_CHECK;
void train_trace_file_close(train_trace_file *file); /* after a commit, or to drop it; or NULL */

#endif

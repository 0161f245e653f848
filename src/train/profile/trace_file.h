/* Writes the file of a trace, event by event. Private to trace*.c. An error while writing is kept
 * and returned by the commit, so that the caller can go on in step with the other ranks.
 */
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

/* Facts that each rank sends about itself. */
typedef struct train_trace_rank {
    double start; /* start of its first traced step, by its own clock */
    int64_t instructions;
    char host[64];
} train_trace_rank;

/* Fills in the host. */
void train_trace_rank_name(train_trace_rank *rank);

/* SIFR_USAGE where no file can be made at `path`. */
sifr_status train_trace_file_check(const char *path, sifr_error *error) SIFR_MUST_CHECK;

/* Events are named after the instructions of the schedules, one a stage of the pipeline, which must
 * outlive the file. */
sifr_status train_trace_file_open(const char *path, const plan_schedule *const *stages,
                                  train_trace_file **out, sifr_error *error) SIFR_MUST_CHECK;

/* Call first: sets the ranks, how far their clocks are ahead, and the time that is 0 in the file;
 * borrowed. */
void train_trace_file_ranks(train_trace_file *file, const train_trace_rank *ranks,
                            const double *ahead, double origin);

/* Call next for each rank and step. spans[count] belong to instructions first, first + 1, … */
void train_trace_file_step(train_trace_file *file, int32_t rank, const train_trace_step *step);
void train_trace_file_spans(train_trace_file *file, int32_t rank, const train_trace_step *step,
                            size_t first, const engine_span *spans, size_t count);
void train_trace_file_control(train_trace_file *file, int32_t rank, const train_trace_step *step,
                              const comm_event *event);

sifr_status train_trace_file_commit(train_trace_file *file, sifr_error *error) SIFR_MUST_CHECK;
void train_trace_file_close(
    train_trace_file *file); /* after a commit, or to discard the file; NULL is harmless */

#endif

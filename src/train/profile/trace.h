/* The timeline of a few steps: each instruction on every rank's queues, as a file in Chrome's trace
 * event format for Perfetto (ui.perfetto.dev) and chrome://tracing. Each rank is a process in the
 * file and its queues are threads. Times are by rank 0's clock.
 *
 * All memory that the steps need is taken when the trace is opened.
 */
#ifndef TRAIN_TRACE_H
#define TRAIN_TRACE_H

#include "engine/handle.h"

typedef struct train_trace train_trace;

/* Opens a trace of steps first … last of the run, counted from 1. Rank 0 will write to `path`. The
 * path, the engine and its group must outlive the trace. Not a collective: a rank may fail alone.
 * SIFR_USAGE if the steps need more memory than a trace may take, or if `path` cannot be a file. */
sifr_status train_trace_open(sifr_engine *engine, const char *path, int64_t first, int64_t last,
                             train_trace **out, sifr_error *error) SIFR_MUST_CHECK;
void train_trace_close(train_trace *trace); /* NULL is harmless */

int64_t train_trace_bytes(const train_trace *trace); /* taken; 0 of NULL */
int64_t train_trace_steps(const train_trace *trace); /* recorded so far; 0 of NULL */

/* Called around each step of the engine; steps that are not traced cost nothing. NULL is harmless.
 */
void train_trace_begin(train_trace *trace);
void train_trace_end(train_trace *trace);

/* For the group's watcher, during steps. NULL is harmless. */
void train_trace_hear(train_trace *trace, const comm_event *event);

/* True if all traced steps are done and the file is not written yet. False for NULL. */
bool train_trace_ready(const train_trace *trace);
bool train_trace_written(const train_trace *trace); /* or was tried to */

/* Rank 0 writes the file from the recorded steps, in pieces, as the other ranks send theirs. All
 * ranks call it after the same step and get the same status. */
sifr_status train_trace_write(train_trace *trace, sifr_error *error) SIFR_MUST_CHECK;

#endif

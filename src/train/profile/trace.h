/* The timeline of a few steps: what every rank's queues did, instruction by instruction, as a file
 * in Chrome's trace event format, which Perfetto (ui.perfetto.dev) and chrome://tracing open. A
 * process of the file is a rank, its threads are the rank's queues; times are those of rank 0's
 * clock.
 *
 * All memory that the steps need is taken when the trace is opened. */
#ifndef TRAIN_TRACE_H
#define TRAIN_TRACE_H

#include "engine/handle.h"

typedef struct train_trace train_trace;

/* Traces steps first … last of the run, as they are counted from 1 in its lines. `path` is where
 * rank 0 will write; it, the engine and its group must outlive the trace. Not a collective: a rank
 * may fail alone, with SIFR_USAGE where the steps take more memory than a trace may, or where
 * `path` is no place for a file. */
sifr_status train_trace_open(sifr_engine *engine, const char *path, int64_t first, int64_t last,
                             train_trace **out, sifr_error *error) SIFR_MUST_CHECK;
void train_trace_close(train_trace *trace); /* NULL is harmless */

int64_t train_trace_bytes(const train_trace *trace); /* taken; 0 of NULL */
int64_t train_trace_steps(const train_trace *trace); /* recorded so far; 0 of NULL */

/* Around each step of the engine; what is not traced costs nothing. NULL is harmless. */
void train_trace_begin(train_trace *trace);
void train_trace_end(train_trace *trace);

/* For the group's watcher, during steps. NULL is harmless. */
void train_trace_hear(train_trace *trace, const comm_event *event);

/* Whether the last of the traced steps is done, and the file is not written. False of NULL. */
bool train_trace_ready(const train_trace *trace);
bool train_trace_written(const train_trace *trace); /* or was tried to */

/* Rank 0 writes the file with what is there, in pieces, as the others hand it over; all ranks call
 * it, after the same step, and get the same status. */
sifr_status train_trace_write(train_trace *trace, sifr_error *error) SIFR_MUST_CHECK;

#endif

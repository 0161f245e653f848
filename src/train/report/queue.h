/* Records on their way to the sinks that a run is asked for. A thread takes them out: a sink that
 * is slow or fails holds up no step, and ends no run. What is lost is said once, when the first is,
 * and counted at the end. On the first rank alone. */
#ifndef TRAIN_QUEUE_H
#define TRAIN_QUEUE_H

#include "train/report/sink.h"

typedef struct train_queue train_queue;

/* Opens the sinks that settings->config asks for; *out is NULL where it asks for none. SIFR_USAGE
 * or SIFR_FAILED for one that cannot be opened: nothing has been trained yet. */
sifr_status train_queue_open(const train_report_settings *settings, train_queue **out,
                             sifr_error *error) SIFR_MUST_CHECK;

/* Takes no time and no memory: where the queue is full, the record is lost. */
void train_queue_put(train_queue *queue, const train_record *record);

/* Tells the sinks that the run ends by an error. Before train_queue_close; harmless on NULL. */
void train_queue_failed(train_queue *queue);

/* Tells it that metrics.jsonl lacks records. Before train_queue_close; harmless on NULL. */
void train_queue_unkept(train_queue *queue);

/* Waits until all that is in the queue has been written. Harmless on NULL. */
void train_queue_close(train_queue *queue);

#endif

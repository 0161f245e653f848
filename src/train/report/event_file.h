/* The records of an event file: TensorFlow's framing (length, checksums) around an Event message of
 * protocol buffers. Each function writes one into out[TRAIN_EVENT_BYTES] and returns its size. */
#ifndef TRAIN_EVENT_FILE_H
#define TRAIN_EVENT_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "train/report/events.h"

enum { TRAIN_EVENT_BYTES = 192 };

/* The first of a file. `time`: seconds since 1970. */
size_t train_event_version(double time, uint8_t *out);

/* A run goes on: from `step` on what earlier files have counts no longer. */
size_t train_event_restart(double time, int64_t step, uint8_t *out);

size_t train_event_scalar(double time, int64_t step, const train_event *event, uint8_t *out);

#endif

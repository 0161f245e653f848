/* Resolves "device": "auto", "step_order": "auto" and "recompute": "auto" before the engine is
 * made.
 */
#ifndef TRAIN_STEP_CHOICE_H
#define TRAIN_STEP_CHOICE_H

#include "train/run.h"

/* Memory for measuring the machine; no more than a small plan takes. */
enum { TRAIN_MEASURE_BYTES = 12 << 20 };

/* Measures the machine into t->machine, for predicted times and for shares of the machine's limits.
 * `memory` may be NULL. */
sifr_status train_measure_machine(train_state *t, device *dev, void *memory, int64_t bytes,
                                  sifr_error *error) SIFR_MUST_CHECK;

/* Settles what the ranks compute on, into t->device and *options, and says why "auto" is the CPU,
 * and what it costs where ranks share a GPU. All ranks call it. */
sifr_status train_choose_device(train_state *t, sifr_settings *options,
                                sifr_error *error) SIFR_MUST_CHECK;

/* Sets the other values that the config leaves to "auto", the same on all ranks. All ranks call it.
 */
sifr_status train_choose_step(train_state *t, sifr_settings *options,
                              sifr_error *error) SIFR_MUST_CHECK;

#endif

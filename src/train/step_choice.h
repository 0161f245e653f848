/* What a run leaves to sifr and has to be known before its engine: "step_order": "auto" and
 * "recompute": "auto". */
#ifndef TRAIN_STEP_CHOICE_H
#define TRAIN_STEP_CHOICE_H

#include "train/run.h"

/* Bytes that measuring the machine takes, not to be more than the plan where that is small. */
enum { TRAIN_MEASURE_BYTES = 12 << 20 };

/* What the plan is priced on, and shares are shares of, into t->machine. `memory` may be NULL. */
sifr_status train_measure_machine(train_state *t, device *dev, void *memory, int64_t bytes,
                                  sifr_error *error) SIFR_MUST_CHECK;

/* Sets what the config leaves open, alike on all ranks, which call it together. */
sifr_status train_choose_step(train_state *t, sifr_settings *options,
                              sifr_error *error) SIFR_MUST_CHECK;

#endif

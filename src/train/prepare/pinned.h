/* What a run chose by itself and its checkpoints hold, so that a run that goes on has the same
 * bits: the step order.
 */
#ifndef TRAIN_PINNED_H
#define TRAIN_PINNED_H

#include <jansson.h>

#include "train/run.h"

/* Of the checkpoint from which the run goes on. */
typedef struct train_pinned {
    int64_t step;    /* -1: there is none */
    bool is_written; /* the checkpoint is of a version that writes its order */
    bool has_order;  /* its steps had several micro batches */
    sifr_step_order order;
    bool has_sums; /* it says how gradients were added, of which this is a hash */
    uint64_t sums;
} train_pinned;

/* The order in which this run adds gradients as that of the checkpoint did, if only one of the two
 * does; else that of the checkpoint. On other ranks it may be the other one. False: neither is
 * known. */
bool train_pinned_order(const train_pinned *pinned, const plan_settings *settings,
                        sifr_step_order *out);

/* Whether a run in `settings->step.step_order` adds gradients as that of the checkpoint did. */
bool train_pinned_same_sums(const train_pinned *pinned, const plan_settings *settings);

/* One line where the other order than the run's own has the bits of the checkpoint's run. */
void train_pinned_say_other(const train_host *host, const train_pinned *pinned,
                            const plan_settings *settings);

/* Reads it on the first rank, for all. All ranks call it. */
sifr_status train_pinned_read(train_state *t, train_pinned *out, sifr_error *error) SIFR_MUST_CHECK;

/* Adds it to the state of a checkpoint; false where memory ran out. */
bool train_pinned_put(json_t *state, const plan_settings *settings);

/* One line on a checkpoint that does not say its order, if the run's own has an effect. */
void train_pinned_say_unknown(const train_host *host, const train_pinned *pinned,
                              const plan_settings *settings);

#endif

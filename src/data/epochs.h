/* How the steps of a run lie over its data: which samples a step has, where an epoch ends.
 *
 * Sample number e * windows + p is the window at place p of epoch e (train_data_sample). Rows have
 * batches that end with their epoch, as in transformers' Trainer: what does not fill a batch is a
 * step with fewer rows, or left out. Batches of a stream of text run on into the next epoch.
 */
#ifndef TRAIN_EPOCHS_H
#define TRAIN_EPOCHS_H

#include <stdint.h>

typedef enum train_last_batch {
    TRAIN_LAST_SHORT,   /* the last batch of an epoch has what is left */
    TRAIN_LAST_DROPPED, /* what does not fill a micro batch is left out of its epoch */
    TRAIN_LAST_JOINED   /* batches run on into the next epoch; the run's last one is left out */
} train_last_batch;

typedef struct train_epochs {
    train_last_batch last;
    int64_t windows; /* of an epoch */
    int64_t used;    /* of those, at its first places */
    int64_t batch, micro;
    int64_t steps; /* of an epoch; 0 where batches are joined, or where nothing is used */
} train_epochs;

/* batch: sequences of a step; micro: of a micro batch, which divides them. All above 0. */
train_epochs train_epochs_make(train_last_batch last, int64_t windows, int64_t batch,
                               int64_t micro);

/* Steps of `epochs` passes, a fraction of a step rounded as the Trainer rounds it; of joined
 * batches full ones alone. Not finite or above 1e15 where they are too many. */
double train_epochs_steps(const train_epochs *epochs, double passes);

/* The samples of step 0, 1, …: *first and those behind it, 1 to batch. */
int64_t train_epochs_samples(const train_epochs *epochs, int64_t step, int64_t *first);

/* Passes over the data, and samples, of the first `steps` steps. */
double train_epochs_passed(const train_epochs *epochs, int64_t steps);
int64_t train_epochs_trained(const train_epochs *epochs, int64_t steps);

#endif

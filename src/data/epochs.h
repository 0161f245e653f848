/* How the steps of a run lie over its data: which samples a step has, where an epoch ends.
 *
 * Sample number e * windows + p is the window at place p of epoch e (data_set_sample). Rows have
 * batches that end with their epoch, as in transformers' Trainer: what does not fill a batch is a
 * step with fewer rows, or left out. Batches of a stream of text run on into the next epoch.
 */
#ifndef DATA_EPOCHS_H
#define DATA_EPOCHS_H

#include <stdint.h>

typedef enum data_last_batch {
    DATA_LAST_SHORT,   /* the last batch of an epoch has what is left */
    DATA_LAST_DROPPED, /* what does not fill a micro batch is left out of its epoch */
    DATA_LAST_JOINED   /* batches run on into the next epoch; the run's last one is left out */
} data_last_batch;

typedef struct data_epochs {
    data_last_batch last;
    int64_t windows; /* of an epoch */
    int64_t used;    /* of those, at its first places */
    int64_t batch, micro;
    int64_t steps; /* of an epoch; 0 where batches are joined, or where nothing is used */
} data_epochs;

/* batch: sequences of a step; micro: of a micro batch, which divides them. All above 0. */
data_epochs data_epochs_make(data_last_batch last, int64_t windows, int64_t batch, int64_t micro);

/* Steps of `epochs` passes, a fraction of a step rounded as the Trainer rounds it; of joined
 * batches full ones alone. Not finite or above 1e15 where they are too many. */
double data_epochs_steps(const data_epochs *epochs, double passes);

/* The samples of step 0, 1, …: *first and those behind it, 1 to batch. */
int64_t data_epochs_samples(const data_epochs *epochs, int64_t step, int64_t *first);

/* Passes over the data, and samples, of the first `steps` steps. */
double data_epochs_passed(const data_epochs *epochs, int64_t steps);
int64_t data_epochs_trained(const data_epochs *epochs, int64_t steps);

#endif

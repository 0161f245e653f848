/* The output folder of a run: whether it may be used, and what marks it as sifr's. */
#ifndef TRAIN_OUTPUT_H
#define TRAIN_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/errors.h"

/* The effective config, and the mark: a folder that holds it was made by `sifr train`. */
#define TRAIN_OUTPUT_MARK "sifr_config.json"
/* Token stores made of text. */
#define TRAIN_OUTPUT_DATA "data"

typedef struct train_output {
    const char *path;
    bool there;    /* the folder was there before */
    bool marked;   /* and was a run's */
    char **stores; /* names in its folder of token stores, from before */
    size_t store_count;
    int lock; /* descriptor while it is locked, else -1 */
} train_output;

/* How long a start waits for a lock, in seconds. Ranks whose launcher was killed find that out
 * after some 4 s, and hold the lock until then. */
enum { TRAIN_OUTPUT_PATIENCE = 10 };

/* Checks the folder and locks it where it is there. SIFR_USAGE where it holds something else, is
 * the model folder itself, or holds the results of a run and `resume` is false; otherwise as
 * train_output_lock. Changes nothing. Close *out after it went well. */
sifr_status train_output_open(const char *path, const char *model, bool resume, double patience,
                              const sifr_log *log, train_output *out,
                              sifr_error *error) SIFR_MUST_CHECK;

/* Keeps other runs out while this process lives. Where one is at work in the folder, says so and
 * waits up to `patience` seconds for its end; then SIFR_FAILED. *waited (may be NULL) tells whether
 * it did. Harmless where the folder is locked by *output, or not there, already. */
sifr_status train_output_lock(train_output *output, double patience, const sifr_log *log,
                              bool *waited, sifr_error *error) SIFR_MUST_CHECK;
void train_output_close(train_output *output); /* harmless on a zeroed one */

/* Something went wrong before the first step: token stores and the mark that were made meanwhile go
 * again, and the folder where it was made and is empty. Nothing else is ever removed. Only after
 * train_output_open went well. */
void train_output_undo(const train_output *output);

#endif

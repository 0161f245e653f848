/* The output folder of a run: whether it may be used, and the mark that makes it sifr's. */
#ifndef CHECKPOINT_OUTPUT_H
#define CHECKPOINT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/errors.h"

/* The effective config. It is also the mark: a folder that holds it was made by `sifr train`. */
#define CHECKPOINT_OUTPUT_MARK "sifr_config.json"
/* Folder of token stores made from text. */
#define CHECKPOINT_OUTPUT_DATA "data"

typedef struct checkpoint_output {
    const char *path;
    bool there;    /* the folder existed before */
    bool marked;   /* and was a run's */
    char **stores; /* token stores that existed before */
    size_t store_count;
    int lock;    /* descriptor while it is locked, else -1 */
    bool others; /* another run came first: nothing in it is this one's */
} checkpoint_output;

/* How long a start waits for the lock, in seconds. Ranks whose launcher was killed notice after
 * some 4 s, and hold the lock until then. */
enum { CHECKPOINT_OUTPUT_PATIENCE = 10 };

/* Checks the folder and locks it if it exists. SIFR_USAGE if it holds something else, is the model
 * folder itself, or holds the results of a run and `resume` is false; other errors as in
 * checkpoint_output_lock. Changes nothing. Close *out after success. */
sifr_status checkpoint_output_open(const char *path, const char *model, bool resume,
                                   double patience, const sifr_log *log, checkpoint_output *out,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* Locks the folder against other runs while this process lives. If another run uses it, logs that
 * and waits up to `patience` seconds, then fails with SIFR_FAILED. *waited (may be NULL) tells
 * whether it waited. Harmless if *output holds the lock already or the folder does not exist. */
sifr_status checkpoint_output_lock(checkpoint_output *output, double patience, const sifr_log *log,
                                   bool *waited, sifr_error *error) SIFR_MUST_CHECK;

/* Makes the folder, if it was not there, and locks it as checkpoint_output_lock does. SIFR_FAILED
 * also if another run began in it since checkpoint_output_open found none. */
sifr_status checkpoint_output_claim(checkpoint_output *output, double patience, const sifr_log *log,
                                    sifr_error *error) SIFR_MUST_CHECK;
void checkpoint_output_close(checkpoint_output *output); /* harmless on a zeroed one */

/* Cleans up after a failure before the first step: removes token stores and the mark made by this
 * run, and the folder if this run made it and it is empty. Nothing else is removed. Call it only
 * after checkpoint_output_open succeeded. */
void checkpoint_output_undo(const checkpoint_output *output);

#endif

/* The folders of checkpoints: making one under a name of its own, giving it its place, removing old
 * ones. All by one rank; `checkpoint_directory_wait` is for the others. */
#ifndef CHECKPOINT_DIRECTORY_H
#define CHECKPOINT_DIRECTORY_H

#include "checkpoint/checkpoint.h"

/* Names in the output folder. */
typedef struct checkpoint_names {
    char final[64];     /* checkpoint-40 */
    char temporary[64]; /* checkpoint-40.tmp-1234 */
} checkpoint_names;

void checkpoint_name(int64_t step, checkpoint_names *out);

/* An empty folder of the temporary name; the disk must have room for `bytes` of state, and leave
 * `beside` bytes for the trained model. */
sifr_status checkpoint_directory_make(const char *output, const checkpoint_names *names,
                                      uint64_t bytes, int64_t beside,
                                      sifr_error *error) SIFR_MUST_CHECK;

/* Waits until the folder that another rank made is seen here: over a network that may take a
 * moment. SIFR_FAILED where it does not come. */
sifr_status checkpoint_directory_wait(const char *output, const char *name,
                                      sifr_error *error) SIFR_MUST_CHECK;

/* Gives the finished folder its name, then names it in `latest`. A folder that had the name already
 * (damaged, or of a run that went on from an older one) changes places with it in one instant, and
 * is removed after. */
sifr_status checkpoint_directory_place(const char *output, const checkpoint_names *names,
                                       sifr_error *error) SIFR_MUST_CHECK;

/* Removes all but the newest `keep` (0: none is removed) of those up to step `newest`. */
sifr_status checkpoint_prune(const char *output, int64_t newest, int64_t keep,
                             sifr_error *error) SIFR_MUST_CHECK;

#endif

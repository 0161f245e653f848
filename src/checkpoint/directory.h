/* Folders of checkpoints: made under a temporary name, renamed when complete, and removed when old.
 * One rank does all this; `checkpoint_directory_wait` is for the others.
 */
#ifndef CHECKPOINT_DIRECTORY_H
#define CHECKPOINT_DIRECTORY_H

#include "checkpoint/checkpoint.h"

/* Names in the output folder. */
typedef struct checkpoint_names {
    char final[64];     /* checkpoint-40 */
    char temporary[64]; /* checkpoint-40.tmp-1234 */
} checkpoint_names;

void checkpoint_name(int64_t step, checkpoint_names *out);

/* Makes an empty folder under the temporary name. The disk must have room for `bytes` of state and
 * `beside` more bytes for the trained model. */
sifr_status checkpoint_directory_make(const char *output, const checkpoint_names *names,
                                      uint64_t bytes, int64_t beside,
                                      sifr_error *error) SIFR_MUST_CHECK;

/* Waits until this rank sees the folder that another rank made, which may take a moment on a
 * network file system. SIFR_FAILED if it does not appear. */
sifr_status checkpoint_directory_wait(const char *output, const char *name,
                                      sifr_error *error) SIFR_MUST_CHECK;

/* Gives the finished folder its final name, then writes the name to `latest`. An existing folder of
 * that name (a damaged one, or one from before a resume from an older checkpoint) is exchanged with
 * it atomically and then removed. */
sifr_status checkpoint_directory_place(const char *output, const checkpoint_names *names,
                                       sifr_error *error) SIFR_MUST_CHECK;

/* Of the checkpoints up to step `newest`, removes all but the newest `keep` (0: removes none). */
sifr_status checkpoint_prune(const char *output, int64_t newest, int64_t keep,
                             sifr_error *error) SIFR_MUST_CHECK;

#endif

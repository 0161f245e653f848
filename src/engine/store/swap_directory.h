/* Directories of swap files: one a run and rank, which holds `lock` and `state`.
 *
 * As long as its process lives the lock is held (flock), so what a crashed run left behind is told
 * from what another run works with. */
#ifndef ENGINE_SWAP_DIRECTORY_H
#define ENGINE_SWAP_DIRECTORY_H

#include "base/file.h"

typedef struct engine_swap_directory {
    char path[BASE_PATH_LENGTH];  /* of the directory; empty: there is none */
    char state[BASE_PATH_LENGTH]; /* of the file with the state, which the caller makes */
    int lock;
} engine_swap_directory;

/* SIFR_USAGE where `parent` is no directory. */
sifr_status engine_swap_directory_check(const char *parent, sifr_error *error) SIFR_MUST_CHECK;

/* Makes a new one in `parent`, which must be there. */
sifr_status engine_swap_directory_make(const char *parent, int32_t rank, engine_swap_directory *out,
                                       sifr_error *error) SIFR_MUST_CHECK;

/* Removes it with its two files, and lets go of the lock; harmless on a zeroed one. */
void engine_swap_directory_remove(engine_swap_directory *directory);

/* Removes those in `parent` that runs of this user on this host left behind when they died; returns
 * how many. What cannot be told for sure is left alone. */
int32_t engine_swap_directory_clean(const char *parent);

#endif

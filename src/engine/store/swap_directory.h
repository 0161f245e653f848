/* Directories of swap files: one for each run and rank, with the files `lock` and `state`.
 *
 * The lock is held (flock) as long as the process lives, which distinguishes the leftovers of a
 * killed run from directories in use.
 */
#ifndef ENGINE_SWAP_DIRECTORY_H
#define ENGINE_SWAP_DIRECTORY_H

#include "base/file.h"

typedef struct engine_swap_directory {
    char path[BASE_PATH_LENGTH];  /* path of the directory; empty: none */
    char state[BASE_PATH_LENGTH]; /* path of the file with the state, which the caller makes */
    int lock;
} engine_swap_directory;

/* SIFR_USAGE if `parent` is not a directory. */
sifr_status engine_swap_directory_check(const char *parent, sifr_error *error) SIFR_MUST_CHECK;

/* Makes a new directory in `parent`, which must exist. */
sifr_status engine_swap_directory_make(const char *parent, int32_t rank, engine_swap_directory *out,
                                       sifr_error *error) SIFR_MUST_CHECK;

/* Removes the directory with its two files and releases the lock; harmless on a zeroed one. */
void engine_swap_directory_remove(engine_swap_directory *directory);

/* Removes directories in `parent` left by killed runs of this user on this host; returns their
 * number. Doubtful ones are left alone. */
int32_t engine_swap_directory_clean(const char *parent);

#endif

/* The tier on disk: one file, as large as the plan says, with this rank's state in it. Steps read
 * and write it through async_io.h; between steps two windows show any part of it. */
#ifndef ENGINE_SWAP_H
#define ENGINE_SWAP_H

#include "engine/store/async_io.h"

typedef struct engine_swap engine_swap;

/* Makes the file in a directory of its own in `parent`, zeroed and with all of its room reserved;
 * what dead runs left there stays (engine_swap_directory_clean). At most `transfers` are under way
 * at a time. SIFR_USAGE where `parent` is no directory, SIFR_FAILED (with the numbers) where there
 * is too little room. */
sifr_status engine_swap_open(const char *parent, int32_t rank, int64_t bytes,
                             const engine_io_settings *settings, int32_t transfers,
                             engine_swap **out, sifr_error *error) SIFR_MUST_CHECK;

/* Finishes what is under way and removes file and directory; NULL is harmless. */
void engine_swap_close(engine_swap *swap);

engine_io *engine_swap_io(engine_swap *swap);
const engine_io_file *engine_swap_file(const engine_swap *swap);

/* "1.2 GiB in /local_nvme, by io_uring past the page cache" */
const char *engine_swap_describe(const engine_swap *swap, char *out, size_t size);

/* Any bytes of the file, through a window; not while transfers are under way. */
sifr_status engine_swap_read(engine_swap *swap, int64_t offset, void *out, int64_t bytes,
                             sifr_error *error) SIFR_MUST_CHECK;
sifr_status engine_swap_write(engine_swap *swap, int64_t offset, const void *from, int64_t bytes,
                              sifr_error *error) SIFR_MUST_CHECK;

/* The file has all that was written, and the windows forget it and give their memory back: before
 * transfers begin. */
sifr_status engine_swap_flush(engine_swap *swap, sifr_error *error) SIFR_MUST_CHECK;

#endif

/* The disk tier: one file of the planned size with this rank's state. Steps read and write it
 * through async_io.h; between steps, two windows give access to any part of it.
 */
#ifndef ENGINE_SWAP_H
#define ENGINE_SWAP_H

#include "engine/store/staging.h"

typedef struct engine_swap engine_swap;

/* Makes the file in a new directory in `parent`, zeroed and with all of its space reserved.
 * Leftovers of killed runs stay (engine_swap_directory_clean). At most `transfers` are in progress
 * at a time. SIFR_USAGE if `parent` is not a directory; SIFR_FAILED, with the numbers, if there is
 * too little space. */
sifr_status engine_swap_open(const char *parent, int32_t rank, int64_t bytes,
                             const engine_io_settings *settings, int32_t transfers,
                             engine_swap **out, sifr_error *error) SIFR_MUST_CHECK;

/* Finishes transfers in progress and removes the file and its directory; NULL is harmless. */
void engine_swap_close(engine_swap *swap);

/* From now on its transfers go through host memory of the device, which must outlive the swap
 * (engine_staging_open). */
sifr_status engine_swap_stage(engine_swap *swap, device *dev, const int64_t bytes[2],
                              int32_t transfers, sifr_error *error) SIFR_MUST_CHECK;
engine_staging *engine_swap_staging(const engine_swap *swap); /* NULL: they are direct */

engine_io *engine_swap_io(engine_swap *swap);
const engine_io_file *engine_swap_file(const engine_swap *swap);

/* "1.2 GiB in /local_nvme, by io_uring past the page cache" */
const char *engine_swap_describe(const engine_swap *swap, char *out, size_t size);

/* Access to any bytes of the file through a window; not while transfers are in progress. */
sifr_status engine_swap_read(engine_swap *swap, int64_t offset, void *out, int64_t bytes,
                             sifr_error *error) SIFR_MUST_CHECK;
sifr_status engine_swap_write(engine_swap *swap, int64_t offset, const void *from, int64_t bytes,
                              sifr_error *error) SIFR_MUST_CHECK;

/* Writes changed windows to the file and frees their memory. Call it before transfers begin. */
sifr_status engine_swap_flush(engine_swap *swap, sifr_error *error) SIFR_MUST_CHECK;

#endif

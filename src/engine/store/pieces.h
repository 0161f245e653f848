/* Fills and reads state in device memory that the host does not reach, between steps. The bytes go
 * through two pieces of the device's host memory in turn: one is copied while the host works on the
 * other. Copies begin after all work that DEVICE_COMPUTE was given. One thread at a time.
 */
#ifndef ENGINE_PIECES_H
#define ENGINE_PIECES_H

#include "device/device.h"

typedef struct engine_pieces engine_pieces;

/* Takes two pieces of `bytes` each; the device must outlive them. */
sifr_status engine_pieces_open(device *dev, int64_t bytes, engine_pieces **out,
                               sifr_error *error) SIFR_MUST_CHECK;
void engine_pieces_close(engine_pieces *pieces);          /* NULL is harmless */
int64_t engine_pieces_bytes(const engine_pieces *pieces); /* of each */

/* The piece that was not given last, once its copy has ended; the other keeps its contents. */
sifr_status engine_pieces_next(engine_pieces *pieces, void **out,
                               sifr_error *error) SIFR_MUST_CHECK;

/* Copies host memory to device memory. If `from` is a piece, the copy has only begun on return.
 * Other memory goes through pieces, and may be used again at once. */
sifr_status engine_pieces_write(engine_pieces *pieces, void *to, const void *from, int64_t bytes,
                                sifr_error *error) SIFR_MUST_CHECK;

/* Copies at most a piece of device memory to the next piece, and waits for it. */
sifr_status engine_pieces_fetch(engine_pieces *pieces, const void *from, int64_t bytes, void **out,
                                sifr_error *error) SIFR_MUST_CHECK;

/* Calls `take` for device memory, piece by piece in order, while the next piece is copied: bytes
 * first … first + count - 1 of it, which lie at `bytes` until the call returns. It may not use the
 * pieces. */
typedef sifr_status (*engine_take_bytes)(void *user, const void *bytes, int64_t first,
                                         int64_t count, sifr_error *error);
sifr_status engine_pieces_read(engine_pieces *pieces, const void *from, int64_t bytes,
                               engine_take_bytes take, void *user,
                               sifr_error *error) SIFR_MUST_CHECK;

#endif

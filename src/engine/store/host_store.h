/* The host tier of a device with separate memory: one block of the planned size, and a thread that
 * copies between it and the device through the calls of async_io.h, as if it were a file. Between
 * steps it is read and written in place.
 */
#ifndef ENGINE_HOST_STORE_H
#define ENGINE_HOST_STORE_H

#include "device/device.h"
#include "engine/store/async_io.h"

typedef struct engine_host_store engine_host_store;

/* `dev` is borrowed. At most `transfers` are in progress at a time. */
sifr_status engine_host_store_open(device *dev, int64_t bytes, int32_t transfers,
                                   engine_host_store **out, sifr_error *error) SIFR_MUST_CHECK;

/* Finishes transfers in progress and frees the memory; NULL is harmless. */
void engine_host_store_close(engine_host_store *store);

engine_io *engine_host_store_io(engine_host_store *store);
const engine_io_file *engine_host_store_file(const engine_host_store *store);

#endif

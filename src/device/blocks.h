/* The blocks of a device whose memory is separate, by kind, and what is copied between the two
 * memories. Functions may be called from any thread. Private to device/. */
#ifndef DEVICE_BLOCKS_H
#define DEVICE_BLOCKS_H

#include "device/backend.h"

typedef struct device_blocks device_blocks;

sifr_status device_blocks_create(device_blocks **out, sifr_error *error) SIFR_MUST_CHECK;
void device_blocks_free(device_blocks *blocks); /* NULL is allowed */

/* `reach`: where the host reaches the block; NULL: it does not. */
sifr_status device_blocks_add(device_blocks *blocks, void *block, int64_t bytes, device_memory kind,
                              void *reach, sifr_error *error) SIFR_MUST_CHECK;
/* Returns the kind of the block that begins there, which is in the list no more. */
device_memory device_blocks_remove(device_blocks *blocks, const void *block);

/* Whether all bytes lie within one block of device memory, a foreign one included. */
bool device_blocks_hold(device_blocks *blocks, const void *data, int64_t bytes);

/* Whether they lie within one block of host memory. */
bool device_blocks_hold_host(device_blocks *blocks, const void *data, int64_t bytes);

/* Where the host reaches these bytes of a block; NULL if it does not, or they are in none. */
void *device_blocks_reach(device_blocks *blocks, const void *data, int64_t bytes);

/* Counts a copy between the two memories; *in: to the device. SIFR_FAILED if both ends are on one
 * side. */
sifr_status device_blocks_note_copy(device_blocks *blocks, const void *to, const void *from,
                                    int64_t bytes, bool *in, sifr_error *error) SIFR_MUST_CHECK;

device_counts device_blocks_count(device_blocks *blocks);

#endif

/* A file as a stream of bytes: as it is, or unpacked from gzip or zstd while it is read. What it
 * unpacks to may be any size: nothing is held but a window (of zstd at most 128 MiB). */
#ifndef DATA_UNPACK_H
#define DATA_UNPACK_H

#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

typedef enum data_packing {
    DATA_PLAIN,
    DATA_GZIP, /* one member or several, end to end */
    DATA_ZSTD  /* one frame or several */
} data_packing;

typedef struct data_unpack data_unpack;

/* By the end of the name, .gz or .zst; *length is that of the name before it. */
data_packing data_packing_of(const char *path, size_t *length);

/* Of packed bytes that are borrowed; `name` begins the messages. */
sifr_status data_unpack_open(data_packing packing, const void *data, size_t size, const char *name,
                             data_unpack **out, sifr_error *error) SIFR_MUST_CHECK;
void data_unpack_close(data_unpack *unpack); /* NULL is harmless */

/* At most `size` further bytes; *got is 0 at the end alone. SIFR_FAILED for a file that is cut
 * short or damaged. */
sifr_status data_unpack_read(data_unpack *unpack, void *out, size_t size, size_t *got,
                             sifr_error *error) SIFR_MUST_CHECK;

#endif

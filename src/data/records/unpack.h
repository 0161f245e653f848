/* A file as a stream of bytes: as it is, or unpacked from gzip or zstd while it is read. What it
 * unpacks to may be any size: nothing is held but a window (of zstd at most 128 MiB). */
#ifndef FORMATS_UNPACK_H
#define FORMATS_UNPACK_H

#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

typedef enum formats_packing {
    FORMATS_PLAIN,
    FORMATS_GZIP, /* one member or several, end to end */
    FORMATS_ZSTD  /* one frame or several */
} formats_packing;

typedef struct formats_unpack formats_unpack;

/* By the end of the name, .gz or .zst; *length is that of the name before it. */
formats_packing formats_packing_of(const char *path, size_t *length);

/* Of packed bytes that are borrowed; `name` begins the messages. */
sifr_status formats_unpack_open(formats_packing packing, const void *data, size_t size,
                                const char *name, formats_unpack **out,
                                sifr_error *error) SIFR_MUST_CHECK;
void formats_unpack_close(formats_unpack *unpack); /* NULL is harmless */

/* At most `size` further bytes; *got is 0 at the end alone. SIFR_FAILED for a file that is cut
 * short or damaged. */
sifr_status formats_unpack_read(formats_unpack *unpack, void *out, size_t size, size_t *got,
                                sifr_error *error) SIFR_MUST_CHECK;

#endif

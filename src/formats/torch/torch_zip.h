/* The entries of a zip archive as torch.save writes it: stored, not compressed, with or without
 * zip64. Nothing is copied: names and data lie in the caller's memory. */
#ifndef FORMATS_TORCH_ZIP_H
#define FORMATS_TORCH_ZIP_H

#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

enum { FORMATS_ZIP_ENTRY_LIMIT = 1 << 18 };

typedef struct formats_zip_entry {
    const char *name; /* no NUL behind it */
    size_t length;
    const uint8_t *data;
    uint64_t size;
} formats_zip_entry;

typedef struct formats_zip {
    formats_zip_entry *entries; /* sorted by name; no two alike */
    size_t count;
} formats_zip;

/* Reads the archive in data[0…size). SIFR_FAILED for whatever is wrong in the bytes, compressed or
 * encrypted entries included. Sums of the data are not checked: torch can leave them out. `name`
 * begins an error's message. */
sifr_status formats_zip_parse(const uint8_t *data, size_t size, const char *name, formats_zip *out,
                              sifr_error *error) SIFR_MUST_CHECK;
void formats_zip_free(formats_zip *zip); /* harmless on a zeroed one */

const formats_zip_entry *formats_zip_find(const formats_zip *zip, const char *name, size_t length);

#endif

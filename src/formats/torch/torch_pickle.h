/* The pickle in a file of torch.save, read as what it says and never run: a dict of tensors, each a
 * view of a storage that lies elsewhere. Classes and functions are those of a fixed list; any other
 * is refused by name. */
#ifndef FORMATS_TORCH_PICKLE_H
#define FORMATS_TORCH_PICKLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/errors.h"
#include "formats/safetensors/safetensors.h"

enum { FORMATS_PICKLE_LIMIT = 1 << 26 }; /* bytes of a pickle */

/* UTF-8 in the pickle's bytes; no NUL behind it. */
typedef struct formats_pickle_text {
    const char *at;
    size_t length;
} formats_pickle_text;

typedef struct formats_torch_view {
    formats_pickle_text name, storage; /* storage: its key */
    uint64_t storage_bytes;
    base_dtype dtype;
    int rank;
    int64_t shape[FORMATS_RANK_LIMIT], stride[FORMATS_RANK_LIMIT]; /* in elements */
    int64_t offset;                                                /* in elements */
} formats_torch_view;

typedef struct formats_pickle {
    formats_torch_view *views; /* in the dict's order; two may have one name or one storage */
    size_t count;
} formats_pickle;

/* Reads the pickle in data[0…size). SIFR_FAILED for whatever is wrong in it, with its byte. Every
 * size, stride and offset of a view is at least 0; whether it lies in its storage is not checked.
 * `name` begins an error's message. */
sifr_status formats_pickle_parse(const uint8_t *data, size_t size, const char *name,
                                 formats_pickle *out, sifr_error *error) SIFR_MUST_CHECK;
void formats_pickle_free(formats_pickle *pickle); /* harmless on a zeroed one */

#endif

/* safetensors: u64 header length, JSON header, tensors end to end. Source of the layout and of the
 * checks: the format's README and its reference reader. Reading maps the file and copies nothing;
 * everything is checked before anything is handed out. */
#ifndef FORMATS_SAFETENSORS_H
#define FORMATS_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/errors.h"
#include "base/file.h"

/* The element types of the format. The three first are what a model is trained from and written
 * in; of the others, only that they are there is known (`sifr inspect`). Types of one width stand
 * in the order in which the reference writer lays them out. */
const char *formats_dtype_name(base_dtype dtype); /* "F32", "BF16" … */

enum {
    FORMATS_RANK_LIMIT = 8,
    FORMATS_NAME_LIMIT = 1024,      /* bytes of a tensor's name */
    FORMATS_TENSOR_LIMIT = 1 << 17, /* tensors in a file */
    FORMATS_HEADER_LIMIT = 100000000
};

typedef struct formats_scales formats_scales; /* formats/fp8.h */

typedef struct formats_tensor {
    const char *name; /* UTF-8, no control characters */
    base_dtype dtype;
    int rank; /* 0: a scalar */
    int64_t shape[FORMATS_RANK_LIMIT];
    int64_t elements; /* product of the shape; 0 is legal */
    uint64_t bytes;
    const void *data; /* row-major, little-endian, at any alignment: load with memcpy */
    const formats_scales *scales; /* of F8_E4M3: what its values are multiplied by; NULL: none */
    bool of_another;              /* it is read with another tensor, as its scales are */
} formats_tensor;

/* The type of its values: of a tensor with scales BF16. */
base_dtype formats_value_type(const formats_tensor *tensor);

/* An open file. Owns the tensors, their names and the mapping; data and names live until close.
 * The file's size is checked once, at open: another process that cuts the file short while it is
 * mapped makes later reads fail with SIGBUS, as with any mapping. */
typedef struct formats_safetensors {
    formats_tensor *tensors; /* sorted by name, bytewise */
    size_t count;
    char *names;
    base_map map; /* empty after a parse of the caller's memory */
} formats_safetensors;

/* Reads the file in data[0…size); the tensors point into it. `name` begins an error's message.
 * SIFR_FAILED for whatever is wrong in the bytes. */
sifr_status formats_safetensors_parse(const void *data, size_t size, const char *name,
                                      formats_safetensors *out, sifr_error *error) SIFR_MUST_CHECK;

sifr_status formats_safetensors_open(const char *path, formats_safetensors *out,
                                     sifr_error *error) SIFR_MUST_CHECK;
void formats_safetensors_close(formats_safetensors *file); /* harmless on a zeroed one */

const formats_tensor *formats_safetensors_find(const formats_safetensors *file, const char *name);

/* What is to be written: `data` comes later. */
typedef struct formats_tensor_spec {
    const char *name;
    base_dtype dtype;
    int rank;
    int64_t shape[FORMATS_RANK_LIMIT];
} formats_tensor_spec;

/* Bytes of such a tensor; SIFR_FAILED when the shape is not one or the size does not fit. */
sifr_status formats_tensor_bytes(const formats_tensor_spec *spec, uint64_t *bytes,
                                 sifr_error *error) SIFR_MUST_CHECK;

/* Streaming writer: all tensors are declared at open, their bytes then appended in pieces of any
 * size, in file order. The format's convention for that order is larger elements first, then by
 * name (formats_tensor_spec_sort); any order is legal. The file appears at commit. */
typedef struct formats_safetensors_writer {
    base_writer file;
    uint64_t end; /* size of the whole file */
} formats_safetensors_writer;

void formats_tensor_spec_sort(formats_tensor_spec *specs, size_t count);
int formats_tensor_spec_compare(const void *a, const void *b); /* for qsort */

sifr_status formats_safetensors_writer_open(formats_safetensors_writer *writer, const char *path,
                                            const formats_tensor_spec *specs, size_t count,
                                            sifr_error *error) SIFR_MUST_CHECK;
sifr_status formats_safetensors_append(formats_safetensors_writer *writer, const void *data,
                                       size_t size, sifr_error *error) SIFR_MUST_CHECK;
/* SIFR_FAILED, and nothing left behind, when the bytes appended are not those declared. */
sifr_status formats_safetensors_commit(formats_safetensors_writer *writer,
                                       sifr_error *error) SIFR_MUST_CHECK;
void formats_safetensors_abort(formats_safetensors_writer *writer); /* harmless after commit */

#endif

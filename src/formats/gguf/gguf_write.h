/* GGUF, version 3, little-endian: header, metadata, list of tensors, then their data, each at a
 * multiple of 32 bytes. The layout is described in ggml's repository, in gguf.md. */
#ifndef FORMATS_GGUF_WRITE_H
#define FORMATS_GGUF_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "base/file.h"
#include "formats/safetensors/safetensors.h"

enum { FORMATS_GGUF_NAME_LIMIT = 64 }; /* of a tensor; what ggml has room for, with the NUL */

/* Types of elements, by ggml's numbers. */
typedef enum formats_gguf_type {
    FORMATS_GGUF_F32 = 0,
    FORMATS_GGUF_F16 = 1,
    FORMATS_GGUF_Q8_0 = 8, /* blocks of 32: a scale in fp16 and 32 whole numbers */
    FORMATS_GGUF_BF16 = 30
} formats_gguf_type;

/* Types of metadata, by the format's numbers. */
typedef enum formats_gguf_kind {
    FORMATS_GGUF_U32 = 4,
    FORMATS_GGUF_I32 = 5,
    FORMATS_GGUF_FLOAT = 6,
    FORMATS_GGUF_BOOL = 7,
    FORMATS_GGUF_TEXT = 8,
    FORMATS_GGUF_ARRAY = 9
} formats_gguf_kind;

enum { FORMATS_GGUF_BLOCK = 32 }; /* elements of a block of Q8_0 */

/* Metadata that is being put together. A failure to get memory is kept and comes with the write. */
typedef struct formats_gguf_meta {
    uint8_t *bytes;
    size_t size, capacity;
    uint64_t count;
    bool failed;
} formats_gguf_meta;

void formats_gguf_meta_free(formats_gguf_meta *meta); /* harmless on a zeroed one */

void formats_gguf_add_u32(formats_gguf_meta *meta, const char *key, uint32_t value);
void formats_gguf_add_i32(formats_gguf_meta *meta, const char *key, int32_t value);
void formats_gguf_add_float(formats_gguf_meta *meta, const char *key, float value);
void formats_gguf_add_bool(formats_gguf_meta *meta, const char *key, bool value);
void formats_gguf_add_text(formats_gguf_meta *meta, const char *key, const char *text, size_t size);
/* An array: its head, then exactly `count` items. */
void formats_gguf_add_array(formats_gguf_meta *meta, const char *key, formats_gguf_kind kind,
                            uint64_t count);
void formats_gguf_item_text(formats_gguf_meta *meta, const char *text, size_t size);
void formats_gguf_item_i32(formats_gguf_meta *meta, int32_t value);
void formats_gguf_item_bool(formats_gguf_meta *meta, bool value);
void formats_gguf_item_float(formats_gguf_meta *meta, float value);

/* A tensor to be written; the shape is row-major, as in safetensors. */
typedef struct formats_gguf_tensor {
    char name[FORMATS_GGUF_NAME_LIMIT];
    formats_gguf_type type;
    int rank;
    int64_t shape[FORMATS_RANK_LIMIT];
} formats_gguf_tensor;

/* Bytes of `columns` elements, which fit the type's blocks. */
int64_t formats_gguf_row_bytes(formats_gguf_type type, int64_t columns);
/* A row of fp32 in the type, formats_gguf_row_bytes of them, rounded as ggml's `gguf` package does;
 * Q8_0 takes whole blocks. */
void formats_gguf_convert(formats_gguf_type type, const float *from, int64_t columns, void *to);

/* Asked for row `row` of tensor `position`: its elements as fp32. Scalars are rows of one. */
typedef void (*formats_gguf_row)(void *user, size_t position, int64_t row, float *out);

/* Writes the file, row by row: it appears whole or not at all. */
sifr_status formats_gguf_write(const char *path, const formats_gguf_meta *meta,
                               const formats_gguf_tensor *tensors, size_t count,
                               formats_gguf_row row, void *user, uint64_t *bytes,
                               sifr_error *error) SIFR_MUST_CHECK;

#endif

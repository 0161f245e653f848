/* Models with layers of linear attention or of short convolutions: Qwen3.5 and LFM2. */
#ifndef FORMATS_GGUF_LINEAR_H
#define FORMATS_GGUF_LINEAR_H

#include "formats/gguf/gguf_family.h"

/* Heads of linear attention, and rows of queries and keys that lie before those of values. */
typedef struct formats_gguf_heads {
    int64_t keys, values, before;
} formats_gguf_heads;

/* The heads of a tensor that a change is made of; SIFR_USAGE where its shape has no such heads. */
sifr_status formats_gguf_value_heads(const json_t *config, const char *where,
                                     formats_gguf_change change, const formats_tensor *tensor,
                                     formats_gguf_heads *out, sifr_error *error) SIFR_MUST_CHECK;

/* The row, or column, of the folder's tensor that goes to `row` of `rows`. */
int64_t formats_gguf_value_row(const formats_gguf_heads *heads, int64_t row, int64_t rows);

/* Puts the sections of rotary positions of a config with a tower, which sifr reads without, into
 * that of its text model. */
sifr_status formats_gguf_keep_sections(const json_t *whole, json_t *text,
                                       sifr_error *error) SIFR_MUST_CHECK;

#endif

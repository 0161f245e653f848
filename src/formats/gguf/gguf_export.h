/* A model folder as one GGUF file, for llama.cpp. */
#ifndef FORMATS_GGUF_EXPORT_H
#define FORMATS_GGUF_EXPORT_H

#include "formats/gguf/gguf_write.h"

typedef struct formats_gguf_made {
    int64_t parameters;
    uint64_t bytes; /* of the file */
} formats_gguf_made;

/* "f32", "f16", "bf16", "q8_0"; false for another. */
bool formats_gguf_type_find(const char *name, formats_gguf_type *out);

/* Writes `path`, which must not be there. Names, metadata and values are those of llama.cpp's
 * convert_hf_to_gguf.py: norms, biases and scalars in fp32, other weights in `type`, or in fp16
 * where their rows are no whole blocks of Q8_0. Weights pass row by row, so memory is bounded.
 * SIFR_USAGE, by name, for a family or tokenizer that is not supported, and for what llama.cpp
 * would compute otherwise; what it computes otherwise for published models too is said to `log`. */
sifr_status formats_gguf_export(const char *folder, const char *path, formats_gguf_type type,
                                const sifr_log *log, formats_gguf_made *out,
                                sifr_error *error) SIFR_MUST_CHECK;

#endif

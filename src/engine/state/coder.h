/* Codes of a weight, of 4 or 8 bits, made from its values record by record, and opened. */
#ifndef ENGINE_CODER_H
#define ENGINE_CODER_H

#include "engine/engine_private.h"

typedef struct engine_coder {
    engine_values make;
    const void *user;
    size_t index;
    int64_t elements, records, bytes; /* bytes: of a record */
    model_coding coding;
    float mean; /* of all scales, if they are doubled */
} engine_coder;

/* For a weight that is held as codes; `make` gives its values. With double quantisation it goes
 * through all of them. */
sifr_status engine_coder_open(const sifr_engine *engine, size_t index, engine_values make,
                              const void *user, engine_coder *out,
                              sifr_error *error) SIFR_MUST_CHECK;

void engine_coder_encode(const engine_coder *coder, int64_t record, uint8_t *codes);

/* Values first ... first + count - 1 of a record. */
void engine_decode(model_coding coding, const uint8_t *codes, int64_t first, int64_t count,
                   float *out);

/* BASE_NF4_RECORD values, or fewer of the last record: those of the codes, rounded to `type`, as
 * kernels compute with them. */
void engine_coder_values(const engine_coder *coder, int64_t record, base_dtype type, float *values);

#endif

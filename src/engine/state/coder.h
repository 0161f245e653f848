/* Codes of a weight, of 4 or 8 bits, made from its values record by record, and opened. They are
 * those of the logical weight: of a tensor rank's part, cut_codes.c takes blocks of them. */
#ifndef ENGINE_CODER_H
#define ENGINE_CODER_H

#include "engine/engine_private.h"

typedef struct engine_coder {
    engine_values make;
    const void *user;
    size_t index;
    int64_t elements, records; /* of the logical weight */
    model_coding coding;       /* its own */
    float mean;                /* of all scales, if they are doubled */
} engine_coder;

/* For a weight that is held as codes; `make` gives its values. With double quantisation it goes
 * through all of them. */
sifr_status engine_coder_open(const sifr_engine *engine, size_t index, engine_values make,
                              const void *user, engine_coder *out,
                              sifr_error *error) SIFR_MUST_CHECK;

/* A record of the logical weight. */
void engine_coder_encode(const engine_coder *coder, int64_t record, uint8_t *codes);

/* A record of the rank's part `w` of the weight, as it is held. Values are, to the bit, those of
 * the logical weight's codes; what stands for none of them is zeros. */
void engine_coder_encode_held(const engine_coder *coder, const model_weight *w, int64_t record,
                              uint8_t *codes);

/* Values first ... first + count - 1 of a record. */
void engine_decode(model_coding coding, const uint8_t *codes, int64_t first, int64_t count,
                   float *out);

/* BASE_NF4_RECORD values, or fewer of the last record: those of the codes, rounded to `type`, as
 * kernels compute with them. */
void engine_coder_values(const engine_coder *coder, int64_t record, base_dtype type, float *values);

#endif

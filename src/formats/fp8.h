/* Folders whose matrices are in 8 bits, as DeepSeek's, Qwen's and Mistral's are published: a value
 * is one of E4M3 (OCP 8-bit floating point, 1.0, section 5) times the scale of its block, a product
 * in FP32 that is rounded to BF16 once. A block at an edge is cut short: a matrix has
 * ceil(rows / block) x ceil(columns / block) scales. Source: transformers 5.24,
 * integrations/finegrained_fp8.py, class FP8Linear. */
#ifndef FORMATS_FP8_H
#define FORMATS_FP8_H

#include <jansson.h>

#include "base/errors.h"
#include "formats/safetensors/safetensors.h"

/* What "quantization_config" of config.json says. */
typedef struct formats_fp8 {
    int64_t rows, columns; /* of a block; 0: one scale a tensor */
} formats_fp8;

/* SIFR_USAGE for another method, by name, with what to do; `name` begins the message. */
sifr_status formats_fp8_read(const json_t *quantization, const char *name, formats_fp8 *out,
                             sifr_error *error) SIFR_MUST_CHECK;

/* Whether it is of a folder that is read; false also of what is no object. */
bool formats_fp8_is(const json_t *quantization);

struct formats_scales {
    const formats_tensor *values; /* F32, BF16 or F16 */
    int64_t rows, columns;        /* of a block */
    int64_t across;               /* blocks of a row */
};

/* Where config.json of the folder says that matrices are in 8 bits: gives each of the tensors,
 * which are sorted by name, its scales, and marks these. *out owns them; the caller frees it.
 * SIFR_FAILED where scales are missing or have another shape or type. */
sifr_status formats_fp8_bind(const char *directory, const formats_tensor **tensors, size_t count,
                             formats_scales **out, sifr_error *error) SIFR_MUST_CHECK;

/* Elements first … first + count - 1 of a tensor that has scales: numbers of BF16. */
void formats_fp8_values(const formats_tensor *tensor, int64_t first, int64_t count, float *values);

/* The number that a byte of E4M3 is. */
float formats_fp8_number(uint8_t byte);

#endif

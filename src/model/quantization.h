/* Frozen weights held as codes of 4 bits (base/nf4.h), by the keys of transformers'
 * BitsAndBytesConfig, or of 8 (base/block8.h), by DeepSpeed's zero_quantized_nontrainable_weights:
 * those of all products in the model's body, as transformers has it. Each
 * unit's lie in a segment of their own, whose values are made before the unit runs (pass_decode.c).
 */
#ifndef MODEL_QUANTIZATION_H
#define MODEL_QUANTIZATION_H

#include <jansson.h>

#include "model/description.h"

struct model_config;

typedef struct model_quantization {
    model_coding coding;
    base_dtype compute; /* bnb_4bit_compute_dtype; BASE_NONE: not given */
} model_quantization;

/* Messages, SIFR_USAGE, begin with `where`: they name keys that are not built, and those that
 * BitsAndBytesConfig lacks. */
sifr_status model_quantization_read(const json_t *json, const char *where, model_quantization *out,
                                    sifr_error *error) SIFR_MUST_CHECK;

/* Marks the weights, after model_freeze_base. */
void model_code_base(sifr_model *model, const struct model_config *config);

#endif

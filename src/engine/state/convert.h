/* Stored weights to fp32 and back: round to nearest even, a NaN stays one. Files may hold their
 * tensors at any alignment. */
#ifndef ENGINE_CONVERT_H
#define ENGINE_CONVERT_H

#include "device/call.h"
#include "formats/safetensors.h"
#include "sifr/engine.h"

/* dtype: BASE_FP32, BASE_BF16 or BASE_FP16; the first also of BASE_UINT8, to the numbers that codes
 * are. */
void engine_to_fp32(float *to, const void *from, base_dtype dtype, int64_t count);
void engine_from_fp32(void *to, const float *from, base_dtype dtype, int64_t count);

#endif

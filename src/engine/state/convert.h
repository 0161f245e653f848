/* Stored weights to fp32 and back: round to nearest even, a NaN stays one. Files may hold their
 * tensors at any alignment. */
#ifndef ENGINE_CONVERT_H
#define ENGINE_CONVERT_H

#include "device/device.h"
#include "formats/safetensors.h"
#include "sifr/engine.h"

formats_dtype engine_format_of(device_dtype dtype); /* of FP32, BF16 or FP16 */

/* dtype: FORMATS_F32, FORMATS_BF16 or FORMATS_F16. */
void engine_to_fp32(float *to, const void *from, formats_dtype dtype, int64_t count);
void engine_from_fp32(void *to, const float *from, formats_dtype dtype, int64_t count);

#endif

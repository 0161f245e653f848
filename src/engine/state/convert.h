/* Stored weights to fp32 and back: round to nearest even, a NaN stays one. Files may hold their
 * tensors at any alignment. */
#ifndef ENGINE_CONVERT_H
#define ENGINE_CONVERT_H

#include "device/call.h"
#include "engine/store/pieces.h"
#include "formats/safetensors/safetensors.h"
#include "sifr/engine.h"

/* dtype: BASE_FP32, BASE_BF16 or BASE_FP16; the first also of BASE_UINT8, to the numbers that codes
 * are. */
void engine_to_fp32(float *to, const void *from, base_dtype dtype, int64_t count);
void engine_from_fp32(void *to, const float *from, base_dtype dtype, int64_t count);

/* An engine_take_bytes function: values of a type, as fp32 from `to` on. `user` is this. */
typedef struct engine_widened {
    float *to;
    base_dtype dtype;
} engine_widened;
sifr_status engine_take_widened(void *user, const void *bytes, int64_t first, int64_t count,
                                sifr_error *error) SIFR_MUST_CHECK;

/* Rounds fp32 values to BASE_FP32, BASE_BF16 or BASE_FP16, in place. */
void engine_round(base_dtype dtype, float *values, int64_t count);

/* Elements first … first + count - 1 of a tensor, in fp32. An engine_values function: `user` is the
 * formats_tensor, and `index` is not read. */
void engine_tensor_values(const void *user, size_t index, int64_t first, int64_t count,
                          float *values);

#endif

#include "base/block8.h"

#include <string.h>

#include "base/checked.h"

/* Added and taken away, it rounds to a whole number, to even where two are as near. */
static const float whole = 12582912.0f;

static void encode_block(const float *values, int64_t count, int8_t *block) {
    uint32_t most = 0;
    float inverse;
    for (int64_t i = 0; i < count; i++) {
        uint32_t magnitude = base_float_to_bits(values[i]) & 0x7fffffff;
        most = magnitude > most ? magnitude : most;
    }
    float scale = base_block8_scale(most, &inverse);
    memset(block, 0, BASE_BLOCK8);
    memcpy(block + BASE_BLOCK8, &scale, sizeof scale);
    for (int64_t i = 0; i < count && inverse != 0; i++) {
        float shifted = values[i] * inverse + whole;
        block[i] = (int8_t)(int32_t)(shifted - whole);
    }
}

void base_block8_encode(const float *values, int64_t count, uint8_t *record) {
    for (int64_t b = 0; b < BASE_BLOCK8_IN_RECORD; b++) {
        int64_t first = base_min_i64(b * BASE_BLOCK8, count);
        encode_block(values + first, base_min_i64(BASE_BLOCK8, count - first),
                     (int8_t *)record + b * BASE_BLOCK8_BYTES);
    }
}

void base_block8_decode(const uint8_t *record, int64_t first, int64_t count, float *out) {
    for (int64_t i = first; i < first + count; i++) {
        const int8_t *block = (const int8_t *)record + i / BASE_BLOCK8 * BASE_BLOCK8_BYTES;
        float scale;
        memcpy(&scale, block + BASE_BLOCK8, sizeof scale);
        out[i - first] = (float)block[i % BASE_BLOCK8] * scale;
    }
}

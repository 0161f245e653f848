/* Elements as ggml stores them: formats_gguf_convert of gguf_write.h. */
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "formats/gguf/gguf_write.h"

enum { BLOCK = FORMATS_GGUF_BLOCK, Q8_BYTES = 2 + BLOCK };

int64_t formats_gguf_row_bytes(formats_gguf_type type, int64_t columns) {
    switch (type) {
    case FORMATS_GGUF_F32:
        return columns * 4;
    case FORMATS_GGUF_F16:
    case FORMATS_GGUF_BF16:
        return columns * 2;
    case FORMATS_GGUF_Q8_0:
        break;
    }
    return columns / BLOCK * Q8_BYTES;
}

/* To the nearest whole number, halves away from zero, in the steps of the `gguf` package. */
static float nearest(float value) {
    float size = fabsf(value), below = floorf(size);
    float rounded = below + floorf(2 * (size - below));
    return value < 0 ? -rounded : rounded;
}

static void convert_block(const float *from, uint8_t *to) {
    float largest = 0;
    for (int i = 0; i < BLOCK; i++) largest = fmaxf(largest, fabsf(from[i]));
    float scale = largest / 127, inverse = scale == 0 ? 0 : 1 / scale;
    uint16_t half = base_half_from_float(scale);
    memcpy(to, &half, sizeof half);
    for (int i = 0; i < BLOCK; i++) {
        /* Not finite where the scale is infinite or its inverse is: kept within the byte. */
        float q = nearest(from[i] * inverse);
        to[2 + i] = (uint8_t)(int8_t)(q >= 127 ? 127 : q <= -127 ? -127 : q == q ? q : 0);
    }
}

void formats_gguf_convert(formats_gguf_type type, const float *from, int64_t columns, void *to) {
    uint8_t *bytes = to;
    uint16_t half;
    switch (type) {
    case FORMATS_GGUF_F32:
        memcpy(to, from, (size_t)columns * sizeof *from);
        return;
    case FORMATS_GGUF_F16:
    case FORMATS_GGUF_BF16:
        for (int64_t i = 0; i < columns; i++) {
            half = type == FORMATS_GGUF_F16 ? base_half_from_float(from[i])
                                            : base_bf16_from_float(from[i]);
            memcpy(bytes + 2 * i, &half, sizeof half);
        }
        return;
    case FORMATS_GGUF_Q8_0:
        for (int64_t i = 0; i + BLOCK <= columns; i += BLOCK)
            convert_block(from + i, bytes + i / BLOCK * Q8_BYTES);
        return;
    }
}

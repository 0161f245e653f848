#include "base/nf4.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/code8.h"

#define BASE_NF4_TABLE const float base_nf4_values[16]
#include "base/nf4_table.h"

/* Where the nearest value changes: in the middle between two, which itself has the lower one. */
static void find_bounds(float bounds[15]) {
    for (int c = 0; c < 15; c++) bounds[c] = (base_nf4_values[c] + base_nf4_values[c + 1]) / 2;
}

static uint8_t nearest(const float bounds[15], float x) {
    int code = 0;
    for (int c = 0; c < 15; c++) code += x > bounds[c];
    return (uint8_t)code;
}

static float largest(const float *values, int64_t count) {
    float most = 0;
    for (int64_t i = 0; i < count; i++) most = fabsf(values[i]) > most ? fabsf(values[i]) : most;
    return most;
}

static int64_t blocks_of(int64_t count) {
    return (count + BASE_NF4_BLOCK - 1) / BASE_NF4_BLOCK;
}

static int64_t in_block(int64_t count, int64_t block) {
    base_assert(block >= 0 && block * BASE_NF4_BLOCK < count);
    int64_t rest = count - block * BASE_NF4_BLOCK;
    return rest < BASE_NF4_BLOCK ? rest : BASE_NF4_BLOCK;
}

void base_nf4_scales(const float *values, int64_t count, float *scales) {
    for (int64_t b = 0; b < blocks_of(count); b++)
        scales[b] = largest(values + b * BASE_NF4_BLOCK, in_block(count, b));
}

float base_nf4_mean(const float *scales, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += (double)scales[i];
    return count ? (float)(sum / (double)count) : 0;
}

/* A last block that is short is divided, as bitsandbytes does it. */
static void encode_block(const float *values, int64_t count, float scale, uint8_t *codes) {
    float bounds[15], least = 1e-38f, inverse = 1.0f / (scale > least ? scale : least);
    find_bounds(bounds);
    for (int64_t i = 0; i < count; i++) {
        float x = count < BASE_NF4_BLOCK && scale > least ? values[i] / scale : values[i] * inverse;
        codes[i / 2] |= (uint8_t)(nearest(bounds, x) << (i % 2 ? 0 : 4));
    }
}

/* The codes of a group's scales. */
static void encode_scales(const float *scales, int64_t count, float mean, uint8_t *to) {
    base_assert(count >= 1 && count <= BASE_NF4_SCALES);
    float above[BASE_NF4_SCALES], most;
    for (int64_t b = 0; b < count; b++) above[b] = scales[b] - mean;
    most = largest(above, count);
    float inverse = most > 1e-38f ? 1.0f / most : 0;
    for (int64_t b = 0; b < count; b++)
        to[b] = base_code8_of(&base_code8_signed, above[b] * inverse);
    memcpy(to + BASE_NF4_SCALES, &most, sizeof most);
    memcpy(to + BASE_NF4_SCALES + sizeof most, &mean, sizeof mean);
}

void base_nf4_encode(const float *values, int64_t count, bool doubled, float mean,
                     uint8_t *record) {
    base_assert(count >= 1 && count <= BASE_NF4_RECORD);
    float scales[BASE_NF4_SCALES];
    int64_t blocks = blocks_of(count);
    memset(record, 0, doubled ? BASE_NF4_DOUBLED : BASE_NF4_PLAIN);
    base_nf4_scales(values, count, scales);
    for (int64_t b = 0; b < blocks; b++)
        encode_block(values + b * BASE_NF4_BLOCK, in_block(count, b), scales[b],
                     record + b * BASE_NF4_BLOCK / 2);
    if (doubled)
        encode_scales(scales, blocks, mean, record + BASE_NF4_CODES);
    else
        memcpy(record + BASE_NF4_CODES, scales, (size_t)blocks * sizeof *scales);
}

void base_nf4_open_scales(const uint8_t *record, bool doubled, float *scales) {
    const uint8_t *from = record + BASE_NF4_CODES;
    float most, mean;
    if (!doubled) {
        memcpy(scales, from, BASE_NF4_SCALES * sizeof *scales);
        return;
    }
    memcpy(&most, from + BASE_NF4_SCALES, sizeof most);
    memcpy(&mean, from + BASE_NF4_SCALES + sizeof most, sizeof mean);
    for (int b = 0; b < BASE_NF4_SCALES; b++)
        scales[b] = base_code8_signed.values[from[b]] * most + mean;
}

void base_nf4_decode(const uint8_t *record, bool doubled, int64_t first, int64_t count,
                     float *out) {
    base_assert(first >= 0 && first + count <= BASE_NF4_RECORD);
    float scales[BASE_NF4_SCALES];
    base_nf4_open_scales(record, doubled, scales);
    for (int64_t i = first; i < first + count; i++) {
        int code = record[i / 2] >> (i % 2 ? 0 : 4) & 15;
        out[i - first] = base_nf4_values[code] * scales[i / BASE_NF4_BLOCK];
    }
}

/* Values as codes of 8 bits and scales, for the kernels of optimizers. Codes are stored as counted
 * from that of 0, modulo 256: memory of zeros, such as the padding of weights, is values of 0. */
#ifndef CPU_CODES_H
#define CPU_CODES_H

#include "base/code8.h"
#include "device/cpu/lanes.h"

/* Codes and their scales from an element at the start of a scale's elements on. */
typedef struct coded_values {
    uint8_t *codes;
    float *scales;
    const base_code8 *map;
} coded_values;

/* Those of operands saved[codes] and saved[scales] of a call. */
static inline coded_values codes_at(const device_call *c, int codes, int scales, bool with_sign,
                                    int64_t at) {
    return (coded_values){(uint8_t *)c->saved[codes].data + at,
                          (float *)c->saved[scales].data + at / DEVICE_CODED,
                          with_sign ? &base_code8_signed : &base_code8_unsigned};
}

static inline void codes_open(coded_values v, int64_t n, float *restrict out) {
    for (int64_t at = 0; at < n; at += DEVICE_CODED) {
        int64_t end = at + DEVICE_CODED < n ? at + DEVICE_CODED : n;
        float scale = v.scales[at / DEVICE_CODED];
        for (int64_t i = at; i < end; i++)
            out[i] = v.map->values[(uint8_t)(v.codes[i] + v.map->zero)] * scale;
    }
}

static inline float codes_largest(const float *values, int64_t n) {
    float largest[LANES] = {0}, all = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (int l = 0; l < LANES; l++) {
            float a = fabsf(values[i + l]);
            largest[l] = a > largest[l] ? a : largest[l];
        }
    }
    for (; i < n; i++) all = fabsf(values[i]) > all ? fabsf(values[i]) : all;
    for (int l = 0; l < LANES; l++) all = largest[l] > all ? largest[l] : all;
    return all;
}

static inline void codes_store(coded_values v, int64_t n, const float *restrict from) {
    const base_code8 map = *v.map;
    for (int64_t at = 0; at < n; at += DEVICE_CODED) {
        int64_t count = n - at < DEVICE_CODED ? n - at : DEVICE_CODED;
        float scale = codes_largest(from + at, count);
        if (scale < 0x1p-126f) scale = 0; /* whose inverse would not be finite */
        float inverse = scale > 0 ? 1.0f / scale : 0.0f;
        v.scales[at / DEVICE_CODED] = scale;
        for (int64_t i = at; i < at + count; i++)
            v.codes[i] = (uint8_t)(base_code8_of(&map, from[i] * inverse) - map.zero);
    }
}

#endif

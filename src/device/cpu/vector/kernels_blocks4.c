/* Blocks of 4 bits (base/block4.h), to them, and sums of such. Each step rounds once, so codes and
 * values have the same bits on every instruction set. */
#include "base/block4.h"
#include "device/cpu/kernels_sets.h"

enum { HALF = BASE_BLOCK4 / 2 };

/* Added and taken away, it rounds to a whole number, to even where two are as near. */
static const float whole = 12582912.0f;

static uint32_t largest_of(const float *values) {
    uint32_t most = 0;
    for (int i = 0; i < BASE_BLOCK4; i++) {
        uint32_t magnitude = base_float_to_bits(values[i]) & 0x7fffffff;
        most = magnitude > most ? magnitude : most;
    }
    return most;
}

/* The block of y that block `b` of x becomes. */
static int64_t place_of(const device_call *c, int64_t b) {
    int64_t slices = c->attributes.block.slices, near = c->attributes.block.near;
    if (slices <= 1) return b;
    int64_t each = c->y.rows / slices, slice = b / each;
    return (slice % near * (slices / near) + slice / near) * each + b % each;
}

static void encode(const device_call *c, int64_t block) {
    float values[BASE_BLOCK4], inverse;
    int8_t codes[BASE_BLOCK4];
    uint8_t *to = (uint8_t *)c->y.data + place_of(c, block) * c->y.stride;
    int64_t count = 2 * (c->y.columns - (int64_t)sizeof(float)); /* to compilers not a constant */
    lanes_load(values, &c->x[0], 0, block * BASE_BLOCK4, count);
    float scale = base_block4_scale(largest_of(values), &inverse);
    memcpy(to + HALF, &scale, sizeof scale);
    if (inverse == 0) {
        memset(to, 0, HALF);
        return;
    }
    LANES_EACH(i, BASE_BLOCK4) {
        float shifted = values[i] * inverse + whole;
        codes[i] = (int8_t)(int32_t)(shifted - whole);
    }
    for (int i = 0; i < HALF; i++)
        to[i] = (uint8_t)((codes[i] & 15) | (uint8_t)codes[i + HALF] << 4);
}

static void add(const uint8_t *from, float *sum) {
    float scale;
    memcpy(&scale, from + HALF, sizeof scale);
    LANES_EACH(i, HALF) {
        int32_t low = ((from[i] & 15) ^ 8) - 8, high = ((from[i] >> 4) ^ 8) - 8;
        sum[i] += (float)low * scale;
        sum[i + HALF] += (float)high * scale;
    }
}

static void add_parts(const device_call *c, int64_t block) {
    float sum[BASE_BLOCK4] = {0};
    int64_t each = c->y.columns / BASE_BLOCK4;
    for (int64_t b = block; b < c->x[0].rows; b += each)
        add((const uint8_t *)c->x[0].data + b * c->x[0].stride, sum);
    lanes_store(&c->y, 0, block * BASE_BLOCK4, 2 * (c->x[0].columns - (int64_t)sizeof(float)), sum);
}

void KERNEL(blocks4)(const cpu_part *part) {
    bool encodes = part->call->kernel == DEVICE_ENCODE_BLOCKS4;
    for (int64_t b = part->first; b < part->first + part->count; b++)
        (encodes ? encode : add_parts)(part->call, b);
}

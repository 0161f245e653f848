/* Blocks of 8 bits (base/block8.h), to them and back. Each step rounds once, so codes and values
 * have the same bits on every instruction set. */
#include "base/block8.h"
#include "device/cpu/kernels_sets.h"

/* Added and taken away, it rounds to a whole number, to even where two are as near. */
static const float whole = 12582912.0f;

static uint32_t largest_of(const float *values) {
    uint32_t most = 0;
    for (int i = 0; i < BASE_BLOCK8; i++) {
        uint32_t magnitude = base_float_to_bits(values[i]) & 0x7fffffff;
        most = magnitude > most ? magnitude : most;
    }
    return most;
}

static void encode(const device_call *c, int64_t block) {
    float values[BASE_BLOCK8], inverse;
    int8_t *to = (int8_t *)c->y.data + block * c->y.stride;
    int64_t count = c->y.columns - (int64_t)sizeof(float); /* to compilers not a constant */
    lanes_load(values, &c->x[0], 0, block * BASE_BLOCK8, count);
    float scale = base_block8_scale(largest_of(values), &inverse);
    memcpy(to + BASE_BLOCK8, &scale, sizeof scale);
    if (inverse == 0) {
        memset(to, 0, BASE_BLOCK8);
        return;
    }
    LANES_EACH(i, BASE_BLOCK8) {
        float shifted = values[i] * inverse + whole;
        to[i] = (int8_t)(int32_t)(shifted - whole);
    }
}

static void decode(const device_call *c, int64_t block) {
    float values[BASE_BLOCK8], scale;
    const int8_t *from = (const int8_t *)c->x[0].data + block * c->x[0].stride;
    memcpy(&scale, from + BASE_BLOCK8, sizeof scale);
    LANES_EACH(i, BASE_BLOCK8) values[i] = (float)from[i] * scale;
    lanes_store(&c->y, 0, block * BASE_BLOCK8, c->x[0].columns - (int64_t)sizeof scale, values);
}

void KERNEL(blocks8)(const cpu_part *part) {
    bool encodes = part->call->kernel == DEVICE_ENCODE_BLOCKS8;
    for (int64_t b = part->first; b < part->first + part->count; b++)
        (encodes ? encode : decode)(part->call, b);
}

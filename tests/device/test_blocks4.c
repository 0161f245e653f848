/* Blocks of 4 bits, on each instruction set: codes, places of slices and sums of parts by the
 * formula, whatever the type; what is nothing, infinite or no number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/block4.h"
#include "base/random.h"
#include "device/device.h"

/* Slices of as many blocks, in groups of as many. */
enum {
    SLICES = 6,
    NEAR = 2,
    EACH = 3,
    BLOCKS = SLICES * EACH,
    COUNT = BLOCKS * BASE_BLOCK4,
    HALF = BASE_BLOCK4 / 2
};

static device_matrix values_of(void *data, int64_t count, base_dtype type) {
    return (device_matrix){data, 1, count, count, type};
}

static device_matrix blocks_of(void *data, int64_t blocks) {
    return (device_matrix){data, blocks, BASE_BLOCK4_BYTES, BASE_BLOCK4_BYTES, BASE_UINT8};
}

static void run(device *dev, device_call call) {
    device_step step = {0};
    sifr_error error;
    call.step = &step;
    if (device_prepare(dev, &call, &error) != SIFR_OK) fail_msg("%s", error.message);
    if (device_run(dev, &call, &error) != SIFR_OK) fail_msg("%s", error.message);
}

static void encode(device *dev, void *values, base_dtype type, uint8_t *codes, int32_t slices) {
    device_call call = {.kernel = DEVICE_ENCODE_BLOCKS4,
                        .x = {values_of(values, COUNT, type)},
                        .y = blocks_of(codes, BLOCKS)};
    call.attributes.block.slices = slices;
    call.attributes.block.near = NEAR;
    run(dev, call);
}

/* Of each block another size, from what is nothing to what nearly overflows. */
static float value_at(int64_t i, base_dtype type) {
    static const float sizes[9] = {1, 0.02f, 1e-3f, 6e-5f, 0, 3e4f, 7, 1e-20f, 1e-38f};
    float size = sizes[i / BASE_BLOCK4 % 9];
    if (type != BASE_FP16 && size == 3e4f) size = 1e37f;
    base_random4 draw = base_philox(4, (uint64_t)i, 0);
    if (i % BASE_BLOCK4 == 17) return size; /* the largest */
    return size * ((float)(draw.v[0] >> 8) / 8388608.0f - 1.0f);
}

static float as_float(const void *data, base_dtype type, int64_t i) {
    if (type == BASE_FP32) return ((const float *)data)[i];
    uint16_t bits = ((const uint16_t *)data)[i];
    return type == BASE_BF16 ? base_bf16_to_float(bits) : base_half_to_float(bits);
}

static void put(void *data, base_dtype type, int64_t i, float value) {
    if (type == BASE_FP32)
        ((float *)data)[i] = value;
    else
        ((uint16_t *)data)[i] =
            type == BASE_BF16 ? base_bf16_from_float(value) : base_half_from_float(value);
}

static int code_at(const uint8_t *block, int64_t i) {
    int half = i < HALF ? block[i] & 15 : block[i - HALF] >> 4;
    return half < 8 ? half : half - 16;
}

static void check_codes(const float *given, base_dtype type, const uint8_t *codes) {
    for (int64_t b = 0; b < BLOCKS; b++) {
        const uint8_t *block = codes + b * BASE_BLOCK4_BYTES;
        float scale, most = 0, inverse;
        memcpy(&scale, block + HALF, sizeof scale);
        for (int64_t i = 0; i < BASE_BLOCK4; i++)
            most = fmaxf(most, fabsf(as_float(given, type, b * BASE_BLOCK4 + i)));
        float wanted = base_block4_scale(base_float_to_bits(most), &inverse);
        assert_memory_equal(&scale, &wanted, sizeof scale);
        for (int64_t i = 0; i < BASE_BLOCK4; i++) {
            float x = as_float(given, type, b * BASE_BLOCK4 + i);
            int code = code_at(block, i);
            assert_int_equal(code, inverse == 0 ? 0 : (int)nearbyintf(x * inverse));
            assert_true(abs(code) <= BASE_BLOCK4_MOST);
            if (inverse != 0)
                assert_true(fabsf(x - (float)code * scale) <= 0.5001f * scale + 1e-6f * most);
        }
    }
}

/* Parts of a slice's length, in this order. */
static void check_sum(device *dev, uint8_t *codes, base_dtype type) {
    enum { LENGTH = EACH * BASE_BLOCK4 };
    float have[LENGTH], want[1];
    run(dev, (device_call){.kernel = DEVICE_SUM_BLOCKS4,
                           .x = {blocks_of(codes, BLOCKS)},
                           .y = values_of(have, LENGTH, type)});
    for (int64_t i = 0; i < LENGTH; i++) {
        float sum = 0;
        for (int64_t p = 0; p < SLICES; p++) {
            const uint8_t *block = codes + (p * EACH + i / BASE_BLOCK4) * BASE_BLOCK4_BYTES;
            float scale;
            memcpy(&scale, block + HALF, sizeof scale);
            float value = (float)code_at(block, i % BASE_BLOCK4) * scale;
            sum += value;
        }
        put(want, type, 0, sum);
        assert_true(as_float(have, type, i) == as_float(want, type, 0));
    }
}

static void check(device *dev, base_dtype type) {
    static float given[COUNT];
    static uint8_t codes[BLOCKS * BASE_BLOCK4_BYTES], moved[BLOCKS * BASE_BLOCK4_BYTES];
    enum { SLICE = EACH * BASE_BLOCK4_BYTES };
    for (int64_t i = 0; i < COUNT; i++) put(given, type, i, value_at(i, type));
    encode(dev, given, type, codes, 0);
    check_codes(given, type, codes);
    encode(dev, given, type, moved, SLICES);
    for (int s = 0; s < SLICES; s++) {
        int to = s % NEAR * (SLICES / NEAR) + s / NEAR;
        assert_memory_equal(moved + (ptrdiff_t)to * SLICE, codes + (ptrdiff_t)s * SLICE, SLICE);
    }
    check_sum(dev, codes, type);
}

static void by_formula(void **state) {
    (void)state;
    static const char *const sets[] = {NULL, "avx2", "plain"};
    static const base_dtype types[] = {BASE_FP32, BASE_BF16, BASE_FP16};
    for (int s = 0; s < 3; s++) {
        device *dev;
        sifr_error error;
        if (device_open_cpu(2, sets[s], &dev, &error) != SIFR_OK) continue; /* not here */
        for (int t = 0; t < 3; t++) check(dev, types[t]);
        device_close(dev);
    }
}

/* One part that is infinite or no number is seen in the sum of all. */
static void no_numbers(void **state) {
    (void)state;
    static float given[COUNT], sum[COUNT / 2];
    static uint8_t codes[BLOCKS * BASE_BLOCK4_BYTES];
    device *dev;
    sifr_error error;
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    for (int64_t i = 0; i < COUNT; i++) given[i] = value_at(i, BASE_FP32);
    given[5] = NAN, given[COUNT / 2 + BASE_BLOCK4 + 100] = -INFINITY;
    encode(dev, given, BASE_FP32, codes, 0);
    run(dev, (device_call){.kernel = DEVICE_SUM_BLOCKS4,
                           .x = {blocks_of(codes, BLOCKS)},
                           .y = values_of(sum, COUNT / 2, BASE_FP32)});
    for (int64_t i = 0; i < COUNT / 2; i++) assert_int_equal(!!isnan(sum[i]), i < 2 * BASE_BLOCK4);
    device_close(dev);
}

static void expect_refused(device_call call, const char *message) {
    device *dev;
    sifr_error error = {0};
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    if (!strstr(error.message, message)) fail_msg("%s", error.message);
    device_close(dev);
}

static void checked(void **state) {
    (void)state;
    device_call encodes = {.kernel = DEVICE_ENCODE_BLOCKS4,
                           .x = {values_of(NULL, COUNT - 1, BASE_FP32)},
                           .y = blocks_of(NULL, BLOCKS)};
    expect_refused(encodes, "encode_blocks4: x[0]");
    encodes.x[0] = values_of(NULL, COUNT, BASE_FP32);
    encodes.attributes.block.slices = 4;
    encodes.attributes.block.near = 2;
    expect_refused(encodes, "encode_blocks4: 18 blocks are not 4 slices in groups of 2");
    encodes.attributes.block.slices = 6;
    encodes.attributes.block.near = 4;
    expect_refused(encodes, "groups of 4");
    device_call sums = {.kernel = DEVICE_SUM_BLOCKS4,
                        .x = {blocks_of(NULL, BLOCKS)},
                        .y = values_of(NULL, 4 * BASE_BLOCK4, BASE_FP32)};
    expect_refused(sums, "sum_blocks4: 18 blocks are not parts of 1024 values");
    sums.y = values_of(NULL, BASE_BLOCK4, BASE_INT32);
    expect_refused(sums, "sum_blocks4: y");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_formula), cmocka_unit_test(no_numbers),
                                       cmocka_unit_test(checked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

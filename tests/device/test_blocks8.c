/* Blocks of 8 bits, on each instruction set: codes and values by the formula, whatever the type;
 * the error that is promised; what is nothing, infinite or no number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/block8.h"
#include "base/random.h"
#include "device/device.h"

enum { BLOCKS = 11, COUNT = BLOCKS * BASE_BLOCK8 };

static device_matrix values_of(void *data, base_dtype type) {
    return (device_matrix){data, 1, COUNT, COUNT, type};
}

static device_matrix blocks_of(void *data) {
    return (device_matrix){data, BLOCKS, BASE_BLOCK8_BYTES, BASE_BLOCK8_BYTES, BASE_UINT8};
}

static void run(device *dev, device_call call) {
    device_step step = {0};
    sifr_error error;
    call.step = &step;
    if (device_prepare(dev, &call, &error) != SIFR_OK) fail_msg("%s", error.message);
    if (device_run(dev, &call, &error) != SIFR_OK) fail_msg("%s", error.message);
}

/* Of each block another size, from what is nothing to what nearly overflows the type. */
static float value_at(int64_t i, base_dtype type) {
    static const float sizes[BLOCKS] = {1, 0.02f,  1e-3f,  6e-5f, 0, 3e4f,
                                        7, 1e-20f, 1e-38f, 0.5f,  1};
    float size = sizes[i / BASE_BLOCK8];
    if (type != BASE_FP16 && size == 3e4f) size = 3e38f;
    base_random4 draw = base_philox(3, (uint64_t)i, 0);
    if (i % BASE_BLOCK8 == 17) return size; /* the largest */
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

static void check(device *dev, base_dtype type) {
    float *given = calloc(COUNT, 4), *back = calloc(COUNT, 4), *again = calloc(COUNT, 4);
    int8_t *codes = calloc(BLOCKS, BASE_BLOCK8_BYTES), *twice = calloc(BLOCKS, BASE_BLOCK8_BYTES);
    for (int64_t i = 0; i < COUNT; i++) put(given, type, i, value_at(i, type));
    run(dev, (device_call){.kernel = DEVICE_ENCODE_BLOCKS8,
                           .x = {values_of(given, type)},
                           .y = blocks_of(codes)});
    run(dev, (device_call){.kernel = DEVICE_DECODE_BLOCKS8,
                           .x = {blocks_of(codes)},
                           .y = values_of(back, type)});
    for (int64_t i = 0; i < COUNT; i++) {
        int64_t block = i / BASE_BLOCK8, first = block * BASE_BLOCK8;
        const int8_t *row = codes + block * BASE_BLOCK8_BYTES;
        float scale, most = 0, inverse;
        memcpy(&scale, row + BASE_BLOCK8, sizeof scale);
        for (int64_t j = first; j < first + BASE_BLOCK8; j++)
            most = fmaxf(most, fabsf(as_float(given, type, j)));
        float wanted = base_block8_scale(base_float_to_bits(most), &inverse);
        assert_memory_equal(&scale, &wanted, sizeof scale);
        float x = as_float(given, type, i), y = as_float(back, type, i);
        int8_t code = row[i - first];
        assert_int_equal(code, inverse == 0 ? 0 : (int)nearbyintf(x * inverse));
        put(again, type, i, (float)code * scale);
        assert_memory_equal((char *)again + i * base_dtype_bytes(type),
                            (char *)back + i * base_dtype_bytes(type),
                            (size_t)base_dtype_bytes(type));
        if (inverse == 0) most = 0x1p-100f; /* nothing */
        float rounded = type == BASE_FP32 ? 1e-6f : type == BASE_BF16 ? 4e-3f : 1e-3f;
        assert_true(fabsf(x - y) <= 0.5001f * scale + rounded * most + 1e-7f * (type == BASE_FP16) +
                                        (inverse == 0 ? most : 0));
    }
    run(dev, (device_call){.kernel = DEVICE_ENCODE_BLOCKS8,
                           .x = {values_of(back, type)},
                           .y = blocks_of(twice)});
    for (int64_t b = 0; b < BLOCKS && type == BASE_FP32; b++) /* codes of what they stand for */
        assert_memory_equal(codes + b * BASE_BLOCK8_BYTES, twice + b * BASE_BLOCK8_BYTES,
                            BASE_BLOCK8);
    free(given);
    free(back);
    free(again);
    free(codes);
    free(twice);
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

/* Weights that are held so are encoded and read on the host: with the bits of the kernels. */
static void on_the_host(void **state) {
    (void)state;
    enum { RECORD = BASE_BLOCK8_IN_RECORD * BASE_BLOCK8 };
    static float given[COUNT], want[COUNT], have[COUNT];
    static uint8_t record[BASE_BLOCK8_RECORD_BYTES];
    static int8_t codes[BLOCKS * BASE_BLOCK8_BYTES];
    device *dev;
    sifr_error error;
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    assert_true((int)COUNT < (int)RECORD);
    for (int64_t i = 0; i < COUNT; i++) given[i] = value_at(i, BASE_FP32);
    given[BASE_BLOCK8 + 3] = NAN;
    run(dev, (device_call){.kernel = DEVICE_ENCODE_BLOCKS8,
                           .x = {values_of(given, BASE_FP32)},
                           .y = blocks_of(codes)});
    run(dev, (device_call){.kernel = DEVICE_DECODE_BLOCKS8,
                           .x = {blocks_of(codes)},
                           .y = values_of(want, BASE_FP32)});
    memset(record, 1, sizeof record);
    base_block8_encode(given, COUNT, record);
    assert_memory_equal(record, codes, sizeof codes);
    for (size_t i = sizeof codes; i < sizeof record; i++) assert_int_equal(record[i], 0);
    base_block8_decode(record, 1000, COUNT - 1000, have);
    assert_memory_equal(have, want + 1000, (COUNT - 1000) * sizeof *have);
    base_block8_encode(given, 100, record); /* a part of a block */
    base_block8_decode(record, 0, BASE_BLOCK8, have);
    for (int i = 100; i < BASE_BLOCK8; i++) assert_true(have[i] == 0);
    device_close(dev);
}

/* A weight that is infinite or no number is seen in the loss, as without codes. */
static void no_numbers(void **state) {
    (void)state;
    device *dev;
    sifr_error error;
    float given[COUNT], back[COUNT];
    int8_t codes[BLOCKS * BASE_BLOCK8_BYTES];
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    for (int64_t i = 0; i < COUNT; i++) given[i] = value_at(i, BASE_FP32);
    given[5] = NAN, given[BASE_BLOCK8 + 1000] = -INFINITY;
    run(dev, (device_call){.kernel = DEVICE_ENCODE_BLOCKS8,
                           .x = {values_of(given, BASE_FP32)},
                           .y = blocks_of(codes)});
    run(dev, (device_call){.kernel = DEVICE_DECODE_BLOCKS8,
                           .x = {blocks_of(codes)},
                           .y = values_of(back, BASE_FP32)});
    for (int64_t i = 0; i < COUNT; i++) assert_int_equal(!!isnan(back[i]), i < 2 * BASE_BLOCK8);
    device_close(dev);
}

static void expect_refused(device_matrix x, device_matrix y, const char *message) {
    device *dev;
    sifr_error error = {0};
    device_call call = {.kernel = DEVICE_ENCODE_BLOCKS8, .x = {x}, .y = y};
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_USAGE);
    if (!strstr(error.message, message)) fail_msg("%s", error.message);
    device_close(dev);
}

static void checked(void **state) {
    (void)state;
    device_matrix short_ones = values_of(NULL, BASE_FP32), narrow = blocks_of(NULL);
    short_ones.columns = short_ones.stride = COUNT - 1;
    narrow.columns = narrow.stride = BASE_BLOCK8;
    expect_refused(short_ones, blocks_of(NULL), "encode_blocks8: x[0]");
    expect_refused(values_of(NULL, BASE_INT32), blocks_of(NULL), "encode_blocks8: x[0]");
    expect_refused(values_of(NULL, BASE_FP32), narrow, "encode_blocks8: y");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_formula), cmocka_unit_test(no_numbers),
                                       cmocka_unit_test(on_the_host), cmocka_unit_test(checked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

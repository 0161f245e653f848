/* 16-bit floats against a reference in double: all values one way, and all borders between them the
 * other. */
#include "base/half.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/float_mode.h"

/* A format: a sign, `exponent` bits and `mantissa` bits. */
typedef struct format {
    int exponent, mantissa;
    float (*widen)(uint16_t bits);
    uint16_t (*narrow)(float value);
} format;

static const format half = {5, 10, base_half_to_float, base_half_from_float};
static const format bf16 = {8, 7, base_bf16_to_float, base_bf16_from_float};

static uint16_t infinity_of(const format *f) {
    return (uint16_t)(((1 << f->exponent) - 1) << f->mantissa);
}

/* The value of bits, as IEEE 754 defines it. */
static double reference(const format *f, uint16_t bits) {
    int bias = (1 << (f->exponent - 1)) - 1, stored = (bits & 0x7fff) >> f->mantissa;
    int fraction = bits & ((1 << f->mantissa) - 1);
    double sign = bits & 0x8000 ? -1 : 1;
    if (stored == (1 << f->exponent) - 1) return fraction ? NAN : sign * INFINITY;
    if (stored == 0) return sign * ldexp(fraction, 1 - bias - f->mantissa);
    return sign * ldexp(fraction + (1 << f->mantissa), stored - bias - f->mantissa);
}

/* Every value widens to itself, and comes back as the same bits. */
static void check_all_values(const format *f) {
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        double value = reference(f, (uint16_t)bits);
        float wide = f->widen((uint16_t)bits);
        if (isnan(value)) {
            assert_true(isnan(wide));
            assert_true(isnan(f->widen(f->narrow(wide))));
        } else {
            assert_true((double)wide == value);
            assert_int_equal(signbit(wide) != 0, bits >> 15); /* zeros, too */
            assert_int_equal(f->narrow(wide), bits);
        }
    }
}

/* Between two neighbours the nearer one is taken, and half way the even one; so with both signs.
 * Beyond the last border there is infinity. */
static void check_all_borders(const format *f) {
    for (uint16_t bits = 0; bits < infinity_of(f); bits++) {
        double low = reference(f, bits), high = reference(f, (uint16_t)(bits + 1));
        if (isinf(high)) high = low + (low - reference(f, (uint16_t)(bits - 1)));
        float middle = (float)((low + high) / 2);
        if (isinf(middle)) continue; /* of bfloat16's last border, which is FLT_MAX's own */
        assert_true((double)middle == (low + high) / 2);
        uint16_t even = (uint16_t)(bits % 2 ? bits + 1 : bits);
        assert_int_equal(f->narrow(middle), even);
        assert_int_equal(f->narrow(-middle), even | 0x8000);
        assert_int_equal(f->narrow(nextafterf(middle, 0)), bits);
        assert_int_equal(f->narrow(nextafterf(middle, INFINITY)), bits + 1);
        assert_int_equal(f->narrow(-nextafterf(middle, INFINITY)), (bits + 1) | 0x8000);
    }
}

static void test_half(void **state) {
    (void)state;
    check_all_values(&half);
    check_all_borders(&half);
    assert_int_equal(base_half_from_float(1), 0x3c00);
    assert_int_equal(base_half_from_float(65504), 0x7bff);
    assert_int_equal(base_half_from_float(65519.996f), 0x7bff);
    assert_int_equal(base_half_from_float(65520), 0x7c00);
    assert_int_equal(base_half_from_float(3e38f), 0x7c00);
    assert_int_equal(base_half_from_float(-INFINITY), 0xfc00);
    assert_int_equal(base_half_from_float(0x1p-24f), 0x0001);
    assert_int_equal(base_half_from_float(0x1p-25f), 0x0000); /* half way to 0, which is even */
    assert_int_equal(base_half_from_float(-1e-45f), 0x8000);
}

/* Threads that compute take subnormal floats for zeros; those of half precision are none. */
static void test_flushed(void **state) {
    (void)state;
    unsigned before = base_flush_floats();
    check_all_values(&half);
    base_restore_floats(before);
}

static void test_bf16(void **state) {
    (void)state;
    check_all_values(&bf16);
    check_all_borders(&bf16);
    assert_int_equal(base_bf16_from_float(1), 0x3f80);
    assert_int_equal(base_bf16_from_float(base_float_from_bits(0x7f7f7fff)), 0x7f7f);
    assert_int_equal(base_bf16_from_float(base_float_from_bits(0x7f7f8000)), 0x7f80);
    assert_int_equal(base_bf16_from_float(base_float_from_bits(0x7f7fffff)), 0x7f80);
    assert_int_equal(base_bf16_from_float(base_float_from_bits(0x00008001)), 0x0001);
}

/* Quiet, with its sign and the upper bits of its payload; never infinite. */
static void test_nan(void **state) {
    (void)state;
    for (uint32_t payload = 1; payload < 0x800000; payload = payload * 3 + 1) {
        for (uint32_t sign = 0; sign < 2; sign++) {
            float value = base_float_from_bits(sign << 31 | 0x7f800000 | payload);
            assert_int_equal(base_half_from_float(value), sign << 15 | 0x7e00 | payload >> 13);
            assert_int_equal(base_bf16_from_float(value), sign << 15 | 0x7fc0 | payload >> 16);
            assert_int_equal(base_bf16_drawn(value, 0xffff), sign << 15 | 0x7fc0 | payload >> 16);
        }
    }
}

static void test_bits(void **state) {
    (void)state;
    assert_int_equal(base_float_to_bits(1), 0x3f800000);
    assert_int_equal(base_float_to_bits(-0.0f), 0x80000000);
    assert_true(base_float_from_bits(0x40490fdb) == 3.14159274f);
}

/* Over all draws the mean is the value itself: no bit of it is lost on the average. */
static void check_mean(float value) {
    double sum = 0;
    uint16_t low = (uint16_t)(base_float_to_bits(value) >> 16);
    for (uint32_t draw = 0; draw < 0x10000; draw++) {
        uint16_t drawn = base_bf16_drawn(value, (uint16_t)draw);
        assert_in_range(drawn, low, low + 1);
        sum += (double)base_bf16_to_float(drawn);
    }
    assert_true(sum / 0x10000 == (double)value);
}

static void test_drawn(void **state) {
    (void)state;
    static const float values[] = {1.2345678f,   3e-5f,       1 + 0x1p-23f,
                                   2 - 0x1p-23f, 123456.789f, 1e30f};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        check_mean(values[i]);
        check_mean(-values[i]);
    }
    for (uint32_t bits = 0; bits < 0x7f80; bits += 7) { /* what has 16 bits never moves */
        float value = base_bf16_to_float((uint16_t)bits);
        assert_int_equal(base_bf16_drawn(value, 0), bits);
        assert_int_equal(base_bf16_drawn(value, 0xffff), bits);
    }
    check_mean(base_float_from_bits(0x00012345)); /* subnormal */
    assert_int_equal(base_bf16_drawn(INFINITY, 0xffff), 0x7f80);
    assert_int_equal(base_bf16_drawn(base_float_from_bits(0x7f7fffff), 0xffff), 0x7f80);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_half), cmocka_unit_test(test_flushed), cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_nan),  cmocka_unit_test(test_bits),    cmocka_unit_test(test_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

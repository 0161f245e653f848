/* Exact sums of squares: against Python's fractions (tests/golden/make_exact_sums.py), the same
 * bytes for any order and cut, room for carries, numbers that are not finite. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exact_sum.h"
#include "base/float_mode.h"
#include "base/random.h"

enum { NUMBERS = 1000, LARGEST = 0x7f7fffff };

static int64_t bits_of(double value) {
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static base_exact_sum sum_of(const float *x, int64_t n) {
    base_exact_sum sum = {0};
    for (int64_t i = 0; i < n; i++) base_exact_square(&sum, x[i]);
    return sum;
}

static void golden(void **state) {
    (void)state;
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/golden/exact_sums.json", getenv("SOURCE"));
    json_t *cases = json_load_file(path, 0, NULL), *number;
    assert_true(json_array_size(cases) > 50);
    for (size_t c = 0; c < json_array_size(cases); c++) {
        json_t *one = json_array_get(cases, c);
        int64_t want = json_integer_value(json_object_get(one, "sum"));
        base_exact_sum sum = {0};
        size_t i;
        json_array_foreach(json_object_get(one, "numbers"), i, number)
            base_exact_square(&sum, base_float_from_bits((uint32_t)json_integer_value(number)));
        int64_t have = bits_of(base_exact_round(&sum));
        if (have != want)
            fail_msg("case %zu: bits %llx, not %llx", c, (long long)have, (long long)want);
    }
    json_decref(cases);
}

/* Finite numbers of any bits; and a thread that flushes subnormals counts them as well. */
static void fill(float *x, uint64_t key) {
    for (int i = 0; i < NUMBERS; i++) {
        uint32_t bits = (uint32_t)base_random_key(key, (uint64_t)i, 0);
        if ((bits & 0x7fffffff) > LARGEST) bits &= 0xbfffffff;
        x[i] = base_float_from_bits(i % 5 ? bits : bits & 0x807fffff);
    }
}

static void any_order_and_cut(void **state) {
    (void)state;
    float x[NUMBERS];
    fill(x, 7);
    base_exact_sum whole = sum_of(x, NUMBERS);
    base_exact_settle(&whole);
    for (int n = 1; n < 60; n++) {
        base_exact_sum sum = {0};
        unsigned mode = n % 2 ? base_flush_floats() : 0;
        for (int part = 0; part < n; part++) {
            base_exact_sum own = {0};
            for (int i = part; i < NUMBERS; i += n) base_exact_square(&own, x[NUMBERS - 1 - i]);
            if (part % 3) base_exact_settle(&own);
            base_exact_merge(&sum, &own);
        }
        if (n % 2) base_restore_floats(mode);
        base_exact_settle(&sum);
        assert_memory_equal(&sum, &whole, sizeof sum);
    }
}

/* Counts of either sign, at each position. */
static void counts(void **state) {
    (void)state;
    for (int position = 0; position <= 543; position++) {
        base_exact_sum sum = {0};
        base_exact_add(&sum, INT64_MAX, position);
        base_exact_add(&sum, -(INT64_MAX - 5), position);
        assert_true(base_exact_round(&sum) == ldexp(5, position + EXACT_UNIT));
        base_exact_add(&sum, INT64_MIN, position);
        base_exact_add(&sum, INT64_MAX, position);
        assert_true(base_exact_round(&sum) == ldexp(4, position + EXACT_UNIT));
    }
    base_exact_sum borrowed = {0}, one = {0}; /* carries of -1 */
    base_exact_add(&borrowed, 1, 300);
    base_exact_add(&borrowed, -1, 100);
    base_exact_settle(&borrowed);
    for (int d = 0; d < EXACT_DIGITS; d++) assert_in_range(borrowed.digits[d], 0, UINT32_MAX);
    base_exact_add(&borrowed, 1, 100);
    base_exact_settle(&borrowed);
    base_exact_add(&one, 1, 300);
    assert_memory_equal(&borrowed, &one, sizeof one);
}

/* A part of an addition is below 2^32 in size, so 2^30 of them leave a digit below 2^62. And the
 * last digit has room for many more squares than any run has. */
static void capacity(void **state) {
    (void)state;
    float largest = base_float_from_bits(LARGEST);
    base_exact_sum sum = {0};
    for (int shift = 0; shift < 32; shift++) {
        exact_parts most = base_exact_cut(INT64_MAX, shift),
                    least = base_exact_cut(INT64_MIN, shift);
        for (int i = 0; i < 3; i++) {
            assert_in_range(llabs(most.part[i]), 0, UINT32_MAX);
            assert_in_range(llabs(least.part[i]), 0, UINT32_MAX);
        }
    }
    base_exact_square(&sum, largest);
    for (int power = 1; power <= 83; power++) {
        base_exact_settle(&sum);
        base_exact_sum other = sum;
        base_exact_merge(&sum, &other);
        double want = ldexp((double)largest * (double)largest, power);
        assert_true(base_exact_round(&sum) == want);
    }
}

static void not_finite(void **state) {
    (void)state;
    const float values[] = {1, INFINITY, -INFINITY, NAN, base_float_from_bits(0xff800001), 2};
    base_exact_sum sum = sum_of(values, 1);
    assert_true(base_exact_round(&sum) == 1);
    sum = sum_of(values, 3);
    assert_true(isinf(base_exact_round(&sum)));
    assert_true(base_exact_round(&sum) > 0);
    base_exact_sum more = sum_of(values + 3, 3);
    assert_true(isnan(base_exact_round(&more)));
    base_exact_settle(&more);
    base_exact_settle(&sum);
    assert_int_equal(sum.infinite, 1);
    assert_int_equal(more.nan, 1);
    base_exact_merge(&more, &sum);
    assert_true(isnan(base_exact_round(&more)));
    assert_int_equal(sizeof sum, EXACT_WORDS * sizeof(int64_t));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden), cmocka_unit_test(any_order_and_cut), cmocka_unit_test(counts),
        cmocka_unit_test(capacity), cmocka_unit_test(not_finite)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

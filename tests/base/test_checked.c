/* Arithmetic at the edges of its types. */
#include "base/checked.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_sizes(void **state) {
    (void)state;
    size_t out;
    assert_true(base_add_size(3, 4, &out));
    assert_int_equal(out, 7);
    assert_true(base_add_size(SIZE_MAX - 1, 1, &out));
    assert_true(out == SIZE_MAX);
    assert_false(base_add_size(SIZE_MAX, 1, &out));
    assert_false(base_add_size(SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 1, &out));
    assert_true(base_mul_size(SIZE_MAX, 1, &out));
    assert_true(out == SIZE_MAX);
    assert_true(base_mul_size(SIZE_MAX, 0, &out));
    assert_int_equal(out, 0);
    assert_true(base_mul_size((size_t)1 << 31, (size_t)1 << 32, &out));
    assert_true(out == (size_t)1 << 63);
    assert_false(base_mul_size((size_t)1 << 32, (size_t)1 << 32, &out));
    assert_false(base_mul_size(SIZE_MAX / 2 + 1, 2, &out)); /* 0 where it is not looked at */
}

static void test_signed(void **state) {
    (void)state;
    int64_t out;
    assert_true(base_add_i64(INT64_MAX, INT64_MIN, &out));
    assert_int_equal(out, -1);
    assert_true(base_add_i64(INT64_MAX - 1, 1, &out));
    assert_true(out == INT64_MAX);
    assert_false(base_add_i64(INT64_MAX, 1, &out));
    assert_false(base_add_i64(INT64_MIN, -1, &out));
    assert_true(base_mul_i64(INT64_MIN, 1, &out));
    assert_true(out == INT64_MIN);
    assert_true(base_mul_i64(-3037000499, 3037000499, &out)); /* the square root of 2^63 */
    assert_int_equal(out, -9223372030926249001);
    assert_false(base_mul_i64(3037000500, 3037000500, &out));
    assert_false(base_mul_i64(INT64_MIN, -1, &out));
    assert_false(base_mul_i64(INT64_MAX, 2, &out));
}

static void test_rounding(void **state) {
    (void)state;
    int64_t out;
    for (int64_t unit = 1; unit < 20; unit++) {
        for (int64_t value = 0; value < 100; value++) {
            assert_true(base_round_up_i64(value, unit, &out));
            assert_int_equal(out % unit, 0);
            assert_in_range(out, value, value + unit - 1);
            assert_int_equal(base_ceil_to(value, unit), out);
        }
    }
    assert_true(base_round_up_i64(INT64_MAX - 7, 8, &out));
    assert_true(out == INT64_MAX - 7);
    assert_false(base_round_up_i64(INT64_MAX - 6, 8, &out));
    assert_true(base_round_up_i64(1, INT64_MAX, &out));
    assert_true(out == INT64_MAX);
    assert_true(base_round_up_i64(INT64_MAX, INT64_MAX, &out));
    assert_true(out == INT64_MAX);
}

static void test_least_and_most(void **state) {
    (void)state;
    assert_int_equal(base_min_i64(-2, 1), -2);
    assert_int_equal(base_min_i64(1, -2), -2);
    assert_int_equal(base_max_i64(-2, 1), 1);
    assert_int_equal(base_max_i64(1, -2), 1);
    assert_true(base_min_i64(INT64_MIN, INT64_MAX) == INT64_MIN);
    assert_true(base_max_i64(INT64_MIN, INT64_MAX) == INT64_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_signed),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_least_and_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"

static void counts(void **state) {
    (void)state;
    int64_t n;
    sifr_error error;
    assert_int_equal(base_parse_count("4096", "n", &n, &error), SIFR_OK);
    assert_int_equal(n, 4096);
    assert_int_equal(base_parse_count("4k", "n", &n, &error), SIFR_OK);
    assert_int_equal(n, 4000);
    assert_int_equal(base_parse_count("1e9", "n", &n, &error), SIFR_OK);
    assert_int_equal(n, 1000000000);
    static const char *const bad[] = {"", "-1", "x", "1.5", "4kk", "0x10", "nan", "inf", "1e30"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(base_parse_count(bad[i], "n", &n, &error), SIFR_USAGE);
    }
    assert_string_equal(error.message, "n: '1e30' is not a number like 4096, 4k or 1e9");
}

static void sizes(void **state) {
    (void)state;
    int64_t n;
    assert_int_equal(base_parse_bytes("24GiB", "n", &n, NULL), SIFR_OK);
    assert_int_equal(n, INT64_C(24) << 30);
    assert_int_equal(base_parse_bytes("1.5GB", "n", &n, NULL), SIFR_OK);
    assert_int_equal(n, 1500000000);
    assert_int_equal(base_parse_bytes("16M", "n", &n, NULL), SIFR_OK);
    assert_int_equal(n, 16 << 20);
    assert_int_equal(base_parse_bytes("21.4GiB", "n", &n, NULL), SIFR_OK);
    assert_int_equal(n, 22978075033);
    assert_int_equal(base_parse_bytes("1.5", "n", &n, NULL), SIFR_USAGE);
    assert_int_equal(base_parse_bytes("1.5B", "n", &n, NULL), SIFR_USAGE);
    assert_int_equal(base_parse_count("1.0001k", "n", &n, NULL), SIFR_USAGE);
    assert_int_equal(base_parse_bytes("16X", "n", &n, NULL), SIFR_USAGE);
}

static void reals(void **state) {
    (void)state;
    double value = 7;
    sifr_error error;
    static const char *const bad[] = {"", "x", "1.5x", "nan", "inf", "1e999", "0.5 "};
    assert_int_equal(base_parse_double("3e-4", "--lr", &value, &error), SIFR_OK);
    assert_true(value == 3e-4);
    assert_int_equal(base_parse_double("-0.5", "--lr", &value, &error), SIFR_OK);
    assert_true(value == -0.5);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(base_parse_double(bad[i], "--lr", &value, &error), SIFR_USAGE);
        assert_true(value == -0.5);
    }
    assert_string_equal(error.message, "--lr: '0.5 ' is not a number like 0.5 or 3e-4");
}

static void nearest(void **state) {
    (void)state;
    static const char *const names[] = {"train_batch_size", "zero_optimization", "fp16"};
    assert_string_equal(base_nearest("train_batchsize", names, 3), "train_batch_size");
    assert_string_equal(base_nearest("zero_optimisation", names, 3), "zero_optimization");
    assert_null(base_nearest("entirely_else", names, 3));
}

static void formats(void **state) {
    (void)state;
    char out[32];
    assert_string_equal(base_format_count(1234567, out), "1,234,567");
    assert_string_equal(base_format_count(-12, out), "-12");
    assert_string_equal(base_format_count(0, out), "0");
    assert_string_equal(base_format_count(999, out), "999");
    assert_string_equal(base_format_count(-1000, out), "-1,000");
    char counted[80];
    assert_string_equal(base_format_counted(1, "row", counted), "1 row");
    assert_string_equal(base_format_counted(0, "row", counted), "0 rows");
    assert_string_equal(base_format_counted(2000, "row", counted), "2,000 rows");
    assert_string_equal(base_format_count(INT64_MAX, out), "9,223,372,036,854,775,807");
    assert_string_equal(base_format_bytes(0, out), "0 B");
    assert_string_equal(base_format_bytes(999, out), "999 B");
    assert_string_equal(base_format_bytes(1000, out), "0.98 KiB"); /* never four digits */
    assert_string_equal(base_format_bytes(1536, out), "1.50 KiB");
    assert_string_equal(base_format_bytes(12345678, out), "11.8 MiB");
    assert_string_equal(base_format_bytes((uint64_t)340 << 20, out), "340 MiB");
    assert_string_equal(base_format_bytes((uint64_t)5 << 50, out), "5.00 PiB");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts), cmocka_unit_test(sizes),
                                       cmocka_unit_test(nearest), cmocka_unit_test(reals),
                                       cmocka_unit_test(formats)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

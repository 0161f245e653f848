/* What --json says of a run's work keeps a bounded number of warnings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/keep_notice.h"

static void keeps_few_warnings(void **state) {
    json_t *notices = json_array();
    (void)state;
    for (int step = 0; step < 1000; step++) {
        cli_keep_notice(notices, SIFR_LOG_WARNING, "this step was skipped");
        cli_keep_notice(notices, SIFR_LOG_INFO, "no warning");
    }
    size_t count = json_array_size(notices);
    assert_int_equal(count, 65);
    assert_string_equal(json_string_value(json_array_get(notices, 63)), "this step was skipped");
    assert_string_equal(json_string_value(json_array_get(notices, 64)),
                        "and more, which are on standard error");
    json_decref(notices);
}

static void keeps_odd_bytes_out(void **state) {
    json_t *notices = json_array();
    (void)state;
    cli_keep_notice(notices, SIFR_LOG_WARNING, "a path: \xff");
    cli_keep_notice(NULL, SIFR_LOG_WARNING, "nobody wants it");
    assert_string_equal(json_string_value(json_array_get(notices, 0)),
                        "a warning that is not UTF-8");
    json_decref(notices);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(keeps_few_warnings),
                                       cmocka_unit_test(keeps_odd_bytes_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Messages: one line, never cut in the middle of memory, and the status beside them. */
#include "base/errors.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sifr/version.h"

static void test_set(void **state) {
    (void)state;
    sifr_error error = {0};
    assert_int_equal(base_fail(&error, SIFR_USAGE, "%s: %d is too many", "a.json", 7), SIFR_USAGE);
    assert_int_equal(error.status, SIFR_USAGE);
    assert_string_equal(error.message, "a.json: 7 is too many");
    assert_int_equal(base_fail(NULL, SIFR_LOST_RANK, "nobody hears"), SIFR_LOST_RANK);
    base_set_error(&error, SIFR_FAILED, "two\nlines\tand\x7f \x1b[31mred");
    assert_string_equal(error.message, "two lines and   [31mred");
    base_set_error(&error, SIFR_FAILED, "\xc3\xa4\xe2\x80\xa6"); /* other letters stay */
    assert_string_equal(error.message, "\xc3\xa4\xe2\x80\xa6");
}

static void test_errno(void **state) {
    (void)state;
    sifr_error error = {0};
    assert_int_equal(base_fail_errno(&error, ENOSPC, "%s: cannot write", "f"), SIFR_FAILED);
    assert_string_equal(error.message, "f: cannot write: No space left on device");
    assert_int_equal(error.status, SIFR_FAILED);
    assert_int_equal(base_fail_errno(NULL, ENOSPC, "f"), SIFR_FAILED);
    base_set_error_errno(&error, 99999, "f");
    assert_non_null(strstr(error.message, "f: Unknown error"));
}

static void test_in(void **state) {
    (void)state;
    sifr_error error = {0};
    base_set_error(&error, SIFR_FAILED, "the reason");
    assert_int_equal(base_fail_in(&error, SIFR_USAGE, "rank %d", 3), SIFR_USAGE);
    assert_string_equal(error.message, "rank 3: the reason");
    assert_int_equal(error.status, SIFR_USAGE);
    assert_int_equal(base_fail_in(NULL, SIFR_USAGE, "rank"), SIFR_USAGE);
}

static void test_bytes(void **state) {
    (void)state;
    sifr_error error = {0};
    assert_int_equal(base_fail_alloc(&error, 4096), SIFR_NO_MEMORY);
    assert_string_equal(error.message, "out of memory: the system refused 4096 bytes");
    (void)base_fail_alloc(&error, SIZE_MAX);
    assert_non_null(strstr(error.message, "18446744073709551615 bytes"));
}

/* What is too long loses its end, and writes nothing behind the message. */
static void test_long(void **state) {
    (void)state;
    struct {
        sifr_error error;
        char guard[64];
    } both;
    char longest[2 * SIFR_ERROR_LENGTH];
    memset(&both, 'g', sizeof both);
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    base_set_error(&both.error, SIFR_FAILED, "begins %s", longest);
    assert_int_equal(strlen(both.error.message), SIFR_ERROR_LENGTH - 1);
    assert_memory_equal(both.error.message, "begins xxx", 10);
    base_set_error_in(&both.error, SIFR_FAILED, "around");
    assert_int_equal(strlen(both.error.message), SIFR_ERROR_LENGTH - 1);
    assert_memory_equal(both.error.message, "around: begins xxx", 18);
    base_set_error_errno(&both.error, ENOSPC, "%s", longest);
    assert_int_equal(strlen(both.error.message), SIFR_ERROR_LENGTH - 1);
    for (size_t i = 0; i < sizeof both.guard; i++) assert_int_equal(both.guard[i], 'g');
}

/* --- passing on --- */

static sifr_status step(int *steps, sifr_status status) {
    ++*steps;
    return status;
}

static sifr_status three_steps(int *steps, sifr_status second) {
    BASE_TRY(step(steps, SIFR_OK));
    BASE_TRY(step(steps, second));
    return step(steps, SIFR_OK);
}

static sifr_status with_clean_up(int *steps, sifr_status first, int *cleaned) {
    sifr_status status;
    BASE_TRY_GOTO(status, step(steps, first), done);
    BASE_TRY_GOTO(status, step(steps, SIFR_OK), done);
done:
    ++*cleaned;
    return status;
}

static void test_try(void **state) {
    (void)state;
    int steps = 0, cleaned = 0;
    assert_int_equal(three_steps(&steps, SIFR_OK), SIFR_OK);
    assert_int_equal(steps, 3);
    assert_int_equal(three_steps(&steps, SIFR_LOST_RANK), SIFR_LOST_RANK);
    assert_int_equal(steps, 5);
    assert_int_equal(with_clean_up(&steps, SIFR_OK, &cleaned), SIFR_OK);
    assert_int_equal(steps, 7);
    assert_int_equal(with_clean_up(&steps, SIFR_USAGE, &cleaned), SIFR_USAGE);
    assert_int_equal(steps, 8);
    assert_int_equal(cleaned, 2);
}

/* --- the log --- */

typedef struct heard {
    int lines;
    sifr_log_level level;
    char line[64];
} heard;

static void hear(void *user, sifr_log_level level, const char *line) {
    heard *h = user;
    h->lines++;
    h->level = level;
    strncpy(h->line, line, sizeof h->line - 1);
}

static void test_log(void **state) {
    (void)state;
    heard h = {0};
    sifr_log log = {.write = hear, .user = &h}, silent = {0};
    base_log(&log, SIFR_LOG_WARNING, "%d ranks\nwait", 4);
    assert_int_equal(h.lines, 1);
    assert_int_equal(h.level, SIFR_LOG_WARNING);
    assert_string_equal(h.line, "4 ranks wait");
    base_log(&silent, SIFR_LOG_INFO, "nobody hears");
    base_log(NULL, SIFR_LOG_INFO, "nobody hears");
    assert_int_equal(h.lines, 1);
}

static void test_version(void **state) {
    (void)state;
    const char *version = sifr_version();
    assert_in_range(version[0], '0', '9');
    assert_non_null(strchr(version, '.'));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),   cmocka_unit_test(test_errno),   cmocka_unit_test(test_in),
        cmocka_unit_test(test_bytes), cmocka_unit_test(test_long),    cmocka_unit_test(test_try),
        cmocka_unit_test(test_log),   cmocka_unit_test(test_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

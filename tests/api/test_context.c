/* Options that begin with their size, as an older and a newer program give them; the log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/api_context.h"

typedef struct options {
    size_t size;
    int64_t first, second;
} options;

static sifr_status take(const void *given, options *out, sifr_error *error) {
    memset(out, 0x55, sizeof *out);
    return api_take_options("options", given, sizeof *out, out, error);
}

static void test_options(void **state) {
    (void)state;
    struct {
        options known;
        int64_t third, fourth; /* two: padding behind one would have any value */
    } newer = {{sizeof newer, 3, 4}, 0, 0};
    struct {
        size_t size;
        int64_t first;
    } older = {offsetof(options, second), 5};
    options taken;
    sifr_error error;
    assert_int_equal(take(NULL, &taken, &error), SIFR_OK);
    assert_int_equal(taken.size, sizeof taken);
    assert_int_equal(taken.first, 0);
    assert_int_equal(take(&older, &taken, &error), SIFR_OK);
    assert_int_equal(taken.size, sizeof taken);
    assert_int_equal(taken.first, 5);
    assert_int_equal(taken.second, 0);
    assert_int_equal(take(&newer, &taken, &error), SIFR_OK);
    assert_int_equal(taken.second, 4);
    newer.third = 1;
    assert_int_equal(take(&newer, &taken, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "options: an option of a newer sifr is set"));
    for (int i = 0; i < 3; i++) {
        newer.known.size = (size_t[]){0, 7, SIZE_MAX}[i];
        assert_int_equal(take(&newer, &taken, &error), SIFR_USAGE);
        assert_non_null(strstr(error.message, "options.size: "));
    }
}

static void keep(void *user, sifr_log_level level, const char *line) {
    assert_int_equal(level, SIFR_LOG_INFO);
    strcat(user, line);
}

static void test_log(void **state) {
    (void)state;
    char lines[64] = "";
    sifr_context_options given = {.size = sizeof given, .log = {keep, lines}};
    sifr_context *context;
    assert_int_equal(sifr_context_create(&given, &context, NULL), SIFR_OK);
    context->log.write(context->log.user, SIFR_LOG_INFO, "one");
    context->log.write(context->log.user, SIFR_LOG_INFO, ", two");
    assert_string_equal(lines, "one, two");
    sifr_context_free(context);
    assert_int_equal(sifr_context_create(NULL, &context, NULL), SIFR_OK);
    assert_null(context->log.write);
    sifr_context_free(context);
    sifr_context_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_options), cmocka_unit_test(test_log)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

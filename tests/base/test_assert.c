/* An assertion that does not hold ends the process with one line, in builds that have them; in
 * others its condition is compiled and not evaluated. */
#include "base/assert.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static int evaluated;

static bool is_at_most(int value, int most) {
    evaluated++;
    return value <= most;
}

/* Asserts in a child, whose stderr goes into `text`; its status. */
static int assert_in_child(int slot, char *text, size_t size) {
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(SIGABRT, SIG_DFL); /* cmocka's and a sanitizer's would take over */
        dup2(ends[1], STDERR_FILENO);
        base_assert(slot >= 0);
        _exit(0);
    }
    close(ends[1]);
    ssize_t length = read(ends[0], text, size - 1);
    text[length > 0 ? length : 0] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void test_failure(void **state) {
    (void)state;
    char text[512], line[64];
    assert_int_equal(assert_in_child(0, text, sizeof text), 0);
    assert_string_equal(text, "");
    int status = assert_in_child(-1, text, sizeof text);
#ifdef SIFR_ASSERTS
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    const char *name = strstr(text, "test_assert.c:");
    assert_non_null(name);
    snprintf(line, sizeof line, "%d: assertion failed: slot >= 0\n", atoi(name + 14));
    assert_string_equal(name + 14, line);
    assert_in_range(atoi(name + 14), 1, __LINE__);
#else
    (void)line;
    assert_int_equal(status, 0);
    assert_string_equal(text, "");
#endif
}

/* Also after `if` without braces, and with a comma inside. */
static void test_evaluation(void **state) {
    (void)state;
    evaluated = 0;
    if (evaluated == 0)
        base_assert(is_at_most(1, 2));
    else
        evaluated = 7;
#ifdef SIFR_ASSERTS
    assert_int_equal(evaluated, 1);
#else
    assert_int_equal(evaluated, 0);
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failure),
        cmocka_unit_test(test_evaluation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

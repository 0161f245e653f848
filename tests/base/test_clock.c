/* The clock goes on, and is one for all processes of a host. */
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static void sleep_for(long milliseconds) {
    struct timespec span = {.tv_nsec = milliseconds * 1000000};
    nanosleep(&span, NULL);
}

static void test_goes_on(void **state) {
    (void)state;
    double before = base_seconds(), last = before;
    for (int i = 0; i < 10000; i++) {
        double now = base_seconds();
        assert_true(now >= last);
        last = now;
    }
    sleep_for(20);
    assert_true(base_seconds() - before >= 0.02);
}

/* What a child reads lies between its parent's readings. */
static void test_between_processes(void **state) {
    (void)state;
    int ends[2];
    double there = 0, before = base_seconds();
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        double now = base_seconds();
        _exit(write(ends[1], &now, sizeof now) == (ssize_t)sizeof now ? 0 : 1);
    }
    assert_int_equal(read(ends[0], &there, sizeof there), sizeof there);
    double after = base_seconds();
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(ends[0]);
    close(ends[1]);
    assert_true(before <= there);
    assert_true(there <= after);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goes_on),
        cmocka_unit_test(test_between_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

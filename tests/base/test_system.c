/* What the limits of this process leave it. */
#include "base/system.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cmocka.h>

enum { TAKEN = 64 << 20, NOISE = 4 << 20 };
/* More than what a sanitizer maps for itself. */
#define FAR ((rlim_t)1 << 50)

static uint64_t process_left(void) {
    base_system system;
    base_system_read(&system);
    return system.process_left;
}

static void set_limit(int resource, rlim_t bytes) {
    struct rlimit limit;
    assert_int_equal(getrlimit(resource, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(resource, &limit), 0);
}

static void start_unlimited(void) {
    struct rlimit data, space;
    getrlimit(RLIMIT_DATA, &data);
    getrlimit(RLIMIT_AS, &space);
    if (data.rlim_max != RLIM_INFINITY || space.rlim_max != RLIM_INFINITY) skip();
    set_limit(RLIMIT_DATA, RLIM_INFINITY);
    set_limit(RLIMIT_AS, RLIM_INFINITY);
    assert_int_equal(process_left(), 0);
}

/* What is mapped counts, touched or not. */
static void check_limit(int resource) {
    set_limit(resource, FAR);
    uint64_t before = process_left();
    assert_in_range(before, 1, FAR);
    void *block = mmap(NULL, TAKEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(block != MAP_FAILED);
    assert_in_range(before - process_left(), TAKEN - NOISE, TAKEN + NOISE);
    munmap(block, TAKEN);
    assert_in_range(before - process_left() + NOISE, 0, 2 * NOISE);
    set_limit(resource, 4096); /* below what is held already */
    uint64_t left = process_left();
    set_limit(resource, RLIM_INFINITY);
    assert_int_equal(left, 1);
}

static void test_data(void **state) {
    (void)state;
    start_unlimited();
    check_limit(RLIMIT_DATA);
}

static void test_address_space(void **state) {
    (void)state;
    start_unlimited();
    check_limit(RLIMIT_AS);
}

static void test_the_least(void **state) {
    (void)state;
    start_unlimited();
    set_limit(RLIMIT_DATA, FAR);
    set_limit(RLIMIT_AS, 4 * FAR);
    uint64_t data = process_left();
    set_limit(RLIMIT_AS, FAR); /* address space counts all that data does, and code */
    uint64_t space = process_left();
    set_limit(RLIMIT_DATA, RLIM_INFINITY);
    assert_int_equal(process_left() / NOISE, space / NOISE);
    set_limit(RLIMIT_AS, RLIM_INFINITY);
    assert_true(space <= data && data <= FAR);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data),
        cmocka_unit_test(test_address_space),
        cmocka_unit_test(test_the_least),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

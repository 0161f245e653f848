/* What the limits of this process leave it, read without the allocator: below, malloc and its kin
 * count and can be told to refuse. Under a sanitizer, whose allocator cannot be replaced, its hooks
 * count. */
#include "base/system.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cmocka.h>

#if defined(__has_feature)
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
    HAS_FEATURE(address_sanitizer) || HAS_FEATURE(thread_sanitizer)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static volatile bool refusing;
static volatile int asked; /* blocks, while refusing */

#if SANITIZED
int __sanitizer_install_malloc_and_free_hooks(void (*taken)(const volatile void *, size_t),
                                              void (*given)(const volatile void *));

static void count_block(const volatile void *block, size_t size) {
    (void)block;
    (void)size;
    asked += refusing;
}

static void ignore_block(const volatile void *block) {
    (void)block;
}

static void watch_allocator(void) {
    __sanitizer_install_malloc_and_free_hooks(count_block, ignore_block);
}
#else
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);

/* glibc's own callers find these in place of its own only if they are visible. */
#define SEEN __attribute__((visibility("default"), noinline))

static bool is_refused(void) {
    asked += refusing;
    return refusing;
}

SEEN void *malloc(size_t size) {
    return is_refused() ? NULL : __libc_malloc(size);
}

SEEN void *calloc(size_t number, size_t size) {
    return is_refused() ? NULL : __libc_calloc(number, size);
}

SEEN void *realloc(void *block, size_t size) {
    return is_refused() ? NULL : __libc_realloc(block, size);
}

static void watch_allocator(void) {
}
#endif

enum { TAKEN = 64 << 20, NOISE = 4 << 20 };
/* More than what a sanitizer maps for itself. */
#define FAR ((rlim_t)1 << 50)

static uint64_t process_left(void) {
    base_system system;
    base_system_read(&system);
    return system.process_left;
}

static void read_refused(base_system *out) {
    asked = 0;
    refusing = true;
    base_system_read(out);
    refusing = false;
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
    assert_true(space <= data);
    assert_true(data <= FAR);
}

/* Nothing is to be had: neither from the allocator nor from the system. */
static void test_without_memory(void **state) {
    (void)state;
    base_system before, system;
    start_unlimited();
    base_system_read(&before);
    set_limit(RLIMIT_AS, 4096);
    read_refused(&system);
    set_limit(RLIMIT_AS, RLIM_INFINITY);
    assert_int_equal(asked, 0);
    assert_int_equal(system.process_left, 1);
    assert_string_equal(system.cpu, before.cpu);
    assert_int_equal(system.cpus, before.cpus);
    assert_int_equal(system.memory, before.memory);
    assert_int_equal(system.memory_limit, before.memory_limit);
    assert_true(system.memory_available > 0);
}

/* The counters count: a block is asked for, and refused. */
static void test_refusal(void **state) {
    (void)state;
    asked = 0;
    refusing = true;
    void *volatile block = malloc(100);
    refusing = false;
    if (!SANITIZED) assert_null(block);
    free(block);
    assert_int_equal(asked, 1);
}

/* No file can be opened: there is a limit, and nobody knows what it leaves. */
static void test_unreadable(void **state) {
    (void)state;
    base_system system;
    struct rlimit files;
    start_unlimited();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    set_limit(RLIMIT_DATA, FAR);
    set_limit(RLIMIT_NOFILE, 0);
    base_system_read(&system);
    set_limit(RLIMIT_NOFILE, files.rlim_cur);
    set_limit(RLIMIT_DATA, RLIM_INFINITY);
    assert_true(system.process_left == BASE_UNKNOWN);
    assert_int_equal(system.memory, 0);
    assert_int_equal(system.memory_available, 0);
    assert_string_equal(system.cpu, "");
    assert_true(system.cpus >= 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data),      cmocka_unit_test(test_address_space),
        cmocka_unit_test(test_the_least), cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_refusal),   cmocka_unit_test(test_unreadable),
    };
    watch_allocator();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What this process holds: its own memory and its part of what it shares.
 * not under sanitizers (their shadow memory counts, too) */
#include "base/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { TAKEN = 32 << 20, NOISE = 2 << 20 };

static base_process read_now(void) {
    base_process process;
    if (!base_process_read(&process)) skip(); /* a sandbox that does not say it */
    return process;
}

static char *map(int kind) {
    char *block = mmap(NULL, TAKEN, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
    assert_true(block != MAP_FAILED);
    return block;
}

/* Memory counts once it is touched. */
static void test_own(void **state) {
    (void)state;
    base_process before = read_now();
    assert_in_range(before.own, 1, (uint64_t)1 << 40);
    char *block = map(MAP_PRIVATE);
    assert_in_range(read_now().own - before.own + NOISE, 0, 2 * NOISE);
    memset(block, 1, TAKEN);
    base_process touched = read_now();
    assert_in_range(touched.own - before.own, TAKEN - NOISE, TAKEN + NOISE);
    assert_int_equal(touched.shared, before.shared);
    munmap(block, TAKEN);
    assert_in_range(read_now().own - before.own + NOISE, 0, 2 * NOISE);
}

/* Two processes that both touch a block have half of it each. */
static void test_shared(void **state) {
    (void)state;
    int ends[2];
    char token = 0;
    base_process before = read_now();
    char *block = map(MAP_SHARED);
    memset(block, 1, TAKEN);
    base_process alone = read_now();
    assert_in_range(alone.shared - before.shared, TAKEN - NOISE, TAKEN + NOISE);
    assert_in_range(alone.own - before.own + NOISE, 0, 2 * NOISE);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        memset(block, 2, TAKEN);
        if (write(ends[1], &token, 1) == 1)
            (void)!read(ends[1], &token, 1); /* until the parent closes */
        _exit(0);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &token, 1), 1);
    base_process both = read_now();
    close(ends[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_in_range(both.shared - before.shared, TAKEN / 2 - NOISE, TAKEN / 2 + NOISE);
    munmap(block, TAKEN);
}

/* Freed memory below a block that is still held goes back to the system. */
static void test_trim(void **state) {
    (void)state;
    enum { BLOCKS = 512, SIZE = 64 << 10 };
    static char *blocks[BLOCKS + 1];
    for (int i = 0; i <= BLOCKS; i++) {
        blocks[i] = malloc(SIZE);
        assert_non_null(blocks[i]);
        memset(blocks[i], 1, SIZE);
    }
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    base_process held = read_now();
    base_process_trim();
    base_process trimmed = read_now();
    free(blocks[BLOCKS]);
#ifdef __GLIBC__
    assert_in_range(held.own - trimmed.own, TAKEN - 2 * NOISE, TAKEN + NOISE);
#else
    assert_in_range(trimmed.own, 1, held.own + NOISE);
#endif
}

enum { PAGE = 4096 };

static int64_t resident(const char *at, int64_t bytes) {
    int64_t out = 0;
    sifr_error error = {0};
    if (base_process_count_resident(at, bytes, &out, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    return out;
}

/* Pages that were touched, and of the outermost ones the part that is asked for. */
static void test_resident(void **state) {
    (void)state;
    sifr_error error = {0};
    if (base_process_tells_pages(&error) != SIFR_OK) skip();
    const int kinds[] = {MAP_PRIVATE, MAP_SHARED};
    for (int i = 0; i < 2; i++) {
        char *block = map(kinds[i]);
        madvise(block, TAKEN, MADV_NOHUGEPAGE);
        assert_int_equal(resident(block, TAKEN), 0);
        for (int64_t at = 0; at < TAKEN / 2; at += PAGE) block[at] = 1;
        assert_int_equal(resident(block, TAKEN), TAKEN / 2);
        assert_int_equal(resident(block + 100, TAKEN - 100), TAKEN / 2 - 100);
        assert_int_equal(resident(block + TAKEN / 2 - 10, 20), 10);
        assert_int_equal(resident(block + 5, 7), 7);
        assert_int_equal(resident(block + 5, 0), 0);
        block[TAKEN - 1] = 1;
        assert_int_equal(resident(block + TAKEN / 2, TAKEN / 2), PAGE);
        int64_t sum = 1;
        assert_int_equal(base_process_count_resident(block, PAGE, &sum, &error), SIFR_OK);
        assert_int_equal(sum, 1 + PAGE);
        munmap(block, TAKEN);
        assert_int_equal(base_process_count_resident(block, PAGE, &sum, &error), SIFR_FAILED);
        assert_non_null(strstr(error.message, "the system does not say which pages are in memory"));
    }
}

static void test_together(void **state) {
    (void)state;
    base_process now = read_now();
    uint64_t together = base_process_memory();
    assert_in_range(together + NOISE, now.own + now.shared, now.own + now.shared + 2 * NOISE);
}

/* No file can be opened: nothing is said, and nothing is changed. */
static void test_unreadable(void **state) {
    (void)state;
    struct rlimit files, none;
    base_process process = {11, 22};
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    none = files;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    bool known = base_process_read(&process);
    uint64_t together = base_process_memory();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_false(known);
    assert_int_equal(process.own, 11);
    assert_int_equal(process.shared, 22);
    assert_int_equal(together, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own),        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_trim),       cmocka_unit_test(test_together),
        cmocka_unit_test(test_unreadable), cmocka_unit_test(test_resident),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Each of many things is done once, on no more threads than asked for, also where none can be had;
 * and how threads treat floats that are too small to be normal.
 * in test_tsan */
#include "base/parallel.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/float_mode.h"
#include "base/lines.h"

enum { COUNT = 5000 };

typedef struct tally {
    atomic_int done[COUNT];
    atomic_int busy, most;
    atomic_bool others; /* a thread that is not the caller's took part */
    pthread_t caller;
    int meet; /* so many are to be at work at one time */
} tally;

static void take(void *argument, size_t index) {
    tally *t = argument;
    int busy = atomic_fetch_add(&t->busy, 1) + 1, most = atomic_load(&t->most);
    while (busy > most && !atomic_compare_exchange_weak(&t->most, &most, busy)) continue;
    if (!pthread_equal(pthread_self(), t->caller)) atomic_store(&t->others, true);
    /* Not for some time alone: on a busy machine one thread would do all before others begin. */
    for (int i = 0; i < 10000 && atomic_load(&t->most) < t->meet; i++) usleep(1000);
    atomic_fetch_add(&t->done[index], 1);
    atomic_fetch_sub(&t->busy, 1);
}

static void run(tally *t, int threads, size_t count, int meet) {
    memset(t, 0, sizeof *t);
    t->caller = pthread_self();
    t->meet = meet;
    base_parallel(threads, count, take, t);
    for (size_t i = 0; i < COUNT; i++) assert_int_equal(t->done[i], i < count);
}

static void test_each_once(void **state) {
    (void)state;
    static tally t;
    static const int threads[] = {-1, 0, 1, 2, 3, 8, 1000};
    static const size_t counts[] = {0, 1, 2, 7, COUNT};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        for (size_t j = 0; j < sizeof counts / sizeof *counts; j++) {
            run(&t, threads[i], counts[j], 0);
            assert_in_range(t.most, counts[j] > 0, threads[i] > 1 ? threads[i] : 1);
        }
}

/* Side by side, but no more of them than there are things; alone on the caller's own thread. */
static void test_threads(void **state) {
    (void)state;
    static tally t;
    run(&t, 4, 40, 4);
    assert_int_equal(t.most, 4);
    assert_true(t.others);
    run(&t, 8, 3, 3);
    assert_int_equal(t.most, 3);
    run(&t, 1, 5, 0);
    assert_int_equal(t.most, 1);
    assert_false(t.others);
}

/* In a child, whose limits do not come back. Every thread needs room for its stack. */
static int run_without_threads(void) {
    static tally t;
    uint64_t mapped;
    struct rlimit limit;
    t.caller = pthread_self();
    if (!base_read_kilobytes("/proc/self/status", "VmSize", &mapped)) return 77;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = mapped + (1 << 20);
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 77;
    base_parallel(8, COUNT, take, &t);
    for (size_t i = 0; i < COUNT; i++)
        if (t.done[i] != 1) return 1;
    return atomic_load(&t.others) ? 2 : 0;
}

static void test_no_threads(void **state) {
    (void)state;
    int status;
    pid_t child = fork();
    if (child == 0) _exit(run_without_threads());
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WEXITSTATUS(status) == 77) skip();
    assert_int_equal(status, 0);
}

/* --- small floats --- */

static void *halve(void *out) {
    volatile float least = 0x1p-126f, half = least / 2;
    *(float *)out = half;
    return NULL;
}

static void test_float_mode(void **state) {
    (void)state;
    volatile float least = 0x1p-126f, tiny = 0x1p-127f;
    assert_true(least / 2 == 0x1p-127f);
    unsigned before = base_flush_floats();
#if defined(__x86_64__)
    assert_true(least / 2 == 0);      /* a result */
    assert_true(tiny * 0x1p10f == 0); /* an operand */
#endif
    assert_true(least * 2 == 0x1p-125f);
    unsigned flushed = base_flush_floats();
    base_restore_floats(flushed); /* what was in force stays in force */
#if defined(__x86_64__)
    assert_true(least / 2 == 0);
#endif
    base_restore_floats(before);
    assert_true(least / 2 == 0x1p-127f);
    assert_true(tiny * 0x1p10f == 0x1p-117f);
    float there = 0; /* another thread's mode is its own */
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, halve, &there), 0);
    pthread_join(thread, NULL);
    assert_true(there == 0x1p-127f);
}

/* --- signals --- */

static void look_at_mask(void *argument, size_t index) {
    tally *t = argument;
    sigset_t mask;
    (void)index;
    if (pthread_equal(pthread_self(), t->caller)) {
        usleep(2000); /* leaves some to the others */
        return;
    }
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    atomic_store(&t->others, true);
    if (sigismember(&mask, SIGTERM) && sigismember(&mask, SIGUSR1) && !sigismember(&mask, SIGBUS))
        atomic_fetch_add(&t->done[0], 1);
    else
        atomic_fetch_add(&t->done[1], 1);
}

/* A process's signals are left to the threads that it had before. */
static void test_threads_take_no_signals(void **state) {
    static tally t;
    sigset_t before, after;
    (void)state;
    t.caller = pthread_self();
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    base_parallel(2, 100, look_at_mask, &t);
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    assert_true(atomic_load(&t.others));
    assert_int_equal(atomic_load(&t.done[1]), 0);
    assert_true(atomic_load(&t.done[0]) > 0);
    assert_int_equal(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_threads), /* before there are stacks that could be used again */
        cmocka_unit_test(test_each_once),  cmocka_unit_test(test_threads),
        cmocka_unit_test(test_float_mode), cmocka_unit_test(test_threads_take_no_signals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

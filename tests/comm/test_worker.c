/* The thread that does a group's collectives: in order, each waited for once, counted when it is
 * over. */
#include "comm/worker.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/comm_threads.h"

/* What the worker ran, and a gate that holds it back. */
typedef struct journal {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
    int32_t roots[2 * COMM_LINE]; /* of the tasks, in the order in which they were run */
    int count;
    bool signals_blocked;
} journal;

static sifr_status note(void *user, comm_task *task, sifr_error *error) {
    journal *j = user;
    sigset_t blocked;
    pthread_mutex_lock(&j->lock);
    while (!j->open) pthread_cond_wait(&j->changed, &j->lock);
    j->roots[j->count++] = task->root;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    j->signals_blocked = sigismember(&blocked, SIGTERM) && sigismember(&blocked, SIGINT);
    pthread_mutex_unlock(&j->lock);
    task->delivered = 100 + (uint64_t)task->root;
    if (task->root == 13) return base_fail(error, SIFR_LOST_RANK, "rank 13 is lost");
    return SIFR_OK;
}

static void open_gate(journal *j) {
    pthread_mutex_lock(&j->lock);
    j->open = true;
    pthread_cond_broadcast(&j->changed);
    pthread_mutex_unlock(&j->lock);
}

static void begin(comm_worker *worker, journal *j, bool open) {
    sifr_error error;
    memset(worker, 0, sizeof *worker);
    *j = (journal){.open = open};
    pthread_mutex_init(&j->lock, NULL);
    pthread_cond_init(&j->changed, NULL);
    assert_int_equal(comm_worker_open(worker, note, j, &error), SIFR_OK);
}

static int32_t start(comm_worker *worker, int32_t root) {
    comm_task task = {.kind = COMM_TASK_BROADCAST, .root = root};
    sifr_error error;
    int32_t id = -1;
    assert_int_equal(comm_worker_start(worker, &task, &id, &error), SIFR_OK);
    return id;
}

static void test_order(void **state) {
    (void)state;
    enum { COUNT = 5 };
    static comm_worker worker;
    journal j;
    comm_task task;
    sifr_error error;
    int32_t ids[COUNT];
    begin(&worker, &j, true);
    for (int i = 0; i < COUNT; i++) ids[i] = start(&worker, 10 * i);
    for (int i = COUNT - 1; i >= 0; i--) { /* waited for in another order */
        assert_int_equal(comm_worker_wait(&worker, ids[i], &task, &error), SIFR_OK);
        assert_int_equal(task.root, 10 * i);
        assert_int_equal(task.delivered, 100 + 10 * i);
        assert_true(task.started > 0);
        assert_true(task.begun >= task.started);
        assert_true(task.ended >= task.begun);
    }
    assert_int_equal(j.count, COUNT);
    for (int i = 0; i < COUNT; i++) assert_int_equal(j.roots[i], 10 * i);
    assert_true(j.signals_blocked);
    comm_worker_close(&worker);
}

/* As many as there are places, and no more; a place is free again once its task was waited for. */
static void test_full(void **state) {
    (void)state;
    static comm_worker worker;
    journal j;
    comm_task task = {.kind = COMM_TASK_BROADCAST};
    sifr_error error;
    int32_t ids[COMM_LINE], more;
    begin(&worker, &j, false);
    for (int i = 0; i < COMM_LINE; i++) ids[i] = start(&worker, 100 + i);
    assert_int_equal(comm_worker_start(&worker, &task, &more, &error), SIFR_FAILED);
    assert_non_null(strstr(error.message, "more than 64 collectives in progress"));
    open_gate(&j);
    assert_int_equal(comm_worker_wait(&worker, ids[0], &task, &error), SIFR_OK);
    more = start(&worker, 1);
    assert_int_equal(more, ids[0]);
    assert_int_equal(comm_worker_wait(&worker, more, &task, &error), SIFR_OK);
    assert_int_equal(task.root, 1);
    comm_worker_close(&worker); /* the others are done, though nobody waits */
    assert_int_equal(j.count, COMM_LINE + 1);
}

static void test_failure(void **state) {
    (void)state;
    static comm_worker worker;
    journal j;
    comm_task task;
    sifr_error error;
    begin(&worker, &j, true);
    int32_t good = start(&worker, 12), bad = start(&worker, 13), after = start(&worker, 14);
    assert_int_equal(comm_worker_wait(&worker, bad, &task, &error), SIFR_LOST_RANK);
    assert_string_equal(error.message, "rank 13 is lost");
    assert_int_equal(comm_worker_wait(&worker, bad, &task, &error), SIFR_FAILED);
    assert_non_null(strstr(error.message, "waited for twice"));
    assert_int_equal(comm_worker_wait(&worker, good, &task, &error), SIFR_OK);
    assert_int_equal(comm_worker_wait(&worker, after, &task, NULL), SIFR_OK);
    bad = start(&worker, 13);
    assert_int_equal(comm_worker_wait(&worker, bad, &task, NULL), SIFR_LOST_RANK);
    comm_worker_close(&worker);
}

/* Waits for one group's tasks, whatever comes after them. */
static void *open_later(void *j) {
    struct timespec time = {.tv_nsec = 50000000};
    nanosleep(&time, NULL);
    open_gate(j);
    return NULL;
}

static void test_finish(void **state) {
    (void)state;
    static comm_worker worker;
    journal j;
    pthread_t thread;
    sifr_error error;
    int32_t id;
    comm_group *first = (comm_group *)&worker, *second = (comm_group *)&j; /* any two addresses */
    begin(&worker, &j, false);
    assert_true(comm_worker_finish(&worker, first, 0));
    for (int i = 0; i < 6; i++) {
        comm_task task = {.kind = COMM_TASK_BROADCAST, .group = i < 3 ? first : second};
        assert_int_equal(comm_worker_start(&worker, &task, &id, &error), SIFR_OK);
    }
    assert_false(comm_worker_finish(&worker, first, 0));
    assert_int_equal(pthread_create(&thread, NULL, open_later, &j), 0);
    assert_true(comm_worker_finish(&worker, first, 100));
    pthread_mutex_lock(&j.lock);
    assert_true(j.count >= 3);
    pthread_mutex_unlock(&j.lock);
    assert_true(comm_worker_finish(&worker, second, 100));
    assert_int_equal(j.count, 6);
    pthread_join(thread, NULL);
    comm_worker_close(&worker);
}

/* Where a device waits for tasks: words tell that they are over, failed ones too; places stay taken
 * until the host has caught up, or forgets the group. */
static void test_followed(void **state) {
    (void)state;
    static comm_worker worker;
    journal j;
    comm_task task;
    sifr_error error;
    device_flag words[4] = {{0}, {0}, {9}, {0}};
    uint32_t value[4];
    int32_t ids[COMM_LINE], id;
    begin(&worker, &j, false);
    assert_false(comm_worker_followed(&worker, false, &id));
    for (int i = 0; i < COMM_LINE; i++) ids[i] = start(&worker, i == 1 ? 13 : 20 + i);
    for (int i = 2; i >= 0; i--) comm_worker_follow(&worker, ids[i], &words[i], &value[i]);
    for (int i = 0; i < 3; i++) assert_false(device_flag_is_at(&words[i], value[i]));
    assert_true(comm_worker_followed(&worker, true, &id)); /* all places are taken */
    assert_int_equal(id, ids[0]);
    open_gate(&j);
    while (!comm_worker_finish(&worker, NULL, 100)) {
    }
    for (int i = 0; i < 3; i++) assert_true(device_flag_is_at(&words[i], value[i]));
    comm_worker_follow(&worker, ids[3], &words[3], &value[3]); /* over already */
    assert_true(device_flag_is_at(&words[3], value[3]));
    assert_int_equal(comm_worker_start(&worker, &task, &id, &error), SIFR_FAILED);

    assert_true(comm_worker_followed(&worker, false, &id));
    assert_int_equal(id, ids[0]);
    assert_int_equal(comm_worker_wait(&worker, id, &task, &error), SIFR_OK);
    assert_true(comm_worker_followed(&worker, false, &id));
    assert_int_equal(id, ids[1]);
    assert_false(comm_worker_followed(&worker, true, &id));
    assert_int_equal(comm_worker_wait(&worker, ids[1], &task, &error), SIFR_LOST_RANK);
    assert_string_equal(error.message, "rank 13 is lost");
    comm_worker_forget(&worker, NULL);
    assert_false(comm_worker_followed(&worker, false, &id));

    uint32_t before = value[0]; /* the place's next task counts on */
    ids[0] = start(&worker, 1);
    comm_worker_follow(&worker, ids[0], &words[0], &value[0]);
    assert_int_equal(value[0] - before, COMM_LINE);
    comm_worker_close(&worker);
    assert_true(device_flag_is_at(&words[0], value[0]));
}

/* Closing does what is in line first; a second time, and on a zeroed one, nothing. */
static void test_close(void **state) {
    (void)state;
    static comm_worker worker;
    journal j;
    comm_worker_close(&worker);
    begin(&worker, &j, true);
    for (int i = 0; i < 40; i++) start(&worker, i);
    comm_worker_close(&worker);
    assert_int_equal(j.count, 40);
    comm_worker_close(&worker);
}

static void test_operations(void **state) {
    (void)state;
    assert_int_equal(comm_task_operation(COMM_TASK_GATHER), COMM_ALL_GATHER);
    assert_int_equal(comm_task_operation(COMM_TASK_REDUCE), COMM_REDUCE_SCATTER);
    assert_int_equal(comm_task_operation(COMM_TASK_GATHER_CONTROL), COMM_CONTROL);
    assert_int_equal(comm_task_operation(COMM_TASK_BROADCAST), COMM_CONTROL);
    assert_int_equal(comm_task_operation(COMM_TASK_SEND), COMM_SEND);
    assert_int_equal(comm_task_operation(COMM_TASK_RECEIVE), COMM_RECEIVE);
}

/* --- what is counted: two ranks, the second on a thread --- */

enum { ELEMENTS = 12 };

static void reduce(comm_group *group, base_dtype type, base_dtype sum) {
    uint32_t whole[2 * ELEMENTS] = {0}, slice[ELEMENTS];
    comm_handle handle;
    sifr_error error;
    assert_int_equal(
        comm_start_reduce_typed(group, whole, type, sum, ELEMENTS, slice, &handle, &error),
        SIFR_OK);
    assert_int_equal(comm_wait(handle, &error), SIFR_OK);
}

static void *second_rank(void *group) {
    reduce(group, BASE_BF16, BASE_FP32);
    reduce(group, BASE_FP16, BASE_FP16);
    reduce(group, BASE_FP32, BASE_FP32);
    return NULL;
}

static void expect_bytes(const comm_group *group, int64_t bytes) {
    const comm_event *last = comm_last(group);
    assert_int_equal(last->operation, COMM_REDUCE_SCATTER);
    assert_int_equal(last->bytes, bytes);
    assert_int_equal(last->delivered, bytes * (comm_size(group) - 1)); /* of N - 1 other ranks */
}

static void test_bytes_of_reductions(void **state) {
    (void)state;
    pthread_t thread;
    comm_threads *world = comm_threads_create(2);
    comm_group *first = comm_threads_group(world, 0), *second = comm_threads_group(world, 1);
    assert_int_equal(pthread_create(&thread, NULL, second_rank, second), 0);
    reduce(first, BASE_BF16, BASE_FP32);
    expect_bytes(first, 2 * ELEMENTS);
    reduce(first, BASE_FP16, BASE_FP16);
    expect_bytes(first, 2 * ELEMENTS);
    reduce(first, BASE_FP32, BASE_FP32);
    expect_bytes(first, 4 * ELEMENTS);
    pthread_join(thread, NULL);
    assert_int_equal(comm_get_ledger(first)->operation[COMM_REDUCE_SCATTER].calls, 3);
    assert_int_equal(comm_get_ledger(first)->operation[COMM_REDUCE_SCATTER].bytes, 8 * ELEMENTS);
    comm_close(first);
    comm_close(second);
    comm_threads_free(world);
}

static void test_bytes_alone(void **state) {
    (void)state;
    comm_group *group;
    assert_int_equal(comm_open_self(&group, NULL), SIFR_OK);
    reduce(group, BASE_BF16, BASE_FP32);
    assert_int_equal(comm_last(group)->bytes, 2 * ELEMENTS);
    reduce(group, BASE_FP16, BASE_FP16);
    assert_int_equal(comm_last(group)->bytes, 2 * ELEMENTS);
    comm_close(group);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),       cmocka_unit_test(test_full),
        cmocka_unit_test(test_failure),     cmocka_unit_test(test_followed),
        cmocka_unit_test(test_close),       cmocka_unit_test(test_finish),
        cmocka_unit_test(test_operations),  cmocka_unit_test(test_bytes_of_reductions),
        cmocka_unit_test(test_bytes_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

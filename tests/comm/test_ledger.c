/* What is counted: the group of one rank call by call, what a watcher is told, and the bytes that
 * ranks deliver to each other against the formulas of comm.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/half.h"
#include "comm/transport.h"
#include "support/comm_threads.h"

enum { RANKS = 3, ELEMENTS = 5 };

/* --- one rank --- */

static comm_group *alone;
static sifr_error trouble;

static int open_alone(void **state) {
    (void)state;
    return comm_open_self(&alone, &trouble);
}

static int close_alone(void **state) {
    (void)state;
    comm_close(alone);
    return 0;
}

static void assert_last(comm_operation operation, int64_t bytes, int64_t calls) {
    const comm_event *last = comm_last(alone);
    assert_int_equal(last->operation, operation);
    assert_int_equal(last->bytes, bytes);
    assert_int_equal(last->delivered, 0); /* there is nobody */
    assert_int_equal(last->crossed, 0);
    assert_true(last->ended >= last->asked);
    assert_int_equal(comm_get_ledger(alone)->operation[operation].calls, calls);
    assert_int_equal(comm_get_ledger(alone)->operation[operation].bytes, 0);
}

static void test_alone_opened(void **state) {
    (void)state;
    comm_ledger nothing = {0};
    assert_memory_equal(comm_get_ledger(alone), &nothing, sizeof nothing);
    assert_int_equal(comm_rank(alone), 0);
    assert_int_equal(comm_size(alone), 1);
    assert_int_equal(comm_local_size(alone), 1);
    assert_int_equal(comm_buffer_bytes(alone), 0);
}

static void test_alone_gather(void **state) {
    (void)state;
    char slice[4] = "abc", whole[5] = "----";
    comm_handle handle;
    assert_int_equal(comm_start_all_gather(alone, slice, 3, whole, &handle, &trouble), SIFR_OK);
    assert_ptr_equal(handle.group, alone);
    assert_int_equal(comm_wait(handle, &trouble), SIFR_OK);
    assert_string_equal(whole, "abc-"); /* three bytes and no more */
    assert_last(COMM_ALL_GATHER, 3, 1);
    assert_int_equal(comm_start_all_gather(alone, whole, 4, whole, &handle, &trouble), SIFR_OK);
    assert_int_equal(comm_wait(handle, &trouble), SIFR_OK);
    assert_string_equal(whole, "abc-");
    assert_last(COMM_ALL_GATHER, 4, 2);
    assert_int_equal(comm_start_all_gather(alone, NULL, 0, whole, &handle, &trouble), SIFR_OK);
    assert_int_equal(comm_wait(handle, &trouble), SIFR_OK);
    assert_last(COMM_ALL_GATHER, 0, 3);
}

/* The sum of one is that one, to the bit: -0 and what rounds are kept; what travels is counted. */
static void test_alone_reduce(void **state) {
    (void)state;
    float whole[3] = {-0.0f, 1e-42f, 3}, slice[3] = {9, 9, 9};
    uint16_t half[2] = {0x8001, 0x3c01}, same[2] = {0};
    comm_handle handle;
    assert_int_equal(comm_start_reduce_scatter(alone, whole, 3, slice, &handle, &trouble), SIFR_OK);
    assert_int_equal(comm_wait(handle, &trouble), SIFR_OK);
    assert_memory_equal(slice, whole, sizeof whole);
    assert_last(COMM_REDUCE_SCATTER, 12, 1);
    assert_int_equal(
        comm_start_reduce_typed(alone, half, BASE_FP16, BASE_FP16, 2, same, &handle, &trouble),
        SIFR_OK);
    assert_int_equal(comm_wait(handle, &trouble), SIFR_OK);
    assert_memory_equal(same, half, sizeof half);
    assert_last(COMM_REDUCE_SCATTER, 4, 2);
    for (base_dtype type = BASE_BF16; type <= BASE_FP16; type++) {
        assert_int_equal(
            comm_start_reduce_typed(alone, half, type, BASE_FP32, 2, slice, &handle, &trouble),
            SIFR_OK);
        assert_int_equal(comm_wait(handle, &trouble), SIFR_OK);
        for (int i = 0; i < 2; i++) {
            float wide = type == BASE_FP16 ? base_half_to_float(half[i])
                                           : base_float_from_bits((uint32_t)half[i] << 16);
            assert_memory_equal(&slice[i], &wide, sizeof wide);
        }
        assert_true(slice[2] == 3); /* past the end */
        assert_last(COMM_REDUCE_SCATTER, 4, type == BASE_BF16 ? 3 : 4);
    }
}

static void test_alone_control(void **state) {
    (void)state;
    int64_t values[2] = {INT64_MIN, 7}, all[2] = {0};
    assert_int_equal(comm_sum(alone, values, 2, &trouble), SIFR_OK);
    assert_true(values[0] == INT64_MIN);
    assert_int_equal(values[1], 7);
    assert_last(COMM_CONTROL, 16, 1);
    assert_int_equal(comm_all_gather_control(alone, values, 16, all, &trouble), SIFR_OK);
    assert_memory_equal(all, values, sizeof all);
    assert_last(COMM_CONTROL, 16, 2);
    assert_int_equal(comm_broadcast(alone, 0, values, 8, &trouble), SIFR_OK);
    assert_true(values[0] == INT64_MIN);
    assert_last(COMM_CONTROL, 8, 3);
    for (int32_t root = -1; root <= 1; root += 2) {
        char wanted[64];
        snprintf(wanted, sizeof wanted, "broadcast: there is no rank %d among 1", (int)root);
        assert_int_equal(comm_broadcast(alone, root, values, 8, &trouble), SIFR_FAILED);
        assert_string_equal(trouble.message, wanted);
    }
    assert_last(COMM_CONTROL, 8, 3); /* what did not happen is not counted */
}

/* One rank has nobody to show its memory to: a window is neither refused nor looked at. */
static void test_alone_window(void **state) {
    (void)state;
    char block[8] = "window";
    assert_false(comm_shares_memory(alone));
    assert_int_equal(comm_open_window(alone, block, sizeof block, -1, &trouble), SIFR_OK);
    comm_close_window(alone, block);
    comm_close_window(alone, NULL);
    assert_string_equal(block, "window");
    for (int i = 0; i < COMM_OPERATIONS; i++)
        assert_int_equal(comm_get_ledger(alone)->operation[i].calls, 0);
}

/* --- counting itself --- */

typedef struct heard {
    int count;
    comm_event event;
} heard;

static void hear(void *user, const comm_event *event) {
    heard *h = user;
    h->count++;
    h->event = *event;
}

static void test_count_adds(void **state) {
    (void)state;
    heard first = {0}, second = {0};
    double asked = base_seconds() - 2;
    comm_event event = {COMM_REDUCE_SCATTER, 7, 300, 200, asked, asked, asked, false};
    comm_watch(alone, hear, &first);
    comm_count(alone, &event);
    comm_watch(alone, hear, &second); /* one at a time */
    event.delivered = UINT32_MAX;     /* counts are wider than 32 bits */
    event.crossed = 1;
    comm_count(alone, &event);
    comm_watch(alone, NULL, NULL);
    event.operation = COMM_CONTROL;
    comm_count(alone, &event);
    const comm_ledger *l = comm_get_ledger(alone);
    assert_int_equal(l->operation[COMM_REDUCE_SCATTER].calls, 2);
    assert_true(l->operation[COMM_REDUCE_SCATTER].bytes == 300 + (uint64_t)UINT32_MAX);
    assert_int_equal(l->operation[COMM_REDUCE_SCATTER].crossed, 201);
    assert_true(l->operation[COMM_REDUCE_SCATTER].seconds >= 4); /* since it was asked for */
    assert_true(l->operation[COMM_REDUCE_SCATTER].seconds < 60);
    assert_int_equal(l->operation[COMM_CONTROL].calls, 1);
    assert_int_equal(l->operation[COMM_CONTROL].crossed, 1);
    assert_int_equal(l->operation[COMM_ALL_GATHER].calls, 0);
    assert_int_equal(first.count, 1);
    assert_int_equal(first.event.crossed, 200);
    assert_int_equal(second.count, 1);
    assert_true(second.event.delivered == UINT32_MAX);
    assert_int_equal(comm_last(alone)->operation, COMM_CONTROL);
}

static void test_names(void **state) {
    (void)state;
    assert_string_equal(comm_operation_name(COMM_ALL_GATHER), "all_gather");
    assert_string_equal(comm_operation_name(COMM_REDUCE_SCATTER), "reduce_scatter");
    assert_string_equal(comm_operation_name(COMM_CONTROL), "control");
    assert_string_equal(comm_operation_name(COMM_SEND), "send");
    assert_string_equal(comm_operation_name(COMM_RECEIVE), "receive");
    assert_string_equal(comm_operation_name(COMM_ALL_TO_ALL), "all_to_all");
    assert_string_equal(comm_operation_name(COMM_ALL_REDUCE), "all_reduce");
    assert_int_equal(base_dtype_bytes(BASE_FP32), 4);
    assert_int_equal(base_dtype_bytes(BASE_BF16), 2);
    assert_int_equal(base_dtype_bytes(BASE_FP16), 2);
}

/* --- several ranks --- */

typedef struct member {
    comm_threads *world;
    int32_t rank;
    int failed, told;
    comm_ledger ledger, at_broadcast;
    int64_t sums[2];
} member;

/* Counted at the wait, not before: in a watcher the ledger has the collective already. */
static void count_told(void *user, const comm_event *event) {
    member *m = user;
    m->told++;
    m->failed += event->begun < event->asked || event->ended < event->begun;
}

static void *take_part(void *argument) {
    member *m = argument;
    comm_group *group = comm_threads_group(m->world, m->rank);
    float whole[RANKS * ELEMENTS] = {1}, slice[ELEMENTS];
    uint16_t half[RANKS * ELEMENTS] = {0};
    comm_handle gather, reduce;
    comm_watch(group, count_told, m);
    m->failed += comm_start_all_gather(group, &whole[m->rank * ELEMENTS], 20, whole, &gather, NULL);
    m->failed += comm_get_ledger(group)->operation[COMM_ALL_GATHER].calls != 0;
    m->failed += comm_wait(gather, NULL);
    m->failed += comm_start_reduce_scatter(group, whole, ELEMENTS, slice, &reduce, NULL);
    m->failed += comm_wait(reduce, NULL);
    m->failed +=
        comm_start_reduce_typed(group, half, BASE_BF16, BASE_FP32, ELEMENTS, slice, &reduce, NULL);
    m->failed += comm_wait(reduce, NULL);
    m->at_broadcast = *comm_get_ledger(group);
    m->failed += comm_broadcast(group, 1, slice, 12, NULL);
    m->at_broadcast.operation[COMM_CONTROL].bytes =
        comm_get_ledger(group)->operation[COMM_CONTROL].bytes;
    m->sums[0] = m->rank, m->sums[1] = 1;
    m->failed += comm_sum(group, m->sums, 2, NULL);
    m->ledger = *comm_get_ledger(group);
    comm_close(group);
    return NULL;
}

static void check_member(const member *m) {
    assert_int_equal(m->failed, 0);
    assert_int_equal(m->ledger.operation[COMM_ALL_GATHER].calls, 1);
    assert_int_equal(m->ledger.operation[COMM_ALL_GATHER].bytes, (RANKS - 1) * ELEMENTS * 4);
    assert_int_equal(m->ledger.operation[COMM_REDUCE_SCATTER].calls, 2);
    assert_int_equal(m->ledger.operation[COMM_REDUCE_SCATTER].bytes,
                     (RANKS - 1) * ELEMENTS * (4 + 2)); /* of what travels, not of the sum */
    assert_int_equal(m->at_broadcast.operation[COMM_CONTROL].bytes, m->rank == 1 ? 0 : 12);
    assert_int_equal(m->ledger.operation[COMM_CONTROL].calls, 2);
    assert_int_equal(m->ledger.operation[COMM_CONTROL].bytes,
                     (m->rank == 1 ? 0 : 12) + (RANKS - 1) * 16);
    for (int i = 0; i < COMM_OPERATIONS; i++) /* one host */
        assert_int_equal(m->ledger.operation[i].crossed, 0);
    assert_int_equal(m->told, 5);
    assert_int_equal(m->sums[0], RANKS * (RANKS - 1) / 2);
    assert_int_equal(m->sums[1], RANKS);
}

static void test_ranks(void **state) {
    (void)state;
    member all[RANKS] = {0};
    pthread_t threads[RANKS];
    comm_threads *world = comm_threads_create(RANKS);
    for (int32_t r = 0; r < RANKS; r++) {
        all[r] = (member){.world = world, .rank = r};
        assert_int_equal(pthread_create(&threads[r], NULL, take_part, &all[r]), 0);
    }
    for (int32_t r = 0; r < RANKS; r++) pthread_join(threads[r], NULL);
    for (int32_t r = 0; r < RANKS; r++) check_member(&all[r]);
    comm_threads_free(world);
}

#define ALONE(test) cmocka_unit_test_setup_teardown(test, open_alone, close_alone)

int main(void) {
    const struct CMUnitTest tests[] = {ALONE(test_alone_opened),     ALONE(test_alone_gather),
                                       ALONE(test_alone_reduce),     ALONE(test_alone_control),
                                       ALONE(test_alone_window),     ALONE(test_count_adds),
                                       cmocka_unit_test(test_names), cmocka_unit_test(test_ranks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

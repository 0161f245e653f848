/* Agreeing on a status: every set of failing ranks, at rank counts that are powers of two and not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/errors.h"
#include "support/comm_threads.h"

enum { MOST_RANKS = 8 };

static const int32_t rank_counts[] = {1, 2, 3, 4, 5, 7, 8};

typedef struct agreeing {
    comm_threads *world;
    int32_t rank;
    uint32_t failing; /* a bit a rank */
    sifr_status got;
    sifr_error error;
    int64_t after; /* a sum of ones over the group */
} agreeing;

/* Ranks fail in different ways, so that it shows whose failure came back. */
static sifr_status status_of(int32_t rank) {
    static const sifr_status statuses[] = {SIFR_FAILED, SIFR_USAGE, SIFR_NO_MEMORY};
    return statuses[rank % 3];
}

static void *agree(void *argument) {
    agreeing *a = argument;
    comm_group *group = comm_threads_group(a->world, a->rank);
    sifr_status mine = a->failing >> a->rank & 1 ? status_of(a->rank) : SIFR_OK;
    if (mine != SIFR_OK) base_set_error(&a->error, mine, "file %d: damaged", a->rank);
    a->got = comm_agree_status(group, mine, &a->error);
    a->after = 1;
    if (comm_sum(group, &a->after, 1, NULL) != SIFR_OK) a->after = -1; /* still in step */
    comm_close(group);
    return NULL;
}

static void check(const agreeing *a, int32_t ranks) {
    char wanted[64];
    int32_t lowest = 0;
    assert_int_equal(a->after, ranks);
    if (!a->failing) {
        assert_int_equal(a->got, SIFR_OK);
        assert_string_equal(a->error.message, "");
        return;
    }
    while (!(a->failing >> lowest & 1)) lowest++;
    snprintf(wanted, sizeof wanted, lowest ? "rank %d: file %d: damaged" : "file 0: damaged",
             lowest, lowest);
    assert_int_equal(a->got, status_of(lowest));
    assert_int_equal(a->error.status, status_of(lowest));
    assert_string_equal(a->error.message, wanted);
}

static void lowest_failure_everywhere(void **state) {
    (void)state;
    for (size_t n = 0; n < sizeof rank_counts / sizeof *rank_counts; n++) {
        int32_t ranks = rank_counts[n];
        for (uint32_t failing = 0; failing < 1u << ranks; failing++) {
            agreeing all[MOST_RANKS] = {0};
            pthread_t threads[MOST_RANKS];
            comm_threads *world = comm_threads_create(ranks);
            for (int32_t r = 0; r < ranks; r++) {
                all[r] = (agreeing){.world = world, .rank = r, .failing = failing};
                assert_int_equal(pthread_create(&threads[r], NULL, agree, &all[r]), 0);
            }
            for (int32_t r = 0; r < ranks; r++) pthread_join(threads[r], NULL);
            for (int32_t r = 0; r < ranks; r++) check(&all[r], ranks);
            comm_threads_free(world);
        }
    }
}

/* A rank that lost the others must not wait for them: alone among two, this returns. */
static void lost_rank_waits_for_nobody(void **state) {
    (void)state;
    comm_threads *world = comm_threads_create(2);
    comm_group *group = comm_threads_group(world, 0);
    sifr_error error = {SIFR_LOST_RANK, "control: rank 1 has ended"};
    assert_int_equal(comm_agree_status(group, SIFR_LOST_RANK, &error), SIFR_LOST_RANK);
    assert_string_equal(error.message, "control: rank 1 has ended");
    comm_close(group);
    comm_threads_free(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lowest_failure_everywhere),
                                       cmocka_unit_test(lost_rank_waits_for_nobody)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Whether ranks were given the same: who is named where they were not, to all alike. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "base/errors.h"
#include "support/comm_threads.h"

enum { MOST_RANKS = 20 };

typedef struct member {
    comm_threads *world;
    int32_t rank;
    uint64_t hash;
    sifr_status got;
    sifr_error error;
    comm_ledger ledger;
} member;

static void *agree(void *argument) {
    member *m = argument;
    comm_group *group = comm_threads_group(m->world, m->rank);
    m->got = comm_agree(group, "tokenizer", m->hash, &m->error);
    m->ledger = *comm_get_ledger(group);
    comm_close(group);
    return NULL;
}

/* A letter a rank; equal letters are equal hashes. */
static void run_ranks(const char *letters, member *all) {
    pthread_t threads[MOST_RANKS];
    int32_t ranks = (int32_t)strlen(letters);
    comm_threads *world = comm_threads_create(ranks);
    for (int32_t r = 0; r < ranks; r++) {
        /* hashes that differ in the highest bits only */
        all[r] = (member){.world = world, .rank = r, .hash = (uint64_t)letters[r] << 56 | 42};
        assert_int_equal(pthread_create(&threads[r], NULL, agree, &all[r]), 0);
    }
    for (int32_t r = 0; r < ranks; r++) pthread_join(threads[r], NULL);
    comm_threads_free(world);
}

static void test_same(void **state) {
    (void)state;
    static const char *const same[] = {"a", "bb", "ccc", "dddddddd"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        member all[MOST_RANKS];
        int32_t ranks = (int32_t)strlen(same[i]);
        run_ranks(same[i], all);
        for (int32_t r = 0; r < ranks; r++) {
            assert_int_equal(all[r].got, SIFR_OK);
            assert_string_equal(all[r].error.message, "");
            assert_int_equal(all[r].ledger.operation[COMM_CONTROL].calls, 1);
            assert_int_equal(all[r].ledger.operation[COMM_CONTROL].bytes, (ranks - 1) * 8);
        }
    }
}

typedef struct differing {
    const char *letters, *names;
} differing;

static const differing differences[] = {
    {"ab", "rank 1"},  /* a draw: the lowest rank is believed */
    {"abb", "rank 0"}, /* but most are, where there are most */
    {"aab", "rank 2"},
    {"abab", "ranks 1, 3"},
    {"abc", "ranks 1, 2"}, /* all differ */
    {"cabba", "ranks 0, 2, 3"},
    {"cabbab", "ranks 0, 1, 4"},
    {"abbbbbbb", "rank 0"},
    {"aaaaaaaaaaaaaaaaaaab", "rank 19"},
    {"abcdefghijklmnopqrst", /* the sixteen lowest by name */
     "ranks 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 and 3 more"},
    {"abcdefghijklmnopq", "ranks 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16"},
};

static void test_different(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++) {
        member all[MOST_RANKS];
        char wanted[512];
        int32_t ranks = (int32_t)strlen(differences[i].letters);
        run_ranks(differences[i].letters, all);
        snprintf(wanted, sizeof wanted,
                 "tokenizer: differs on %s from the other ranks (of %d); give all ranks the same",
                 differences[i].names, (int)ranks);
        for (int32_t r = 0; r < ranks; r++) {
            assert_int_equal(all[r].got, SIFR_USAGE);
            assert_int_equal(all[r].error.status, SIFR_USAGE);
            assert_string_equal(all[r].error.message, wanted);
        }
    }
}

/* --- a status, where there are no words for it --- */

static void *agree_silently(void *argument) {
    member *m = argument;
    comm_group *group = comm_threads_group(m->world, m->rank);
    sifr_status mine = m->rank == 0 ? SIFR_OK : SIFR_NO_MEMORY;
    m->got = comm_agree_status(group, mine, m->rank == 2 ? NULL : &m->error);
    comm_close(group);
    return NULL;
}

/* Rank 1 failed without a message, and rank 2 wants none. */
static void test_no_words(void **state) {
    (void)state;
    member all[3] = {0};
    pthread_t threads[3];
    comm_threads *world = comm_threads_create(3);
    for (int32_t r = 0; r < 3; r++) {
        all[r] = (member){.world = world, .rank = r};
        assert_int_equal(pthread_create(&threads[r], NULL, agree_silently, &all[r]), 0);
    }
    for (int32_t r = 0; r < 3; r++) pthread_join(threads[r], NULL);
    comm_threads_free(world);
    for (int32_t r = 0; r < 3; r++) assert_int_equal(all[r].got, SIFR_NO_MEMORY);
    assert_string_equal(all[0].error.message, "rank 1: failed");
    assert_string_equal(all[1].error.message, "rank 1: failed");
}

/* One rank agrees with itself, in its own words and without a collective. */
static void test_alone(void **state) {
    (void)state;
    comm_group *group;
    sifr_error error = {SIFR_FAILED, "data: damaged"};
    assert_int_equal(comm_open_self(&group, &error), SIFR_OK);
    assert_int_equal(comm_agree_status(group, SIFR_FAILED, &error), SIFR_FAILED);
    assert_string_equal(error.message, "data: damaged");
    assert_int_equal(comm_agree_status(group, SIFR_OK, &error), SIFR_OK);
    assert_int_equal(comm_get_ledger(group)->operation[COMM_CONTROL].calls, 0);
    comm_close(group);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same), cmocka_unit_test(test_different),
        cmocka_unit_test(test_no_words), cmocka_unit_test(test_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

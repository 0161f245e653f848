#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/permutation.h"

static void is_a_bijection(void **state) {
    (void)state;
    static const int64_t counts[] = {1, 2, 3, 4, 5, 16, 17, 255, 256, 257, 1000, 4096, 10007};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        char *seen = calloc((size_t)counts[c], 1);
        assert_non_null(seen);
        for (int64_t i = 0; i < counts[c]; i++) {
            int64_t to = data_permute(7, 3, counts[c], i);
            assert_in_range(to, 0, counts[c] - 1);
            assert_false(seen[to]);
            seen[to] = 1;
        }
        free(seen);
    }
}

static int64_t agreements(uint64_t seed_a, int64_t epoch_a, uint64_t seed_b, int64_t epoch_b) {
    int64_t same = 0;
    for (int64_t i = 0; i < 1000; i++)
        same += data_permute(seed_a, epoch_a, 1000, i) == data_permute(seed_b, epoch_b, 1000, i);
    return same;
}

/* Two random permutations agree in one place on average (Poisson: more than 8 in 1 of 10^6). */
static void seed_and_epoch_matter(void **state) {
    (void)state;
    assert_int_equal(agreements(1, 0, 1, 0), 1000);
    assert_in_range(agreements(1, 0, 2, 0), 0, 8);
    assert_in_range(agreements(1, 0, 1, 1), 0, 8);
    assert_in_range(agreements(1, 2, 2, 1), 0, 8);
}

/* Neighbours do not stay neighbours, and nothing but the arguments counts: not what was asked
 * before. */
static void shuffles(void **state) {
    (void)state;
    int64_t near = 0, first[64];
    for (int64_t i = 0; i < 64; i++) first[i] = data_permute(42, 0, 100000, i * 1000);
    for (int64_t i = 0; i + 1 < 10000; i++)
        near += llabs(data_permute(42, 0, 10000, i) - data_permute(42, 0, 10000, i + 1)) <= 1;
    assert_in_range(near, 0, 20); /* 2 expected */
    for (int64_t i = 63; i >= 0; i--)
        assert_int_equal(first[i], data_permute(42, 0, 100000, i * 1000));
}

/* The order of small sets is spread: each of the 6 orders of 3 things in its share of epochs. */
static void small_sets(void **state) {
    (void)state;
    int counts[27] = {0};
    for (int64_t epoch = 0; epoch < 6000; epoch++) {
        int64_t order = 0;
        for (int64_t i = 0; i < 3; i++) order = order * 3 + data_permute(5, epoch, 3, i);
        counts[order]++;
    }
    int orders = 0;
    for (int i = 0; i < 27; i++) {
        if (counts[i] == 0) continue;
        orders++;
        assert_in_range(counts[i], 800, 1200);
    }
    assert_int_equal(orders, 6);
}

static void large_counts(void **state) {
    (void)state;
    static const int64_t counts[] = {INT64_C(1) << 40, (INT64_C(1) << 62) + 1, INT64_MAX};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        int64_t a = data_permute(1, 0, counts[c], 0), b = data_permute(1, 0, counts[c], 1);
        assert_true(a >= 0);
        assert_true(a < counts[c]);
        assert_true(b >= 0);
        assert_true(b < counts[c]);
        assert_true(a != b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_a_bijection), cmocka_unit_test(seed_and_epoch_matter),
        cmocka_unit_test(shuffles), cmocka_unit_test(small_sets), cmocka_unit_test(large_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

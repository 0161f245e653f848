/* Sets of byte ranges against a map of single bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "plan/verify/byte_ranges.h"

enum { BYTES = 64 };

static bool held(const bool *bytes, plan_range r) {
    for (int64_t b = r.from; b < r.to; b++)
        if (!bytes[b]) return false;
    return true;
}

static bool met(const bool *bytes, plan_range r) {
    for (int64_t b = r.from; b < r.to; b++)
        if (bytes[b]) return true;
    return false;
}

/* Sorted, apart from each other, and the bytes of the map. */
static void check_set(const plan_ranges *set, const bool *bytes) {
    int64_t count = 0, held_bytes = 0;
    for (size_t i = 0; i < set->count; i++) {
        assert_true(set->at[i].from < set->at[i].to);
        if (i) assert_true(set->at[i - 1].to < set->at[i].from);
        assert_true(held(bytes, set->at[i]));
        held_bytes += set->at[i].to - set->at[i].from;
    }
    for (int b = 0; b < BYTES; b++) count += bytes[b];
    assert_int_equal(held_bytes, count);
}

static void like_a_map(void **state) {
    (void)state;
    sifr_error error = {0};
    uint32_t random = 1;
    int holds = 0, meets = 0;
    for (int n = 0; n < 400; n++) {
        plan_ranges set = {0};
        bool bytes[BYTES] = {false};
        for (int i = 0; i < 24; i++) {
            random = random * 1664525 + 1013904223;
            int64_t from = random >> 8 & 63, length = random >> 16 & 7;
            plan_range r = {from, from + length < BYTES ? from + length : BYTES};
            holds += plan_ranges_hold(&set, r);
            meets += plan_ranges_meet(&set, r);
            assert_int_equal(plan_ranges_hold(&set, r), held(bytes, r));
            assert_int_equal(plan_ranges_meet(&set, r), met(bytes, r));
            if (i % 2) continue;
            assert_int_equal(plan_ranges_add(&set, r, &error), SIFR_OK);
            for (int64_t b = r.from; b < r.to; b++) bytes[b] = true;
            check_set(&set, bytes);
        }
        plan_ranges_empty(&set);
        assert_false(plan_ranges_meet(&set, (plan_range){0, BYTES}));
        plan_ranges_free(&set);
    }
    assert_true(holds > 1000);
    assert_true(meets > 1000);
}

/* Rows added at once are the same set as those added one by one. */
static void rows_at_once(void **state) {
    (void)state;
    sifr_error error = {0};
    uint32_t random = 5;
    for (int n = 0; n < 400; n++) {
        plan_ranges set = {0};
        bool bytes[BYTES] = {false};
        for (int i = 0; i < 5; i++) {
            random = random * 1664525 + 1013904223;
            int64_t from = random >> 8 & 15, length = random >> 12 & 7;
            int64_t pitch = length + (random >> 16 & 3), rows = 1 + (random >> 20 & 3);
            plan_range first = {from, from + length};
            assert_int_equal(plan_ranges_add_rows(&set, first, rows, pitch, &error), SIFR_OK);
            for (int64_t b = 0; b < rows * length; b++)
                bytes[from + b / length * pitch + b % length] = true;
            check_set(&set, bytes);
        }
        plan_ranges_free(&set);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(like_a_map),
                                       cmocka_unit_test(rows_at_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

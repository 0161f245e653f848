/* Settings that several threads plan side by side, and what was tried before. */
#include "support/search_case.h"

/* Neither changes an answer or a count. */
static void same_answers(void **state) {
    static plan_outcome next[2][PLAN_NEIGHBOURS];
    search_case c;
    size_t count[2];
    int64_t longest[2];
    sifr_error error;
    plan_memo *memo;
    (void)state;
    search_case_begin(&c, 4);
    c.settings.sequences = 6;
    c.settings.micro_batches = 4;
    c.search.any_order = true;
    c.search.room_bytes = search_case_try(&c, &c.settings).total_bytes * 2;
    assert_int_equal(plan_memo_create(&memo, &error), SIFR_OK);
    for (int n = 0; n < 2; n++) {
        c.search.threads = n ? 4 : 0;
        c.search.memo = n ? memo : NULL;
        c.search.tried = 0;
        assert_int_equal(
            plan_neighbours(&c.search, &c.settings, next[n], PLAN_NEIGHBOURS, &count[n], &error),
            SIFR_OK);
        assert_int_equal(c.search.tried, (int)count[n] + 2); /* micro batches: two orders */
        assert_int_equal(plan_largest(&c.search, &c.settings, plan_set_length, c.settings.length, 1,
                                      1 << 20, &longest[n], &error),
                         SIFR_OK);
    }
    assert_int_equal(count[0], count[1]);
    assert_int_equal(longest[0], longest[1]);
    assert_memory_equal(next[0], next[1], count[0] * sizeof *next[0]);
    int64_t lowered = c.search.lowered;
    assert_int_equal(
        plan_neighbours(&c.search, &c.settings, next[0], PLAN_NEIGHBOURS, &count[0], &error),
        SIFR_OK);
    assert_int_equal(c.search.lowered, lowered); /* all was known */
    assert_memory_equal(next[0], next[1], count[1] * sizeof *next[1]);
    plan_memo_free(memo);
    search_case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_answers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

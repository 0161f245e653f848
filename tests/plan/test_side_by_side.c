/* Settings that several threads plan side by side, and what was tried before.
 * in test_tsan */
#include "support/search_case.h"

enum { ASKED = 2 + PLAN_NEIGHBOURS };

static size_t ask(const search_case *c, plan_trial *trials) {
    trials[0] = (plan_trial){.question = PLAN_ASK_LARGEST, .settings = c->settings};
    trials[0].set = plan_set_length;
    trials[0].near = c->settings.step.seq_length;
    trials[0].last = 1 << 20;
    trials[1] = (plan_trial){.question = PLAN_ASK_BETWEEN, .settings = c->settings};
    return 2 + plan_neighbours(&c->search, &c->settings, trials + 2);
}

static void assert_same(const plan_trial *a, const plan_trial *b) {
    assert_int_equal(a->largest, b->largest);
    assert_int_equal(a->is_between, b->is_between);
    const plan_outcome *x = &a->outcome, *y = &b->outcome;
    assert_int_equal(x->settings.step.micro_batch_size, y->settings.step.micro_batch_size);
    assert_int_equal(x->settings.step.zero.stage, y->settings.step.zero.stage);
    assert_int_equal(x->settings.step.step_order, y->settings.step.step_order);
    assert_int_equal(x->settings.step.recompute, y->settings.step.recompute);
    assert_true(x->possible == y->possible);
    assert_true(x->fits == y->fits);
    assert_int_equal(x->total_bytes, y->total_bytes);
    assert_int_equal(x->nvme_bytes, y->nvme_bytes);
    assert_int_equal(x->host_bytes, y->host_bytes);
    assert_true(x->gathers == y->gathers);
    assert_true(x->reductions == y->reductions);
    assert_memory_equal(x->largest_bytes, y->largest_bytes, sizeof x->largest_bytes);
    assert_true(x->gathered == y->gathered);
    assert_true(x->reduced == y->reduced);
    assert_memory_equal(&x->predicted, &y->predicted, sizeof x->predicted);
}

/* Neither changes an answer or a count, and each answer is what the question's own call says. */
static void same_answers(void **state) {
    static plan_trial trials[3][ASKED];
    search_case c;
    size_t count[3];
    int64_t longest;
    sifr_error error;
    plan_memo *memo;
    (void)state;
    search_case_begin(&c, 4);
    c.settings.step.micro_batch_size = 6;
    c.settings.step.gradient_accumulation_steps = 4;
    c.search.any_order = true;
    c.search.room_bytes = search_case_try(&c, &c.settings).total_bytes * 2;
    assert_int_equal(plan_memo_create(&memo, &error), SIFR_OK);
    for (int n = 0; n < 3; n++) {
        c.search.threads = n ? 4 : 0;
        c.search.memo = n ? memo : NULL;
        c.search.tried = 0;
        count[n] = ask(&c, trials[n]);
        assert_int_equal(plan_try_all(&c.search, trials[n], count[n], &error), SIFR_OK);
        for (size_t i = 2; i < count[n]; i++) { /* micro batches: two orders */
            assert_int_equal(trials[n][i].search.tried, i + 2 < count[n] ? 1 : 2);
            if (n == 2) assert_int_equal(trials[n][i].search.lowered, 0); /* all was known */
        }
        assert_int_equal(count[n], count[0]);
        for (size_t i = 0; i < count[n]; i++) assert_same(&trials[n][i], &trials[0][i]);
    }
    c.search.memo = NULL;
    assert_int_equal(plan_largest(&c.search, &c.settings, plan_set_length,
                                  c.settings.step.seq_length, 1, 1 << 20, &longest, &error),
                     SIFR_OK);
    assert_int_equal(longest, trials[1][0].largest);
    plan_memo_free(memo);
    search_case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_answers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

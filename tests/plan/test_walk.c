/* Orders of work: complete, rising in every part, never stuck, and as long as their formulas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/walk.h"

enum { MOST_STAGES = 8, MOST_PARTS = 32 };

static plan_walk_shape shape_of(plan_walk_order order, int32_t p, int32_t v, int32_t k) {
    return (plan_walk_shape){.order = order, .stages = p, .chunks = v, .micro_batches = k};
}

static void make_all(const plan_walk_shape *shape, bool training, plan_walk *walks) {
    sifr_error error;
    assert_int_equal(plan_walk_check(shape, &error), SIFR_OK);
    for (int32_t s = 0; s < shape->stages; s++)
        assert_int_equal(plan_walk_make(shape, s, training, &walks[s], &error), SIFR_OK);
}

static void free_all(const plan_walk_shape *shape, plan_walk *walks) {
    for (int32_t s = 0; s < shape->stages; s++) plan_walk_free(&walks[s]);
}

/* Each pass of each micro batch through each chunk once, in rising micro batches. */
static void check_complete(const plan_walk_shape *shape, const plan_walk *walk) {
    for (int32_t chunk = 0; chunk < shape->chunks; chunk++) {
        int32_t next[PLAN_WALK_PASSES] = {0};
        for (size_t i = 0; i < walk->count; i++) {
            const plan_walk_item *item = &walk->items[i];
            if (item->chunk != chunk) continue;
            assert_int_equal(item->micro_batch, next[item->pass]);
            next[item->pass] += item->count;
            if (item->pass == PLAN_WALK_BACKWARD)
                assert_true(next[PLAN_WALK_BACKWARD] <= next[PLAN_WALK_FORWARD]);
            if (item->pass == PLAN_WALK_WEIGHTS)
                assert_true(next[PLAN_WALK_WEIGHTS] <= next[PLAN_WALK_BACKWARD]);
        }
        bool split = shape->order == PLAN_WALK_ZB_H1;
        assert_int_equal(next[PLAN_WALK_FORWARD], shape->micro_batches);
        assert_int_equal(next[PLAN_WALK_BACKWARD], shape->micro_batches);
        assert_int_equal(next[PLAN_WALK_WEIGHTS], split ? shape->micro_batches : 0);
    }
}

static void check_forward(const plan_walk_shape *shape, const plan_walk *walk) {
    int32_t passes = 0;
    for (size_t i = 0; i < walk->count; i++) {
        assert_int_equal(walk->items[i].pass, PLAN_WALK_FORWARD);
        passes += walk->items[i].count;
    }
    assert_int_equal(passes, shape->micro_batches * shape->chunks);
}

/* The time of all stages where each part takes f, b, w seconds. */
static double time_of(const plan_walk_shape *shape, const plan_walk *walks, double f, double b,
                      double w) {
    sifr_error error;
    plan_walk_cost costs[MOST_PARTS];
    double seconds, busy[MOST_STAGES];
    for (int32_t i = 0; i < shape->stages * shape->chunks; i++)
        costs[i] = (plan_walk_cost){.seconds = {f, b, w}};
    assert_int_equal(plan_walk_times(shape, walks, costs, &seconds, busy, &error), SIFR_OK);
    double split = shape->order == PLAN_WALK_ZB_H1 ? w : 0;
    for (int32_t s = 0; s < shape->stages; s++) {
        double own = (f + b + split) * shape->chunks * shape->micro_batches;
        assert_true(fabs(busy[s] - own) < 1e-9 * own);
    }
    return seconds;
}

static void check_near(double got, double want) {
    if (fabs(got - want) > 1e-9 * want) fail_msg("%g seconds, not %g", got, want);
}

static void every_order(void **unused) {
    (void)unused;
    for (int order = 0; order < PLAN_WALK_ORDERS; order++) {
        for (int32_t p = 1; p <= MOST_STAGES; p++) {
            for (int32_t k = 1; k <= 24; k++) {
                for (int32_t v = 1; v <= 4; v++) {
                    plan_walk_shape shape = shape_of((plan_walk_order)order, p, v, k);
                    sifr_error error;
                    plan_walk walks[MOST_STAGES];
                    if (plan_walk_check(&shape, &error) != SIFR_OK) continue;
                    make_all(&shape, true, walks);
                    for (int32_t s = 0; s < p; s++) check_complete(&shape, &walks[s]);
                    double seconds = time_of(&shape, walks, 1, 2, 0.5);
                    assert_true(seconds >= (double)k * v * 3);
                    free_all(&shape, walks);
                    make_all(&shape, false, walks); /* evaluation */
                    for (int32_t s = 0; s < p; s++) check_forward(&shape, &walks[s]);
                    free_all(&shape, walks);
                }
            }
        }
    }
}

/* Narayanan et al., SC21, section 2.2: (p - 1) / k of the ideal time; 1/v of that with v chunks. */
static void bubbles(void **unused) {
    (void)unused;
    plan_walk walks[MOST_STAGES];
    const double f = 1, b = 2;
    for (int32_t p = 1; p <= MOST_STAGES; p++) {
        for (int32_t k = p; k <= 4 * p; k += p) {
            const plan_walk_order orders[] = {PLAN_WALK_GPIPE, PLAN_WALK_1F1B};
            for (int i = 0; i < 2; i++) {
                plan_walk_shape shape = shape_of(orders[i], p, 1, k);
                make_all(&shape, true, walks);
                check_near(time_of(&shape, walks, f, b, 0), (k + p - 1) * (f + b));
                free_all(&shape, walks);
            }
            for (int32_t v = 2; v <= 4; v++) {
                plan_walk_shape shape = shape_of(PLAN_WALK_INTERLEAVED, p, v, k);
                make_all(&shape, true, walks);
                check_near(time_of(&shape, walks, f / v, b / v, 0),
                           k * (f + b) + (p - 1) * (f + b) / v);
                free_all(&shape, walks);
            }
        }
    }
}

/* Qi et al., arXiv 2401.10241, table 2: (p - 1)(F + B - W). */
static void zero_bubbles(void **unused) {
    (void)unused;
    plan_walk walks[MOST_STAGES];
    for (int32_t p = 2; p <= MOST_STAGES; p++) {
        for (int32_t k = p; k <= 4 * p; k += p) {
            plan_walk_shape shape = shape_of(PLAN_WALK_ZB_H1, p, 1, k);
            make_all(&shape, true, walks);
            check_near(time_of(&shape, walks, 1, 1, 1), 3 * k + (p - 1));
            free_all(&shape, walks);
        }
    }
}

static void activations(void **unused) {
    (void)unused;
    for (int32_t p = 1; p <= MOST_STAGES; p++) {
        for (int32_t k = 1; k <= 3 * p; k++) {
            const plan_walk_order orders[] = {PLAN_WALK_GPIPE, PLAN_WALK_1F1B, PLAN_WALK_ZB_H1};
            for (int i = 0; i < 3; i++) {
                plan_walk_shape shape = shape_of(orders[i], p, 1, k);
                plan_walk walks[MOST_STAGES];
                make_all(&shape, true, walks);
                for (int32_t s = 0; s < p; s++) {
                    int32_t few = p - s < k ? p - s : k;
                    assert_int_equal(plan_walk_in_flight(&walks[s]), i == 0 ? k : few);
                }
                free_all(&shape, walks);
            }
        }
        plan_walk_shape shape = shape_of(PLAN_WALK_INTERLEAVED, p, 3, 4 * p);
        plan_walk walks[MOST_STAGES];
        make_all(&shape, true, walks); /* SC21, 2.2: p v + p - 1 chunks on the first stage */
        assert_int_equal(plan_walk_in_flight(&walks[0]), 3 * p + p - 1);
        free_all(&shape, walks);
    }
}

static void refused(void **unused) {
    (void)unused;
    sifr_error error;
    plan_walk_shape shape = shape_of(PLAN_WALK_INTERLEAVED, 4, 2, 6);
    assert_int_equal(plan_walk_check(&shape, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "give 4 or 8"));
    shape = shape_of(PLAN_WALK_INTERLEAVED, 4, 2, 2);
    assert_int_equal(plan_walk_check(&shape, &error), SIFR_USAGE);
    assert_non_null(strstr(error.message, "give 4"));
    shape = shape_of(PLAN_WALK_1F1B, 4, 2, 8);
    assert_int_equal(plan_walk_check(&shape, &error), SIFR_USAGE);
    shape = shape_of(PLAN_WALK_UNIT, 2, 1, 8);
    assert_int_equal(plan_walk_check(&shape, &error), SIFR_USAGE);
    shape = shape_of(PLAN_WALK_1F1B, 0, 1, 8);
    assert_int_equal(plan_walk_check(&shape, &error), SIFR_USAGE);
}

/* Two stages that begin at both ends of the other's work never finish. */
static void stuck(void **unused) {
    (void)unused;
    sifr_error error;
    plan_walk_shape shape = shape_of(PLAN_WALK_1F1B, 2, 1, 2);
    plan_walk_item first[] = {{PLAN_WALK_FORWARD, 0, 0, 1},
                              {PLAN_WALK_BACKWARD, 0, 1, 1},
                              {PLAN_WALK_FORWARD, 0, 1, 1},
                              {PLAN_WALK_BACKWARD, 0, 0, 1}};
    plan_walk walks[2] = {{first, 4}};
    assert_int_equal(plan_walk_make(&shape, 1, true, &walks[1], &error), SIFR_OK);
    plan_walk_cost costs[2] = {{{1, 1, 0}}, {{1, 1, 0}}};
    double seconds, busy[2];
    assert_int_equal(plan_walk_times(&shape, walks, costs, &seconds, busy, &error), SIFR_FAILED);
    plan_walk_free(&walks[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order), cmocka_unit_test(bubbles), cmocka_unit_test(zero_bubbles),
        cmocka_unit_test(activations), cmocka_unit_test(refused), cmocka_unit_test(stuck),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

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

/* What a pass through a part takes, in one unit of time for all. */
typedef struct walk_cost {
    double seconds[PLAN_WALK_PASSES];
} walk_cost;

/* When a pass of a micro batch through a part ended; negative: not yet. */
typedef struct walk_clock {
    const plan_walk_shape *shape;
    const walk_cost *costs;
    double *ended; /* by pass, part and micro batch */
    double *now;   /* by stage */
    size_t *at;    /* by stage: its next item */
} walk_clock;

static double *ended_at(const walk_clock *clock, plan_walk_pass pass, int32_t part,
                        int32_t micro_batch) {
    size_t parts = (size_t)clock->shape->stages * (size_t)clock->shape->chunks;
    size_t k = (size_t)clock->shape->micro_batches;
    return &clock->ended[((size_t)pass * parts + (size_t)part) * k + (size_t)micro_batch];
}

/* When what an item needs of other parts is there; negative: not yet. */
static double ready_at(const walk_clock *clock, plan_walk_pass pass, int32_t part,
                       int32_t micro_batch) {
    int32_t parts = clock->shape->stages * clock->shape->chunks;
    if (pass == PLAN_WALK_FORWARD)
        return part == 0 ? 0 : *ended_at(clock, PLAN_WALK_FORWARD, part - 1, micro_batch);
    if (pass == PLAN_WALK_WEIGHTS) return *ended_at(clock, PLAN_WALK_BACKWARD, part, micro_batch);
    if (part + 1 == parts) return *ended_at(clock, PLAN_WALK_FORWARD, part, micro_batch);
    return *ended_at(clock, PLAN_WALK_BACKWARD, part + 1, micro_batch);
}

/* Runs the next item of a stage if it can begin. */
static bool advance(walk_clock *clock, int32_t stage, const plan_walk *walk, double *busy) {
    if (clock->at[stage] == walk->count) return false;
    const plan_walk_item *item = &walk->items[clock->at[stage]];
    int32_t part = item->chunk * clock->shape->stages + stage;
    double begin = clock->now[stage];
    for (int32_t j = item->micro_batch; j < item->micro_batch + item->count; j++) {
        double ready = ready_at(clock, item->pass, part, j);
        if (ready < 0) return false;
        if (ready > begin) begin = ready;
    }
    double takes = clock->costs[part].seconds[item->pass];
    for (int32_t j = item->micro_batch; j < item->micro_batch + item->count; j++)
        *ended_at(clock, item->pass, part, j) = begin + takes * (j - item->micro_batch + 1);
    clock->now[stage] = begin + takes * item->count;
    busy[stage] += takes * item->count;
    clock->at[stage]++;
    return true;
}

static bool run_all(walk_clock *clock, const plan_walk *walks, double *busy) {
    bool moved = true, left = true;
    while (moved && left) {
        moved = left = false;
        for (int32_t s = 0; s < clock->shape->stages; s++) {
            while (advance(clock, s, &walks[s], busy)) moved = true;
            left = left || clock->at[s] < walks[s].count;
        }
    }
    return !left;
}

/* Runs the walks of all stages together: a forward pass begins when the part before has done it, a
 * backward pass when the part behind has. *seconds is when the last stage has ended, busy[stage]
 * what it computed; false if they wait for each other for ever. */
static bool times(const plan_walk_shape *shape, const plan_walk *walks, const walk_cost *costs,
                  double *seconds, double *busy) {
    size_t parts = (size_t)(shape->stages * shape->chunks);
    size_t ends = parts * (size_t)shape->micro_batches * PLAN_WALK_PASSES;
    double now[MOST_STAGES] = {0};
    size_t at[MOST_STAGES] = {0};
    walk_clock clock = {shape, costs, malloc(ends * sizeof(double)), now, at};
    for (size_t i = 0; i < ends; i++) clock.ended[i] = -1;
    for (int32_t s = 0; s < shape->stages; s++) busy[s] = 0;
    bool ended = run_all(&clock, walks, busy);
    *seconds = 0;
    for (int32_t s = 0; s < shape->stages; s++)
        if (now[s] > *seconds) *seconds = now[s];
    free(clock.ended);
    return ended;
}

/* The most micro batches whose forward pass through some chunk has run and whose backward pass has
 * not, each chunk counted by itself: what a stage keeps activations of. */
static int64_t in_flight(const plan_walk *walk) {
    int64_t now = 0, most = 0;
    for (size_t i = 0; i < walk->count; i++) {
        const plan_walk_item *item = &walk->items[i];
        if (item->pass == PLAN_WALK_FORWARD) now += item->count;
        if (item->pass == PLAN_WALK_BACKWARD) now -= item->count;
        if (now > most) most = now;
    }
    return most;
}

/* The time of all stages where each part takes f, b, w seconds. */
static double time_of(const plan_walk_shape *shape, const plan_walk *walks, double f, double b,
                      double w) {
    walk_cost costs[MOST_PARTS];
    double seconds, busy[MOST_STAGES];
    for (int32_t i = 0; i < shape->stages * shape->chunks; i++)
        costs[i] = (walk_cost){.seconds = {f, b, w}};
    assert_true(times(shape, walks, costs, &seconds, busy));
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
                    assert_int_equal(in_flight(&walks[s]), i == 0 ? k : few);
                }
                free_all(&shape, walks);
            }
        }
        plan_walk_shape shape = shape_of(PLAN_WALK_INTERLEAVED, p, 3, 4 * p);
        plan_walk walks[MOST_STAGES];
        make_all(&shape, true, walks); /* SC21, 2.2: p v + p - 1 chunks on the first stage */
        assert_int_equal(in_flight(&walks[0]), 3 * p + p - 1);
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
    assert_non_null(strstr(error.message, "give 4, or schedule 1f1b"));
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
    walk_cost costs[2] = {{{1, 1, 0}}, {{1, 1, 0}}};
    double seconds, busy[2];
    assert_false(times(&shape, walks, costs, &seconds, busy));
    plan_walk_free(&walks[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order), cmocka_unit_test(bubbles), cmocka_unit_test(zero_bubbles),
        cmocka_unit_test(activations), cmocka_unit_test(refused), cmocka_unit_test(stuck),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The number of copies of the state that plan_fit chooses where shard_size is "auto", with slow
 * links between hosts of two ranks; elsewhere it stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "plan/queries.h"
#include "plan/search/fit_private.h"
#include "support/search_case.h"

enum { RANKS = 8, HOST = 2, LARGE_HOST = 8 };

static const plan_machine machine = {.fp32_operations = 1e10,
                                     .bf16_operations = 1e11,
                                     .memory_bytes = 1e10,
                                     .host = {1e-7, 1e11},
                                     .network = {1e-6, 1e7},
                                     .ranks_per_host = HOST};

static plan_outcome fit(search_case *c) {
    plan_outcome best;
    sifr_error error;
    if (plan_fit(&c->search, &c->settings, &best, &error) != SIFR_OK) fail_msg("%s", error.message);
    return best;
}

static void begin(search_case *c) {
    search_case_begin(c, RANKS);
    c->search.machine = &machine;
    c->settings.step.pipeline.stages = 1;
}

/* Not slower than any size of a copy with the same micro batch and stage, and quicker than none.
 * On two hosts of eight ranks, which have no room for all parameters in each rank, as stage 2 has
 * them: a copy on each host saves the gathers of stage 3 between hosts. */
static void chooses(void **state) {
    (void)state;
    search_case c;
    plan_machine two_hosts = machine;
    two_hosts.ranks_per_host = LARGE_HOST;
    search_case_begin(&c, 2 * LARGE_HOST);
    c.search.machine = &two_hosts;
    c.settings.step.pipeline.stages = 1;
    c.settings.step.micro_batch_size = 1;
    c.settings.step.precision = SIFR_FP32; /* in bf16 gathers are half of what sums are */
    plan_settings one = c.settings;
    one.step.zero.stage = 3;
    one.step.mesh.shard_size = LARGE_HOST;
    one.step.recompute = SIFR_RECOMPUTE_UNIT;
    sifr_error error;
    assert_int_equal(plan_mesh_of(&one.step, 2 * LARGE_HOST, 0, &one.mesh, &error), SIFR_OK);
    c.search.room_bytes = search_case_try(&c, &one).total_bytes * 11 / 10;
    plan_outcome none = fit(&c);
    assert_true(none.fits);
    assert_int_equal(none.settings.step.mesh.shard_size, 0);
    c.search.any_copies = true;
    plan_outcome best = fit(&c);
    int32_t size = best.settings.step.mesh.shard_size;
    assert_true(best.fits);
    assert_true(best.total_bytes <= c.search.room_bytes);
    assert_true(best.predicted.step_seconds < none.predicted.step_seconds);
    assert_int_equal(plan_mesh_ranks(&best.settings.mesh, PLAN_STATE), size);
    assert_int_equal(size, LARGE_HOST);
    for (int32_t other = 2; other <= LARGE_HOST; other *= 2) {
        one = best.settings;
        one.step.mesh.shard_size = other;
        assert_int_equal(plan_mesh_of(&one.step, 2 * LARGE_HOST, 0, &one.mesh, &error), SIFR_OK);
        plan_outcome o = search_case_try(&c, &one);
        if (o.fits) assert_true(best.predicted.step_seconds <= 1.01 * o.predicted.step_seconds);
    }
    search_case_end(&c);
}

/* A given size stays, and one rank has no copies. */
static void stays(void **state) {
    (void)state;
    search_case c;
    sifr_error error;
    begin(&c);
    c.settings.step.mesh.shard_size = 4;
    assert_int_equal(plan_mesh_of(&c.settings.step, RANKS, 0, &c.settings.mesh, &error), SIFR_OK);
    assert_int_equal(fit(&c).settings.step.mesh.shard_size, 4);
    search_case_end(&c);
    search_case_begin(&c, 1);
    c.search.any_copies = true;
    assert_int_equal(fit(&c).settings.step.mesh.shard_size, 0);
    search_case_end(&c);
}

/* Second copies of the parameters: the fastest step of stage 3 is tried with the ranks of a host,
 * and is quicker so; not where it does not fit, nor without stage 3, nor on one host. */
static void neighbours(void **state) {
    (void)state;
    search_case c;
    sifr_error error;
    begin(&c);
    c.settings.step.zero.stage = 3;
    c.settings.step.zero.overlap_comm = true;
    plan_outcome without = search_case_try(&c, &c.settings);
    for (int n = 0; n < 4; n++) {
        fit_list list = {0};
        plan_machine one_host = machine;
        one_host.ranks_per_host = n == 3 ? 0 : HOST;
        c.search.machine = &one_host;
        c.search.room_bytes = n == 1 ? without.total_bytes : INT64_MAX;
        c.settings.step.zero.stage = n == 2 ? 2 : 3;
        plan_outcome given = search_case_try(&c, &c.settings);
        assert_int_equal(fit_add(&list, &given, &error), SIFR_OK);
        assert_int_equal(fit_try_near(&c.search, &list, &error), SIFR_OK);
        assert_int_equal(list.count, n == 0 ? 2 : 1);
        if (n == 0) {
            const plan_outcome *with = &list.all[1];
            assert_int_equal(with->settings.step.zero.hpz_partition_size, HOST);
            assert_int_equal(with->settings.mesh.near, HOST);
            assert_true(with->predicted.step_seconds < without.predicted.step_seconds);
            assert_true(with->total_bytes > without.total_bytes);
            assert_true(with->largest_bytes[PLAN_SECONDARY] > 0);
        }
        free(list.all);
        free(list.entries);
    }
    c.search.machine = &machine;
    c.search.room_bytes = INT64_MAX;
    assert_int_equal(fit(&c).settings.mesh.near, 0); /* it is not open */
    search_case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(chooses), cmocka_unit_test(stays),
                                       cmocka_unit_test(neighbours)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The numbers of tensor and context ranks, and of stages beside them, that plan_fit chooses where
 * their keys are "auto", held against trying everything: on links so slow that less is sent with
 * them than with slices, and where one sequence fits no rank. Elsewhere they stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plan/queries.h"
#include "sifr/engine.h"
#include "support/search_case.h"

enum { RANKS = 4, GLOBAL = 4, MOST = 2048 };

static const plan_machine slow_link = {
    .fp32_operations = 1e10, .bf16_operations = 1e11, .memory_bytes = 1e10, .host = {1e-6, 1e7}};
static const plan_machine quick_link = {
    .fp32_operations = 1e10, .bf16_operations = 1e11, .memory_bytes = 1e10, .host = {1e-7, 1e12}};

static void begin(search_case *c, const plan_machine *machine) {
    search_case_begin(c, RANKS);
    c->search.machine = machine;
    c->search.any_tensors = c->search.any_contexts = true;
    c->settings.step.pipeline.stages = 1;
    c->settings.step.seq_length = 64;
    c->settings.step.micro_batch_size = GLOBAL / RANKS;
    c->settings.step.mesh.context_kind = SIFR_CONTEXT_GATHER;
}

/* All settings with such a mesh, and each micro batch of the same global batch. */
static size_t all_settings(const search_case *c, int32_t tensors, int32_t contexts,
                           plan_settings *out) {
    size_t count = 0;
    int64_t share = GLOBAL * tensors * contexts / RANKS;
    for (int32_t i = 0; i < 4 * 2 * 2; i++) {
        for (int64_t size = 1; size <= share; size++) {
            plan_settings s = c->settings;
            sifr_error error;
            if (share % size) continue;
            s.step.mesh.tensor_size = tensors;
            s.step.mesh.context_size = contexts;
            assert_int_equal(plan_mesh_of(&s.step, RANKS, 0, &s.mesh, &error), SIFR_OK);
            s.step.zero.stage = i % 4;
            s.step.recompute = i / 4 % 2;
            s.step.zero.overlap_comm = i / 8;
            s.step.micro_batch_size = size;
            s.step.gradient_accumulation_steps = (int32_t)(share / size);
            assert_true(count < MOST);
            out[count++] = s;
        }
    }
    return count;
}

static plan_outcome fit(search_case *c) {
    plan_outcome best;
    sifr_error error;
    if (plan_fit(&c->search, &c->settings, &best, &error) != SIFR_OK) fail_msg("%s", error.message);
    return best;
}

static void expect_mesh(const plan_outcome *best) {
    const plan_settings *s = &best->settings;
    int32_t tensors = s->step.mesh.tensor_size, contexts = s->step.mesh.context_size;
    assert_int_equal(plan_mesh_ranks(&s->mesh, PLAN_WORLD), RANKS);
    assert_int_equal(plan_mesh_ranks(&s->mesh, PLAN_TENSORS), tensors > 1 ? tensors : 1);
    assert_int_equal(plan_mesh_ranks(&s->mesh, PLAN_CONTEXTS), contexts > 1 ? contexts : 1);
    assert_int_equal(s->step.micro_batch_size * s->step.gradient_accumulation_steps *
                         plan_mesh_ranks(&s->mesh, PLAN_DATA),
                     GLOBAL);
}

/* Returns how often tensor or context ranks were chosen. */
static int the_best_of_all_on(const plan_machine *machine, sifr_optimizer_type type) {
    static plan_settings all[MOST];
    static int64_t bytes[MOST];
    static double seconds[MOST];
    search_case c;
    begin(&c, machine);
    c.settings.step.optimizer.type = type;
    assert_int_equal(sifr_model_group(c.model, &c.settings.step.optimizer, NULL), SIFR_OK);
    int64_t least = INT64_MAX, most = 0;
    size_t count = 0;
    int shared = 0, divided = 0;
    for (int32_t t = 1; t <= RANKS; t *= 2)
        for (int32_t n = 1; n <= RANKS / t; n *= 2) count += all_settings(&c, t, n, all + count);
    for (size_t i = 0; i < count; i++) {
        plan_outcome o = search_case_try(&c, &all[i]);
        bytes[i] = plan_needed_bytes(&o);
        seconds[i] = o.predicted.step_seconds;
        if (!o.possible) continue;
        divided += all[i].step.mesh.tensor_size > 1;
        if (bytes[i] < least) least = bytes[i];
        if (bytes[i] > most) most = bytes[i];
    }
    assert_true(divided > 0);
    for (int step = 0; step <= 3; step++) {
        double quickest = 1e9;
        c.search.room_bytes = least + step * ((most - least) / 3);
        for (size_t i = 0; i < count; i++)
            if (bytes[i] <= c.search.room_bytes && seconds[i] < quickest) quickest = seconds[i];
        plan_outcome best = fit(&c);
        assert_true(best.fits);
        assert_true(plan_needed_bytes(&best) <= c.search.room_bytes);
        expect_mesh(&best);
        if (best.predicted.step_seconds > 1.01 * quickest)
            fail_msg("room %lld: %g s is not the quickest, %g s", (long long)c.search.room_bytes,
                     best.predicted.step_seconds, quickest);
        shared += plan_mesh_ranks(&best.settings.mesh, PLAN_DATA) < RANKS;
    }
    search_case_end(&c);
    return shared;
}

static void the_best_of_all(void **state) {
    (void)state;
    assert_true(the_best_of_all_on(&slow_link, SIFR_ADAMW) > 0); /* the cases were cases */
    the_best_of_all_on(&quick_link, SIFR_ADAMW);
}

/* Which puts matrices together that tensor ranks divide. */
static void with_muon(void **state) {
    (void)state;
    the_best_of_all_on(&slow_link, SIFR_MUON);
}

/* Of no rank's memory, one sequence is divided; and so it is where stages are chosen as well. */
static void long_sequences(void **state) {
    (void)state;
    search_case c;
    begin(&c, &quick_link);
    c.settings.step.seq_length = 2048;
    c.settings.step.recompute = SIFR_RECOMPUTE_UNIT;
    c.settings.step.zero.stage = 3;
    c.search.any_tensors = c.search.any_contexts = false;
    plan_outcome one = search_case_try(&c, &c.settings);
    c.search.room_bytes = one.total_bytes * 2 / 3;
    assert_false(fit(&c).fits);
    c.search.any_contexts = true;
    plan_outcome best = fit(&c);
    assert_true(best.fits && best.settings.step.mesh.context_size > 1);
    expect_mesh(&best);
    double seconds = best.predicted.step_seconds;
    c.search.any_stages = c.search.any_tensors = true;
    best = fit(&c);
    assert_true(best.fits && best.predicted.step_seconds <= 1.01 * seconds);
    expect_mesh(&best);
    search_case_end(&c);
}

static void only_where_asked(void **state) {
    (void)state;
    search_case c;
    begin(&c, &slow_link);
    c.search.any_tensors = c.search.any_contexts = false;
    plan_outcome none = fit(&c);
    assert_int_equal(plan_mesh_ranks(&none.settings.mesh, PLAN_DATA), RANKS);
    plan_machine hosts = slow_link; /* tensor ranks stay on a host */
    hosts.ranks_per_host = 1;
    hosts.network = hosts.host;
    c.search.machine = &hosts;
    c.search.any_tensors = true;
    none = fit(&c);
    assert_int_equal(plan_mesh_ranks(&none.settings.mesh, PLAN_TENSORS), 1);
    search_case_end(&c);
}

/* With sequence_parallel one rank, and micro batches that are no whole runs of tokens, are refused:
 * the others are found, and what there is none of is not told in bytes. */
static void rows_cut(void **state) {
    (void)state;
    search_case c;
    begin(&c, &quick_link);
    c.search.any_contexts = false;
    c.settings.step.mesh.sequence_parallel = true;
    c.settings.step.seq_length = 128;
    plan_outcome best = fit(&c);
    int32_t tensors = plan_mesh_ranks(&best.settings.mesh, PLAN_TENSORS);
    assert_true(best.fits);
    assert_in_range(tensors, 2, 4);
    assert_int_equal(best.settings.step.micro_batch_size % tensors, 0);
    c.search.room_bytes = 1;
    best = fit(&c);
    assert_true(best.possible && !best.fits);
    c.settings.step.seq_length = 100;
    best = fit(&c);
    assert_false(best.possible);
    search_case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_cut), cmocka_unit_test(the_best_of_all), cmocka_unit_test(with_muon),
        cmocka_unit_test(long_sequences), cmocka_unit_test(only_where_asked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

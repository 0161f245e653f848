/* The number of pipeline stages that plan_fit chooses, held against trying everything; a step with
 * stages fits only if every stage does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plan/queries.h"
#include "support/search_case.h"

enum { RANKS = 4, SHARE = 6, MOST = 1024 };

/* ZeRO's transfers take long on it, or hardly any time. */
static const plan_machine slow_link = {
    .fp32_operations = 1e10, .bf16_operations = 1e11, .memory_bytes = 1e10, .host = {1e-6, 3e7}};
static const plan_machine quick_link = {
    .fp32_operations = 1e10, .bf16_operations = 1e11, .memory_bytes = 1e10, .host = {1e-7, 1e12}};

static void begin(search_case *c, const plan_machine *machine) {
    search_case_begin(c, RANKS);
    c->search.machine = machine;
    c->search.any_stages = true;
    c->settings.step.pipeline.stages = 1;
    c->settings.step.pipeline.schedule = SIFR_SCHEDULE_1F1B;
    c->settings.step.seq_length = 64;
    c->settings.step.micro_batch_size = SHARE;
}

static void set_stages(plan_settings *s, int32_t stages) {
    sifr_error error;
    s->step.pipeline.stages = stages;
    assert_int_equal(plan_mesh_of(&s->step, RANKS, 0, &s->mesh, &error), SIFR_OK);
}

/* All settings with so many stages, and each micro batch of the same global batch. */
static size_t all_settings(const search_case *c, int32_t stages, plan_settings *out) {
    size_t count = 0;
    for (int32_t i = 0; i < 4 * 2 * 2; i++) {
        for (int64_t size = 1; size <= SHARE * stages; size++) {
            plan_settings s = c->settings;
            if (SHARE * stages % size) continue;
            set_stages(&s, stages);
            s.step.zero.stage = i % 4;
            s.step.recompute = i / 4 % 2;
            s.step.zero.overlap_comm = i / 8;
            s.step.micro_batch_size = size;
            s.step.gradient_accumulation_steps = (int32_t)(SHARE * stages / size);
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

static void the_best_of_all_on(const plan_machine *machine, int chosen[RANKS + 1]) {
    static plan_settings all[MOST];
    static int64_t bytes[MOST];
    static double seconds[MOST];
    search_case c;
    begin(&c, machine);
    int64_t least = INT64_MAX, most = 0;
    size_t count = 0;
    for (int32_t stages = 1; stages <= RANKS; stages *= 2)
        count += all_settings(&c, stages, all + count);
    for (size_t i = 0; i < count; i++) {
        plan_outcome o = search_case_try(&c, &all[i]);
        assert_true(o.possible);
        bytes[i] = plan_needed_bytes(&o);
        seconds[i] = o.predicted.step_seconds;
        if (bytes[i] < least) least = bytes[i];
        if (bytes[i] > most) most = bytes[i];
    }
    for (int step = 0; step <= 4; step++) {
        double quickest = 1e9;
        c.search.room_bytes = least + step * ((most - least) / 4);
        for (size_t i = 0; i < count; i++)
            if (bytes[i] <= c.search.room_bytes && seconds[i] < quickest) quickest = seconds[i];
        plan_outcome best = fit(&c);
        assert_true(best.fits);
        assert_true(plan_needed_bytes(&best) <= c.search.room_bytes);
        int32_t stages = best.settings.step.pipeline.stages;
        assert_int_equal(plan_mesh_ranks(&best.settings.mesh, PLAN_STAGES), stages);
        assert_int_equal(best.settings.step.micro_batch_size *
                             best.settings.step.gradient_accumulation_steps,
                         SHARE * stages);
        if (best.predicted.step_seconds > 1.01 * quickest)
            fail_msg("room %lld: %g s in %d stages is not the quickest, %g s",
                     (long long)c.search.room_bytes, best.predicted.step_seconds, stages, quickest);
        chosen[stages]++;
    }
    search_case_end(&c);
}

static void the_best_of_all(void **state) {
    (void)state;
    int slow[RANKS + 1] = {0}, quick[RANKS + 1] = {0};
    the_best_of_all_on(&slow_link, slow);
    the_best_of_all_on(&quick_link, quick);
    assert_true(slow[2] + slow[4] > 0); /* the cases were cases */
    assert_true(slow[1] + quick[1] > 0);
}

/* Without "auto" the number stays, and so do plans and time: as if there were no stages. */
static void only_where_asked(void **state) {
    (void)state;
    search_case c;
    begin(&c, &slow_link);
    plan_outcome open = fit(&c);
    assert_true(open.settings.step.pipeline.stages > 1);
    c.search.any_stages = false;
    c.search.lowered = c.search.tried = 0;
    plan_outcome one = fit(&c);
    assert_int_equal(one.settings.step.pipeline.stages, 1);
    assert_true(one.predicted.step_seconds > open.predicted.step_seconds);
    search_case_end(&c);
}

/* A given number stays. Of its micro batches the quickest is taken, not the largest, with which all
 * stages but one would wait. */
static void given(void **state) {
    (void)state;
    static plan_settings all[MOST];
    for (int schedule = SIFR_SCHEDULE_GPIPE; schedule <= SIFR_SCHEDULE_ZB_H1; schedule++) {
        search_case c;
        double quickest = 1e9;
        begin(&c, &quick_link);
        c.search.any_stages = false;
        c.settings.step.pipeline.schedule = schedule;
        c.settings.step.pipeline.chunks = 2;
        size_t count = all_settings(&c, 2, all);
        for (size_t i = 0; i < count; i++) {
            plan_outcome o = search_case_try(&c, &all[i]);
            if (o.fits && o.predicted.step_seconds < quickest) quickest = o.predicted.step_seconds;
        }
        c.settings.step.micro_batch_size = 2 * SHARE;
        set_stages(&c.settings, 2);
        plan_outcome best = fit(&c);
        assert_true(best.fits);
        assert_int_equal(best.settings.step.pipeline.stages, 2);
        assert_true(best.settings.step.gradient_accumulation_steps > 2);
        assert_true(best.predicted.step_seconds <= 1.01 * quickest);
        search_case_end(&c);
    }
}

/* Copies of the state need whole groups in every stage. */
static void with_copies(void **state) {
    (void)state;
    search_case c;
    begin(&c, &slow_link);
    c.settings.step.mesh.shard_size = 2;
    set_stages(&c.settings, 1);
    plan_outcome best = fit(&c);
    assert_true(best.fits);
    assert_true(best.settings.step.pipeline.stages <= 2); /* 4 stages have one rank each */
    assert_int_equal(plan_mesh_ranks(&best.settings.mesh, PLAN_STATE), 2);
    search_case_end(&c);
}

/* A stage with less than another one says nothing for the other. */
static void every_stage(void **state) {
    (void)state;
    search_case c;
    begin(&c, &quick_link);
    set_stages(&c.settings, 2);
    c.settings.step.micro_batch_size = 1;
    c.settings.step.gradient_accumulation_steps = 2 * SHARE;
    plan_outcome all = search_case_try(&c, &c.settings);
    int64_t bytes[2] = {all.stage_bytes[0], all.stage_bytes[2]};
    assert_true(all.fits);
    assert_true(bytes[0] != bytes[1]);
    assert_int_equal(plan_needed_bytes(&all), all.stage_bytes[1]);
    assert_int_equal(all.stage_bytes[1], bytes[bytes[1] > bytes[0]]);
    c.search.room_bytes = all.stage_bytes[1];
    assert_true(search_case_try(&c, &c.settings).fits);
    c.search.room_bytes--; /* one stage has room, the other has not */
    for (int32_t stage = 0; stage < 2; stage++) {
        c.settings.mesh.place[PLAN_AXIS_STAGE] = stage;
        assert_false(search_case_try(&c, &c.settings).fits);
    }
    search_case_end(&c);
}

/* The largest micro batch, and the longest sequence, of all stages, whichever asks. */
static void the_largest_of_all(void **state) {
    (void)state;
    search_case c;
    sifr_error error;
    begin(&c, &quick_link);
    set_stages(&c.settings, 4);
    c.settings.step.micro_batch_size = 1;
    c.settings.step.gradient_accumulation_steps = 4;
    c.search.room_bytes = search_case_try(&c, &c.settings).stage_bytes[1] * 2;
    int64_t found[4][2];
    for (int32_t stage = 0; stage < 4; stage++) {
        for (int length = 0; length < 2; length++) {
            plan_setter *set = length ? plan_set_length : plan_set_sequences;
            c.settings.mesh.place[PLAN_AXIS_STAGE] = stage;
            assert_int_equal(plan_largest(&c.search, &c.settings, set, 1, 1, 4096,
                                          &found[stage][length], &error),
                             SIFR_OK);
            assert_in_range(found[stage][length], 2, 4095);
            /* Scratch does not quite grow with the length (with AVX-512's products 354 tokens may
             * take less than 353), so there may be several limits, of which all find one. */
            assert_int_equal(found[stage][length], found[0][length]);
            for (int64_t more = 0; more < 2; more++) {
                plan_settings one = c.settings;
                set(&one, found[stage][length] + more);
                assert_int_equal(search_case_try(&c, &one).fits, !more);
            }
        }
    }
    search_case_end(&c);
}

/* What nothing fits in is told with the bytes of its fullest stage. */
static void nothing_fits(void **state) {
    (void)state;
    search_case c;
    begin(&c, &quick_link);
    c.search.any_stages = false;
    set_stages(&c.settings, 2);
    c.search.room_bytes = 1;
    plan_outcome best = fit(&c);
    assert_false(best.fits);
    plan_outcome all = search_case_try(&c, &best.settings);
    assert_int_equal(plan_needed_bytes(&best), plan_needed_bytes(&all));
    search_case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_largest_of_all),
                                       cmocka_unit_test(nothing_fits),
                                       cmocka_unit_test(the_best_of_all),
                                       cmocka_unit_test(only_where_asked),
                                       cmocka_unit_test(given),
                                       cmocka_unit_test(with_copies),
                                       cmocka_unit_test(every_stage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

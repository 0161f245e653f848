/* The table of settings that a planner may change: what is chosen is what is found again, in the
 * field that the row names, and what was tried is found by its settings. */
#include <stdlib.h>
#include <string.h>

#include "device/kinds.h"
#include "plan/search/fit_private.h"
#include "plan/search/memo.h"
#include "support/search_case.h"

/* Where every row means something: ranks, micro batches, ZeRO 3, state on disk, many tokens. */
static void begin(search_case *c, sifr_precision precision) {
    search_case_begin(c, 4);
    c->search.overlap_by_stage = false;
    c->settings.step.precision = precision;
    c->settings.step.seq_length = 1024;
    c->settings.step.recompute = SIFR_RECOMPUTE_UNIT;
    c->settings.step.gradient_accumulation_steps = 4;
    c->settings.step.zero.stage = 3;
    c->settings.step.offload.optimizer.device = SIFR_TIER_NVME;
}

/* Rows of the same key are the type of sums of one precision or the other. */
static bool is_of(const plan_choice *row, sifr_precision precision) {
    return strcmp(row->key, "data_types.grad_accum_dtype") || row->on == (int32_t)precision;
}

static void chosen_is_found(void **state) {
    (void)state;
    char text[PLAN_VALUE_LENGTH];
    for (int p = SIFR_BF16; p <= SIFR_FP16; p++) {
        search_case c;
        begin(&c, (sifr_precision)p);
        for (size_t i = 0; i < plan_choice_count(); i++) {
            const plan_choice *row = plan_choice_at(i);
            for (int32_t value = row->count; is_of(row, (sifr_precision)p) && value-- > 0;) {
                plan_settings settings = c.settings;
                plan_choose(&c.search, &settings, i, value);
                assert_int_equal(plan_choice_get(row, &settings), value);
                plan_choice_text(row, &settings, text);
                assert_string_equal(text, row->values[value]);
            }
        }
        search_case_end(&c);
    }
}

/* A row's field lies in the settings and has a size that plan_choice_number reads. */
static void fields_are_read(void **state) {
    (void)state;
    for (size_t i = 0; i < plan_choice_count(); i++) {
        const plan_choice *row = plan_choice_at(i);
        plan_settings settings;
        memset(&settings, 0, sizeof settings);
        assert_true(row->field + row->size <= sizeof settings.step);
        assert_true(row->size == 1 || row->size == 4 || row->size == 8);
        assert_int_equal(plan_choice_number(row, &settings), 0);
        ((char *)&settings.step)[row->field] = 1; /* its lowest byte */
        assert_int_equal(plan_choice_number(row, &settings), 1);
        if (row->count > 0) assert_non_null(row->values);
    }
    assert_null(plan_choice_at(plan_choice_count()));
    assert_string_equal(plan_choice_at(PLAN_CHOICE_STAGE)->key, "zero_optimization.stage");
}

/* Where parameters are whole they are not on disk, and where gradients are, they are not either;
 * transfers overlap where the stage has them. */
static void what_follows(void **state) {
    (void)state;
    search_case c;
    begin(&c, SIFR_BF16);
    for (int32_t stage = 3; stage >= 0; stage--) {
        plan_settings settings = c.settings;
        c.search.overlap_by_stage = stage != 2;
        settings.step.zero.overlap_comm = stage < 3;
        settings.step.offload.param.device = settings.step.offload.gradients = SIFR_TIER_NVME;
        plan_choose(&c.search, &settings, PLAN_CHOICE_STAGE, stage);
        assert_int_equal(settings.step.zero.stage, stage);
        assert_int_equal(settings.step.offload.param.device == SIFR_TIER_NVME, stage == 3);
        assert_int_equal(settings.step.offload.gradients == SIFR_TIER_NVME, stage >= 2);
        assert_int_equal(settings.step.zero.overlap_comm, stage >= 2);
    }
    search_case_end(&c);
}

/* Tiles are whole chunks of the device, and what is said is what is planned. */
static void tiles_of_a_gpu(void **state) {
    (void)state;
    const device_description gpu = {0};
    char text[256];
    search_case c;
    device *dev;
    begin(&c, SIFR_BF16);
    assert_int_equal(device_open_described(SIFR_DEVICE_CUDA, 1, &gpu, &dev, NULL), SIFR_OK);
    for (int d = 0; d < 2; d++) {
        plan_settings settings = c.settings;
        if (d) c.search.dev = dev;
        for (size_t i = 0; i < plan_choice_count(); i++)
            if (strcmp(plan_choice_at(i)->key, "sifr.tile_tokens") == 0)
                plan_choose(&c.search, &settings, i, 1);
        assert_int_equal(settings.step.tile_tokens, d ? 8192 : 4096);
        plan_describe_change(&c.search, &c.settings, &settings, text, sizeof text);
        assert_string_equal(text, d ? "sifr.tile_tokens 8192" : "sifr.tile_tokens 4096");
    }
    device_close(dev);
    search_case_end(&c);
}

/* A difference is said in the words of a config; none is said of what makes none. */
static void differences(void **state) {
    (void)state;
    char text[256];
    search_case c;
    begin(&c, SIFR_FP32);
    plan_settings to = c.settings;
    assert_string_equal(plan_describe_change(&c.search, &c.settings, &to, text, sizeof text), "");
    to.step.zero.stage = 1;
    to.step.step_order = SIFR_STEP_UNIT;
    to.step.bf16_optimizer_states = true; /* says nothing of fp32 */
    to.step.micro_batch_size = 6;
    to.step.gradient_accumulation_steps = 8;
    assert_string_equal(plan_describe_change(&c.search, &c.settings, &to, text, sizeof text),
                        "zero_optimization.stage 1, sifr.step_order unit, "
                        "train_micro_batch_size_per_gpu 6 with gradient_accumulation_steps 8");
    c.search.any_order = true;
    plan_describe_change(&c.search, &c.settings, &to, text, sizeof text);
    assert_null(strstr(text, "step_order"));
    plan_describe_change(&c.search, &c.settings, &to, text, 12); /* cut where there is no room */
    assert_string_equal(text, "zero_optimi");
    search_case_end(&c);
}

/* What was planned without its time is no answer to who asks for that. */
static void memos(void **state) {
    (void)state;
    plan_memo *memo;
    plan_outcome kept, found;
    memset(&kept, 0, sizeof kept);
    assert_int_equal(plan_memo_create(&memo, NULL), SIFR_OK);
    for (int n = 0; n < 100; n++) {
        kept.settings.step.seq_length = n;
        kept.total_bytes = 1000 + n;
        plan_memo_keep(memo, &kept, n % 2);
    }
    for (int n = 0; n < 102; n++) {
        kept.settings.step.seq_length = n;
        assert_int_equal(plan_memo_find(memo, &kept.settings, true, &found), n % 2 && n < 100);
        assert_int_equal(plan_memo_find(memo, &kept.settings, false, &found), n < 100);
        assert_int_equal(found.total_bytes, 1000 + (n < 100 ? n : 99));
        assert_false(plan_memo_find(NULL, &kept.settings, false, &found));
    }
    plan_memo_keep(NULL, &kept, true);
    plan_memo_free(memo);
    plan_memo_free(NULL);
}

/* Micro batches of pairs of answers have whole pairs. */
static void pairs_stay_together(void **state) {
    (void)state;
    search_case c;
    fit_sizes sizes;
    plan_trial trials[PLAN_NEIGHBOURS];
    search_case_begin(&c, 2);
    c.model->objective.row = &model_objective_pairs;
    c.settings.step.micro_batch_size = 6;
    c.settings.step.gradient_accumulation_steps = 1;
    size_t count = plan_neighbours(&c.search, &c.settings, trials), sized = 0;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(trials[i].settings.step.micro_batch_size % 2, 0);
        sized += trials[i].settings.step.micro_batch_size == 2;
    }
    assert_int_equal(sized, 1); /* not 3 */
    assert_int_equal(fit_find_sizes(&c.search, 12, &sizes, NULL), SIFR_OK);
    static const int64_t even[] = {2, 4, 6, 12};
    assert_int_equal(sizes.count, 4);
    assert_memory_equal(sizes.size, even, sizeof even);
    free(sizes.size);
    c.model->objective.row = NULL;
    assert_int_equal(fit_find_sizes(&c.search, 12, &sizes, NULL), SIFR_OK);
    assert_int_equal(sizes.count, 6);
    free(sizes.size);
    search_case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chosen_is_found),    cmocka_unit_test(fields_are_read),
        cmocka_unit_test(what_follows),       cmocka_unit_test(tiles_of_a_gpu),
        cmocka_unit_test(differences),        cmocka_unit_test(memos),
        cmocka_unit_test(pairs_stay_together)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What fits: the largest is the largest (the next one does not fit), the best is the best of all,
 * and the smallest change is the smallest, held against trying everything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "support/search_case.h"

static int64_t bytes_with(search_case *c, plan_setter *set, int64_t value) {
    plan_settings settings = c->settings;
    set(&settings, value);
    return search_case_try(c, &settings).total_bytes;
}

static int64_t largest(search_case *c, plan_setter *set, int64_t last) {
    int64_t out;
    sifr_error error;
    c->search.tried = 0;
    if (plan_largest(&c->search, &c->settings, set, 1, 1, last, &out, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    return out;
}

/* Recompute "auto" leaves a part of the room that others share, in a plan as in a run. */
static void auto_leaves_some(void **state) {
    plan_search search = {.room_bytes = 1600, .spare_bytes = plan_spare(1600)};
    plan_settings s = {.step.recompute = SIFR_RECOMPUTE_AUTO};
    (void)state;
    plan_limit(&search, &s);
    assert_int_equal(s.room_bytes, 1500);
    s.step.activation_memory = 1;
    plan_limit(&search, &s);
    assert_int_equal(s.room_bytes, 0);
    assert_int_equal(plan_spare(INT64_MAX), 0);
}

/* Where a disk is the limit, the line of memory leads nowhere: the search still ends soon, also
 * from a value above that does not fit. */
static void a_disk_is_the_limit(void **state) {
    enum { MOST = 2 * 31 + 8 };
    (void)state;
    search_case c;
    sifr_error error;
    search_case_begin(&c, 1);
    device_only_plan(c.dev);
    c.settings.step.offload.activations = SIFR_TIER_NVME;
    c.settings.step.gradient_accumulation_steps = 2;
    c.search.disk_bytes = 64 << 20;
    int64_t most = largest(&c, plan_set_sequences, INT32_MAX / 32), again;
    assert_true(c.search.tried <= MOST);
    plan_set_sequences(&c.settings, most);
    assert_true(search_case_try(&c, &c.settings).fits);
    plan_set_sequences(&c.settings, most + 1);
    assert_false(search_case_try(&c, &c.settings).fits);
    c.search.tried = 0;
    assert_int_equal(plan_largest(&c.search, &c.settings, plan_set_sequences, 100 * most, 1,
                                  INT32_MAX / 32, &again, &error),
                     SIFR_OK);
    assert_int_equal(again, most);
    assert_true(c.search.tried <= MOST);
    search_case_end(&c);
}

/* Learned positions end long before the memory does, and long before the last value. */
static void a_limit_that_is_not_memory(void **state) {
    (void)state;
    search_case c;
    sifr_error error;
    sifr_model *gpt2;
    model_config config = model_case_llama();
    strcpy(config.model_type, "gpt2");
    config.num_key_value_heads = config.num_attention_heads;
    config.activation = MODEL_GELU_TANH;
    search_case_begin(&c, 1);
    assert_int_equal(model_from_config(&config, &gpt2, &error), SIFR_OK);
    c.search.model = gpt2;
    for (int64_t last = 20; last < INT32_MAX / 12; last *= 3) {
        assert_int_equal(largest(&c, plan_set_length, last), 16);
        if (c.search.tried > 40) fail_msg("%d plans for one answer", c.search.tried);
    }
    sifr_model_free(gpt2);
    search_case_end(&c);
}

static void the_next_one_does_not_fit(void **state) {
    static const struct {
        plan_setter *set;
        int64_t value;
    } wanted[] = {{plan_set_sequences, 1},  {plan_set_sequences, 2},  {plan_set_sequences, 7},
                  {plan_set_sequences, 40}, {plan_set_sequences, 93}, {plan_set_length, 1},
                  {plan_set_length, 63},    {plan_set_length, 500},   {plan_set_length, 2049}};
    search_case c;
    (void)state;
    search_case_begin(&c, 4);
    for (int recompute = 0; recompute < 2; recompute++) {
        c.settings.step.recompute = recompute;
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
            plan_setter *set = wanted[i].set;
            int64_t value = wanted[i].value, needed = bytes_with(&c, set, value);
            /* as much room as it needs, and a byte less */
            for (int64_t less = 0; less < 2; less++) {
                c.search.room_bytes = needed - less;
                int64_t found = largest(&c, set, 1 << 20);
                if (c.search.tried > 16) fail_msg("%d plans for one answer", c.search.tried);
                if (found > 0) assert_true(bytes_with(&c, set, found) <= c.search.room_bytes);
                assert_true(bytes_with(&c, set, found + 1) > c.search.room_bytes);
                if (less == 0) assert_true(found >= value);
                if (less == 1) assert_true(found < value);
            }
        }
    }
    search_case_end(&c);
}

/* Learned positions end somewhere, whatever room there is. */
static void what_cannot_be_planned_does_not_fit(void **state) {
    search_case c;
    model_config config = model_case_llama();
    sifr_error error;
    (void)state;
    search_case_begin(&c, 1);
    sifr_model_free(c.model);
    snprintf(config.model_type, sizeof config.model_type, "gpt2");
    config.activation = MODEL_GELU_TANH;
    config.max_position_embeddings = 77;
    assert_int_equal(model_from_config(&config, &c.model, &error), SIFR_OK);
    c.search.model = c.model;
    assert_int_equal(largest(&c, plan_set_length, 1 << 20), 77);
    assert_int_equal(largest(&c, plan_set_length, 50), 50);
    c.search.room_bytes = 1;
    assert_int_equal(largest(&c, plan_set_length, 1 << 20), 0);
    search_case_end(&c);
}

/* All settings of the searched rows with each micro batch of the same global batch. */
static size_t all_settings(const search_case *c, plan_settings *out, size_t capacity) {
    int64_t share =
        c->settings.step.micro_batch_size * c->settings.step.gradient_accumulation_steps;
    size_t count = 0;
    for (int32_t i = 0; i < 4 * 2 * 2 * 2; i++) {
        for (int64_t size = 1; size <= share; size++) {
            if (share % size) continue;
            plan_settings s = c->settings;
            s.step.zero.stage = i % 4;
            s.step.recompute = i / 4 % 2;
            s.step.step_order = i / 8 % 2 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
            s.step.zero.overlap_comm = i / 16;
            s.step.micro_batch_size = size;
            s.step.gradient_accumulation_steps = (int32_t)(share / size);
            assert_true(count < capacity);
            out[count++] = s;
        }
    }
    return count;
}

enum { MOST = 256 };

static int32_t stage_and_more(const plan_settings *a, const plan_settings *b) {
    return (a->step.zero.stage != b->step.zero.stage) + (a->step.recompute != b->step.recompute) +
           (a->step.step_order != b->step.step_order) +
           (a->step.micro_batch_size != b->step.micro_batch_size);
}

static void the_best_of_all(void **state) {
    static plan_settings all[MOST];
    static plan_outcome outcomes[MOST];
    search_case c;
    sifr_error error;
    (void)state;
    search_case_begin(&c, 4);
    /* The head takes one sequence of these for many rows, so its scratch says what several take. */
    c.settings.step.seq_length = 160;
    c.settings.step.zero.overlap_comm = false;
    size_t count = all_settings(&c, all, MOST);
    int64_t least = INT64_MAX, most = 0, lists = 0;
    for (size_t i = 0; i < count; i++) {
        outcomes[i] = search_case_try(&c, &all[i]);
        if (outcomes[i].total_bytes < least) least = outcomes[i].total_bytes;
        if (outcomes[i].total_bytes > most) most = outcomes[i].total_bytes;
    }
    lists = c.search.lowered;
    /* with hardly any room the same one is named, without most of the lists */
    plan_outcome nearest;
    c.search.room_bytes = 1;
    c.search.lowered = 0;
    assert_int_equal(plan_fit(&c.search, &c.settings, &nearest, &error), SIFR_OK);
    assert_int_equal(nearest.total_bytes, least);
    if (c.search.lowered > lists / 3)
        fail_msg("%lld of %lld micro batches", (long long)c.search.lowered, (long long)lists);
    int changed[6] = {0}, stages[4] = {0};
    for (int step = 0; step <= 16; step++) {
        plan_outcome best, change;
        double quickest = 1e9;
        int fewest = 9;
        c.search.room_bytes = least - 1 + step * ((most - least) / 16 + 1);
        for (size_t i = 0; i < count; i++) {
            if (outcomes[i].total_bytes > c.search.room_bytes) continue;
            if (outcomes[i].predicted.step_seconds < quickest)
                quickest = outcomes[i].predicted.step_seconds;
            int changes = stage_and_more(&all[i], &c.settings);
            bool by_stage = all[i].step.zero.overlap_comm == (all[i].step.zero.stage == 3);
            if (by_stage && changes < fewest) fewest = changes;
        }
        assert_int_equal(plan_fit(&c.search, &c.settings, &best, &error), SIFR_OK);
        assert_int_equal(plan_smallest_change(&c.search, &c.settings, &change, &error), SIFR_OK);
        if (step == 0) { /* a byte less than the least: none fits, and that one is named */
            assert_false(best.fits || change.fits);
            assert_int_equal(best.total_bytes, least);
            assert_true(change.total_bytes >= least);
            continue;
        }
        assert_true(best.fits);
        assert_true(best.total_bytes <= c.search.room_bytes);
        assert_int_equal(best.settings.step.micro_batch_size *
                             best.settings.step.gradient_accumulation_steps,
                         12);
        if (best.predicted.step_seconds > 1.01 * quickest)
            fail_msg("room %lld: %g s is not the quickest, %g s", (long long)c.search.room_bytes,
                     best.predicted.step_seconds, quickest);
        assert_true(change.fits);
        assert_true(change.total_bytes <= c.search.room_bytes);
        assert_int_equal(stage_and_more(&change.settings, &c.settings), fewest);
        changed[fewest]++;
        stages[best.settings.step.zero.stage]++;
    }
    /* the cases were cases: with nothing to change, one and several changes; several stages */
    assert_true(changed[0] > 0);
    assert_true(changed[1] > 0);
    assert_true(changed[2] + changed[3] > 0);
    assert_true((stages[0] > 0) + (stages[1] > 0) + (stages[2] > 0) + (stages[3] > 0) > 1);
    search_case_end(&c);
}

static void neighbours_differ_in_one(void **state) {
    search_case c;
    plan_trial next[PLAN_NEIGHBOURS] = {0};
    sifr_error error;
    char text[256];
    (void)state;
    search_case_begin(&c, 4);
    c.settings.step.micro_batch_size = 6;
    c.settings.step.gradient_accumulation_steps = 2;
    size_t count = plan_neighbours(&c.search, &c.settings, next);
    assert_int_equal(plan_try_all(&c.search, next, count, &error), SIFR_OK);
    /* stages, recompute, two orders, disk, 16-bit moments, masters and sums, micro batches */
    assert_int_equal(count, 3 + 1 + 2 + 1 + 3 + 2);
    for (size_t i = 0; i < count; i++) {
        const plan_settings *s = &next[i].outcome.settings;
        int others = (s->step.gradient_order != c.settings.step.gradient_order) +
                     (s->step.offload.optimizer.device == SIFR_TIER_NVME) +
                     (s->step.grad_accum_dtype == SIFR_BF16) + s->step.bf16_optimizer_states;
        assert_int_equal(stage_and_more(s, &c.settings) + others, 1);
        assert_true((next[i].outcome.nvme_bytes > 0) ==
                    (s->step.offload.optimizer.device == SIFR_TIER_NVME));
        plan_describe_change(&c.search, &c.settings, s, text, sizeof text);
        assert_true(text[0]);
        assert_true(!strstr(text, ", "));
    }
    plan_settings other = c.settings;
    plan_choose(&c.search, &other, PLAN_CHOICE_STAGE, 3);
    assert_true(other.step.zero.overlap_comm);
    other.step.micro_batch_size = 3;
    other.step.gradient_accumulation_steps = 4;
    plan_describe_change(&c.search, &c.settings, &other, text, sizeof text);
    assert_string_equal(text, "zero_optimization.stage 3, train_micro_batch_size_per_gpu 3 with "
                              "gradient_accumulation_steps 4");
    search_case_end(&c);
}

/* Where all that backward reads does not fit and units' inputs alone do, what lies between is shown
 * and chosen: quicker than all computed again, and within the room to the byte that is said. */
static void keeping_lies_between(void **state) {
    search_case c;
    plan_outcome next, best;
    bool is_between;
    sifr_error error;
    (void)state;
    search_case_begin(&c, 1);
    c.settings.step.micro_batch_size = 1; /* no smaller micro batch does it for nothing */
    c.settings.step.seq_length = 500;
    plan_outcome none = search_case_try(&c, &c.settings);
    c.settings.step.recompute = SIFR_RECOMPUTE_UNIT;
    plan_outcome unit = search_case_try(&c, &c.settings);
    c.search.room_bytes = (none.total_bytes + unit.total_bytes) / 2;
    for (int recompute = 0; recompute < 2; recompute++) {
        char text[256];
        c.settings.step.recompute = recompute;
        assert_int_equal(plan_between(&c.search, &c.settings, &next, &is_between, &error), SIFR_OK);
        assert_true(is_between);
        plan_describe_change(&c.search, &c.settings, &next.settings, text, sizeof text);
        assert_string_equal(text, "sifr.recompute auto");
        assert_true(next.fits);
        assert_true(next.total_bytes > unit.total_bytes);
        assert_true(next.predicted.step_seconds < unit.predicted.step_seconds);
    }
    c.search.room_bytes = none.total_bytes;
    assert_int_equal(plan_between(&c.search, &c.settings, &next, &is_between, &error), SIFR_OK);
    assert_false(is_between);
    c.search.room_bytes = (none.total_bytes + unit.total_bytes) / 2;
    assert_int_equal(plan_fit(&c.search, &c.settings, &best, &error), SIFR_OK);
    assert_int_equal(best.settings.step.recompute, SIFR_RECOMPUTE_AUTO);
    assert_true(best.total_bytes <= c.search.room_bytes);
    assert_int_equal(best.settings.step.activation_memory, best.largest_bytes[PLAN_ACTIVATIONS]);
    c.settings.step.recompute = SIFR_RECOMPUTE_NONE;
    assert_int_equal(plan_smallest_change(&c.search, &c.settings, &best, &error), SIFR_OK);
    assert_true(best.fits);
    assert_true(best.settings.step.recompute == SIFR_RECOMPUTE_AUTO);
    assert_true(best.predicted.step_seconds < unit.predicted.step_seconds);
    c.settings.step.micro_batch_size = 12;
    c.settings.step.recompute = SIFR_RECOMPUTE_UNIT;
    unit = search_case_try(&c, &c.settings);
    c.settings.step.recompute = SIFR_RECOMPUTE_AUTO; /* what fits with nothing kept fits */
    c.search.room_bytes = unit.total_bytes;
    assert_int_equal(largest(&c, plan_set_sequences, 1 << 20), 12);
    c.search.room_bytes = INT64_MAX;
    c.settings.step.activation_memory = unit.largest_bytes[PLAN_ACTIVATIONS];
    assert_int_equal(largest(&c, plan_set_sequences, 1 << 20), 12);
    search_case_end(&c);
}

/* What of a step may be on disk, in the bits of `disk`; false: not so. */
static bool put_on_disk(plan_settings *s, int disk) {
    sifr_tier tier[4];
    for (int i = 0; i < 4; i++) tier[i] = disk >> i & 1 ? SIFR_TIER_NVME : SIFR_TIER_NONE;
    s->step.offload.optimizer.device = tier[0];
    s->step.offload.param.device = tier[1];
    s->step.offload.gradients = tier[2];
    s->step.offload.activations = tier[3];
    bool gradients = tier[0] == SIFR_TIER_NVME &&
                     (plan_mesh_ranks(&s->mesh, PLAN_STATE) == 1 || s->step.zero.stage >= 2);
    return (tier[1] == SIFR_TIER_NONE || s->step.zero.stage == 3) &&
           (tier[2] == SIFR_TIER_NONE || gradients);
}

/* From settings with nothing on disk all that may be there is found, whatever else that asks. */
static void least_with_a_disk(void **state) {
    (void)state;
    for (int32_t ranks = 1; ranks <= 2; ranks++) {
        search_case c;
        plan_outcome best;
        sifr_error error;
        char text[256];
        int64_t least = INT64_MAX;
        search_case_begin(&c, ranks);
        c.settings.step.micro_batch_size = 4;
        for (int i = 0; i < 4 * 2 * 2 * 2 * 16 * 3; i++) {
            plan_settings s = c.settings;
            s.step.zero.stage = i % 4;
            s.step.recompute = i / 4 % 2;
            s.step.step_order = i / 8 % 2 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
            s.step.zero.overlap_comm = i / 16 % 2;
            s.step.micro_batch_size = 1 << i / 512;
            s.step.gradient_accumulation_steps = (int32_t)(4 / s.step.micro_batch_size);
            if (!put_on_disk(&s, i / 32 % 16) || (ranks == 1 && s.step.zero.overlap_comm)) continue;
            int64_t bytes = search_case_try(&c, &s).total_bytes;
            if (bytes < least) least = bytes;
        }
        c.search.disk_bytes = INT64_MAX;
        for (int64_t less = 0; less < 2; less++) {
            c.search.room_bytes = least - less;
            assert_int_equal(plan_fit(&c.search, &c.settings, &best, &error), SIFR_OK);
            assert_true(best.fits == (less == 0));
            assert_int_equal(best.total_bytes, least);
            assert_int_equal(best.settings.step.zero.stage, 3);
            assert_int_equal(best.settings.step.offload.param.device, SIFR_TIER_NVME);
            plan_describe_change(&c.search, &c.settings, &best.settings, text, sizeof text);
            assert_non_null(strstr(text, "zero_optimization.stage 3"));
            assert_non_null(strstr(text, "zero_optimization.offload_param.device nvme"));
        }
        search_case_end(&c);
    }
}

/* State on disk makes room, and is chosen only where there is a disk with room. */
static void disks_have_ends(void **state) {
    search_case c;
    sifr_error error;
    plan_outcome memory, disk, best;
    (void)state;
    search_case_begin(&c, 1);
    c.settings.step.offload.sub_group_size = 1 << 14;
    c.settings.step.recompute = true;
    c.settings.step.micro_batch_size = 1;
    memory = search_case_try(&c, &c.settings);
    plan_settings on_disk = c.settings;
    on_disk.step.offload.optimizer.device = SIFR_TIER_NVME;
    disk = search_case_try(&c, &on_disk);
    assert_true(disk.total_bytes < memory.total_bytes);
    assert_true(disk.nvme_bytes > 0);
    c.search.room_bytes = disk.total_bytes; /* which parameters on disk alone would not do */
    for (int64_t missing = -1; missing < 2; missing++) {
        c.search.disk_bytes = missing < 0 ? 0 : disk.nvme_bytes - missing;
        assert_int_equal(plan_fit(&c.search, &c.settings, &best, &error), SIFR_OK);
        assert_int_equal(best.fits, missing == 0);
        if (best.fits)
            assert_int_equal(best.settings.step.offload.optimizer.device, SIFR_TIER_NVME);
    }
    search_case_end(&c);
}

/* Activations go to a disk where the batch does not fit without that, and nowhere else; the choice
 * is shown where there is a disk. */
static void activations_where_needed(void **state) {
    search_case c;
    sifr_error error;
    plan_outcome best;
    plan_trial next[PLAN_NEIGHBOURS];
    plan_machine fast = search_case_machine;
    size_t count[2], shown[2] = {0};
    char text[256];
    (void)state;
    search_case_begin(&c, 1);
    fast.disk_bytes = 1e12;
    c.search.machine = &fast;
    c.settings.step.seq_length = 512;
    plan_settings on_disk = c.settings;
    on_disk.step.offload.activations = SIFR_TIER_NVME;
    plan_outcome memory = search_case_try(&c, &c.settings), disk = search_case_try(&c, &on_disk);
    assert_true(disk.total_bytes < memory.total_bytes);
    assert_true(disk.nvme_bytes > 0);
    for (int n = 0; n < 2; n++) {
        c.search.disk_bytes = n ? INT64_MAX : 0;
        memset(next, 0, sizeof next);
        count[n] = plan_neighbours(&c.search, &c.settings, next);
        assert_int_equal(plan_try_all(&c.search, next, count[n], &error), SIFR_OK);
        for (size_t i = 0; i < count[n]; i++) {
            plan_describe_change(&c.search, &c.settings, &next[i].outcome.settings, text,
                                 sizeof text);
            shown[n] += strcmp(text, "sifr.offload_activations nvme") == 0;
        }
        assert_int_equal(shown[n], n);
    }
    assert_int_equal(count[1], count[0] + 1);
    for (int less = 0; less < 2; less++) {
        c.search.room_bytes = memory.total_bytes - less;
        c.search.tried = 0;
        assert_int_equal(plan_fit(&c.search, &c.settings, &best, &error), SIFR_OK);
        assert_true(best.fits);
        assert_true(best.settings.step.micro_batch_size == c.settings.step.micro_batch_size);
        assert_int_equal(best.settings.step.offload.activations,
                         less ? SIFR_TIER_NVME : SIFR_TIER_NONE);
    }
    search_case_end(&c);
}

/* A step_order of "auto": the better of both, as the run takes it. */
static void either_order(void **state) {
    search_case c;
    (void)state;
    search_case_begin(&c, 4);
    c.settings.step.micro_batch_size = 3;
    c.settings.step.gradient_accumulation_steps = 4;
    c.settings.step.zero.stage = 3;
    plan_outcome of[2], either;
    for (int o = 0; o < 2; o++) {
        c.settings.step.step_order = (sifr_step_order)o;
        of[o] = search_case_try(&c, &c.settings);
    }
    assert_true(of[0].total_bytes < of[1].total_bytes);
    c.search.any_order = true;
    either = search_case_try(&c, &c.settings);
    bool fits[2] = {true, true};
    double seconds[2] = {of[0].predicted.step_seconds, of[1].predicted.step_seconds};
    assert_int_equal(either.settings.step.step_order, plan_better_order(fits, seconds));
    assert_int_equal(either.total_bytes, of[either.settings.step.step_order].total_bytes);
    c.search.room_bytes = of[0].total_bytes; /* only that one fits */
    either = search_case_try(&c, &c.settings);
    assert_int_equal(either.settings.step.step_order, SIFR_STEP_BATCH);
    assert_true(either.fits);
    search_case_end(&c);
}

static sifr_step_order order_of(const search_case *c, const plan_machine *prices,
                                const plan_machine *of_order) {
    plan_trial trials[1] = {{.question = PLAN_ASK_STEP, .settings = c->settings}};
    plan_search search = c->search;
    plan_outcome own;
    sifr_error error;
    search.machine = prices;
    search.order_machine = of_order;
    assert_int_equal(plan_try(&search, &c->settings, &own, &error), SIFR_OK);
    assert_int_equal(plan_try_all(&search, trials, 1, &error), SIFR_OK);
    assert_int_equal(trials[0].outcome.settings.step.step_order, own.settings.step.step_order);
    return trials[0].outcome.settings.step.step_order;
}

/* The order may decide bits, so machines with other prices choose the same one. */
static void order_is_not_measured(void **state) {
    search_case c;
    plan_machine slow = search_case_machine, fast = search_case_machine;
    (void)state;
    search_case_begin(&c, 4);
    slow.host = (plan_link){1e-4, 1e7};
    fast.host = (plan_link){1e-9, 1e14};
    c.settings.step.micro_batch_size = 1;
    c.settings.step.gradient_accumulation_steps = 5;
    c.settings.step.zero.stage = 3;
    int64_t capacity = search_case_try(&c, &c.settings).total_bytes;
    c.search.any_order = true;
    assert_int_equal(order_of(&c, &slow, NULL), SIFR_STEP_UNIT);
    assert_int_equal(order_of(&c, &fast, NULL), SIFR_STEP_BATCH);
    for (int o = 0; o < 2; o++) {
        const plan_machine *by = o ? &slow : &fast;
        sifr_step_order order = order_of(&c, &slow, by);
        assert_int_equal(order_of(&c, &fast, by), order);
        assert_int_equal(order_of(&c, &search_case_machine, by), order);
    }
    c.search.room_bytes = capacity; /* for no larger micro batch */
    for (int m = 0; m < 2; m++) {
        plan_outcome best, own;
        sifr_error error;
        c.search.machine = m ? &slow : &fast;
        c.search.order_machine = m ? &fast : &slow;
        assert_int_equal(plan_fit(&c.search, &c.settings, &best, &error), SIFR_OK);
        assert_int_equal(best.settings.step.gradient_accumulation_steps, 5);
        own = search_case_try(&c, &best.settings);
        assert_int_equal(own.settings.step.step_order, best.settings.step.step_order);
    }
    search_case_end(&c);
}

/* What a key's row says may be chosen is a row of the search, and named once. */
static void keys_that_fit_chooses(void **state) {
    (void)state;
    int searched = 0;
    for (size_t i = 0; config_fit_at(i); i++) {
        int rows = 0;
        config_fit fit;
        assert_true(config_fit_of(config_fit_at(i), &fit));
        for (size_t r = 0; r < plan_choice_count(); r++) {
            const plan_choice *row = plan_choice_at(r);
            if (strcmp(row->key, config_fit_at(i)) != 0) continue;
            rows++;
            searched += plan_is_searched(row);
            assert_true(row->number || row->values);
            assert_true(row->size > 0);
            assert_int_equal(fit.kind == CONFIG_FIT_TIER, (row->traits & PLAN_ON_DISK) != 0);
        }
        if (rows != 1) fail_msg("%s: %d rows", config_fit_at(i), rows);
    }
    assert_int_equal(searched, 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_next_one_does_not_fit),
                                       cmocka_unit_test(auto_leaves_some),
                                       cmocka_unit_test(a_disk_is_the_limit),
                                       cmocka_unit_test(a_limit_that_is_not_memory),
                                       cmocka_unit_test(keys_that_fit_chooses),
                                       cmocka_unit_test(what_cannot_be_planned_does_not_fit),
                                       cmocka_unit_test(the_best_of_all),
                                       cmocka_unit_test(neighbours_differ_in_one),
                                       cmocka_unit_test(keeping_lies_between),
                                       cmocka_unit_test(least_with_a_disk),
                                       cmocka_unit_test(disks_have_ends),
                                       cmocka_unit_test(activations_where_needed),
                                       cmocka_unit_test(either_order),
                                       cmocka_unit_test(order_is_not_measured)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Which state is on which tier, unit by unit. */
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "support/disk_plan.h"

static plan_settings moved(sifr_tier tier, sifr_offload_state part, double ratio) {
    plan_settings settings = disk_plan_settings(1, 0, SIFR_BF16, (sifr_offload){0});
    settings.step.offload.optimizer.device = tier;
    settings.step.offload.optimizer.state = part;
    settings.step.offload.optimizer.ratio = ratio;
    settings.step.offload.sub_group_size = 2048;
    return settings;
}

static plan_settings parameters_on(sifr_tier tier, int32_t ranks) {
    return disk_plan_settings(ranks, 3, SIFR_FP32, (sifr_offload){.param.device = tier});
}

static void states_have_tiers(void **state) {
    (void)state;
    static const plan_tier tiers[] = {PLAN_DEVICE, PLAN_HOST, PLAN_NVME};
    for (int t = 0; t < PLAN_TIERS; t++) {
        plan_settings all = moved((sifr_tier)t, SIFR_STATE_ALL, 1),
                      masters = moved((sifr_tier)t, SIFR_STATE_MASTER_WEIGHTS, 1),
                      moments = moved((sifr_tier)t, SIFR_STATE_MOMENTS, 1);
        assert_int_equal(plan_tier_of((sifr_tier)t), tiers[t]);
        assert_int_equal(plan_master_tier(&all), tiers[t]);
        assert_int_equal(plan_moment_tier(&all), tiers[t]);
        assert_int_equal(plan_master_tier(&masters), tiers[t]);
        assert_int_equal(plan_moment_tier(&masters), PLAN_DEVICE);
        assert_int_equal(plan_master_tier(&moments), PLAN_DEVICE);
        assert_int_equal(plan_moment_tier(&moments), tiers[t]);
    }
}

/* Units whose state is on `tier`; both moments are in one place. */
static int64_t units_on(const plan_schedule *s, plan_tier tier) {
    int64_t units = 0;
    for (size_t u = 0; u < s->model->unit_count; u++) {
        plan_tier here = s->buffers[s->states[0][u]].tier;
        assert_int_equal(s->buffers[s->states[1][u]].tier, here);
        assert_int_equal(s->buffers[s->masters[u]].tier, here);
        units += here == tier;
    }
    return units;
}

static int64_t state_elements(const plan_schedule *s, plan_tier tier) {
    int64_t elements = 0;
    for (size_t u = 0; u < s->model->unit_count; u++)
        elements += s->buffers[s->states[0][u]].tier == tier ? s->segment_elements[u] : 0;
    return elements;
}

static void ratios(void **state) {
    (void)state;
    static const double parts[] = {0, 0.25, 0.5, 0.75, 1};
    int64_t before = -1;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        plan_settings settings = moved(SIFR_TIER_NVME, SIFR_STATE_ALL, parts[i]);
        plan_schedule *s = disk_plan_lower(&settings);
        int64_t offloaded = state_elements(s, PLAN_NVME), here = state_elements(s, PLAN_DEVICE);
        assert_true((double)here <= (1 - parts[i]) * (double)(here + offloaded));
        assert_true(offloaded > before);
        /* Whole units: not one more of those that went would have stayed. */
        int64_t left = (int64_t)((1 - parts[i]) * (double)(here + offloaded)) - here;
        for (size_t u = 0; u < model->unit_count; u++)
            if (s->buffers[s->masters[u]].tier == PLAN_NVME)
                assert_true(s->segment_elements[u] > left);
        if (parts[i] == 0) assert_int_equal(units_on(s, PLAN_DEVICE), model->unit_count);
        if (parts[i] == 1) assert_int_equal(units_on(s, PLAN_NVME), model->unit_count);
        before = offloaded;
        plan_free(s);
    }
}

/* Of parameters at ZeRO 3: the tier of each unit's slice, by the first letter of its name. */
static void assert_parameters(const plan_settings *settings, const char *tiers) {
    char found[64] = "";
    plan_schedule *s = disk_plan_lower(settings);
    for (size_t u = 0; u < model->unit_count; u++)
        found[u] = "dhn"[s->buffers[s->parameters[u]].tier];
    plan_free(s);
    assert_string_equal(found, tiers);
}

/* 12 equal blocks between an embedding and a head, which is the norm: the embedding's weight is
 * tied to it. */
static void parameters(void **state) {
    (void)state;
    int64_t first = model->units[0].elements, block = model->units[1].elements,
            head = model->units[13].elements;
    assert_true(head < first);
    assert_true(first < block);
    plan_settings s = parameters_on(SIFR_TIER_NVME, 1);
    assert_parameters(&s, "nnnnnnnnnnnnnn");
    s.step.offload.param.max_in_cpu = first + 2 * block;
    assert_parameters(&s, "hhhnnnnnnnnnnn");
    s.step.offload.param.max_in_cpu += head; /* the next one is too large, a later one is not */
    assert_parameters(&s, "hhhnnnnnnnnnnh");
    s.step.offload.param.max_in_cpu = block - 1; /* the first one fits, and the last */
    assert_parameters(&s, "hnnnnnnnnnnnnh");
    s.step.offload.param.max_in_cpu = 0;
    s.step.zero.param_persistence_threshold = s.step.zero.model_persistence_threshold = first;
    assert_parameters(&s, "dnnnnnnnnnnnnn"); /* the head finds no room beside it */
    s.step.zero.model_persistence_threshold = first + head;
    assert_parameters(&s, "dnnnnnnnnnnnnd");
    s.step.zero.model_persistence_threshold = INT64_MAX;
    s.step.zero.param_persistence_threshold = block;
    assert_parameters(&s, "dddddddddddddd");
    s = parameters_on(SIFR_TIER_NONE, 1);
    s.step.offload.param.max_in_cpu = INT64_MAX; /* of what would be on disk */
    assert_parameters(&s, "dddddddddddddd");
    s = parameters_on(SIFR_TIER_CPU, 1);
    assert_parameters(&s, "hhhhhhhhhhhhhh");
}

/* A rank has its slices only: of four ranks the same limit holds four times the units. */
static void slices_in_host_memory(void **state) {
    (void)state;
    plan_settings s = parameters_on(SIFR_TIER_NVME, 4);
    plan_schedule *plan = disk_plan_lower(&s);
    s.step.offload.param.max_in_cpu =
        (plan->segment_elements[0] + 2 * plan->segment_elements[1]) / 4;
    plan_free(plan);
    assert_parameters(&s, "hhhnnnnnnnnnnn");
}

static void persistence_is_of_stage_3(void **state) {
    (void)state;
    plan_schedule s = {.model = model};
    int64_t elements = model->units[1].elements;
    for (int stage = 0; stage < 4; stage++) {
        int64_t capacity = 2 * elements + 1;
        s.settings.step.zero.stage = stage;
        s.settings.step.zero.param_persistence_threshold = elements;
        assert_int_equal(plan_persists(&s, 1, &capacity), stage == 3);
        assert_int_equal(plan_persists(&s, 2, &capacity), stage == 3);
        assert_int_equal(capacity, stage == 3 ? 1 : 2 * elements + 1);
        assert_false(plan_persists(&s, 3, &capacity));
        capacity = INT64_MAX;
        s.settings.step.zero.param_persistence_threshold = elements - 1;
        assert_false(plan_persists(&s, 1, &capacity));
        assert_true(capacity == INT64_MAX);
    }
}

/* Host memory is offloaded only from a device that has its own; each tier has its queue. */
static void offloaded(void **state) {
    (void)state;
    device *separate;
    assert_int_equal(device_open_separate(1, NULL, &separate, NULL), SIFR_OK);
    plan_buffer buffers[] = {{.tier = PLAN_DEVICE}, {.tier = PLAN_HOST}, {.tier = PLAN_NVME}};
    for (int own = 0; own < 2; own++) {
        plan_schedule s = {.dev = own ? separate : dev, .buffers = buffers};
        assert_false(plan_is_offloaded(&s, 0));
        assert_int_equal(plan_is_offloaded(&s, 1), own);
        assert_true(plan_is_offloaded(&s, 2));
        assert_int_equal(plan_is_offloaded_tier(&s, PLAN_HOST), own);
        if (own) assert_int_equal(plan_queue_of(&s, 1), PLAN_COPY);
        assert_int_equal(plan_queue_of(&s, 2), PLAN_DISK);
    }
    device_close(separate);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(states_have_tiers),
                                       cmocka_unit_test(ratios),
                                       cmocka_unit_test(parameters),
                                       cmocka_unit_test(slices_in_host_memory),
                                       cmocka_unit_test(persistence_is_of_stage_3),
                                       cmocka_unit_test(offloaded)};
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}

/* Second copies of the parameters among neighbours (hpZ): what each group of the mesh moves and
 * what a rank holds, by the formula; lists that are clean on every rank and in one order on all, on
 * tiers too; faults that are found; sizes that are refused. */
#include "plan/verify/verify.h"
#include "support/disk_plan.h"

static plan_settings settings_of(int32_t ranks, int32_t near, int32_t rank,
                                 const sifr_offload *offload) {
    plan_settings settings = disk_plan_settings(ranks, 3, SIFR_BF16, *offload);
    settings.mesh = plan_mesh_flat(ranks, rank);
    settings.step.zero.hpz_partition_size = near;
    settings.mesh.near = plan_mesh_near(&settings.step.zero, &settings.mesh);
    settings.verify = ranks <= 8;
    return settings;
}

static const sifr_offload in_memory = {.optimizer.ratio = 1};

static int64_t gathers_of(const plan_schedule *s, int32_t segment) {
    int64_t count = 0;
    for (size_t i = 0; i < s->instruction_count; i++)
        count += s->instructions[i].action == PLAN_GATHER && s->instructions[i].segment == segment;
    return count;
}

/* Once over all ranks, each further time over the neighbours; gradients as without. */
static void check_figures(const plan_schedule *with, const plan_schedule *without) {
    int64_t ranks = plan_mesh_ranks(&with->settings.mesh, PLAN_STATE);
    int64_t near = with->settings.mesh.near, all = 0, host = 0, kept = 0;
    int64_t got[2], sums[2], plain, plain_sums;
    bool at_once = with->settings.step.gradient_accumulation_steps == 1 ||
                   with->settings.step.step_order == SIFR_STEP_UNIT;
    for (int32_t g = 0; g < (int32_t)model->segment_count; g++) {
        int64_t bytes = 2 * with->segment_elements[g], times = gathers_of(without, g);
        assert_int_equal(gathers_of(with, g), times);
        all += bytes / ranks * (ranks - 1);
        host += (times - 1) * (bytes / near * (near - 1));
        if (times > 1) kept += plan_capacity(bytes / near);
    }
    plan_wire_of(with, PLAN_STATE, &got[0], &sums[0]);
    plan_wire_of(with, PLAN_HOSTS, &got[1], &sums[1]);
    plan_wire(without, &plain, &plain_sums);
    assert_int_equal(got[0], all);
    assert_int_equal(got[1], host);
    assert_int_equal(sums[0], plain_sums);
    assert_int_equal(sums[1], 0);
    assert_int_equal(plan_wire_crossing(with, PLAN_HOSTS, (int32_t)near), 0);
    assert_true(plan_wire_crossing(with, PLAN_STATE, (int32_t)near) <
                plan_wire_crossing(without, PLAN_STATE, (int32_t)near));
    /* All of them are there where the forward pass ends, and no step holds more. */
    int64_t held = with->largest_bytes[PLAN_SECONDARY];
    assert_true(held > 0 && held <= kept);
    if (at_once) assert_int_equal(held, kept);
    assert_int_equal(without->largest_bytes[PLAN_SECONDARY], 0);
    assert_true(with->total_bytes - plan_gap_bytes(with) <=
                without->total_bytes - plan_gap_bytes(without) + kept);
}

static void figures(void **state) {
    (void)state;
    static const int32_t meshes[][2] = {{4, 2}, {8, 2}, {8, 4}, {64, 8}, {1024, 8}};
    for (int n = 0; n < 40; n++) {
        int32_t ranks = meshes[n % 5][0], near = meshes[n % 5][1];
        plan_settings settings = settings_of(ranks, near, ranks - 1, &in_memory);
        settings.step.step_order = n / 5 % 2 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
        settings.step.gradient_accumulation_steps = 1 + n / 10 % 2;
        settings.step.recompute = n / 20 ? SIFR_RECOMPUTE_UNIT : SIFR_RECOMPUTE_NONE;
        if (n % 3 == 2) settings.step.zero.prefetch_bucket_size = 50000000; /* all at once */
        settings.step.zero.overlap_comm = n % 7 != 6;
        plan_schedule *with = disk_plan_lower(&settings);
        settings.mesh.near = 0;
        plan_schedule *without = disk_plan_lower(&settings);
        check_figures(with, without);
        plan_free(with);
        plan_free(without);
    }
}

/* What stays gathered needs no copy. */
static void kept_by_reuse(void **state) {
    (void)state;
    plan_settings settings = settings_of(4, 2, 1, &in_memory);
    settings.step.zero.max_reuse_distance = 1000000000;
    plan_schedule *s = disk_plan_lower(&settings);
    assert_int_equal(s->largest_bytes[PLAN_SECONDARY], 0);
    for (size_t i = 0; i < s->instruction_count; i++)
        assert_int_not_equal(s->instructions[i].action, PLAN_KEEP);
    plan_free(s);
}

enum { RANKS = 8 };

static void clean(void **state) {
    (void)state;
    for (int n = 0; n < 12; n++) {
        plan_schedule *plans[RANKS];
        sifr_error error = {0};
        sifr_offload offload = n % 3 == 2 ? disk_plan_all_on(SIFR_TIER_NVME) : in_memory;
        for (int32_t r = 0; r < RANKS; r++) {
            plan_settings settings = settings_of(RANKS, n % 2 ? 4 : 2, r, &offload);
            settings.step.precision = n % 4 == 3 ? SIFR_FP32 : SIFR_BF16;
            settings.step.gradient_accumulation_steps = 1 + n / 2 % 3;
            settings.step.step_order = n / 6 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
            settings.step.recompute = n / 3 % 2 ? SIFR_RECOMPUTE_UNIT : SIFR_RECOMPUTE_NONE;
            plans[r] = disk_plan_lower(&settings);
        }
        if (plan_verify_ranks((const plan_schedule *const *)plans, RANKS, &error) != SIFR_OK)
            fail_msg("%s", error.message);
        for (int32_t r = 0; r < RANKS; r++) plan_free(plans[r]);
    }
}

/* --- faults --- */

static void expect_found(const plan_schedule *s, const char *what, const char *text) {
    sifr_error error = {0};
    sifr_status status = plan_verify(s, &error);
    if (status == SIFR_OK) fail_msg("%s: not found", what);
    if (!strstr(error.message, text))
        fail_msg("%s: \"%s\" has no \"%s\"", what, error.message, text);
}

static size_t find(const plan_schedule *s, plan_action action, plan_span span) {
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (in->action == action && (action != PLAN_GATHER || in->span == span)) return i;
    }
    fail_msg("the plan has no such instruction");
    return 0;
}

static void faults(void **state) {
    (void)state;
    plan_settings settings = settings_of(8, 4, 5, &in_memory);
    plan_schedule *s = disk_plan_lower(&settings);
    plan_instruction *keep = &s->instructions[find(s, PLAN_KEEP, 0)];
    plan_operand *from = &s->operands[keep->first_operand];
    int64_t part = s->buffers[s->operands[keep->first_operand + 1].buffer].bytes;
    assert_int_equal(from->offset, part); /* place 1 of 4 */
    from->offset = 0;
    expect_found(s, "another rank's part", "elements 0 to");
    from->offset = part;
    uint8_t action = keep->action;
    int32_t call = keep->call, operands = keep->operands;
    keep->action = PLAN_COUNT, keep->call = -1, keep->operands = 0;
    expect_found(s, "no copy", "which nothing has written before");
    keep->action = action, keep->call = call, keep->operands = operands;
    plan_instruction *gather = &s->instructions[find(s, PLAN_GATHER, PLAN_HOSTS)];
    gather->span = PLAN_STATE;
    expect_found(s, "more ranks than have it", "(gathered of");
    gather->span = PLAN_HOSTS;
    gather->bytes /= 2;
    expect_found(s, "half of it", "");
    gather->bytes *= 2;
    sifr_error error = {0};
    if (plan_verify(s, &error) != SIFR_OK) fail_msg("%s", error.message);
    plan_free(s);
}

/* --- sizes --- */

static void expect_near(int32_t ranks, int32_t stages, int32_t shards, int stage, int32_t size,
                        int32_t near, const char *refusal) {
    sifr_settings settings = sifr_settings_defaults();
    plan_mesh mesh;
    sifr_error error = {0};
    settings.pipeline.stages = stages;
    settings.mesh.shard_size = shards;
    settings.zero.stage = stage;
    settings.zero.hpz_partition_size = size;
    sifr_status status = plan_mesh_of(&settings, ranks, 0, &mesh, &error);
    if (refusal) {
        assert_int_equal(status, SIFR_USAGE);
        assert_non_null(strstr(error.message, refusal));
        return;
    }
    assert_int_equal(status, SIFR_OK);
    assert_int_equal(mesh.near, near);
}

static void expect_hosts(int32_t ranks, int32_t near, int32_t here, const char *refusal) {
    plan_mesh mesh = plan_mesh_flat(ranks, 0);
    sifr_error error = {0};
    mesh.near = near;
    assert_int_equal(plan_mesh_check_near(&mesh, here, &error), refusal ? SIFR_USAGE : SIFR_OK);
    if (refusal && !strstr(error.message, refusal)) fail_msg("%s", error.message);
}

static void sizes(void **state) {
    (void)state;
    expect_near(8, 1, 0, 3, 0, 0, NULL);
    expect_near(8, 1, 0, 3, 1, 0, NULL);
    expect_near(8, 1, 0, 3, 4, 4, NULL);
    expect_near(8, 1, 0, 3, 8, 0, NULL); /* all gather what they hold */
    expect_near(8, 1, 0, 2, 4, 0, NULL);
    expect_near(8, 2, 0, 3, 2, 2, NULL);
    expect_near(8, 1, 4, 3, 2, 2, NULL);
    expect_near(8, 1, 0, 3, 3, 0,
                "8 ranks share the state, which are not divided into groups of "
                "that many; give 2, 4 or 8");
    expect_near(8, 1, 4, 3, 8, 0, "4 ranks share the state");
    expect_near(1, 1, 0, 3, 2, 0, "1 rank shares the state");
    expect_hosts(16, 4, 0, NULL);
    expect_hosts(16, 4, 8, NULL);
    expect_hosts(16, 8, 4, NULL);
    expect_hosts(16, 4, 4, NULL);
    expect_hosts(12, 4, 6,
                 "a host has 6 ranks, and a second copy of the parameters lies inside a "
                 "host or on whole hosts; give 2 or 3 or 6");
    expect_hosts(12, 4, 12, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(figures), cmocka_unit_test(kept_by_reuse),
                                       cmocka_unit_test(clean), cmocka_unit_test(faults),
                                       cmocka_unit_test(sizes)};
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}

/* Lists with compressed steps (PowerSGD): clean on every rank, for steps of both kinds; sums that
 * all ranks begin and end in one order; bytes of plain steps and of compressed ones; faults that
 * are found; what does not go with it. */
#include "plan/verify/verify.h"
#include "support/disk_plan.h"

static plan_settings settings_of(int32_t ranks, int stage, int32_t rank) {
    plan_settings settings =
        disk_plan_settings(ranks, stage, SIFR_FP32, (sifr_offload){.optimizer.ratio = 1});
    settings.mesh = plan_mesh_flat(ranks, rank);
    settings.step.compression = sifr_settings_defaults().compression;
    settings.step.compression.type = SIFR_POWER_SGD;
    settings.verify = true;
    return settings;
}

enum { RANKS = 8, MOST_MARKS = 4096 };

/* What a rank does together with others, in its order: starts, ends of sums, and the norm. */
static size_t marks_of(const plan_schedule *s, int32_t marks[MOST_MARKS]) {
    size_t count = 0;
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        bool ends = in->action == PLAN_WAIT && s->instructions[in->wait].action == PLAN_SUM;
        if (!plan_is_collective(in) && !ends && in->action != PLAN_NORM) continue;
        assert_true(count < MOST_MARKS);
        marks[count++] = in->action * 1000000 + (int32_t)(ends ? 0 : in->bytes % 1000000);
    }
    return count;
}

static void one_order(void **state) {
    (void)state;
    for (int n = 0; n < 8; n++) {
        plan_schedule *plans[RANKS];
        sifr_error error = {0};
        int32_t first[MOST_MARKS], marks[MOST_MARKS];
        size_t count = 0;
        for (int32_t r = 0; r < RANKS; r++) {
            plan_settings settings = settings_of(RANKS, n % 4, r);
            settings.step.zero.overlap_comm = n / 2 % 2 == 0;
            settings.step.precision = n / 4 ? SIFR_BF16 : SIFR_FP32;
            settings.step.step_order = n % 3 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
            plans[r] = disk_plan_lower(&settings);
            size_t own = marks_of(plans[r], r ? marks : first);
            if (r == 0) count = own;
            assert_int_equal(own, count);
            if (r) assert_memory_equal(first, marks, count * sizeof *marks);
        }
        if (plan_verify_ranks((const plan_schedule *const *)plans, RANKS, &error) != SIFR_OK)
            fail_msg("%s", error.message);
        for (int32_t r = 0; r < RANKS; r++) plan_free(plans[r]);
    }
}

/* Plain steps move what a plan without compression does. */
static void both_kinds(void **state) {
    (void)state;
    for (int stage = 0; stage < 2; stage++) {
        plan_settings settings = settings_of(4, stage, 1);
        plan_schedule *with = disk_plan_lower(&settings);
        settings.step.compression.type = SIFR_COMPRESSION_NONE;
        plan_schedule *without = disk_plan_lower(&settings);
        int64_t plain[2], sent[2], want[2];
        assert_true(with->compresses && with->compressed && !without->compresses);
        plan_wire(with, &sent[0], &sent[1]);
        plan_wire(without, &want[0], &want[1]);
        with->compressed = false;
        plan_wire(with, &plain[0], &plain[1]);
        assert_int_equal(plain[0], want[0]);
        assert_int_equal(plain[1], want[1]);
        assert_true(sent[1] * 4 < want[1]);
        plan_free(with);
        plan_free(without);
    }
}

static size_t find(const plan_schedule *s, plan_action action, device_kernel kernel) {
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (in->action != action) continue;
        if (in->call < 0 || s->calls[in->call].kernel == kernel) return i;
    }
    fail_msg("the plan has no such instruction");
    return 0;
}

static void expect_found(const plan_schedule *s, const char *what, const char *text) {
    sifr_error error = {0};
    if (plan_verify(s, &error) == SIFR_OK) fail_msg("%s: not found", what);
    if (!strstr(error.message, text)) fail_msg("%s: \"%s\"", what, error.message);
}

static void leave_out(plan_instruction *in) {
    in->action = PLAN_COUNT, in->queue = PLAN_COMPUTE, in->call = in->wait = -1, in->operands = 0;
}

static void faults(void **state) {
    (void)state;
    plan_settings settings = settings_of(2, 1, 1);
    settings.step.zero.overlap_comm = false;
    plan_schedule *s = disk_plan_lower(&settings);
    sifr_error error = {0};
    plan_instruction *in = &s->instructions[find(s, PLAN_SUM, DEVICE_KERNELS)],
                     kept[2] = {in[0], in[1]};
    assert_true(in[1].action == PLAN_WAIT); /* no overlap */
    leave_out(&in[0]), leave_out(&in[1]);
    expect_found(s, "a sum that is left out", "not a value of all ranks of a span");
    in[0] = kept[0], in[1] = kept[1];
    in = &s->instructions[find(s, PLAN_COMPRESS, DEVICE_POWER_KEEP)];
    kept[0] = *in;
    leave_out(in);
    expect_found(s, "a gradient that stays the rank's own", "of one rank");
    *in = kept[0];
    in = &s->instructions[find(s, PLAN_REDUCE, DEVICE_KERNELS)];
    in->kind = in[1].kind = PLAN_COMPRESSED_STEPS;
    expect_found(s, "a plain sum that is left out", "of one rank");
    plan_free(s);
    s = disk_plan_lower(&settings);
    if (plan_verify(s, &error) != SIFR_OK) fail_msg("%s", error.message);
    plan_free(s);
}

static void expect_refused(const plan_settings *settings, const char *text) {
    plan_schedule *s = NULL;
    sifr_error error = {0};
    assert_int_equal(plan_lower(model, dev, settings, &s, &error), SIFR_USAGE);
    if (!strstr(error.message, text)) fail_msg("%s", error.message);
}

static void refused(void **state) {
    (void)state;
    plan_settings settings = settings_of(2, 1, 0);
    settings.step.compression.start = 1;
    expect_refused(&settings, "start_compressing_after_step is 1; with use_error_feedback");
    settings = settings_of(2, 2, 0);
    settings.step.offload.gradients = SIFR_TIER_NVME;
    expect_refused(&settings, "offload_gradients is not supported");
    settings = settings_of(2, 1, 0);
    settings.step.communication_data_type = SIFR_BF16;
    expect_refused(&settings, "a communication_data_type of 16 bits is not supported");
    settings = settings_of(2, 1, 0);
    settings.step.precision = settings.step.grad_accum_dtype = SIFR_BF16;
    expect_refused(&settings, "sums of gradients in 16 bits are not supported");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_order), cmocka_unit_test(both_kinds),
                                       cmocka_unit_test(faults), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}

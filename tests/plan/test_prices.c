/* What calls and transfers should take as they grow, and that a step is no shorter than any of its
 * queues is busy. */
#include <math.h>

#include "support/disk_plan.h"

static const plan_machine machine = {.fp32_operations = 1e11,
                                     .bf16_operations = 1e12,
                                     .memory_bytes = 1e10,
                                     .disk_bytes = 2e9,
                                     .copy_bytes = 8e9,
                                     .instruction_seconds = 1e-6,
                                     .host = {1e-5, 4e9}};

static void assert_near(double value, double expected, double share) {
    if (fabs(value - expected) > share * expected) fail_msg("%g is not %g", value, expected);
}

/* The same list of longer micro batches: no kernel becomes cheaper, all together dearer. */
static void more_rows_take_longer(void **state) {
    (void)state;
    plan_settings settings = disk_plan_settings(1, 0, SIFR_FP32, (sifr_offload){0});
    settings.step.seq_length = 4;
    plan_schedule *few = disk_plan_lower(&settings);
    settings.step.seq_length = 16;
    plan_schedule *many = disk_plan_lower(&settings);
    double sums[2] = {0};
    assert_int_equal(few->instruction_count, many->instruction_count);
    for (size_t i = 0; i < few->instruction_count; i++) {
        double less = plan_price(few, i, &machine), more = plan_price(many, i, &machine);
        assert_true(less >= machine.instruction_seconds);
        assert_true(more >= less);
        sums[0] += less;
        sums[1] += more;
    }
    assert_true(sums[1] > sums[0]);
    assert_near(plan_operations(many), 4 * plan_operations(few), 0.1); /* attention: more */
    plan_free(few);
    plan_free(many);
}

/* An instruction of `bytes` among two ranks. */
static double transfer_price(plan_action action, plan_queue queue, int64_t bytes) {
    plan_instruction in = {.action = (uint8_t)action,
                           .queue = (uint8_t)queue,
                           .span = PLAN_STATE,
                           .call = -1,
                           .bytes = bytes};
    plan_schedule s = {
        .instructions = &in, .instruction_count = 1, .settings.mesh = plan_mesh_flat(2, 0)};
    return plan_price(&s, 0, &machine);
}

/* No bytes: latency and the instruction. Then each byte takes the same. */
static void transfers(void **state) {
    (void)state;
    static const struct {
        plan_action action;
        plan_queue queue;
        double latency, bytes_per_second;
    } kinds[] = {{PLAN_GATHER, PLAN_COMMUNICATION, 1e-5, 4e9},
                 {PLAN_REDUCE, PLAN_COMMUNICATION, 1e-5, 4e9},
                 {PLAN_READ, PLAN_DISK, 0, 2e9},
                 {PLAN_WRITE, PLAN_DISK, 0, 2e9},
                 {PLAN_READ, PLAN_COPY, 0, 8e9},
                 {PLAN_WRITE, PLAN_COPY, 0, 8e9}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        double nothing = transfer_price(kinds[k].action, kinds[k].queue, 0);
        assert_near(nothing, 1e-6 + kinds[k].latency, 1e-9);
        for (int64_t bytes = 1000; bytes < INT64_C(1) << 40; bytes *= 8) {
            double moving = transfer_price(kinds[k].action, kinds[k].queue, bytes) - nothing;
            double expected = (double)bytes / kinds[k].bytes_per_second;
            assert_near(moving, expected, 1e-6);
        }
    }
}

/* The clocks of the queues end no later than the step, which is no longer than all of them. */
static void no_queue_outlasts_the_step(void **state) {
    (void)state;
    for (int variant = 0; variant < 24; variant++) {
        sifr_tier tier = variant & 1 ? SIFR_TIER_NVME : SIFR_TIER_NONE;
        plan_machine slow = machine;
        plan_prediction p;
        if (variant % 3 == 0) slow.disk_bytes = 1e6;
        if (variant % 3 == 1) slow.host.bytes_per_second = 1e6;
        plan_settings settings =
            disk_plan_settings(variant & 2 ? 4 : 1, 3, SIFR_BF16, disk_plan_all_on(tier));
        plan_schedule *s = disk_plan_lower(&settings);
        float *seconds = calloc(s->instruction_count, sizeof *seconds);
        assert_int_equal(plan_predict(s, &slow, &p, seconds, NULL), SIFR_OK);
        double held = 0;
        for (size_t i = 0; i < s->instruction_count; i++) held += seconds[i];
        double most = p.step_seconds * (1 + 1e-9);
        assert_true(p.computing + p.waiting <= most);
        assert_true(p.communication <= most);
        assert_true(p.disk <= most);
        assert_true(most >= p.copy);
        assert_near(held, p.computing + p.waiting, 1e-4);
        assert_true(p.step_seconds <= p.computing + p.communication + p.disk + p.copy + 1e-9);
        assert_int_equal(p.disk > 0, tier == SIFR_TIER_NVME);
        free(seconds);
        plan_free(s);
    }
}

static void speeds_are_assumed(void **state) {
    (void)state;
    plan_machine unknown = plan_machine_unknown();
    assert_false(plan_machine_is_known(&unknown));
    assert_true(plan_machine_is_known(&machine));
    assert_true(plan_disk_speed(&machine) == 2e9);
    assert_true(plan_copy_speed(&machine) == 8e9);
    assert_true(plan_disk_speed(&unknown) > 1e8);
    assert_true(plan_copy_speed(&unknown) > plan_disk_speed(&unknown));
    for (int missing = 0; missing < 3; missing++) {
        plan_machine m = machine;
        double *const fields[] = {&m.fp32_operations, &m.bf16_operations, &m.memory_bytes};
        *fields[missing] = 0;
        assert_false(plan_machine_is_known(&m));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_rows_take_longer), cmocka_unit_test(transfers),
        cmocka_unit_test(no_queue_outlasts_the_step), cmocka_unit_test(speeds_are_assumed)

    };
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}

/* Lists of tensor ranks: clean on every rank and in one order on all, with as many sums as there
 * are products whose inputs or outputs are cut; and the squares of what all have alike on one. */
#include "model/registry.h"
#include "plan/verify/order_check.h"
#include "plan/verify/verify.h"
#include "support/disk_plan.h"

enum { TENSORS = 2, SHARDS = 2, RANKS = TENSORS * SHARDS };

static int64_t count(const plan_schedule *s, plan_action action) {
    int64_t found = 0;
    for (size_t i = 0; i < s->instruction_count; i++) found += s->instructions[i].action == action;
    return found;
}

static void lists_fit(void **state) {
    (void)state;
    sifr_error error = {0};
    for (int stage = 0; stage < 4; stage++) {
        plan_schedule *plans[RANKS];
        for (int32_t r = 0; r < RANKS; r++) {
            plan_settings settings = disk_plan_settings(1, stage, SIFR_FP32, (sifr_offload){0});
            settings.verify = true;
            settings.step.mesh.tensor_size = TENSORS;
            assert_int_equal(plan_mesh_of(&settings.step, RANKS, r, &settings.mesh, &error),
                             SIFR_OK);
            plans[r] = disk_plan_lower(&settings);
            if (plan_check_order(plans[r], &error) != SIFR_OK) fail_msg("%s", error.message);
        }
        if (plan_verify_ranks((const plan_schedule *const *)plans, RANKS, &error))
            fail_msg("%s", error.message);
        assert_true(count(plans[0], PLAN_SUM) > 0);
        for (int32_t r = 0; r < RANKS; r++) {
            assert_int_equal(count(plans[r], PLAN_SUM), count(plans[0], PLAN_SUM));
            bool first = r % TENSORS == 0;
            int64_t squares = count(plans[r], PLAN_SQUARES);
            assert_true(first ? squares == (int64_t)plans[r]->model->segment_count
                              : squares < (int64_t)plans[r]->model->segment_count);
        }
        for (int32_t r = 0; r < RANKS; r++) plan_free(plans[r]);
    }
}

/* Of two stages: tensor neighbours make the same sums, and the stages of each place end together.
 */
static void stages_fit(void **state) {
    (void)state;
    enum { STAGES = 2, ALL = STAGES * RANKS };
    sifr_error error = {0};
    for (int zero = 0; zero < 4; zero++) {
        plan_schedule *plans[ALL];
        for (int32_t r = 0; r < ALL; r++) {
            plan_settings settings = disk_plan_settings(1, zero, SIFR_FP32, (sifr_offload){0});
            settings.verify = true;
            settings.step.mesh.tensor_size = TENSORS;
            settings.step.pipeline =
                (sifr_pipeline){.stages = STAGES, .chunks = 1, .schedule = SIFR_SCHEDULE_1F1B};
            settings.step.step_order = SIFR_STEP_BATCH;
            assert_int_equal(plan_mesh_of(&settings.step, ALL, r, &settings.mesh, &error), SIFR_OK);
            plans[r] = disk_plan_lower(&settings);
            assert_true(count(plans[r], PLAN_SUM) > 0);
        }
        for (int32_t r = 0; r < ALL; r++)
            assert_int_equal(count(plans[r], PLAN_SUM), count(plans[r ^ 1], PLAN_SUM));
        for (int32_t r = 0; r < RANKS; r++) {
            const plan_schedule *both[STAGES] = {plans[r], plans[RANKS + r]};
            if (plan_verify_stages(both, STAGES, &error)) fail_msg("%s", error.message);
        }
        for (int32_t r = 0; r < ALL; r++) plan_free(plans[r]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lists_fit), cmocka_unit_test(stages_fit)};
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}

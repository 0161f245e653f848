/* What can be asked of settings and of a list, against answers by hand. */
#include "plan/queries.h"
#include "support/disk_plan.h"

/* Which settings let an update be carried out beside the next step. */
static void delays(void **state) {
    (void)state;
    int32_t here[14] = {0};
    plan_buffer buffer = {.tier = PLAN_DEVICE};
    plan_schedule s = {.model = model, .dev = dev, .parameters = here, .buffers = &buffer};
    assert_true(model->unit_count <= 14);
    s.settings = disk_plan_state_settings(1, 0, SIFR_FP32);
    assert_true(plan_may_delay_update(&s));
    s.settings.step.offload.optimizer.pipeline_read = false;
    assert_false(plan_may_delay_update(&s));
    s.settings = disk_plan_state_settings(1, 0, SIFR_FP32);
    s.settings.step.offload.optimizer.pipeline_write = false;
    assert_false(plan_may_delay_update(&s));
    s.settings = disk_plan_state_settings(1, 0, SIFR_FP32);
    s.settings.mode = PLAN_EVALUATE;
    assert_false(plan_may_delay_update(&s));
    s.settings.mode = PLAN_TRAIN;
    s.settings.step.offload.optimizer.device = SIFR_TIER_CPU; /* this device's own memory */
    assert_false(plan_may_delay_update(&s));
    s.settings.step.offload.optimizer.device = SIFR_TIER_NVME;
    buffer.tier = PLAN_NVME;
    assert_true(plan_parameters_offloaded(&s));
    assert_false(plan_may_delay_update(&s));
}

/* Each stage of ZeRO cuts one thing more, over the ranks that share the state. */
static void slices(void **state) {
    (void)state;
    plan_settings s = {.mesh = {.ranks = {1, 2, 2, 2, 1}}};
    for (int32_t stage = 0; stage <= 3; stage++) {
        s.step.zero.stage = stage;
        for (int what = PLAN_CUT_OPTIMIZER; what <= PLAN_CUT_WEIGHTS; what++) {
            assert_int_equal(plan_cuts(&s, (plan_cut)what), stage > what);
            assert_int_equal(plan_slices(&s, (plan_cut)what), stage > what ? 4 : 1);
        }
        assert_int_equal(plan_sums_are_whole(&s), stage < 2);
    }
    s.mesh = plan_mesh_flat(1, 0);
    assert_true(plan_cuts(&s, PLAN_CUT_WEIGHTS)); /* so one rank may offload them */
    assert_int_equal(plan_slices(&s, PLAN_CUT_WEIGHTS), 1);
    s.step.zero.stage = 0;
    assert_false(plan_sums_are_whole(&s));
}

/* An update's writes are those behind the norm. */
static void updates_write(void **state) {
    (void)state;
    plan_instruction list[] = {{.action = PLAN_WRITE}, {.action = PLAN_NORM},
                               {.action = PLAN_READ},  {.action = PLAN_UPDATE},
                               {.action = PLAN_WRITE}, {.action = PLAN_WAIT}};
    plan_schedule s = {.instructions = list, .instruction_count = 4};
    assert_false(plan_update_writes(&s));
    s.instruction_count = 6;
    assert_true(plan_update_writes(&s));
}

static void types(void **state) {
    (void)state;
    static const base_dtype of[] = {
        [SIFR_FP32] = BASE_FP32, [SIFR_BF16] = BASE_BF16, [SIFR_FP16] = BASE_FP16};
    for (int p = SIFR_FP32; p <= SIFR_FP16; p++) {
        plan_settings s = {.step.precision = (sifr_precision)p};
        assert_int_equal(plan_dtype(&s), of[p]);
        assert_int_equal(plan_has_masters(&s), p != SIFR_FP32);
        assert_int_equal(plan_moment_type(&s), BASE_FP32);
        assert_false(plan_narrow_gradients(&s));
    }
    plan_settings s = {.step.precision = SIFR_BF16,
                       .step.grad_accum_dtype = SIFR_BF16,
                       .step.bf16_master_weights = true,
                       .step.bf16_optimizer_states = true};
    assert_false(plan_has_masters(&s));
    assert_int_equal(plan_moment_type(&s), BASE_BF16);
    assert_true(plan_narrow_gradients(&s));
}

/* Every micro batch of the global one has one place in it; where ranks are summed first they are
 * next to each other. */
static void micro_batches(void **state) {
    (void)state;
    enum { RANKS = 3, EACH = 5 };
    for (int variant = 0; variant < 8; variant++) {
        plan_settings s = {.mesh = plan_mesh_flat(RANKS, 0),
                           .step.gradient_accumulation_steps = EACH};
        bool seen[RANKS * EACH] = {false};
        s.step.zero.stage = variant / 2;
        s.step.step_order = variant % 2 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
        for (int32_t m = 0; m < RANKS * EACH; m++) {
            int32_t at = plan_global_micro_batch(&s, m / EACH, m % EACH);
            assert_in_range(at, 0, RANKS * EACH - 1);
            assert_false(seen[at]);
            seen[at] = true;
        }
        bool across = s.step.zero.stage >= 2 && s.step.step_order == SIFR_STEP_BATCH;
        assert_int_equal(plan_global_micro_batch(&s, 1, 2), 7);
        assert_int_equal(plan_global_micro_batch(&s, 2, 0), across ? 2 : 10);
    }
}

/* What is counted of a list, counted here from what it must be. */
static void traffic(void **state) {
    (void)state;
    int64_t gathered, reduced, gathers, reductions, read, written;
    plan_instruction list[] = {
        {.action = PLAN_GATHER, .queue = PLAN_COMMUNICATION, .span = PLAN_STATE, .bytes = 10},
        {.action = PLAN_GATHER, .queue = PLAN_COMMUNICATION, .span = PLAN_STATE, .bytes = 200},
        {.action = PLAN_REDUCE, .queue = PLAN_COMMUNICATION, .span = PLAN_STATE, .bytes = 3000},
        {.action = PLAN_WAIT, .queue = PLAN_COMPUTE, .bytes = 9},
        {.action = PLAN_READ, .queue = PLAN_DISK, .bytes = 4096},
        {.action = PLAN_WRITE, .queue = PLAN_DISK, .bytes = 8192},
        {.action = PLAN_READ, .queue = PLAN_COPY, .bytes = 12288},
        {.action = PLAN_READ, .queue = PLAN_COPY, .bytes = 1},
        {.action = PLAN_WRITE, .queue = PLAN_COPY, .bytes = 20480},
    };
    plan_schedule s = {.instructions = list,
                       .instruction_count = sizeof list / sizeof *list,
                       .settings.mesh = plan_mesh_flat(4, 0)};
    plan_wire(&s, &gathered, &reduced);
    assert_int_equal(gathered, 3 * 210);
    assert_int_equal(reduced, 3 * 3000);
    plan_calls(&s, &gathers, &reductions);
    assert_int_equal(gathers, 2);
    assert_int_equal(reductions, 1);
    plan_disk(&s, &read, &written);
    assert_int_equal(read, 4096);
    assert_int_equal(written, 8192);
    plan_copies(&s, &read, &written);
    assert_int_equal(read, 12289);
    assert_int_equal(written, 20480);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(delays),        cmocka_unit_test(slices),
                                       cmocka_unit_test(updates_write), cmocka_unit_test(types),
                                       cmocka_unit_test(micro_batches), cmocka_unit_test(traffic)};
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}

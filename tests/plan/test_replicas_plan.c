/* Lists of a mesh with copies of the state: clean on every rank, in one order on all, and with the
 * transfers between copies where they belong and beside computing. */
#include "plan/verify/order_check.h"
#include "plan/verify/verify.h"
#include "support/disk_plan.h"

enum { MOST_RANKS = 9 };

static bool between_copies(const plan_instruction *in) {
    return (in->action == PLAN_GATHER || in->action == PLAN_REDUCE) && in->span == PLAN_REPLICAS;
}

static void lower_all(plan_settings settings, int32_t copies, int32_t shards,
                      plan_schedule **plans) {
    sifr_error error = {0};
    for (int32_t r = 0; r < copies * shards; r++) {
        assert_int_equal(plan_mesh_make(copies * shards, r, shards, &settings.mesh, &error),
                         SIFR_OK);
        settings.verify = true;
        plans[r] = disk_plan_lower(&settings);
        if (plan_check_order(plans[r], &error) != SIFR_OK) fail_msg("%s", error.message);
    }
    if (plan_verify_ranks((const plan_schedule *const *)plans, (size_t)(copies * shards), &error))
        fail_msg("%s", error.message);
}

static void free_all(int32_t count, plan_schedule **plans) {
    for (int32_t r = 0; r < count; r++) plan_free(plans[r]);
}

/* A rank adds its own part of its slice, and no transfer between copies comes after the norm. */
static void check_parts(const plan_schedule *s) {
    const plan_mesh *mesh = &s->settings.mesh;
    int64_t copies = plan_mesh_ranks(mesh, PLAN_REPLICAS), replica = mesh->place[PLAN_AXIS_REPLICA];
    bool over = false;
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        over |= in->action == PLAN_NORM;
        if (!between_copies(in)) continue;
        assert_false(over);
        const plan_operand *x = &s->operands[in->first_operand], *y = x + 1;
        const plan_operand *part = in->action == PLAN_GATHER ? x : y, *all = part == x ? y : x;
        if (part->buffer != all->buffer) continue; /* converted */
        assert_int_equal(part->offset - all->offset, replica * in->bytes);
        assert_int_equal(in->bytes % (1024 * 2), 0);
        assert_true(all->offset + copies * in->bytes <= s->buffers[all->buffer].bytes);
    }
}

static void clean(void **state) {
    (void)state;
    static const int32_t sizes[][2] = {{2, 2}, {3, 2}, {2, 4}, {3, 3}};
    for (int n = 0; n < 48; n++) {
        plan_schedule *plans[MOST_RANKS];
        int32_t copies = sizes[n % 4][0], shards = sizes[n % 4][1];
        sifr_offload offload = {.optimizer.ratio = 1};
        int stage = n / 4 % 4;
        if (n % 5 == 4) offload = disk_plan_all_on(SIFR_TIER_NVME);
        if (stage < 3) offload.param.device = SIFR_TIER_NONE;
        if (stage < 2) offload.gradients = SIFR_TIER_NONE;
        plan_settings settings =
            disk_plan_settings(1, stage, n % 3 ? SIFR_BF16 : SIFR_FP32, offload);
        settings.step.step_order = n / 16 == 1 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
        settings.step.gradient_accumulation_steps = 1 + n / 2 % 4;
        settings.step.zero.overlap_comm = n % 7 != 6;
        if (n % 3 == 2) settings.step.communication_data_type = SIFR_BF16;
        if (n % 3 == 2 && n % 2) settings.step.grad_accum_dtype = SIFR_BF16;
        lower_all(settings, copies, shards, plans);
        for (int32_t r = 0; r < copies * shards; r++) check_parts(plans[r]);
        free_all(copies * shards, plans);
    }
}

/* With overlap the backward pass of the next unit runs while a slice crosses: only the last unit's
 * transfers have no computing beside them. */
static void beside_computing(void **state) {
    (void)state;
    for (int stage = 2; stage < 4; stage++) {
        plan_schedule *plans[4];
        plan_settings settings =
            disk_plan_settings(1, stage, SIFR_BF16, (sifr_offload){.optimizer.ratio = 1});
        settings.step.gradient_accumulation_steps = 1;
        lower_all(settings, 2, 2, plans);
        const plan_schedule *s = plans[0];
        int alone = 0, all = 0;
        for (size_t i = 0; i < s->instruction_count; i++) {
            const plan_instruction *wait = &s->instructions[i];
            if (wait->action != PLAN_WAIT || !between_copies(&s->instructions[wait->wait]))
                continue;
            bool computed = false;
            for (size_t k = (size_t)wait->wait; k < i; k++)
                computed |= s->instructions[k].action == PLAN_BACKWARD;
            all++;
            alone += !computed;
        }
        assert_int_equal(all, 2 * ((int)model->unit_count + 1)); /* a tied head has one, too */
        assert_in_range(alone, 1, 6);
        free_all(4, plans);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(clean), cmocka_unit_test(beside_computing)};
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}

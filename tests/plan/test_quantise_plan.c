/* Gathers that carry 8 bits a parameter (qwZ): bytes by the formula, with second copies and
 * without; lists that are clean on every rank and in one order on all; one rank that goes through
 * codes as all do; faults that are found; what does not go with it. */
#include "plan/verify/verify.h"
#include "support/disk_plan.h"

static plan_settings settings_of(int32_t ranks, int32_t near, int32_t rank) {
    plan_settings settings =
        disk_plan_settings(ranks, 3, SIFR_BF16, (sifr_offload){.optimizer.ratio = 1});
    settings.mesh = plan_mesh_flat(ranks, rank);
    settings.step.zero.hpz_partition_size = near;
    settings.step.zero.quantized_weights = true;
    settings.mesh.near = plan_mesh_near(&settings.step.zero, &settings.mesh);
    settings.verify = ranks <= 8;
    return settings;
}

static void figures(void **state) {
    (void)state;
    static const int32_t meshes[][2] = {{2, 0}, {4, 0}, {4, 2}, {8, 4}, {64, 8}};
    for (int n = 0; n < 20; n++) {
        int32_t ranks = meshes[n % 5][0];
        plan_settings settings = settings_of(ranks, meshes[n % 5][1], ranks - 1);
        settings.step.step_order = n / 5 % 2 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
        settings.step.recompute = n / 10 ? SIFR_RECOMPUTE_UNIT : SIFR_RECOMPUTE_NONE;
        settings.step.zero.overlap_comm = n % 3 != 2;
        plan_schedule *coded = disk_plan_lower(&settings);
        settings.step.zero.quantized_weights = false;
        plan_schedule *plain = disk_plan_lower(&settings);
        static const plan_span spans[] = {PLAN_STATE, PLAN_HOSTS};
        for (int i = 0; i < 2; i++) {
            int64_t of[2], sums[2];
            plan_wire_of(plain, spans[i], &of[0], &sums[0]);
            plan_wire_of(coded, spans[i], &of[1], &sums[1]);
            assert_int_equal(of[1] * 1024 * 2, of[0] * 1028);
            assert_int_equal(sums[1], sums[0]);
        }
        assert_true((coded->largest_bytes[PLAN_SECONDARY] > 0) == (settings.mesh.near > 0));
        assert_true(coded->largest_bytes[PLAN_SECONDARY] <=
                    plain->largest_bytes[PLAN_SECONDARY] * 1028 / 2048 + 256 * 16);
        assert_true(coded->largest_bytes[PLAN_OUTGOING] > 0);
        plan_free(coded);
        plan_free(plain);
    }
}

enum { RANKS = 8 };

static void clean(void **state) {
    (void)state;
    static const sifr_precision types[] = {SIFR_FP32, SIFR_BF16, SIFR_FP16};
    for (int n = 0; n < 9; n++) {
        plan_schedule *plans[RANKS];
        sifr_error error = {0};
        for (int32_t r = 0; r < RANKS; r++) {
            plan_settings settings = settings_of(RANKS, n % 2 ? 4 : 0, r);
            settings.step.precision = types[n % 3];
            settings.step.gradient_accumulation_steps = 1 + n / 3 % 2;
            settings.step.zero.param_persistence_threshold = n % 4 == 3 ? 5000 : 0;
            settings.step.zero.model_persistence_threshold = INT64_MAX;
            settings.step.zero.max_reuse_distance = n % 5 == 4 ? 1000000000 : 0;
            plans[r] = disk_plan_lower(&settings);
        }
        if (plan_verify_ranks((const plan_schedule *const *)plans, RANKS, &error) != SIFR_OK)
            fail_msg("%s", error.message);
        for (int32_t r = 0; r < RANKS; r++) plan_free(plans[r]);
    }
}

static size_t find(const plan_schedule *s, plan_action action) {
    for (size_t i = 0; i < s->instruction_count; i++)
        if (s->instructions[i].action == action) return i;
    fail_msg("the plan has no such instruction");
    return 0;
}

/* As many codes are made and opened as anywhere, and nothing is sent. */
static void one_rank(void **state) {
    (void)state;
    plan_settings settings = settings_of(1, 0, 0);
    plan_schedule *s = disk_plan_lower(&settings);
    int64_t gathered, reduced, encoded = 0, decoded = 0;
    plan_wire(s, &gathered, &reduced);
    assert_int_equal(gathered + reduced, 0);
    for (size_t i = 0; i < s->instruction_count; i++) {
        encoded += s->instructions[i].action == PLAN_ENCODE;
        decoded += s->instructions[i].action == PLAN_DECODE;
        assert_int_not_equal(s->instructions[i].action, PLAN_GATHER);
    }
    assert_true(encoded > 0 && encoded == decoded);
    plan_free(s);
    settings.step.zero.stage = 2; /* nothing is gathered for use there */
    s = disk_plan_lower(&settings);
    for (size_t i = 0; i < s->instruction_count; i++)
        assert_int_not_equal(s->instructions[i].action, PLAN_ENCODE);
    plan_free(s);
}

static void expect_found(const plan_schedule *s, const char *what, const char *text) {
    sifr_error error = {0};
    if (plan_verify(s, &error) == SIFR_OK) fail_msg("%s: not found", what);
    if (!strstr(error.message, text)) fail_msg("%s: \"%s\"", what, error.message);
}

static void faults(void **state) {
    (void)state;
    plan_settings settings = settings_of(4, 2, 3);
    plan_schedule *s = disk_plan_lower(&settings);
    plan_instruction *in = &s->instructions[find(s, PLAN_KEEP)];
    s->operands[in->first_operand].offset = 0;
    expect_found(s, "another rank's part", "8 bit codes");
    s->operands[in->first_operand].offset =
        s->buffers[s->operands[in->first_operand + 1].buffer].bytes;
    in = &s->instructions[find(s, PLAN_GATHER)];
    in->encoding = PLAN_CODE_BF16;
    expect_found(s, "codes taken for values", "8 bit codes");
    in->encoding = PLAN_CODE_BLOCKS8;
    in = &s->instructions[find(s, PLAN_ENCODE)];
    plan_instruction kept = *in;
    in->action = PLAN_COUNT, in->call = -1, in->operands = 0;
    expect_found(s, "no codes", "which nothing has written before");
    *in = kept;
    sifr_error error = {0};
    if (plan_verify(s, &error) != SIFR_OK) fail_msg("%s", error.message);
    plan_free(s);
}

/* Codes are made of slices that were read, which need their buffers no longer than that; a later
 * gather of the step from a second copy reads nothing. */
static void offloaded_parameters(void **state) {
    (void)state;
    for (int n = 0; n < 12; n++) {
        plan_schedule *plans[4];
        sifr_error error = {0};
        int32_t ranks = n % 3 == 0 ? 1 : n % 3 * 2;
        for (int32_t r = 0; r < ranks; r++) {
            plan_settings settings = settings_of(ranks, ranks == 4 && n % 2 ? 2 : 0, r);
            settings.step.offload = disk_plan_all_on(SIFR_TIER_NVME);
            settings.step.step_order = n / 3 % 2 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
            settings.step.recompute = n / 6 ? SIFR_RECOMPUTE_UNIT : SIFR_RECOMPUTE_NONE;
            plans[r] = disk_plan_lower(&settings);
        }
        if (plan_verify_ranks((const plan_schedule *const *)plans, (size_t)ranks, &error))
            fail_msg("%s", error.message);
        int64_t encoded = 0, reads = 0;
        for (size_t i = 0; i < plans[0]->instruction_count; i++) {
            const plan_instruction *in = &plans[0]->instructions[i];
            encoded += in->action == PLAN_ENCODE;
            if (in->action != PLAN_READ) continue;
            int32_t from = plans[0]->operands[in->first_operand].buffer;
            reads += plans[0]->buffers[from].class == PLAN_PARAMETERS && !in->deferred;
        }
        assert_true(encoded > 0 && reads >= encoded);
        for (int32_t r = 0; r < ranks; r++) plan_free(plans[r]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(figures), cmocka_unit_test(clean),
                                       cmocka_unit_test(one_rank), cmocka_unit_test(faults),
                                       cmocka_unit_test(offloaded_parameters)};
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}

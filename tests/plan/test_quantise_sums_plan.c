/* Gradients that travel in 4 bits (qgZ): bytes by the formula, of each group and between hosts, in
 * one step and in two; lists that are clean on every rank and in one order on all; memory; prices;
 * faults that are found; what does not go with it. */
#include "base/block4.h"
#include "plan/verify/verify.h"
#include "support/disk_plan.h"

static plan_settings settings_of(int32_t ranks, int32_t host, int32_t rank) {
    plan_settings settings =
        disk_plan_settings(ranks, 3, SIFR_BF16, (sifr_offload){.optimizer.ratio = 1});
    settings.mesh = plan_mesh_flat(ranks, rank);
    plan_mesh_place_hosts(&settings.mesh, host);
    settings.step.zero.quantized_gradients = true;
    settings.verify = ranks <= 8;
    return settings;
}

/* Per element of what is reduced: (n - 1) / n inside a host, (H - 1) / (H n) between hosts, of
 * 132 / 256 bytes, in place of (N - 1) / N of 4. */
static void figures(void **state) {
    (void)state;
    /* ranks, of a host */
    static const int32_t meshes[][2] = {{2, 0}, {4, 0}, {4, 2}, {8, 4}, {4, 1}, {64, 8}};
    for (int n = 0; n < 24; n++) {
        int32_t ranks = meshes[n % 6][0], host = meshes[n % 6][1];
        plan_settings settings = settings_of(ranks, host, ranks - 1);
        settings.step.zero.stage = 2 + n / 6 % 2;
        settings.step.step_order = n / 12 ? SIFR_STEP_UNIT : SIFR_STEP_BATCH;
        settings.step.zero.overlap_comm = n % 5 != 2;
        plan_schedule *coded = disk_plan_lower(&settings);
        settings.step.zero.quantized_gradients = false;
        plan_schedule *plain = disk_plan_lower(&settings);
        int64_t of[2], sums[2], near = host > 1 ? host : ranks, hosts = ranks / near;
        plan_wire(plain, &of[0], &sums[0]);
        plan_wire(coded, &of[1], &sums[1]);
        assert_int_equal(of[1], of[0]);
        assert_int_equal(sums[1], 0);
        int64_t slices = sums[0] / (ranks - 1) / 4; /* elements of this rank's slices */
        int64_t inside = (near - 1) * hosts, across = (hosts - 1);
        assert_int_equal(plan_exchanged(coded) * BASE_BLOCK4,
                         (inside + across) * slices * BASE_BLOCK4_BYTES);
        assert_int_equal(plan_exchanged_of(coded, PLAN_STATE), plan_exchanged(coded));
        if (host) {
            int64_t crossing = plan_wire_crossing(coded, PLAN_STATE, host) -
                               (plan_wire_crossing(plain, PLAN_STATE, host) -
                                sums[0] / (ranks - 1) * (ranks / host - 1));
            int64_t want = host > 1 ? across : ranks - 1;
            assert_int_equal(crossing * BASE_BLOCK4, want * slices * BASE_BLOCK4_BYTES);
        }
        assert_true(coded->largest_bytes[PLAN_OUTGOING] > 0);
        assert_int_equal(plain->largest_bytes[PLAN_OUTGOING], 0);
        assert_true(coded->total_bytes < plain->total_bytes * 5 / 4);
        plan_free(coded);
        plan_free(plain);
    }
}

enum { RANKS = 8 };

static void clean(void **state) {
    (void)state;
    static const sifr_precision types[] = {SIFR_FP32, SIFR_BF16, SIFR_FP16};
    static const int32_t on_host[] = {0, 2, 4};
    for (int n = 0; n < 9; n++) {
        plan_schedule *plans[RANKS];
        sifr_error error = {0};
        for (int32_t r = 0; r < RANKS; r++) {
            plan_settings settings = settings_of(RANKS, on_host[n % 3], r);
            settings.step.precision = types[(n + n / 3) % 3];
            settings.step.gradient_accumulation_steps = 1 + n / 3 % 2;
            settings.step.zero.stage = n % 4 == 3 ? 2 : 3;
            settings.step.zero.quantized_weights = n % 2 && settings.step.zero.stage == 3;
            settings.step.grad_accum_dtype = n == 8 ? settings.step.precision : SIFR_FP32;
            plans[r] = disk_plan_lower(&settings);
        }
        if (plan_verify_ranks((const plan_schedule *const *)plans, RANKS, &error) != SIFR_OK)
            fail_msg("%s", error.message);
        for (int32_t r = 0; r < RANKS; r++) plan_free(plans[r]);
    }
}

/* On a network that is slow beside the host, a step in codes is predicted to be shorter. The part
 * inside a host costs what a host's memory does, and the four ranks of a host share its link, whose
 * figure is that of gathers, which deliver 7 slices where 4 cross. */
static void prices(void **state) {
    (void)state;
    plan_machine machine = plan_machine_unknown();
    plan_prediction coded, plain;
    sifr_error error = {0};
    machine.fp32_operations = machine.memory_bytes = 1e11;
    machine.ranks_per_host = 4;
    machine.network = (plan_link){.latency_seconds = 1e-4, .bytes_per_second = 1e7};
    machine.host = (plan_link){.latency_seconds = 1e-6, .bytes_per_second = 1e10};
    plan_settings settings = settings_of(8, 4, 0);
    plan_schedule *s = disk_plan_lower(&settings);
    assert_int_equal(plan_predict(s, &machine, &coded, NULL, &error), SIFR_OK);
    int seen[2] = {0};
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (in->action != PLAN_EXCHANGE) continue;
        int64_t far = plan_exchange_crossing(s, in, 4), near = plan_delivered(s, in) - far;
        double want = far ? 1e-4 + (double)far * 4 * 7 / 4 / 1e7 : 1e-6 + (double)near / 1e10;
        double have = plan_price(s, i, &machine) - machine.instruction_seconds;
        assert_true(have > 0.999 * want && have < 1.001 * want);
        assert_true(!far || !near);
        seen[far > 0]++;
    }
    assert_true(seen[0] > 0 && seen[0] == seen[1]);
    plan_free(s);
    settings.step.zero.quantized_gradients = false;
    s = disk_plan_lower(&settings);
    assert_int_equal(plan_predict(s, &machine, &plain, NULL, &error), SIFR_OK);
    assert_true(coded.step_seconds < plain.step_seconds);
    plan_free(s);
}

/* A rank alone sends nothing. */
static void one_rank(void **state) {
    (void)state;
    plan_settings settings = settings_of(1, 0, 0);
    plan_schedule *s = disk_plan_lower(&settings);
    for (size_t i = 0; i < s->instruction_count; i++)
        assert_int_not_equal(s->instructions[i].action, PLAN_ENCODE);
    plan_free(s);
}

static plan_instruction *find(plan_schedule *s, plan_action action, int which) {
    for (size_t i = 0; i < s->instruction_count; i++)
        if (s->instructions[i].action == action && which-- == 0) return &s->instructions[i];
    fail_msg("the plan has no such instruction");
    return NULL;
}

static void expect_found(const plan_schedule *s, const char *what, const char *text) {
    sifr_error error = {0};
    if (plan_verify(s, &error) == SIFR_OK) fail_msg("%s: not found", what);
    if (!strstr(error.message, text)) fail_msg("%s: \"%s\"", what, error.message);
}

static void faults(void **state) {
    (void)state;
    plan_settings settings = settings_of(8, 4, 5);
    plan_schedule *s = disk_plan_lower(&settings);
    sifr_error error = {0};
    for (int hop = 0; hop < 2; hop++) {
        plan_instruction *in = find(s, PLAN_EXCHANGE, hop);
        comm_run *sent = &s->runs[in->runs + (hop ? 1 : 4)], kept = *sent;
        sent->at = hop ? kept.at + kept.bytes : kept.bytes;
        expect_found(s, "another rank's part", "gradient's codes");
        *sent = kept;
        in = find(s, PLAN_DECODE, hop);
        plan_operand *from = &s->operands[in->first_operand], was = *from;
        *from = s->operands[find(s, PLAN_ENCODE, hop)->first_operand + 1];
        expect_found(s, "its own codes taken for what came", "");
        *from = was;
        in = find(s, PLAN_ENCODE, hop);
        plan_instruction had = *in;
        in->action = PLAN_COUNT, in->call = -1, in->operands = 0;
        expect_found(s, "no codes", "");
        *in = had;
    }
    device_block_attributes *of = &s->calls[find(s, PLAN_ENCODE, 0)->call].attributes.block;
    assert_int_equal(of->slices, 8);
    assert_int_equal(of->near, 4);
    plan_instruction *sum = find(s, PLAN_DECODE, 0);
    plan_instruction had = *sum;
    sum->action = PLAN_COUNT, sum->call = -1, sum->operands = 0;
    expect_found(s, "the sum of a host left out", "");
    *sum = had;
    if (plan_verify(s, &error) != SIFR_OK) fail_msg("%s", error.message);
    plan_free(s);
}

/* Two steps only where all hosts have as many ranks, and more than one, and there are several. */
static void hosts(void **state) {
    (void)state;
    /* ranks, tensor ranks of them, of a host, and what comes of it */
    static const int32_t cases[][4] = {{8, 1, 4, 4}, {8, 1, 8, 0}, {8, 1, 1, 0}, {6, 1, 4, 0},
                                       {8, 1, 0, 0}, {8, 2, 4, 2}, {8, 2, 2, 0}, {12, 2, 3, 0}};
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        sifr_settings step = sifr_settings_defaults();
        plan_mesh mesh;
        sifr_error error = {0};
        step.mesh.tensor_size = cases[n][1];
        assert_int_equal(plan_mesh_of(&step, cases[n][0], 0, &mesh, &error), SIFR_OK);
        plan_mesh_place_hosts(&mesh, cases[n][2]);
        assert_int_equal(mesh.host, cases[n][3]);
    }
}

static void expect_refused(const plan_settings *settings, const char *text) {
    plan_schedule *s = NULL;
    sifr_error error = {0};
    assert_int_equal(plan_lower(model, dev, settings, &s, &error), SIFR_USAGE);
    if (!strstr(error.message, text)) fail_msg("%s", error.message);
}

static void refused(void **state) {
    (void)state;
    plan_settings settings = settings_of(4, 0, 0);
    for (int stage = 0; stage < 2; stage++) {
        settings.step.zero.stage = stage;
        expect_refused(&settings, "set stage to 2 or 3");
    }
    settings.step.zero.stage = 3;
    settings.step.communication_data_type = SIFR_BF16;
    expect_refused(&settings, "communication_data_type");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(figures), cmocka_unit_test(clean),
                                       cmocka_unit_test(prices),  cmocka_unit_test(one_rank),
                                       cmocka_unit_test(faults),  cmocka_unit_test(hosts),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, disk_plan_setup, disk_plan_teardown);
}

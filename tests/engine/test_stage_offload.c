/* Pipeline stages whose state is offloaded: on disk, and in host memory of devices with memory of
 * their own. The bits are those of one rank in memory, with tied weights on two stages too; each
 * rank moves what its plan says, and holds no more. timeout: 180 */
#include "support/scratch.h"
#include "support/thinned.h"
#include "support/zero_run.h"

enum { GLOBAL = 8, LAYERS = 4 };

static zero_variant variant(const char *type, sifr_precision precision) {
    return (zero_variant){.ranks = 1,
                          .type = type,
                          .precision = precision,
                          .layers = LAYERS,
                          .global = GLOBAL,
                          .evaluate = true};
}

static sifr_offload on_tier(sifr_tier tier) {
    sifr_offload offload = sifr_settings_defaults().offload;
    offload.nvme_path = scratch;
    offload.optimizer.device = tier;
    return offload;
}

static const sifr_pipeline_schedule schedules[] = {SIFR_SCHEDULE_1F1B, SIFR_SCHEDULE_GPIPE,
                                                   SIFR_SCHEDULE_INTERLEAVED};

/* The n-th of many combinations of stages, ranks and schedule. */
static void put_mesh(zero_variant *v, int n) {
    v->stages = n % 2 ? 2 : 4;
    v->ranks = n / 2 % 2 ? 2 : 1;
    v->schedule = schedules[n % 3];
    v->chunks = 1;
    if (v->schedule != SIFR_SCHEDULE_INTERLEAVED) return;
    v->stages = v->chunks = 2;
}

static void expect_same(const zero_outcome *want, zero_variant v) {
    zero_outcome have = zero_run(v);
    if (!zero_is_same(want, &have))
        fail_msg("%s, %d stages of %d ranks, schedule %d, ZeRO %d: other bits", v.type, v.stages,
                 v.ranks, (int)v.schedule, v.stage);
    if (v.ranks == 1) /* several evaluate several micro batches */
        assert_true(have.evaluated == want->evaluated);
    free(have.weights);
}

static void optimizer_on_disk(void **state) {
    (void)state;
    for (int t = 0; t < 2; t++) {
        zero_variant v = variant(t ? "gpt2" : "llama", t ? SIFR_BF16 : SIFR_FP32);
        zero_outcome want = zero_run(v);
        for (int n = 0; n < 12; n++) {
            static const int64_t groups[] = {5000, 0, 2048, 1000000};
            if (thinned_run((size_t)n)) continue;
            sifr_offload offload = on_tier(SIFR_TIER_NVME);
            offload.sub_group_size = groups[n % 4];
            offload.optimizer.ratio = n % 5 == 3 ? 0.4 : 1;
            v.offload = &offload;
            put_mesh(&v, n);
            v.stage = (n + n / 4) % 4;
            v.recompute = n % 3 == 1;
            expect_same(&want, v);
        }
        free(want.weights);
    }
    scratch_expect_empty();
}

/* Those that two stages read stay in memory; with one rank a stage and with two. */
static void parameters_on_disk(void **state) {
    (void)state;
    for (int t = 0; t < 2; t++) {
        zero_variant v = variant(t ? "gpt2" : "llama", t ? SIFR_FP32 : SIFR_BF16);
        zero_outcome want = zero_run(v);
        v.stage = 3;
        for (int n = 0; n < 12; n++) {
            if (thinned_run((size_t)n)) continue;
            sifr_offload offload = on_tier(n % 3 == 2 ? SIFR_TIER_NONE : SIFR_TIER_NVME);
            offload.param.device = SIFR_TIER_NVME;
            offload.param.max_in_cpu = n % 5 == 0 ? 20000 : 0;
            offload.gradients = n % 4 == 1 ? SIFR_TIER_NVME : SIFR_TIER_NONE;
            offload.sub_group_size = n % 2 ? 2048 : 0;
            v.offload = &offload;
            put_mesh(&v, n);
            v.recompute = n % 3 == 1;
            expect_same(&want, v);
        }
        free(want.weights);
    }
    scratch_expect_empty();
}

static void skipped(void **state) {
    (void)state;
    zero_variant v = variant("llama", SIFR_FP16);
    v.steps = ZERO_MOST_STEPS;
    v.first_scale = 0x1p24;
    v.evaluate = false;
    zero_outcome want = zero_run(v);
    assert_in_range(want.updates, 1, v.steps - 1);
    sifr_offload offload = on_tier(SIFR_TIER_NVME);
    v.offload = &offload;
    v.stages = 2;
    v.schedule = SIFR_SCHEDULE_1F1B;
    for (v.stage = 0; v.stage < 4; v.stage++) {
        v.ranks = 1 + v.stage % 2;
        offload.param.device = v.stage == 3 ? SIFR_TIER_NVME : SIFR_TIER_NONE;
        zero_expect_same(&want, v);
    }
    free(want.weights);
    scratch_expect_empty();
}

/* In every schedule, alone and beside state; several micro batches are under way at a time. */
static void activations_on_disk(void **state) {
    (void)state;
    for (int t = 0; t < 2; t++) {
        zero_variant v = variant(t ? "gpt2" : "llama", t ? SIFR_BF16 : SIFR_FP32);
        v.sequences = 8;
        v.steps = 2;
        zero_outcome want = zero_run(v);
        for (int n = 0; n < 12; n++) {
            if (thinned_run((size_t)n)) continue;
            sifr_offload offload = on_tier(n % 4 == 1 ? SIFR_TIER_NVME : SIFR_TIER_NONE);
            offload.activations = SIFR_TIER_NVME;
            v.offload = &offload;
            put_mesh(&v, n);
            if (n % 6 == 4) v.schedule = SIFR_SCHEDULE_ZB_H1;
            v.chunks = v.schedule == SIFR_SCHEDULE_INTERLEAVED ? 2 : 1;
            v.stage = (n + n / 4) % 4;
            v.recompute = n / 3 % 2;
            zero_outcome have = zero_run(v);
            if (!zero_is_same(&want, &have))
                fail_msg("%s, %d stages of %d ranks, schedule %d, ZeRO %d: other bits", v.type,
                         v.stages, v.ranks, (int)v.schedule, v.stage);
            assert_true(have.nvme_read > 0);
            assert_true(have.nvme_written > 0);
            free(have.weights);
        }
        free(want.weights);
    }
    scratch_expect_empty();
}

/* In host memory, of devices with memory of their own: one in which the host sees at once what was
 * begun, and one that hides its memory. */
static sifr_status open_hidden(device **out, sifr_error *error) {
    return device_open_queued(1, NULL, 20, 7, out, error);
}

static void in_host_memory(void **state) {
    (void)state;
    zero_variant v = variant("llama", SIFR_BF16);
    v.sequences = 4;
    zero_outcome want = zero_run(v);
    for (int n = 0; n < 12; n++) {
        if (thinned_run((size_t)n)) continue;
        sifr_offload offload = on_tier(n % 4 == 3 ? SIFR_TIER_NVME : SIFR_TIER_CPU);
        v.separate = n < 6;
        v.hidden = !v.separate;
        v.open = v.hidden ? open_hidden : NULL;
        v.offload = &offload;
        put_mesh(&v, n);
        v.stage = n % 4;
        if (v.stage == 3) offload.param.device = n % 2 ? SIFR_TIER_CPU : SIFR_TIER_NVME;
        if (n % 3 != 1) offload.activations = n % 4 == 3 ? SIFR_TIER_NVME : SIFR_TIER_CPU;
        if (v.stage >= 2 && n % 3 == 0) offload.gradients = SIFR_TIER_CPU;
        zero_outcome have = zero_run(v);
        assert_true(zero_is_same(&want, &have));
        assert_true(have.host_bytes > 0 || have.nvme_bytes > 0);
        free(have.weights);
    }
    free(want.weights);
    scratch_expect_empty();
}

/* What is offloaded is not in memory: the first stage's block is smaller by its moments and
 * masters, but for the buffers that they pass through. */
static void memory(void **state) {
    (void)state;
    zero_variant v = variant("llama", SIFR_BF16);
    v.stages = 2;
    v.schedule = SIFR_SCHEDULE_1F1B;
    zero_outcome here = zero_run(v);
    sifr_offload offload = on_tier(SIFR_TIER_NVME);
    v.offload = &offload;
    zero_outcome offloaded = zero_run(v);
    int64_t states = here.peak[PLAN_MASTERS] + here.peak[PLAN_MOMENTS];
    assert_true(states > 0);
    assert_int_equal(offloaded.peak[PLAN_MASTERS] + offloaded.peak[PLAN_MOMENTS], 0);
    assert_int_equal(here.nvme_bytes, 0);
    assert_in_range(offloaded.nvme_bytes, states, states + 64 * 4096);
    assert_true(zero_is_same(&here, &offloaded));
    free(here.weights);
    free(offloaded.weights);
    scratch_expect_empty();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optimizer_on_disk), cmocka_unit_test(parameters_on_disk),
        cmocka_unit_test(skipped),           cmocka_unit_test(activations_on_disk),
        cmocka_unit_test(in_host_memory),    cmocka_unit_test(memory)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}

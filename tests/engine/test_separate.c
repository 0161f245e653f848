/* A device whose memory is its own: the same bits as on CPU ranks with each class of state in the
 * device's memory, the host's and on disk, by itself and mixed; what of the plan is where. Each
 * step of these runs checks what lies in each memory, and what crosses (zero_run.h). timeout: 120,
 * label: full */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "support/scratch.h"
#include "support/thinned.h"
#include "support/zero_run.h"

enum { GLOBAL = 4, SEQUENCES = 8 };

/* Tiers by class: master weights, moments, parameters, gradients, activations. Where both of the
 * first two are offloaded they are on one tier. */
enum { CLASSES = 5 };

static const sifr_tier tier_of[] = {
    [PLAN_DEVICE] = SIFR_TIER_NONE, [PLAN_HOST] = SIFR_TIER_CPU, [PLAN_NVME] = SIFR_TIER_NVME};

static sifr_offload offload_of(const plan_tier tiers[CLASSES]) {
    sifr_offload o = sifr_settings_defaults().offload;
    plan_tier state = tiers[0] == PLAN_DEVICE ? tiers[1] : tiers[0];
    bool disk = false;
    o.optimizer.device = tier_of[state];
    if (tiers[0] != tiers[1])
        o.optimizer.state = state == tiers[0] ? SIFR_STATE_MASTER_WEIGHTS : SIFR_STATE_MOMENTS;
    o.param.device = tier_of[tiers[2]];
    o.gradients = tier_of[tiers[3]];
    o.activations = tier_of[tiers[4]];
    for (int c = 0; c < CLASSES; c++) disk |= tiers[c] == PLAN_NVME;
    if (disk) o.nvme_path = scratch;
    return o;
}

static bool uses(const plan_tier tiers[CLASSES], plan_tier tier) {
    for (int c = 0; c < CLASSES; c++) {
        if (tiers[c] == tier) return true;
    }
    return false;
}

static zero_outcome run_same(const zero_outcome *want, zero_variant v,
                             const plan_tier tiers[CLASSES], int64_t sub_group) {
    sifr_offload offload = offload_of(tiers);
    offload.sub_group_size = sub_group;
    v.offload = &offload;
    v.separate = true;
    zero_outcome have = zero_run(v);
    if (!zero_is_same(want, &have))
        fail_msg("%s, %d ranks, stage %d, unit order %d, tiers %d %d %d %d %d: other bits", v.type,
                 v.ranks, v.stage, v.unit_order, tiers[0], tiers[1], tiers[2], tiers[3], tiers[4]);
    assert_int_equal(have.host_bytes > 0, uses(tiers, PLAN_HOST));
    assert_int_equal(have.nvme_bytes > 0, uses(tiers, PLAN_NVME));
    free(have.weights);
    return have;
}

/* Each class on each tier, the others on the device. */
static void each_class(void **state) {
    (void)state;
    for (int t = 0; t < 3; t++) {
        zero_variant v = {.ranks = 1,
                          .type = t == 2 ? "gpt2" : "llama",
                          .precision = (sifr_precision)t,
                          .sequences = SEQUENCES,
                          .evaluate = true,
                          .global = GLOBAL};
        zero_outcome want = zero_run(v);
        for (int n = 0; n < CLASSES * PLAN_TIERS; n++) {
            plan_tier tiers[CLASSES] = {0};
            if (thinned_out((size_t)(n + t))) continue; /* each tier once, of all classes */
            if (t == 0 && n < PLAN_TIERS) continue;     /* fp32 has no master weights */
            tiers[n / PLAN_TIERS] = (plan_tier)(n % PLAN_TIERS);
            v.ranks = 1 << (n + t) % 3;
            v.stage = 3;
            v.unit_order = n % 2;
            v.recompute = n / 2 % 2;
            zero_outcome have = run_same(&want, v, tiers, 3000);
            if (v.ranks == 1) assert_true(have.evaluated == want.evaluated);
        }
        free(want.weights);
    }
    scratch_expect_empty();
}

/* All of them offloaded, not all to the same tier. */
static void mixed(void **state) {
    (void)state;
    for (int n = 0; n < 8; n++) {
        plan_tier tiers[CLASSES];
        if (thinned_out((size_t)n)) continue;
        for (int c = 1; c < CLASSES; c++) tiers[c] = n >> (c - 1) & 1 ? PLAN_NVME : PLAN_HOST;
        tiers[0] = tiers[1];
        zero_variant v = {.ranks = 1 << n % 3,
                          .type = n % 3 ? "llama" : "gpt2",
                          .precision = (sifr_precision)(n % 3),
                          .stage = 3,
                          .sequences = SEQUENCES,
                          .unit_order = n / 2 % 2,
                          .recompute = n % 2,
                          .global = GLOBAL};
        zero_outcome want = zero_run(v);
        run_same(&want, v, tiers, 2048);
        free(want.weights);
    }
    scratch_expect_empty();
}

/* Optimizer state in host memory at every stage, in sub-groups of any size, also where steps are
 * skipped and weights frozen. */
static void optimizer_state(void **state) {
    (void)state;
    static const plan_tier tiers[CLASSES] = {PLAN_HOST, PLAN_HOST};
    static const int64_t groups[] = {1, 5000, 0, 2048};
    for (int t = 0; t < 2; t++) {
        zero_variant v = {.ranks = 1,
                          .type = "llama",
                          .precision = t ? SIFR_FP16 : SIFR_FP32,
                          .global = GLOBAL,
                          .freeze = {t ? "*layers.0*" : NULL}};
        if (t) v.steps = ZERO_MOST_STEPS, v.first_scale = 0x1p22;
        zero_outcome want = zero_run(v);
        if (t) {
            assert_true(want.norm[0] < 0);
            assert_true(want.updates > 0);
        }
        for (int n = 0; n < 8; n++) {
            if (thinned_out((size_t)n)) continue;
            v.ranks = n < 4 ? 2 : 4;
            v.stage = n % 4;
            v.unit_order = n % 2;
            run_same(&want, v, tiers, groups[n % 4]);
        }
        free(want.weights);
    }
}

/* What leaves the device is in host memory, and a step copies each byte of it there and back. */
static void plan(void **state) {
    (void)state;
    for (int t = 0; t < 2; t++) {
        zero_variant v = {.ranks = 2,
                          .type = "llama",
                          .precision = (sifr_precision)(t ? SIFR_BF16 : SIFR_FP32),
                          .stage = 2,
                          .global = 2};
        static const plan_tier tiers[CLASSES] = {PLAN_HOST, PLAN_HOST}, none[CLASSES] = {0};
        zero_outcome want = zero_run(v);
        zero_outcome all = run_same(&want, v, none, 1024), host = run_same(&want, v, tiers, 1024);
        int64_t moved = all.peak[PLAN_MOMENTS] + all.peak[PLAN_MASTERS];
        assert_int_equal(all.total_bytes, want.total_bytes);
        assert_int_equal(host.host_bytes, moved);
        assert_int_equal(host.peak[PLAN_MOMENTS] + host.peak[PLAN_MASTERS], 0);
        assert_true(all.total_bytes - host.total_bytes > moved * 9 / 10);
        assert_true(host.host_read == moved);
        assert_true(host.host_written == moved);
        assert_true(host.nvme_read == 0);
        assert_true(host.nvme_written == 0);
        free(want.weights);
    }
}

/* Where device and host are one memory the host's tier is no other place. */
static void one_memory(void **state) {
    (void)state;
    static const plan_tier tiers[CLASSES] = {PLAN_HOST, PLAN_HOST, PLAN_HOST, PLAN_HOST, PLAN_HOST};
    zero_variant v = {.ranks = 2, .type = "llama", .stage = 3, .global = 2};
    zero_outcome want = zero_run(v);
    sifr_offload offload = offload_of(tiers);
    v.offload = &offload;
    zero_outcome have = zero_run(v);
    assert_true(zero_is_same(&want, &have));
    assert_true(have.host_bytes == 0);
    assert_true(have.total_bytes == want.total_bytes);
    free(want.weights);
    free(have.weights);
}

/* What a separate device refuses, and counts. */
static void refusals(void **state) {
    (void)state;
    device *dev;
    void *block, *host;
    sifr_error error = {0};
    assert_int_equal(device_open_separate(1, NULL, &dev, &error), SIFR_OK);
    assert_int_equal(device_take(dev, 8192, &block, &error), SIFR_OK);
    assert_int_equal(device_take_host(dev, 4096, &host, &error), SIFR_OK);
    device_matrix inside = {block, 2, 512, 512, BASE_FP32}, outside = inside, beyond = inside;
    outside.data = host;
    beyond.data = (char *)block + 4096 + 64;
    device_call call = {.kernel = DEVICE_ADD, .x = {inside, inside}, .y = inside};
    assert_int_equal(device_prepare(dev, &call, &error), SIFR_OK);
    assert_int_equal(device_run(dev, &call, &error), SIFR_OK);
    call.x[1] = outside;
    assert_int_equal(device_run(dev, &call, &error), SIFR_FAILED);
    assert_message(&error, "kernel add: operand x[1] is not in the device's memory");
    call.x[1] = inside;
    call.y = beyond;
    assert_int_equal(device_run(dev, &call, &error), SIFR_FAILED);
    assert_message(&error, "operand y[0]");
    assert_int_equal(device_copy(dev, block, host, 4096, &error), SIFR_OK);
    assert_int_equal(device_copy(dev, host, block, 1000, &error), SIFR_OK);
    assert_int_equal(device_copy(dev, block, (char *)block + 4096, 4096, &error), SIFR_FAILED);
    assert_message(&error, "both ends are in the device's memory");
    device_counts counts = device_count(dev);
    assert_true(counts.device_bytes == 8192);
    assert_true(counts.host_bytes == 4096);
    assert_true(counts.to_device == 4096);
    assert_true(counts.to_host == 1000);
    device_give(dev, block, 8192);
    device_give(dev, host, 4096);
    counts = device_count(dev);
    assert_true(counts.device_bytes == 0);
    assert_true(counts.host_bytes == 0);
    device_close(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optimizer_state), cmocka_unit_test(plan),  cmocka_unit_test(one_memory),
        cmocka_unit_test(refusals),        cmocka_unit_test(mixed), cmocka_unit_test(each_class)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}

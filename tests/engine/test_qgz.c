/* Gradients that travel in 4 bits (ZeRO++'s qgZ): the same bits from run to run, in both orders,
 * with recomputation, offload, stages, copies, tensor and context ranks; a loss near that without,
 * neither infinite nor constant; overflows that are seen; each step moves and holds what its plan
 * says (zero_run.h). in test_tsan */
#include <math.h>

#include "support/scratch.h"
#include "support/thinned.h"
#include "support/zero_run.h"

enum { GLOBAL = 8 };

static sifr_zero keys_of(bool all) {
    sifr_zero keys = sifr_settings_defaults().zero;
    keys.quantized_gradients = true;
    keys.quantized_weights = all;
    keys.overlap_comm = true;
    return keys;
}

static double mean_of(const zero_outcome *of, int steps) {
    double sum = 0;
    for (int s = 0; s < steps; s++) sum += of->loss[s];
    return sum / steps;
}

/* Twice the same, and other bits than without, but near. */
static void expect_near(zero_variant v) {
    sifr_zero keys = *v.keys, plain = keys;
    plain.quantized_gradients = plain.quantized_weights = false;
    zero_outcome coded = zero_run(v);
    zero_expect_same(&coded, v);
    v.keys = &plain;
    zero_outcome want = zero_run(v);
    assert_false(zero_is_same(&want, &coded));
    for (int s = 0; s < ZERO_STEPS; s++) {
        assert_true(isfinite(coded.loss[s]));
        assert_true(fabs(coded.loss[s] - want.loss[s]) < 0.02 * want.loss[s]);
    }
    assert_true(coded.loss[0] == want.loss[0] || keys.quantized_weights);
    free(coded.weights);
    free(want.weights);
}

static void any_way(void **state) {
    (void)state;
    static const char *const types[] = {"llama", "gpt2"};
    /* ranks, on a host, copies of the state, tensor ranks */
    static const int32_t meshes[][4] = {{2, 0, 0, 0}, {4, 0, 0, 0}, {4, 2, 0, 0}, {8, 2, 0, 0},
                                        {8, 4, 0, 0}, {8, 0, 4, 0}, {8, 2, 4, 0}, {4, 0, 0, 2}};
    for (size_t n = 0; n < 24; n++) {
        const int32_t *mesh = meshes[n % 8];
        if (thinned_run(n)) continue;
        sifr_zero keys = keys_of(n % 3 == 2);
        keys.overlap_comm = n % 5 != 4;
        keys.hpz_partition_size = mesh[1] && !mesh[2] ? mesh[1] : 0; /* the usual three */
        zero_variant v = {.ranks = mesh[0],
                          .per_host = mesh[1],
                          .shard_size = mesh[2],
                          .tensors = mesh[3],
                          .stage = n % 4 == 1 ? 2 : 3,
                          .type = types[n % 2 && !mesh[3]],
                          .precision = (sifr_precision)(n / 8),
                          .unit_order = n % 7 < 3,
                          .recompute = n % 2,
                          .global = GLOBAL,
                          .keys = &keys};
        if (v.stage < 3) keys.quantized_weights = false;
        expect_near(v);
    }
}

/* In DeepSpeed some see a loss that is infinite, one that stays as it began, or one that does not
 * come down. */
static void learns(void **state) {
    (void)state;
    sifr_zero keys = keys_of(true);
    for (int t = 0; t < 3; t++) {
        zero_variant v = {.ranks = 4,
                          .stage = 3,
                          .type = "llama",
                          .precision = (sifr_precision)t,
                          .global = 4,
                          .steps = ZERO_MOST_STEPS};
        zero_outcome plain = zero_run(v);
        v.keys = &keys;
        v.per_host = 2;
        zero_outcome coded = zero_run(v);
        for (int s = 0; s < ZERO_MOST_STEPS; s++) {
            assert_true(isfinite(coded.loss[s]));
            assert_true(fabs(coded.loss[s] - plain.loss[s]) < 0.05 * plain.loss[s]);
            if (s > 0) assert_true(coded.loss[s] != coded.loss[s - 1] || t == SIFR_FP16);
        }
        assert_true(fabs(mean_of(&coded, ZERO_MOST_STEPS) - mean_of(&plain, ZERO_MOST_STEPS)) <
                    0.02 * mean_of(&plain, ZERO_MOST_STEPS));
        free(plain.weights);
        free(coded.weights);
    }
}

/* fp16: a gradient that is infinite on one rank makes its blocks no numbers on all, so the step is
 * skipped and the scale comes down, as without codes. */
static void overflow_is_seen(void **state) {
    (void)state;
    sifr_zero keys = keys_of(false);
    zero_variant v = {.ranks = 4,
                      .stage = 3,
                      .type = "llama",
                      .precision = SIFR_FP16,
                      .global = 4,
                      .steps = ZERO_MOST_STEPS,
                      .first_scale = 0x1p24};
    zero_outcome plain = zero_run(v);
    v.keys = &keys;
    v.per_host = 2;
    zero_outcome coded = zero_run(v);
    assert_true(plain.updates < ZERO_MOST_STEPS && plain.updates > 0);
    assert_int_equal(coded.updates, plain.updates);
    for (int s = 0; s < ZERO_MOST_STEPS; s++) {
        assert_true(coded.scale[s] == plain.scale[s]);
        assert_true((coded.norm[s] < 0) == (plain.norm[s] < 0));
    }
    free(plain.weights);
    free(coded.weights);
}

static void stages(void **state) {
    (void)state;
    static const sifr_pipeline_schedule schedules[] = {
        SIFR_SCHEDULE_1F1B, SIFR_SCHEDULE_INTERLEAVED, SIFR_SCHEDULE_ZB_H1};
    sifr_zero keys = keys_of(true);
    for (size_t n = 0; n < 3; n++) {
        if (thinned_run(n)) continue;
        zero_variant v = {.ranks = 4,
                          .per_host = n == 1 ? 2 : 0,
                          .stages = 2,
                          .stage = 3,
                          .type = "llama",
                          .layers = 4,
                          .global = GLOBAL,
                          .schedule = schedules[n],
                          .chunks = schedules[n] == SIFR_SCHEDULE_INTERLEAVED ? 2 : 1,
                          .keys = &keys};
        expect_near(v);
    }
}

/* Context ranks of each kind, which share the state, so codes travel between them, too. */
static void contexts(void **state) {
    (void)state;
    for (size_t n = 0; n < 6; n++) {
        if (thinned_run(n)) continue;
        sifr_zero keys = keys_of(n > 2);
        zero_variant v = {.ranks = n % 3 == SIFR_CONTEXT_BOTH ? 8 : 4,
                          .per_host = n > 2 ? 2 : 0,
                          .contexts = n % 3 == SIFR_CONTEXT_BOTH ? 4 : 2,
                          .kind = (sifr_context_kind)(n % 3),
                          .stage = n < 2 ? 2 : 3,
                          .type = "llama",
                          .precision = n % 2 ? SIFR_BF16 : SIFR_FP32,
                          .unit_order = n > 3,
                          .recompute = n % 2,
                          .global = GLOBAL,
                          .keys = &keys};
        expect_near(v);
    }
}

/* The optimizer's state, and gradients, are on disk; matrices are frozen in 4 bits; gradients are
 * kept in 16 bits; weights are updated as wholes. */
static void beside_others(void **state) {
    (void)state;
    sifr_zero keys = keys_of(false);
    sifr_offload offload = sifr_settings_defaults().offload;
    sifr_optimizer optimizer = sifr_settings_defaults().optimizer;
    offload.nvme_path = scratch;
    offload.optimizer.device = offload.gradients = SIFR_TIER_NVME;
    optimizer.type = SIFR_LAMB;
    for (int n = 0; n < 5; n++) {
        if (thinned_run((size_t)n)) continue;
        zero_variant v = {.ranks = 4,
                          .per_host = 2,
                          .stage = 3,
                          .type = "llama",
                          .precision = SIFR_BF16,
                          .global = GLOBAL,
                          .keys = &keys,
                          .offload = n == 0 ? &offload : NULL};
        if (n == 1) v.coding = MODEL_NF4, v.intermediate = 1000, v.freeze[0] = "*mlp*";
        if (n == 2) v.gradients = SIFR_BF16;
        if (n == 3) v.optimizer = &optimizer;
        if (n == 4) v.separate = true;
        expect_near(v);
    }
    scratch_expect_empty();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_way), cmocka_unit_test(learns),   cmocka_unit_test(overflow_is_seen),
        cmocka_unit_test(stages),  cmocka_unit_test(contexts), cmocka_unit_test(beside_others)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}

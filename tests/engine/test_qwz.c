/* Gathers that carry 8 bits a parameter (ZeRO++'s qwZ): the same bits on 1, 2, 4 and 8 ranks, in
 * both orders, with recomputation, second copies (hpZ), pipeline stages, copies of the state and
 * context ranks; a loss near that without, neither infinite nor constant; fewer bytes by the
 * formula; each step moves and holds what its plan says (zero_run.h). in test_tsan */
#include <math.h>

#include "support/scratch.h"
#include "support/thinned.h"
#include "support/zero_run.h"

enum { GLOBAL = 8 };

static sifr_zero keys_of(int32_t near) {
    sifr_zero keys = sifr_settings_defaults().zero;
    keys.hpz_partition_size = near;
    keys.quantized_weights = true;
    keys.overlap_comm = true;
    return keys;
}

static void any_ranks(void **state) {
    (void)state;
    static const char *const types[] = {"llama", "gpt2"};
    /* ranks, second copies, copies of the state */
    static const int32_t meshes[][3] = {{2, 0, 0}, {4, 0, 0}, {4, 2, 0}, {8, 0, 0},
                                        {8, 4, 0}, {8, 0, 4}, {8, 2, 4}};
    size_t turn = 0;
    for (int t = 0; t < 3; t++) {
        sifr_zero keys = keys_of(0);
        zero_variant v = {.ranks = 1,
                          .stage = 3,
                          .type = types[t % 2],
                          .precision = (sifr_precision)t,
                          .global = GLOBAL,
                          .keys = &keys};
        zero_outcome want = zero_run(v);
        for (int n = 0; n < 14; n++) {
            if (thinned_run(turn++)) continue;
            keys = keys_of(meshes[n % 7][1]);
            v.ranks = meshes[n % 7][0], v.shard_size = meshes[n % 7][2];
            v.unit_order = n / 7;
            v.recompute = n % 2;
            keys.overlap_comm = n % 5 != 4;
            if (n % 3 == 1) keys.prefetch_bucket_size = 50000000;
            if (n % 4 == 2) keys.max_reuse_distance = 1000000000;
            zero_expect_same(&want, v);
        }
        free(want.weights);
    }
}

/* In DeepSpeed some see a loss that is infinite, or stays as it began. */
static void learns(void **state) {
    (void)state;
    sifr_zero keys = keys_of(0);
    for (int t = 0; t < 3; t++) {
        zero_variant v = {.ranks = 2,
                          .stage = 3,
                          .type = "llama",
                          .precision = (sifr_precision)t,
                          .global = 2,
                          .steps = ZERO_MOST_STEPS};
        zero_outcome plain = zero_run(v);
        v.keys = &keys;
        zero_outcome coded = zero_run(v);
        assert_false(zero_is_same(&plain, &coded));
        for (int s = 0; s < ZERO_MOST_STEPS; s++) {
            assert_true(isfinite(coded.loss[s]));
            assert_true(fabs(coded.loss[s] - plain.loss[s]) < 0.02 * plain.loss[s]);
            if (s > 0) assert_true(coded.loss[s] != coded.loss[s - 1] || t == SIFR_FP16);
        }
        free(plain.weights);
        free(coded.weights);
    }
}

/* (1 + 4 / 1,024) bytes an element in place of 4 or 2. */
static void wire(void **state) {
    (void)state;
    for (int t = 0; t < 2; t++) {
        sifr_zero keys = keys_of(0);
        zero_variant v = {.ranks = 4,
                          .stage = 3,
                          .type = "llama",
                          .precision = (sifr_precision)t,
                          .global = GLOBAL};
        zero_outcome plain = zero_run(v);
        v.keys = &keys;
        zero_outcome coded = zero_run(v);
        assert_int_equal(coded.gathered * 1024 * (t ? 2 : 4), plain.gathered * 1028);
        assert_int_equal(coded.reduced, plain.reduced);
        assert_int_equal(coded.gathers, plain.gathers);
        free(plain.weights);
        free(coded.weights);
    }
}

static void stages(void **state) {
    (void)state;
    static const sifr_pipeline_schedule schedules[] = {
        SIFR_SCHEDULE_1F1B, SIFR_SCHEDULE_INTERLEAVED, SIFR_SCHEDULE_ZB_H1};
    sifr_zero keys = keys_of(0);
    zero_variant v = {
        .ranks = 1, .stage = 3, .type = "llama", .layers = 4, .global = GLOBAL, .keys = &keys};
    zero_outcome want = zero_run(v);
    v.stages = 2;
    for (size_t n = 0; n < 3; n++) {
        if (thinned_run(n)) continue;
        v.ranks = n == 0 ? 1 : 4;
        keys.hpz_partition_size = n == 2 ? 2 : 0;
        v.schedule = schedules[n];
        v.chunks = v.schedule == SIFR_SCHEDULE_INTERLEAVED ? 2 : 1;
        zero_expect_same(&want, v);
    }
    free(want.weights);
}

/* Context ranks of each kind share the state: the same bits on any number of times as many. */
static void contexts(void **state) {
    (void)state;
    for (size_t n = 0; n < 3; n++) {
        if (thinned_run(n)) continue;
        sifr_zero keys = keys_of(0);
        int32_t ranks = n == SIFR_CONTEXT_BOTH ? 4 : 2;
        zero_variant v = {.ranks = ranks,
                          .contexts = ranks,
                          .kind = (sifr_context_kind)n,
                          .stage = 3,
                          .type = "llama",
                          .precision = n ? SIFR_BF16 : SIFR_FP32,
                          .global = GLOBAL,
                          .keys = &keys};
        zero_outcome want = zero_run(v);
        v.recompute = true;
        zero_expect_same(&want, v);
        v.ranks = 2 * ranks;
        keys.hpz_partition_size = 2;
        zero_expect_same(&want, v);
        keys.quantized_weights = false;
        zero_outcome plain = zero_run(v);
        assert_false(zero_is_same(&want, &plain));
        for (int s = 0; s < ZERO_STEPS; s++)
            assert_true(fabs(want.loss[s] - plain.loss[s]) < 0.02 * plain.loss[s]);
        free(want.weights);
        free(plain.weights);
    }
}

/* Small units that stay whole are not gathered, on any number of ranks; frozen matrices in 4 bits
 * stay such; the optimizer's state is on disk; evaluations gather codes, too. */
static void beside_others(void **state) {
    (void)state;
    sifr_zero keys = keys_of(0);
    sifr_offload offload = sifr_settings_defaults().offload;
    offload.nvme_path = scratch;
    offload.optimizer.device = SIFR_TIER_NVME;
    for (int n = 0; n < 3; n++) {
        if (thinned_run((size_t)n)) continue;
        keys.param_persistence_threshold = n == 0 ? 5000 : 0;
        keys.model_persistence_threshold = INT64_MAX;
        zero_variant v = {.ranks = 1,
                          .stage = 3,
                          .type = "llama",
                          .precision = SIFR_BF16,
                          .global = GLOBAL,
                          .keys = &keys,
                          .offload = n == 1 ? &offload : NULL,
                          .evaluate_each = n == 0};
        if (n == 2) v.coding = MODEL_NF4, v.intermediate = 1000, v.freeze[0] = "*mlp*";
        zero_outcome want = zero_run(v);
        v.ranks = 4;
        zero_expect_same(&want, v);
        free(want.weights);
    }
    scratch_expect_empty();
}

/* Codes are made of slices that lie on disk, or in host memory beside a device's own. */
static void parameters_away(void **state) {
    (void)state;
    sifr_zero keys = keys_of(0);
    sifr_offload offload = sifr_settings_defaults().offload;
    offload.nvme_path = scratch;
    for (int n = 0; n < 6; n++) {
        if (thinned_run((size_t)n)) continue;
        keys.hpz_partition_size = 0;
        zero_variant v = {.ranks = 1,
                          .stage = 3,
                          .type = "llama",
                          .precision = n % 2 ? SIFR_BF16 : SIFR_FP32,
                          .global = GLOBAL,
                          .keys = &keys,
                          .evaluate_each = n == 1};
        zero_outcome want = zero_run(v);
        offload.param.device = n < 4 ? SIFR_TIER_NVME : SIFR_TIER_CPU;
        offload.optimizer.device = n % 3 ? offload.param.device : SIFR_TIER_NONE;
        offload.param.buffer_count = n == 2 ? 2 : 0;
        v.offload = &offload;
        v.separate = n >= 4;
        v.recompute = n % 2;
        v.unit_order = n % 4 == 1;
        for (v.ranks = 1; v.ranks <= 4; v.ranks *= 4) {
            keys.hpz_partition_size = v.ranks == 4 && n % 2 ? 2 : 0;
            zero_expect_same(&want, v);
        }
        free(want.weights);
    }
    scratch_expect_empty();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_ranks),      cmocka_unit_test(learns),
        cmocka_unit_test(wire),           cmocka_unit_test(stages),
        cmocka_unit_test(contexts),       cmocka_unit_test(beside_others),
        cmocka_unit_test(parameters_away)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}

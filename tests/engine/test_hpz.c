/* Second copies of the parameters among neighbours (ZeRO++'s hpZ): the bits of one rank, and of the
 * same run without, at 4 and 8 ranks, in both orders, with recomputation, in pipeline stages, with
 * copies of the state, with transfers early and late, on disk, of frozen weights in 4 bits; each
 * step moves and holds what its plan says (zero_run.h). In DeepSpeed such runs do not converge for
 * some users; here a step cannot tell where a gather came from.
 * in test_tsan */
#include "support/scratch.h"
#include "support/thinned.h"
#include "support/zero_run.h"

enum { GLOBAL = 8 };

static sifr_zero keys_of(int32_t near) {
    sifr_zero keys = sifr_settings_defaults().zero;
    keys.hpz_partition_size = near;
    keys.overlap_comm = true;
    return keys;
}

static void same_bits(void **state) {
    (void)state;
    static const char *const types[] = {"llama", "gpt2"};
    static const int32_t meshes[][3] = {{4, 2, 0}, {8, 2, 0}, {8, 4, 0}, {8, 2, 4}};
    size_t turn = 0;
    for (int t = 0; t < 3; t++) {
        zero_variant v = {
            .ranks = 1, .type = types[t % 2], .precision = (sifr_precision)t, .global = GLOBAL};
        zero_outcome want = zero_run(v);
        v.stage = 3;
        for (int n = 0; n < 16; n++) {
            if (thinned_run(turn++)) continue;
            sifr_zero keys = keys_of(meshes[n % 4][1]);
            v.ranks = meshes[n % 4][0], v.shard_size = meshes[n % 4][2];
            v.unit_order = n / 4 % 2;
            v.recompute = n / 8;
            keys.overlap_comm = n % 5 != 4;
            if (n % 3 == 1) keys.prefetch_bucket_size = 50000000;
            v.keys = &keys;
            zero_expect_same(&want, v);
        }
        free(want.weights);
    }
}

/* Bytes of gathers are fewer by what neighbours lack no more, and memory is more by the copies. */
static void less_wire(void **state) {
    (void)state;
    sifr_zero keys = keys_of(0);
    zero_variant v = {.ranks = 8, .stage = 3, .type = "llama", .global = GLOBAL, .keys = &keys};
    zero_outcome without = zero_run(v);
    keys.hpz_partition_size = 8; /* all of them: as without */
    zero_expect_same(&without, v);
    keys.hpz_partition_size = 2;
    zero_outcome with = zero_run(v);
    assert_true(zero_is_same(&without, &with));
    assert_int_equal(with.gathers, without.gathers);
    assert_int_equal(with.reduced, without.reduced);
    assert_true(with.gathered < without.gathered);
    assert_true(with.total_bytes > without.total_bytes);
    free(with.weights);
    free(without.weights);
}

static void stages(void **state) {
    (void)state;
    static const sifr_pipeline_schedule schedules[] = {
        SIFR_SCHEDULE_1F1B, SIFR_SCHEDULE_GPIPE, SIFR_SCHEDULE_INTERLEAVED, SIFR_SCHEDULE_ZB_H1};
    sifr_zero keys = keys_of(2);
    zero_variant v = {.ranks = 1, .type = "llama", .layers = 4, .global = GLOBAL};
    zero_outcome want = zero_run(v);
    v.stage = 3, v.ranks = 4, v.stages = 2, v.keys = &keys;
    for (size_t n = 0; n < 4; n++) {
        if (thinned_run(n)) continue;
        v.schedule = schedules[n];
        v.chunks = v.schedule == SIFR_SCHEDULE_INTERLEAVED ? 2 : 1;
        v.recompute = n % 2;
        zero_expect_same(&want, v);
    }
    free(want.weights);
}

/* Parameters on disk are read for the first gather alone. */
static void on_disk(void **state) {
    (void)state;
    sifr_zero keys = keys_of(2);
    zero_variant v = {.ranks = 1, .type = "llama", .precision = SIFR_BF16, .global = GLOBAL};
    zero_outcome want = zero_run(v);
    v.stage = 3, v.ranks = 4;
    sifr_offload offload = sifr_settings_defaults().offload;
    offload.nvme_path = scratch;
    offload.param.device = SIFR_TIER_NVME;
    v.offload = &offload;
    for (size_t n = 0; n < 4; n++) {
        if (thinned_run(n)) continue;
        offload.optimizer.device = n % 2 ? SIFR_TIER_NVME : SIFR_TIER_NONE;
        offload.gradients = n % 2 ? SIFR_TIER_NVME : SIFR_TIER_NONE;
        v.unit_order = n / 2;
        v.keys = NULL;
        zero_outcome plain = zero_run(v);
        v.keys = &keys;
        zero_outcome have = zero_run(v);
        assert_true(zero_is_same(&want, &plain) && zero_is_same(&want, &have));
        assert_true(have.nvme_read < plain.nvme_read);
        free(plain.weights);
        free(have.weights);
    }
    free(want.weights);
    scratch_expect_empty();
}

/* Optimizer state on disk, whose updates run in the next step's forward pass; state in host memory
 * beside devices with memory of their own; evaluations between steps. */
static void beside_others(void **state) {
    (void)state;
    sifr_zero keys = keys_of(2);
    zero_variant v = {.ranks = 1, .type = "llama", .precision = SIFR_FP16, .global = GLOBAL};
    zero_outcome want = zero_run(v);
    sifr_offload offload = sifr_settings_defaults().offload;
    offload.nvme_path = scratch;
    v.stage = 3, v.ranks = 4, v.keys = &keys, v.offload = &offload, v.evaluate_each = true;
    for (int n = 0; n < 3; n++) {
        if (thinned_run((size_t)n)) continue;
        offload.optimizer.device = n ? SIFR_TIER_NVME : SIFR_TIER_CPU;
        offload.activations = n == 2 ? SIFR_TIER_NVME : SIFR_TIER_NONE;
        v.separate = n == 0;
        zero_expect_same(&want, v);
    }
    free(want.weights);
    scratch_expect_empty();
}

/* Frozen matrices as codes, which are moved as words. */
static void coded(void **state) {
    (void)state;
    sifr_zero keys = keys_of(2);
    zero_variant v = {.ranks = 1,
                      .type = "llama",
                      .precision = SIFR_BF16,
                      .global = GLOBAL,
                      .intermediate = 1000,
                      .freeze = {"*mlp*", "*q_proj*"}};
    for (size_t n = 0; n < 2; n++) {
        if (thinned_run(n)) continue;
        v.coding = n ? MODEL_NF4_DOUBLED : MODEL_NF4;
        v.ranks = 1, v.stage = 0, v.keys = NULL;
        zero_outcome want = zero_run(v);
        v.ranks = 4, v.stage = 3, v.keys = &keys;
        zero_expect_same(&want, v);
        free(want.weights);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits),     cmocka_unit_test(less_wire),
                                       cmocka_unit_test(stages),        cmocka_unit_test(on_disk),
                                       cmocka_unit_test(beside_others), cmocka_unit_test(coded)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}

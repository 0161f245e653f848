/* Activations on disk: the same bits as in memory, on 1, 2 and 4 ranks, at every stage, in both
 * orders, whatever is recomputed, alone and beside all other state there; what leaves memory.
 * timeout: 120, label: full */
#include "support/scratch.h"
#include "support/zero_run.h"

enum { GLOBAL = 4, SEQUENCES = 8 };

static sifr_offload on_disk(void) {
    sifr_offload offload = sifr_settings_defaults().offload;
    offload.nvme_path = scratch;
    offload.optimizer.device = SIFR_TIER_NONE;
    offload.activations = SIFR_TIER_NVME;
    return offload;
}

/* Something is there, and the bits are the same. */
static zero_outcome run_same(const zero_outcome *want, zero_variant v) {
    zero_outcome have = zero_run(v);
    assert_true(have.nvme_bytes > 0);
    assert_true(have.nvme_written > 0);
    assert_true(have.nvme_read > 0);
    if (!zero_is_same(want, &have))
        fail_msg("%s, %d ranks, stage %d, unit order %d, recompute %d, precision %d: other bits",
                 v.type, v.ranks, v.stage, v.unit_order, v.recompute, v.precision);
    free(have.weights);
    return have;
}

/* All stages, ranks, orders and precisions; gpt2 has dropout. */
static void same_bits(void **state) {
    (void)state;
    for (int t = 0; t < 4; t++) {
        zero_variant v = {.ranks = 1,
                          .type = t == 3 ? "gpt2" : "llama",
                          .precision = (sifr_precision)(t % 3),
                          .sequences = SEQUENCES,
                          .steps = 2,
                          .global = GLOBAL};
        zero_outcome want = zero_run(v);
        sifr_offload offload = on_disk();
        v.offload = &offload;
        for (int n = 0; n < 12; n++) {
            v.ranks = 1 << n % 3;
            v.stage = n / 3;
            v.unit_order = (n + t) % 2;
            v.recompute = (n / 2 + t) % 2;
            offload.aio.block_size = n % 3 ? 4096 : 1 << 20;
            offload.aio.queue_depth = 1 + n % 4 * 5;
            offload.aio.intra_op_parallelism = 1 + n % 2;
            run_same(&want, v);
        }
        free(want.weights);
    }
    scratch_expect_empty();
}

/* With a limit of activations, of which only what is in memory counts: more is kept. */
static void within_a_limit(void **state) {
    (void)state;
    zero_variant v = {.ranks = 1, .type = "llama", .sequences = 2 * SEQUENCES, .global = 2};
    zero_outcome want = zero_run(v);
    sifr_offload offload = on_disk();
    v.recompute = true;
    zero_outcome least = zero_run(v);
    v.activation_bytes = (least.activations + want.activations) / 2;
    zero_outcome memory = zero_run(v);
    v.offload = &offload;
    for (int n = 0; n < 2; n++) {
        v.unit_order = n;
        zero_outcome disk = run_same(&want, v);
        assert_true(disk.activations <= v.activation_bytes);
        if (n == 0) {
            assert_true(memory.again > 0);
            assert_true(disk.again < memory.again);
        }
    }
    free(want.weights);
    free(least.weights);
    free(memory.weights);
}

/* Beside the rest, frozen weights and steps that are skipped. */
static void with_the_rest(void **state) {
    (void)state;
    for (int n = 0; n < 6; n++) {
        zero_variant v = {.ranks = 1,
                          .type = n % 2 ? "gpt2" : "llama",
                          .precision = n < 3 ? SIFR_FP16 : SIFR_BF16,
                          .sequences = SEQUENCES,
                          .global = GLOBAL,
                          .freeze = {n % 3 ? NULL : "*.0.*"}};
        if (n < 3) v.steps = ZERO_MOST_STEPS, v.first_scale = 0x1p26;
        zero_outcome want = zero_run(v);
        if (n < 3) assert_true(want.norm[0] < 0);
        sifr_offload offload = on_disk();
        offload.optimizer.device = n != 4 ? SIFR_TIER_NVME : SIFR_TIER_NONE;
        offload.param.device = SIFR_TIER_NVME;
        offload.gradients = n != 4 ? SIFR_TIER_NVME : SIFR_TIER_NONE;
        offload.sub_group_size = 3000;
        v.offload = &offload;
        v.stage = 3;
        v.unit_order = n % 2;
        for (v.ranks = 1; v.ranks <= 4; v.ranks *= 2) run_same(&want, v);
        free(want.weights);
    }
    scratch_expect_empty();
}

/* Evaluation keeps nothing, and has nothing there. */
static void evaluation(void **state) {
    (void)state;
    zero_variant v = {
        .ranks = 2, .type = "gpt2", .sequences = SEQUENCES, .global = 2, .evaluate = true};
    zero_outcome want = zero_run(v);
    sifr_offload offload = on_disk();
    v.offload = &offload;
    zero_outcome have = zero_run(v);
    assert_true(want.evaluated > 0);
    assert_true(have.evaluated == want.evaluated);
    free(want.weights);
    free(have.weights);
}

/* A step writes each result once and reads it once, and takes less memory; batch by batch all micro
 * batches go through the same place in the file, unit by unit each has its own. */
static void plan(void **state) {
    (void)state;
    int64_t file[2];
    for (int n = 0; n < 2; n++) {
        zero_variant v = {.ranks = 1,
                          .type = "llama",
                          .unit_order = n,
                          .steps = 1,
                          .sequences = 8 * SEQUENCES,
                          .global = GLOBAL};
        zero_outcome memory = zero_run(v);
        sifr_offload offload = on_disk();
        v.offload = &offload;
        zero_outcome disk = zero_run(v);
        assert_int_equal(disk.nvme_read, disk.nvme_written);
        assert_int_equal(disk.nvme_written, (n ? 1 : GLOBAL) * disk.nvme_bytes);
        assert_true(disk.activations < memory.activations);
        assert_true(disk.total_bytes < memory.total_bytes);
        file[n] = disk.nvme_bytes;
        free(memory.weights);
        free(disk.weights);
    }
    assert_true(file[1] > 4 * file[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits), cmocka_unit_test(within_a_limit),
        cmocka_unit_test(with_the_rest), cmocka_unit_test(evaluation), cmocka_unit_test(plan)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}

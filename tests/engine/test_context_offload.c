/* Context ranks of each kind whose activations, parameters, gradients or optimizer state are on
 * disk: the bits of the same ranks with all in memory. Each rank moves what its plan says, and
 * holds no more (zero_run). */
#include "support/scratch.h"
#include "support/zero_run.h"

enum { GLOBAL = 4, LENGTH = 64 };

static sifr_offload on_disk(void) {
    sifr_offload offload = sifr_settings_defaults().offload;
    offload.nvme_path = scratch;
    return offload;
}

static zero_variant variant(int number, int stage) {
    sifr_context_kind kind = (sifr_context_kind)(number % 3);
    bool gathers = kind != SIFR_CONTEXT_ULYSSES;
    return (zero_variant){.ranks = 4,
                          .contexts = kind == SIFR_CONTEXT_BOTH ? 4 : 2,
                          .kind = kind,
                          .type = "llama",
                          .precision = gathers ? SIFR_BF16 : SIFR_FP32,
                          .layers = 3,
                          .global = GLOBAL,
                          .length = LENGTH,
                          .sequences = gathers ? 1 : 2,
                          .stage = stage,
                          .evaluate = true};
}

static void activations(void **state) {
    (void)state;
    for (int n = 0; n < 12; n++) {
        zero_variant v = variant(n, n < 6 ? 3 : 1);
        v.unit_order = v.recompute = n / 3 % 2;
        v.sequences = 1, v.length = 512, v.global = 2;
        zero_outcome want = zero_run(v);
        sifr_offload offload = on_disk();
        offload.activations = SIFR_TIER_NVME;
        v.offload = &offload;
        zero_outcome have = zero_run(v);
        if (!zero_is_same(&want, &have)) fail_msg("variant %d: other bits", n);
        assert_true(have.nvme_written > 0);
        free(have.weights);
        free(want.weights);
    }
    scratch_expect_empty();
}

static void states(void **state) {
    (void)state;
    for (int n = 0; n < 6; n++) {
        zero_variant v = variant(n, 3);
        v.recompute = n / 3;
        zero_outcome want = zero_run(v);
        sifr_offload offload = on_disk();
        offload.optimizer.device = SIFR_TIER_NVME;
        if (n / 3) offload.param.device = offload.gradients = SIFR_TIER_NVME;
        v.offload = &offload;
        zero_outcome have = zero_run(v);
        if (!zero_is_same(&want, &have)) fail_msg("variant %d: other bits", n);
        assert_true(have.nvme_written > 0);
        free(have.weights);
        free(want.weights);
    }
    scratch_expect_empty();
}

/* With stages beside them, and tiles of a rank's tokens. */
static void beside_stages_and_tiles(void **state) {
    (void)state;
    for (int n = 0; n < 3; n++) {
        zero_variant v = variant(n, 1);
        v.ranks = v.contexts, v.stages = 2;
        zero_outcome want = zero_run(v);
        sifr_offload offload = on_disk();
        offload.activations = offload.optimizer.device = SIFR_TIER_NVME;
        v.offload = &offload;
        zero_expect_same(&want, v);
        free(want.weights);
        v = variant(n, 3);
        v.ranks = v.contexts, v.global = 1, v.sequences = 1, v.length = 5120, v.steps = 1;
        v.recompute = true, v.tile_tokens = 1024;
        want = zero_run(v);
        v.offload = &offload;
        zero_expect_same(&want, v);
        free(want.weights);
    }
    scratch_expect_empty();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(activations), cmocka_unit_test(states),
                                       cmocka_unit_test(beside_stages_and_tiles)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}

#include "support/optimizer_runs.h"

#include <math.h>

#include "model/registry.h"
#include "support/scratch.h"

enum { GLOBAL = 4, MOST_RANKS = 4, PAUSE_US = 30 };

int optimizer_setup(void **state) {
    return scratch_setup(state);
}

int optimizer_teardown(void **state) {
    return scratch_teardown(state);
}

zero_variant optimizer_variant(const sifr_optimizer *optimizer, sifr_precision precision) {
    return (zero_variant){.ranks = 1,
                          .type = "llama",
                          .precision = precision,
                          .global = GLOBAL,
                          .optimizer = optimizer,
                          .evaluate = true};
}

void optimizer_expect_each_stage(const zero_outcome *want, zero_variant v, bool varied) {
    for (; v.ranks <= MOST_RANKS; v.ranks *= 2) {
        for (v.stage = 0; v.stage < 4; v.stage++) {
            v.unit_order = varied && v.stage % 2;
            v.evaluate_each = varied && v.stage == v.ranks % 4;
            zero_expect_same(want, v);
        }
    }
}

static sifr_status open_queued(device **out, sifr_error *error) {
    return device_open_queued(1, NULL, PAUSE_US, 7, out, error);
}

void optimizer_expect_tiers(const sifr_optimizer *optimizer, int turn, bool stateless) {
    for (int n = 0; n < 6; n++) {
        zero_variant v = optimizer_variant(optimizer, n % 2 ? SIFR_BF16 : SIFR_FP32);
        sifr_offload offload = sifr_settings_defaults().offload;
        bool none = v.precision == SIFR_FP32 && stateless;
        zero_outcome want = zero_run(v);
        offload.nvme_path = scratch;
        offload.sub_group_size = n < 3 ? 3000 : 0;
        offload.optimizer.device = n < 2 ? SIFR_TIER_NVME : SIFR_TIER_CPU;
        v.offload = none && n < 2 ? NULL : &offload;
        v.separate = n == 2 || n == 3;
        v.open = n > 3 ? open_queued : NULL;
        v.hidden = n > 3;
        for (; v.ranks <= MOST_RANKS; v.ranks *= 2) {
            v.stage = v.ranks == 1 ? 0 : 1 + (n + turn) % 3;
            zero_expect_same(&want, v);
        }
        free(want.weights);
    }
    scratch_expect_empty();
}

void optimizer_stages_and_ranks(void **state) {
    const optimizer_pair *pair = *state;
    for (int i = 0; i < 2; i++) {
        for (int p = SIFR_FP32; p <= SIFR_FP16; p++) {
            zero_variant v = optimizer_variant(i ? &pair->rich : &pair->plain, (sifr_precision)p);
            zero_outcome want = zero_run(v);
            assert_true(isfinite(want.loss[ZERO_STEPS - 1]));
            assert_true(want.norm[0] > 0);
            assert_true(want.loss[ZERO_STEPS - 1] != want.loss[0]);
            optimizer_expect_each_stage(&want, v, true);
            free(want.weights);
        }
    }
}

void optimizer_narrow_states(void **state) {
    const optimizer_pair *pair = *state;
    zero_variant v = optimizer_variant(&pair->plain, SIFR_BF16);
    v.masters = SIFR_BF16;
    if (!pair->wide_states) v.moments = SIFR_BF16;
    zero_outcome want = zero_run(v);
    v.ranks = 2;
    optimizer_expect_each_stage(&want, v, false);
    free(want.weights);
}

void optimizer_copies_of_the_state(void **state) {
    const optimizer_pair *pair = *state;
    zero_variant v = optimizer_variant(&pair->plain, SIFR_FP32);
    zero_outcome want = zero_run(v);
    v.ranks = 4;
    v.shard_size = 2;
    for (v.stage = 1; v.stage < 4; v.stage++) zero_expect_same(&want, v);
    free(want.weights);
}

void optimizer_on_queues(void **state) {
    const optimizer_pair *pair = *state;
    zero_variant v = optimizer_variant(&pair->rich, SIFR_BF16);
    zero_outcome want = zero_run(v);
    v.open = open_queued;
    v.hidden = true;
    optimizer_expect_each_stage(&want, v, false);
    free(want.weights);
}

/* Where gradients, and at stage 3 parameters, are on disk too. */
static void expect_all_away(const zero_outcome *want, zero_variant v, bool stateless) {
    for (int n = 0; v.ranks <= MOST_RANKS; v.ranks *= 2) {
        for (v.stage = 0; v.stage < 4; v.stage++, n++) {
            sifr_offload offload = sifr_settings_defaults().offload;
            offload.nvme_path = scratch;
            offload.sub_group_size = n % 3 ? 1024 : 0;
            if (!stateless) offload.optimizer.device = SIFR_TIER_NVME;
            offload.optimizer.pipeline_read = n % 5 > 0;
            offload.optimizer.pipeline_write = n % 4 > 0;
            if (v.stage == 3) offload.param.device = SIFR_TIER_NVME;
            if (v.stage >= 2 || v.ranks == 1) offload.gradients = SIFR_TIER_NVME;
            v.unit_order = n % 2;
            v.offload = &offload;
            zero_expect_same(want, v);
        }
    }
}

void optimizer_tiers(void **state) {
    const optimizer_pair *pair = *state;
    optimizer_expect_tiers(&pair->plain, 0, pair->wide_states);
    optimizer_expect_tiers(&pair->rich, 1, false);
    zero_variant v = optimizer_variant(&pair->rich, SIFR_BF16);
    zero_outcome want = zero_run(v);
    expect_all_away(&want, v, false);
    free(want.weights);
    /* a page holds elements of two weights */
    v = optimizer_variant(&pair->plain, SIFR_BF16);
    v.masters = SIFR_BF16;
    if (!pair->wide_states) v.moments = SIFR_BF16;
    want = zero_run(v);
    expect_all_away(&want, v, pair->wide_states);
    free(want.weights);
    scratch_expect_empty();
}

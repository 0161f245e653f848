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
            assert_true(isfinite(want.loss[ZERO_STEPS - 1]) && want.norm[0] > 0);
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

void optimizer_refuses_tiers(void **state) {
    const optimizer_pair *pair = *state;
    for (int n = 0; n < 3; n++) {
        model_config config = zero_config("llama");
        sifr_settings settings = sifr_settings_defaults();
        sifr_model *model;
        sifr_engine *engine;
        sifr_error error = {0};
        settings.threads = 1;
        settings.seq_length = ZERO_LENGTH;
        settings.optimizer = pair->plain;
        settings.offload.nvme_path = scratch;
        if (n == 0) settings.offload.optimizer.device = SIFR_TIER_NVME;
        if (n == 1) settings.offload.gradients = SIFR_TIER_NVME;
        if (n == 2) settings.zero.stage = 3, settings.offload.param.device = SIFR_TIER_NVME;
        assert_int_equal(model_from_config(&config, &model, NULL), SIFR_OK);
        assert_int_equal(sifr_model_group(model, &settings.optimizer, NULL), SIFR_OK);
        assert_int_equal(sifr_engine_create(model, &settings, &engine, &error), SIFR_USAGE);
        if (!strstr(error.message, pair->refusal)) fail_msg("%s", error.message);
        sifr_model_free(model);
    }
    scratch_expect_empty();
}

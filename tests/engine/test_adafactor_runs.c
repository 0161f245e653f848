/* Adafactor: the same bits at every stage and rank count, where each rank has a part of a weight
 * and reads the gradient of the whole; and what is refused. Its steps: test_golden_optimizers.
 * label: full, timeout: 300 */
#include <math.h>
#include <stdio.h>

#include "model/registry.h"
#include "support/scratch.h"
#include "support/zero_run.h"

enum { GLOBAL = 4, PAUSE_US = 30 };

static const sifr_optimizer_group some_groups[] = {{"*mlp*", 2, -1}, {"*embed*", 3, 0}};

#define ADAFACTOR                                                                                  \
    .type = SIFR_ADAFACTOR, .eps = 1e-30, .least_scale = 1e-3, .decay_rate = -0.8,                 \
    .clip_threshold = 1, .weight_decay = 0.1

static const sifr_optimizer optimizers[] = {
    {ADAFACTOR},
    {ADAFACTOR, .beta1 = 0.9, .has_momentum = true, .scale_parameter = true, .ema_decay = 0.5,
     .no_decay = SIFR_NO_DECAY_TRANSFORMERS, .groups = some_groups, .group_count = 2}};

static zero_variant variant_of(int optimizer, sifr_precision precision) {
    return (zero_variant){.ranks = 1,
                          .type = "llama",
                          .precision = precision,
                          .global = GLOBAL,
                          .optimizer = &optimizers[optimizer],
                          .evaluate = true};
}

static void expect_same(const zero_outcome *want, zero_variant v, const char *where) {
    zero_outcome have = zero_run(v);
    if (!zero_is_same(want, &have))
        fail_msg("%s: precision %d, %d ranks, stage %d: other bits", where, v.precision, v.ranks,
                 v.stage);
    free(have.weights);
}

static void stages_and_ranks(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        for (int p = SIFR_FP32; p <= SIFR_FP16; p++) {
            zero_variant v = variant_of(i, (sifr_precision)p);
            zero_outcome want = zero_run(v);
            assert_true(isfinite(want.loss[ZERO_STEPS - 1]) && want.norm[0] > 0);
            assert_true(want.loss[ZERO_STEPS - 1] != want.loss[0]);
            for (v.ranks = 1; v.ranks <= 4; v.ranks *= 2) {
                for (v.stage = 0; v.stage < 4; v.stage++) {
                    v.unit_order = v.stage % 2;
                    v.evaluate_each = v.stage == v.ranks % 4;
                    expect_same(&want, v, "in memory");
                }
            }
            free(want.weights);
        }
    }
}

static void narrow(void **state) {
    (void)state;
    zero_variant v = variant_of(0, SIFR_BF16);
    v.masters = SIFR_BF16;
    zero_outcome want = zero_run(v);
    for (v.ranks = 2; v.ranks <= 4; v.ranks *= 2)
        for (v.stage = 0; v.stage < 4; v.stage++) expect_same(&want, v, "narrow");
    free(want.weights);
}

/* Sums of 16 bits are gathered as they are; they depend on the number of ranks. */
static void narrow_gradients(void **state) {
    (void)state;
    zero_variant v = variant_of(1, SIFR_BF16);
    v.gradients = SIFR_BF16;
    v.ranks = 2;
    zero_outcome want = zero_run(v);
    for (v.stage = 1; v.stage < 4; v.stage++) expect_same(&want, v, "narrow gradients");
    free(want.weights);
}

static void copies_of_the_state(void **state) {
    (void)state;
    zero_variant v = variant_of(0, SIFR_FP32);
    zero_outcome want = zero_run(v);
    v.ranks = 4;
    v.shard_size = 2;
    for (v.stage = 1; v.stage < 4; v.stage++) expect_same(&want, v, "copies");
    free(want.weights);
}

static sifr_status open_queued(device **out, sifr_error *error) {
    return device_open_queued(1, NULL, PAUSE_US, 7, out, error);
}

static void queued(void **state) {
    (void)state;
    zero_variant v = variant_of(1, SIFR_BF16);
    zero_outcome want = zero_run(v);
    v.open = open_queued;
    v.hidden = true;
    for (v.ranks = 1; v.ranks <= 4; v.ranks *= 2)
        for (v.stage = 0; v.stage < 4; v.stage++) expect_same(&want, v, "queued");
    free(want.weights);
}

static void refused(void **state) {
    (void)state;
    for (int n = 0; n < 3; n++) {
        model_config config = zero_config("llama");
        sifr_settings settings = sifr_settings_defaults();
        sifr_model *model;
        sifr_engine *engine;
        sifr_error error = {0};
        settings.threads = 1;
        settings.seq_length = ZERO_LENGTH;
        settings.optimizer = optimizers[0];
        settings.offload.nvme_path = scratch;
        if (n == 0) settings.offload.optimizer.device = SIFR_TIER_NVME;
        if (n == 1) settings.offload.gradients = SIFR_TIER_NVME;
        if (n == 2) settings.zero.stage = 3, settings.offload.param.device = SIFR_TIER_NVME;
        assert_int_equal(model_from_config(&config, &model, NULL), SIFR_OK);
        assert_int_equal(sifr_model_group(model, &settings.optimizer, NULL), SIFR_OK);
        assert_int_equal(sifr_engine_create(model, &settings, &engine, &error), SIFR_USAGE);
        if (!strstr(error.message,
                    "Adafactor: parameters, gradients and states on other tiers are not"))
            fail_msg("%s", error.message);
        sifr_model_free(model);
    }
    scratch_expect_empty();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_and_ranks), cmocka_unit_test(narrow),
        cmocka_unit_test(narrow_gradients), cmocka_unit_test(copies_of_the_state),
        cmocka_unit_test(queued),           cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}

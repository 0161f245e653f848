/* The schedule zb-h1, whose gradients of weights are made in passes of their own: the bits of one
 * rank, whatever the stages, ranks, ZeRO stage, type, recomputation and tier; with frozen weights,
 * overflows, and models of other shapes; on devices that hide their memory. timeout: 180 */
#include "support/scratch.h"
#include "support/thinned.h"
#include "support/zero_run.h"

enum { GLOBAL = 8, LAYERS = 6 };

static zero_variant variant(const char *type, sifr_precision precision) {
    return (zero_variant){
        .ranks = 1, .type = type, .precision = precision, .layers = LAYERS, .global = GLOBAL};
}

/* zb-h1 in so many stages of so many ranks. */
static zero_variant split(zero_variant v, int32_t stages, int32_t ranks) {
    v.stages = stages;
    v.ranks = ranks;
    v.schedule = SIFR_SCHEDULE_ZB_H1;
    return v;
}

static void same_bits(void **state) {
    (void)state;
    static const char *const types[] = {"llama", "gpt2"};
    size_t turn = 0;
    for (int t = 0; t < 4; t++) {
        zero_variant v = variant(types[t % 2], t / 2 ? SIFR_BF16 : SIFR_FP32);
        zero_outcome want = zero_run(v);
        for (int32_t stages = 2; stages <= 4; stages += 2) {
            for (int32_t ranks = 1; ranks <= 2; ranks++) {
                for (v.stage = 0; v.stage < 4; v.stage++) {
                    if (thinned_run(turn++)) continue;
                    v.recompute = turn % 3 == 0;
                    zero_expect_same(&want, split(v, stages, ranks));
                }
            }
        }
        free(want.weights);
    }
}

/* Fewer micro batches than stages, more than pending ones fit, and none to wait for. */
static void few_and_many(void **state) {
    (void)state;
    for (int32_t global = 1; global <= 16; global *= 4) {
        zero_variant v = variant("llama", SIFR_FP32);
        v.global = global;
        zero_outcome want = zero_run(v);
        for (int32_t stages = 2; stages <= 8; stages *= 2)
            zero_expect_same(&want, split(v, stages, 1));
        free(want.weights);
    }
}

/* Sums in order, in 16 bits, and inputs of segments of units kept alone. */
static void sums(void **state) {
    (void)state;
    for (int n = 0; n < 4; n++) {
        zero_variant v = variant(n % 2 ? "gpt2" : "llama", SIFR_BF16);
        v.sequential = n < 2;
        if (n > 1) v.gradients = SIFR_BF16;
        v.recompute = n % 2;
        v.checkpoints = n % 2 ? 2 : 0;
        zero_outcome want = zero_run(v);
        zero_expect_same(&want, split(v, 2, 1));
        zero_expect_same(&want, split(v, 4, 1));
        free(want.weights);
    }
}

/* Units of which only some weights are trained, or none. */
static void frozen(void **state) {
    (void)state;
    static const char *const patterns[][3] = {{"llama", "*norm*"},
                                              {"llama", "*embed*", "*mlp*"},
                                              {"llama", "*layers.3*", "*q_proj*"},
                                              {"gpt2", "*.weight"}};
    for (int n = 0; n < 4; n++) {
        zero_variant v = variant(patterns[n][0], n % 2 ? SIFR_FP32 : SIFR_BF16);
        for (int i = 0; i < 2; i++) v.freeze[i] = patterns[n][1 + i];
        zero_outcome want = zero_run(v);
        zero_expect_same(&want, split(v, 4, 1));
        v.stage = n;
        zero_expect_same(&want, split(v, 2, 2));
        free(want.weights);
    }
}

static void overflows(void **state) {
    (void)state;
    zero_variant v = variant("llama", SIFR_FP16);
    v.steps = ZERO_MOST_STEPS;
    v.first_scale = 0x1p24;
    zero_outcome want = zero_run(v);
    assert_in_range(want.updates, 1, v.steps - 1);
    zero_expect_same(&want, split(v, 4, 1));
    v.stage = 3;
    zero_expect_same(&want, split(v, 2, 2));
    free(want.weights);
}

/* Norms behind the sums of residuals, and evaluation. */
static void encoder(void **state) {
    (void)state;
    zero_variant v = variant("bert", SIFR_FP32);
    v.evaluate = true;
    zero_outcome want = zero_run(v);
    zero_expect_same(&want, split(v, 4, 1));
    zero_expect_same(&want, split(v, 2, 2));
    free(want.weights);
}

static void on_disk(void **state) {
    (void)state;
    zero_variant v = variant("llama", SIFR_BF16);
    zero_outcome want = zero_run(v);
    sifr_offload offload = sifr_settings_defaults().offload;
    offload.nvme_path = scratch;
    offload.optimizer.device = SIFR_TIER_NVME;
    v.offload = &offload;
    zero_expect_same(&want, split(v, 4, 1));
    offload.param.device = SIFR_TIER_NVME;
    v.stage = 3;
    zero_expect_same(&want, split(v, 2, 2));
    zero_expect_same(&want, split(v, 2, 1));
    free(want.weights);
    scratch_expect_empty();
}

static sifr_status open_hidden(device **out, sifr_error *error) {
    return device_open_queued(1, NULL, 20, 7, out, error);
}

static void hidden_memory(void **state) {
    (void)state;
    zero_variant v = variant("gpt2", SIFR_FP32);
    zero_outcome want = zero_run(v);
    v.hidden = true;
    v.open = open_hidden;
    zero_expect_same(&want, split(v, 4, 1));
    v.stage = 3;
    zero_expect_same(&want, split(v, 2, 2));
    free(want.weights);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits), cmocka_unit_test(few_and_many), cmocka_unit_test(sums),
        cmocka_unit_test(frozen),    cmocka_unit_test(overflows),    cmocka_unit_test(encoder),
        cmocka_unit_test(on_disk),   cmocka_unit_test(hidden_memory)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}

/* Pipeline stages that keep what they have room for (recompute auto with activation_memory): within
 * that on every stage, and the bits of one rank. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/checked.h"
#include "model/registry.h"
#include "plan/pass/passes.h"
#include "support/zero_run.h"

enum { STAGES = 2, LAYERS = 6, GLOBAL = 8 };

/* Of the lists of all stages: bytes of activations of the one with most, and what is computed
 * again. */
typedef struct kept {
    int64_t bytes;
    int32_t again;
} kept;

static kept plan(sifr_pipeline_schedule schedule, sifr_recompute recompute, int64_t limit) {
    model_config config = zero_config("llama");
    config.num_hidden_layers = LAYERS;
    sifr_model *model;
    device *dev;
    plan_schedule *plans[STAGES];
    sifr_error error = {0};
    kept out = {0};
    plan_settings settings = {.mode = PLAN_TRAIN, .step = sifr_settings_defaults()};
    settings.step.step_order = SIFR_STEP_BATCH;
    settings.step.seq_length = ZERO_LENGTH;
    settings.step.gradient_accumulation_steps = GLOBAL;
    settings.step.pipeline.stages = STAGES;
    settings.step.pipeline.schedule = schedule;
    settings.step.pipeline.chunks = schedule == SIFR_SCHEDULE_INTERLEAVED ? 2 : 1;
    settings.step.recompute = recompute;
    settings.step.activation_memory = limit;
    assert_int_equal(plan_mesh_of(&settings.step, STAGES, 0, &settings.mesh, &error), SIFR_OK);
    assert_int_equal(model_from_config(&config, &model, &error), SIFR_OK);
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    if (plan_lower_stages(model, dev, &settings, plans, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    for (int s = 0; s < STAGES; s++) {
        out.bytes = base_max_i64(out.bytes, plans[s]->largest_bytes[PLAN_ACTIVATIONS]);
        for (size_t i = 0; i < plans[s]->instruction_count; i++)
            out.again += plans[s]->instructions[i].action == PLAN_RECOMPUTE;
        plan_free(plans[s]);
    }
    device_close(dev);
    sifr_model_free(model);
    return out;
}

static void keeps_what_fits(void **state) {
    (void)state;
    zero_variant v = {.ranks = 1, .type = "llama", .layers = LAYERS, .global = GLOBAL};
    zero_outcome want = zero_run(v);
    v.stages = STAGES;
    v.recompute = true;
    for (int s = SIFR_SCHEDULE_GPIPE; s <= SIFR_SCHEDULE_ZB_H1; s++) {
        v.schedule = (sifr_pipeline_schedule)s;
        v.chunks = s == SIFR_SCHEDULE_INTERLEAVED ? 2 : 1;
        kept all = plan(v.schedule, SIFR_RECOMPUTE_NONE, 0);
        kept least = plan(v.schedule, SIFR_RECOMPUTE_UNIT, 0);
        /* with zb-h1 what was computed again is kept for the gradients of weights */
        bool split = s == SIFR_SCHEDULE_ZB_H1;
        assert_true(split || least.bytes < all.bytes);
        v.activation_bytes = split ? all.bytes : (all.bytes + least.bytes) / 2;
        kept half = plan(v.schedule, SIFR_RECOMPUTE_AUTO, v.activation_bytes);
        assert_true(half.bytes <= v.activation_bytes);
        assert_in_range(half.again, !split, least.again - 1);
        zero_outcome have = zero_run(v);
        if (!zero_is_same(&want, &have)) fail_msg("schedule %d: other bits", s);
        assert_true(have.activations <= v.activation_bytes);
        free(have.weights);
    }
    free(want.weights);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(keeps_what_fits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

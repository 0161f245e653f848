/* The cut of schedule interleaved: parts of equal size rather than tiny last ones, so that the
 * predicted step of no mesh is longer than with the cut whose largest part is the smallest, and
 * that of many is shorter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/registry.h"
#include "plan/pass/passes.h"
#include "plan/price/price.h"
#include "support/model_case.h"

enum { MOST_STAGES = 8, MOST_UNITS = 128 };

static sifr_model *make(int64_t layers, int64_t words) {
    model_config c = model_case_blocks(layers, words, 256);
    c.max_position_embeddings = 64;
    sifr_model *made;
    sifr_error error = {0};
    if (model_from_config(&c, &made, &error) != SIFR_OK) fail_msg("%s", error.message);
    return made;
}

/* Computing alone, and with ZeRO and with stages that pass on slowly. */
static const plan_machine machines[] = {
    {.fp32_operations = 1e10, .bf16_operations = 1e11, .memory_bytes = 1e10, .host = {1e-9, 1e15}},
    {.fp32_operations = 1e10, .bf16_operations = 1e11, .memory_bytes = 1e10, .host = {1e-6, 1e9}}};

static double predict(const sifr_model *model, device *dev, const plan_settings *settings,
                      const plan_machine *machine, plan_pipeline *cut) {
    int32_t stages = settings->mesh.ranks[PLAN_AXIS_STAGE];
    plan_schedule *s[MOST_STAGES];
    plan_prediction out[MOST_STAGES];
    sifr_error error = {0};
    double last = 0;
    if (plan_lower_stages(model, dev, settings, s, &error) != SIFR_OK ||
        plan_predict_stages((const plan_schedule *const *)s, (size_t)stages, machine, out,
                            &error) != SIFR_OK)
        fail_msg("%s", error.message);
    *cut = s[0]->settings.pipeline;
    for (int32_t i = 0; i < stages; i++) {
        if (out[i].step_seconds > last) last = out[i].step_seconds;
        plan_free(s[i]);
    }
    return last;
}

/* The cut that makes the largest part as small as can be, and no more. */
static void cut_by_largest(const sifr_model *model, device *dev, const plan_settings *settings,
                           plan_pipeline *cut) {
    plan_settings one = *settings;
    plan_schedule *s;
    double weights[MOST_UNITS] = {0};
    sifr_error error = {0};
    one.mesh = plan_mesh_flat(1, 0);
    one.pipeline = (plan_pipeline){0};
    one.step.pipeline = (sifr_pipeline){.stages = 1};
    one.step.zero.stage = 0;
    one.step.recompute = SIFR_RECOMPUTE_NONE;
    one.step.gradient_accumulation_steps = 1;
    assert_int_equal(plan_lower(model, dev, &one, &s, &error), SIFR_OK);
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        double operations, bytes;
        bool pass = in->action == PLAN_FORWARD || in->action == PLAN_BACKWARD;
        if (in->call < 0 || in->node < 0 || !pass) continue;
        plan_cost(s, &s->calls[in->call], &operations, &bytes);
        weights[model->nodes[in->node].unit] += operations > 10 * bytes ? operations : 10 * bytes;
    }
    plan_free(s);
    assert_int_equal(plan_cut_units(weights, (int32_t)model->unit_count, cut, &error), SIFR_OK);
}

typedef struct mesh_case {
    int32_t layers, words, stages, chunks, rounds;
} mesh_case;

static void check(const mesh_case *c, device *dev, int i, int *shorter) {
    sifr_model *model = make(c->layers, c->words);
    plan_settings settings = {.mode = PLAN_TRAIN, .step = sifr_settings_defaults()};
    const plan_machine *machine = &machines[i % 2];
    plan_pipeline even;
    sifr_error error = {0};
    settings.step.step_order = SIFR_STEP_BATCH;
    settings.step.seq_length = 64;
    settings.step.micro_batch_size = 2;
    settings.step.gradient_accumulation_steps = c->rounds * c->stages;
    settings.step.recompute = i & 2 ? SIFR_RECOMPUTE_UNIT : SIFR_RECOMPUTE_NONE;
    settings.step.zero.stage = i & 4 ? 3 : 1;
    settings.step.pipeline = (sifr_pipeline){
        .stages = c->stages, .schedule = SIFR_SCHEDULE_INTERLEAVED, .chunks = c->chunks};
    assert_int_equal(plan_mesh_of(&settings.step, 2 * c->stages, 0, &settings.mesh, &error),
                     SIFR_OK);
    double after = predict(model, dev, &settings, machine, &even);
    settings.pipeline = even;
    cut_by_largest(model, dev, &settings, &settings.pipeline);
    double before = predict(model, dev, &settings, machine, &even);
    if (after > before * 1.005)
        fail_msg("%d layers, %d words, %d stages of %d chunks, %d rounds, way %d: %g s, before %g",
                 c->layers, c->words, c->stages, c->chunks, c->rounds, i, after, before);
    *shorter += after < before * 0.97;
    sifr_model_free(model);
}

static void not_longer(void **state) {
    (void)state;
    static const mesh_case cases[] = {{6, 97, 2, 2, 1},    {12, 97, 2, 2, 4},   {12, 4096, 2, 2, 2},
                                      {16, 97, 4, 2, 1},   {24, 1024, 4, 2, 2}, {24, 4096, 4, 2, 4},
                                      {30, 1024, 4, 3, 2}, {32, 512, 8, 2, 1},  {40, 97, 8, 2, 2},
                                      {32, 97, 4, 4, 2}};
    device *dev;
    sifr_error error = {0};
    int shorter = 0;
    assert_int_equal(device_open_cpu(1, NULL, &dev, &error), SIFR_OK);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int i = (int)c % 2; i < 8; i += 2) check(&cases[c], dev, i, &shorter);
    if (shorter < 10) fail_msg("only %d of 40 are shorter by 3 %%", shorter);
    device_close(dev);
}

/* 80 blocks in 16 parts, of time alone: the parts are as equal as blocks allow. */
static void no_tiny_parts(void **state) {
    (void)state;
    double forward[82], backward[82], all[82];
    plan_pipeline p = {.stages = 8, .chunks = 2, .order = PLAN_WALK_INTERLEAVED};
    sifr_error error = {0};
    for (int u = 0; u < 82; u++) {
        forward[u] = u == 0 ? 0.02 : u == 81 ? 0.4 : 1;
        backward[u] = u == 0 ? 0.02 : u == 81 ? 0.8 : 2;
        all[u] = forward[u] + backward[u];
    }
    assert_int_equal(plan_cut_units(all, 82, &p, &error), SIFR_OK);
    assert_int_equal(plan_cut_evenly(forward, backward, 82, &p, &error), SIFR_OK);
    assert_int_equal(p.first_unit[0], 0);
    assert_int_equal(p.first_unit[16], 82);
    for (int32_t i = 0; i < 16; i++) assert_in_range(p.first_unit[i + 1] - p.first_unit[i], 4, 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_tiny_parts),
                                       cmocka_unit_test(not_longer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

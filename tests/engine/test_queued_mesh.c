/* Copies of the state, and stages of a pipeline, on devices that have only begun what they were
 * given, and hide their memory: the bits of one rank on the CPU at every ZeRO stage and schedule.
 * timeout: 240, label: full, in test_tsan */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "support/on_queues.h"
#include "support/thinned.h"
#include "support/zero_run.h"

enum { GLOBAL = 8 };

typedef struct mesh_case {
    int32_t ranks, stages, shard_size; /* ranks: of a stage */
    sifr_pipeline_schedule schedule;
    int32_t chunks;
} mesh_case;

static const mesh_case meshes[] = {
    {4, 0, 2, SIFR_SCHEDULE_GPIPE, 0},       {8, 0, 4, SIFR_SCHEDULE_GPIPE, 0},
    {1, 2, 0, SIFR_SCHEDULE_GPIPE, 0},       {1, 2, 0, SIFR_SCHEDULE_1F1B, 0},
    {1, 2, 0, SIFR_SCHEDULE_INTERLEAVED, 2}, {2, 2, 0, SIFR_SCHEDULE_1F1B, 0},
    {2, 2, 0, SIFR_SCHEDULE_INTERLEAVED, 2}, {1, 4, 0, SIFR_SCHEDULE_1F1B, 0},
    {2, 2, 0, SIFR_SCHEDULE_ZB_H1, 0},       {4, 2, 2, SIFR_SCHEDULE_1F1B, 0},
};
enum { MESHES = sizeof meshes / sizeof *meshes };

static zero_variant variant_of(const mesh_case *m, int type) {
    zero_variant v = {.ranks = m->ranks,
                      .stages = m->stages,
                      .shard_size = m->shard_size,
                      .schedule = m->schedule,
                      .chunks = m->chunks,
                      .type = type == 2 ? "gpt2" : "llama", /* with tied weights */
                      .precision = (sifr_precision)type,
                      .global = GLOBAL};
    if (type == 2) v.steps = ZERO_MOST_STEPS, v.first_scale = 0x1p22; /* some are skipped */
    return v;
}

static zero_variant queued(zero_variant v) {
    v.open = on_queues_open;
    v.hidden = true;
    return v;
}

static void same_bits(void **state) {
    (void)state;
    zero_outcome want[3];
    for (int t = 0; t < 3; t++) want[t] = zero_run(variant_of(&(mesh_case){.ranks = 1}, t));
    assert_true(want[2].norm[0] < 0);
    assert_true(want[2].updates > 0);
    for (int m = 0; m < MESHES; m++) {
        for (int stage = meshes[m].stages ? 0 : 1; stage < 4; stage++) {
            int t = (m + stage) % 3;
            if (thinned_out((size_t)(4 * m + stage))) continue;
            zero_variant v = queued(variant_of(&meshes[m], t));
            v.stage = stage;
            v.recompute = stage % 2;
            v.unit_order = !v.stages && stage % 2;
            zero_outcome have = zero_run(v);
            if (!zero_is_same(&want[t], &have))
                fail_msg("mesh %d, stage %d, precision %d: other bits", m, stage, t);
            free(have.weights);
        }
    }
    for (int t = 0; t < 3; t++) free(want[t].weights);
}

/* Through the stages, with the bits of the same ranks on the CPU. */
static void evaluates(void **state) {
    (void)state;
    for (int m = 3; m < 6; m++) {
        if (thinned_out((size_t)m)) continue;
        zero_variant v = variant_of(&meshes[m], SIFR_BF16);
        v.stage = m - 2;
        v.evaluate = true;
        zero_outcome want = zero_run(v), have = zero_run(queued(v));
        assert_true(zero_is_same(&want, &have));
        assert_true(want.evaluated > 0);
        assert_true(want.evaluated == have.evaluated);
        free(want.weights);
        free(have.weights);
    }
}

/* Stages with optimizer state, or all of it and activations, in host memory. */
static void offloaded(void **state) {
    (void)state;
    sifr_offload offload = sifr_settings_defaults().offload;
    zero_variant one = variant_of(&(mesh_case){.ranks = 1}, SIFR_BF16);
    one.sequences = 4; /* of smaller activations a page each would be moved */
    zero_outcome want = zero_run(one);
    offload.optimizer.device = SIFR_TIER_CPU;
    offload.sub_group_size = 3000;
    for (int m = 3; m < MESHES; m += m < 5 ? 2 : 1) {
        zero_variant v = queued(variant_of(&meshes[m], SIFR_BF16));
        v.sequences = one.sequences;
        v.offload = &offload;
        for (v.stage = 1; v.stage < 4; v.stage += 2) {
            if (thinned_out((size_t)(m + v.stage))) continue;
            if (v.stage == 3) offload.param.device = offload.activations = SIFR_TIER_CPU;
            zero_outcome have = zero_run(v);
            if (!zero_is_same(&want, &have)) fail_msg("mesh %d, stage %d: other bits", m, v.stage);
            assert_true(have.host_bytes > 0);
            free(have.weights);
        }
        offload.param.device = offload.activations = SIFR_TIER_NONE;
    }
    free(want.weights);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits), cmocka_unit_test(evaluates),
                                       cmocka_unit_test(offloaded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

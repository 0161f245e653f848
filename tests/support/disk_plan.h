/* Plans of a small model with state on disk: its set-up, and what holds whatever lies there.
 * Included by one test file each. */
#ifndef SUPPORT_DISK_PLAN_H
#define SUPPORT_DISK_PLAN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/registry.h"
#include "plan/pass/passes.h"
#include "plan/price/price.h"
#include "plan/queries.h"
#include "support/model_case.h"

static sifr_model *model; /* both made by disk_plan_setup */
static device *dev;

static inline int disk_plan_setup(void **state) {
    (void)state;
    sifr_error error = {0};
    model_config config = model_case_llama();
    config.tie_word_embeddings = true;
    config.num_hidden_layers = 12;
    return model_from_config(&config, &model, &error) || device_open_cpu(1, NULL, &dev, &error);
}

static inline int disk_plan_teardown(void **state) {
    (void)state;
    sifr_model_free(model);
    device_close(dev);
    return 0;
}

/* Of the last of `ranks`; `offload` says what is on disk: all of it, where its ratio is 1. */
static inline plan_settings disk_plan_settings(int32_t ranks, int stage, sifr_precision precision,
                                               sifr_offload offload) {
    return (plan_settings){.mode = PLAN_TRAIN,
                           .step.precision = precision,
                           .step.micro_batch_size = 1,
                           .step.seq_length = 16,
                           .step.gradient_accumulation_steps = 2,
                           .mesh = plan_mesh_flat(ranks, ranks - 1),
                           .step.zero = {.stage = stage,
                                         .overlap_comm = true,
                                         .reduce_bucket_size = INT64_MAX,
                                         .allgather_bucket_size = INT64_MAX,
                                         .prefetch_bucket_size = 1,
                                         .max_live_parameters = INT64_MAX},
                           .step.offload = offload};
}

/* The same with optimizer state on disk, in small sub-groups. */
static inline plan_settings disk_plan_state_settings(int32_t ranks, int stage,
                                                     sifr_precision precision) {
    return disk_plan_settings(ranks, stage, precision,
                              (sifr_offload){.optimizer = {.device = SIFR_TIER_NVME,
                                                           .ratio = 1,
                                                           .pipeline_read = true,
                                                           .pipeline_write = true},
                                             .sub_group_size = 2048});
}

/* All state, and activations, on one tier. */
static inline sifr_offload disk_plan_all_on(sifr_tier tier) {
    return (sifr_offload){
        .optimizer = {.device = tier, .ratio = 1, .pipeline_read = true, .pipeline_write = true},
        .param = {.device = tier},
        .gradients = tier,
        .activations = tier,
        .sub_group_size = 2048};
}

static inline plan_schedule *disk_plan_lower(const plan_settings *settings) {
    plan_schedule *s = NULL;
    sifr_error error = {0};
    if (plan_lower(model, dev, settings, &s, &error) != SIFR_OK) fail_msg("%s", error.message);
    return s;
}

static inline bool disk_plan_moves(const plan_instruction *i) {
    return i->action == PLAN_READ || i->action == PLAN_WRITE;
}

/* The step is as long as the disk where that is the limit, and hides it where it is not. */
static inline void disk_plan_price(const plan_settings *settings) {
    plan_machine machine = {.fp32_operations = 1e12, .bf16_operations = 1e12, .memory_bytes = 1e11};
    plan_prediction p;
    sifr_error error = {0};
    plan_schedule *s = disk_plan_lower(settings);
    int64_t read, written;
    plan_disk(s, &read, &written);
    machine.disk_bytes = 1e6;
    assert_int_equal(plan_predict(s, &machine, &p, NULL, &error), SIFR_OK);
    double moving = (double)(read + written) / 1e6;
    assert_true(p.disk > 0.999 * moving);
    assert_true(p.disk < 1.001 * moving);
    assert_true(p.step_seconds > moving);
    assert_true(p.step_seconds < 1.02 * moving + p.computing);
    machine.disk_bytes = 1e13;
    assert_int_equal(plan_predict(s, &machine, &p, NULL, &error), SIFR_OK);
    assert_true(p.step_seconds < 1.01 * p.computing);
    plan_free(s);
}

#endif

/* A small model, and all that a search for settings of it needs. */
#ifndef SEARCH_CASE_H
#define SEARCH_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/registry.h"
#include "plan/search/search.h"
#include "support/model_case.h"

static const plan_machine search_case_machine = {
    .fp32_operations = 1e10, .bf16_operations = 1e11, .memory_bytes = 1e10, .host = {2e-6, 1e9}};

typedef struct search_case {
    sifr_model *model;
    device *dev;
    plan_search search;
    plan_settings settings;
} search_case;

static inline void search_case_begin(search_case *c, int32_t ranks) {
    model_config config = model_case_llama();
    sifr_error error;
    config.hidden_size = 64;
    config.head_dim = 16;
    config.num_hidden_layers = 4;
    config.vocab_size = 301;
    config.max_position_embeddings = 4096;
    *c = (search_case){0};
    assert_int_equal(device_open_cpu(1, NULL, &c->dev, &error), SIFR_OK);
    assert_int_equal(model_from_config(&config, &c->model, &error), SIFR_OK);
    c->search = (plan_search){.model = c->model,
                              .dev = c->dev,
                              .machine = &search_case_machine,
                              .room_bytes = INT64_MAX,
                              .overlap_by_stage = true};
    c->settings = (plan_settings){.mode = PLAN_TRAIN,
                                  .step.precision = SIFR_BF16,
                                  .step.micro_batch_size = 12,
                                  .step.seq_length = 32,
                                  .step.gradient_accumulation_steps = 1,
                                  .mesh = plan_mesh_flat(ranks, 0),
                                  .step.offload.optimizer.ratio = 1,
                                  .step.zero = {.reduce_bucket_size = 1 << 20,
                                                .allgather_bucket_size = 1 << 20,
                                                .prefetch_bucket_size = 1,
                                                .max_live_parameters = 1 << 30}};
}

static inline void search_case_end(search_case *c) {
    sifr_model_free(c->model);
    device_close(c->dev);
}

static inline plan_outcome search_case_try(search_case *c, const plan_settings *settings) {
    plan_outcome out;
    sifr_error error;
    if (plan_try(&c->search, settings, &out, &error) != SIFR_OK) fail_msg("%s", error.message);
    return out;
}

#endif

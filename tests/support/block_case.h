/* Engines of models, some with weights in blocks: their steps, and checkpoints that they save and
 * load. Included by one test file each. */
#ifndef SUPPORT_BLOCK_CASE_H
#define SUPPORT_BLOCK_CASE_H

#include "support/scratch.h"

#include <jansson.h>

#include "checkpoint/checkpoint.h"
#include "engine/engine_private.h"

static inline sifr_engine *make_engine(const sifr_model *m) {
    sifr_settings options = sifr_settings_defaults();
    sifr_engine *engine;
    options.seq_length = 8;
    options.threads = 1;
    options.precision = SIFR_BF16; /* masters beside parameters */
    assert_int_equal(sifr_engine_create(m, &options, &engine, NULL), SIFR_OK);
    return engine;
}

static inline void train(sifr_engine *e, int64_t steps, int32_t words) {
    int32_t tokens[8], labels[8];
    sifr_step_result result;
    for (int64_t i = 0; i < steps; i++) {
        for (int t = 0; t < 8; t++) {
            tokens[t] = (int32_t)((sifr_engine_steps(e) * 5 + t) % words);
            labels[t] = (tokens[t] + 1) % words;
        }
        assert_int_equal(sifr_engine_step(e, &(sifr_batch){.tokens = tokens, .labels = labels},
                                          1e-2, &result, NULL),
                         SIFR_OK);
    }
}

static const checkpoint_settings pieces = {.file_bytes = 1000}; /* several files, cut blocks */

static inline void save(const sifr_engine *engine, const char *output) {
    json_t *object = json_pack("{s:i}", "seed", 1);
    checkpoint_record record = {
        .must_match = object, .may_differ = object, .state = object, .trainer = object};
    sifr_error error = {0};
    if (checkpoint_save(engine, output, &record, &pieces, NULL, &error) != SIFR_OK)
        fail_msg("%s", error.message);
    json_decref(object);
}

static inline sifr_status load(sifr_engine *engine, const char *output, sifr_error *error) {
    json_t *object = json_pack("{s:i}", "seed", 1), *state;
    checkpoint_record record = {
        .must_match = object, .may_differ = object, .state = object, .trainer = object};
    *error = (sifr_error){0};
    sifr_status status = checkpoint_load(engine, output, &record, &state, NULL, error);
    json_decref(object);
    json_decref(state);
    return status;
}

static inline void loads(sifr_engine *engine, const char *output) {
    sifr_error error;
    if (load(engine, output, &error) != SIFR_OK) fail_msg("%s", error.message);
}

#endif

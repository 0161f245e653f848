/* Two engines of one small model: checkpoints that `engine` saves, and `other` loads. Included by
 * one test file each. */
#ifndef SUPPORT_CHECKPOINT_CASE_H
#define SUPPORT_CHECKPOINT_CASE_H

#include "support/scratch.h"

#include <jansson.h>

#include "checkpoint/manifest.h" /* in front of the names below */
#include "engine/engine_private.h"

static sifr_model *model;
static sifr_engine *engine, *other;
/* What the caller keeps: `seed` must agree, `note` may differ. */
static json_t *objects[5];

static inline void build(sifr_model *m) {
    sifr_unit(m, "embed");
    sifr_weight table = sifr_weight_matrix(m, "table", 32, 16, SIFR_INIT_NORMAL, 0.1);
    sifr_value x = sifr_embedding(m, (sifr_embedding_args){.ids = sifr_tokens(m), .table = table});
    sifr_unit(m, "block");
    sifr_weight w = sifr_weight_matrix(m, "w", 16, 16, SIFR_INIT_NORMAL, 0.1);
    sifr_weight b = sifr_weight_vector(m, "b", 16, SIFR_INIT_ZERO);
    x = sifr_add(m, x, sifr_linear(m, x, w, b));
    sifr_unit(m, "head");
    sifr_weight head = sifr_weight_matrix(m, "head", 32, 16, SIFR_INIT_NORMAL, 0.1);
    sifr_head_loss(m, (sifr_head_args){.x = x, .weight = head});
}

static inline int make_engines(void **state) {
    sifr_settings options = sifr_settings_defaults();
    options.seq_length = 8;
    options.threads = 1;
    options.precision = SIFR_BF16; /* masters beside parameters */
    if (sifr_model_create(&model, NULL) != SIFR_OK) return -1;
    build(model);
    if (sifr_model_finish(model, NULL) != SIFR_OK ||
        sifr_engine_create(model, &options, &engine, NULL) != SIFR_OK ||
        sifr_engine_create(model, &options, &other, NULL) != SIFR_OK)
        return -1;
    return scratch_setup(state);
}

static inline int free_engines(void **state) {
    for (int i = 0; i < 5; i++) json_decref(objects[i]);
    sifr_engine_free(engine);
    sifr_engine_free(other);
    sifr_model_free(model);
    return scratch_teardown(state);
}

static inline void train(sifr_engine *e, int64_t steps) {
    int32_t tokens[8], labels[8];
    sifr_step_result result;
    for (int64_t i = 0; i < steps; i++) {
        for (int t = 0; t < 8; t++) {
            tokens[t] = (int32_t)((sifr_engine_steps(e) * 8 + t) % 32);
            labels[t] = (tokens[t] + 1) % 32;
        }
        assert_int_equal(sifr_engine_step(e, &(sifr_batch){.tokens = tokens, .labels = labels},
                                          1e-2, &result, NULL),
                         SIFR_OK);
        assert_true(result.updated);
    }
}

static inline size_t bytes_of(size_t weight) {
    const model_weight *w = &model->weights[weight];
    return (size_t)(w->rows * w->columns) * sizeof(float);
}

static inline void restart(sifr_engine *e, int64_t steps) {
    for (size_t w = 0; w < model->weight_count; w++) {
        for (int p = 0; p < engine_parts(e); p++)
            memset(engine_state(e, w, (engine_part)p), 0, bytes_of(w));
    }
    e->steps = e->updates = 0;
    assert_int_equal(sifr_engine_initialise(e, 3, NULL), SIFR_OK);
    train(e, steps);
}

static inline checkpoint_record record(int seed, int note) {
    for (int i = 0; i < 5; i++) json_decref(objects[i]);
    objects[0] = json_pack("{s:i}", "seed", seed);
    objects[1] = json_pack("{s:i, s:{s:i, s:{s:f}}}", "note", note, "optimizer", "same", 1,
                           "params", "lr", 0.001 * note);
    objects[4] = json_pack("{s:{s:{s:b, s:i, s:i}}}", "optimizer", "params", "amsgrad", 0, "r", 0,
                           "warmup_steps", 0);
    objects[2] = json_pack("{s:i}", "samples", 40);
    objects[3] = json_pack("{s:i}", "global_step", 5);
    return (checkpoint_record){.must_match = objects[0],
                               .may_differ = objects[1],
                               .state = objects[2],
                               .trainer = objects[3],
                               .defaults = objects[4]};
}

static char said[8192];

static inline void keep_line(void *user, sifr_log_level level, const char *line) {
    (void)user;
    if (level == SIFR_LOG_DEBUG) return;
    strncat(said, line, sizeof said - strlen(said) - 2);
    strcat(said, "\n");
}

static const sifr_log log_lines = {keep_line, NULL};
static const checkpoint_settings pieces = {.file_bytes = 1000}; /* several files, cut weights */

static inline const char *fresh(const char *name) {
    said[0] = 0;
    return scratch_fresh(name);
}

static inline void save(const char *output, const checkpoint_settings *settings) {
    checkpoint_record r = record(1, 1);
    sifr_error error = {0};
    if (checkpoint_save(engine, output, &r, settings, &log_lines, &error) != SIFR_OK)
        fail_msg("%s", error.message);
}

static inline sifr_status load(const char *output, int seed, int note, json_t **state,
                               sifr_error *error) {
    checkpoint_record r = record(seed, note);
    *error = (sifr_error){0};
    return checkpoint_load(other, output, &r, state, &log_lines, error);
}

static inline void loads(const char *output, int64_t step) {
    json_t *state;
    sifr_error error;
    if (load(output, 1, 1, &state, &error) != SIFR_OK) fail_msg("%s", error.message);
    assert_non_null(state);
    assert_int_equal(json_integer_value(json_object_get(state, "samples")), 40);
    json_decref(state);
    assert_int_equal(other->steps, step);
}

#endif

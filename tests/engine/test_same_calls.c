/* What ranks give an engine unlike each other (the rate, betas, values and seeds of weights, the
 * weight that is read, the call itself) is told by all of them, with what differs and where, at
 * stages 0 and 3 and on pipeline stages: none waits for the others, and steps that follow have the
 * bits of a run in which nothing differed. timeout: 120 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/engine_private.h"
#include "model/registry.h"
#include "support/comm_threads.h"
#include "support/model_case.h"

enum { LENGTH = 16, RANKS = 2, STUCK_S = 60, WEIGHTS = 512 };

typedef struct kind {
    int32_t zero, stages;
    bool reads; /* a weight is in parts */
} kind;

typedef enum turn {
    RATE,
    BETAS,
    WRITTEN,
    PIECE,
    NAMES,
    NOWHERE,
    RANGES,
    CALLS,
    EVALUATION,
    SEED,
    TURNS
} turn;

typedef struct one_rank {
    comm_threads *world;
    const kind *of;
    int32_t rank;
    bool differs;
    sifr_error error, said[TURNS];
    float weights[WEIGHTS];
    double loss;
} one_rank;

typedef struct run_of {
    one_rank *r;
    sifr_engine *engine;
    const sifr_model *model;
    int32_t tokens[LENGTH], labels[LENGTH];
    float values[1 << 14];
} run_of;

static const model_weight *weight_of(const run_of *o, size_t index) {
    const model_weight *w = &o->model->weights[index];
    assert_true(w->rows * w->columns >= WEIGHTS && w->rows * w->columns <= 1 << 14);
    return w;
}

static sifr_status step(run_of *o, double rate, sifr_error *error) {
    sifr_step_result result = {0};
    const sifr_batch batch = {.tokens = o->tokens, .labels = o->labels};
    BASE_TRY(sifr_engine_step(o->engine, &batch, rate, &result, error));
    assert_true(result.updated);
    o->r->loss = result.loss;
    return SIFR_OK;
}

static sifr_status read_of(run_of *o, const char *name, int64_t first, sifr_error *error) {
    return sifr_engine_read_piece(o->engine, name, first, o->values, 16, error);
}

static void write_of(run_of *o, float value, int64_t first, size_t count) {
    const model_weight *w = weight_of(o, 0);
    for (int i = 0; i < 1 << 14; i++) o->values[i] = 0.01F * (float)(i % 7);
    o->values[count / 2] = value;
    assert_int_equal(sifr_engine_write_piece(o->engine, w->name, first, o->values, count, NULL),
                     SIFR_OK);
}

/* What differs in the weights themselves; in the end both ranks write the same. */
static void differ_in_weights(run_of *o) {
    sifr_error *said = o->r->said;
    const model_weight *w = weight_of(o, 0);
    size_t all = (size_t)(w->rows * w->columns);
    write_of(o, (float)o->r->rank, 0, all);
    (void)!step(o, 1e-2, &said[WRITTEN]);
    write_of(o, 0, 0, all);
    write_of(o, 0, 8 * o->r->rank, 8);
    (void)!step(o, 1e-2, &said[PIECE]);
    assert_int_equal(sifr_engine_initialise(o->engine, 5 + (uint64_t)o->r->rank, NULL), SIFR_OK);
    (void)!step(o, 1e-2, &said[SEED]);
    assert_int_equal(sifr_engine_initialise(o->engine, 5, NULL), SIFR_OK);
}

static void differ(run_of *o) {
    sifr_error *said = o->r->said;
    bool second = o->r->rank == 1;
    const char *name = weight_of(o, 0)->name;
    double sum;
    int64_t labelled;
    (void)!step(o, second ? 2e-2 : 1e-2, &said[RATE]);
    assert_int_equal(sifr_engine_set_betas(o->engine, second ? 0.8 : 0.9, 0.999, NULL), SIFR_OK);
    (void)!step(o, 1e-2, &said[BETAS]);
    assert_int_equal(sifr_engine_set_betas(o->engine, 0.9, 0.999, NULL), SIFR_OK);
    if (!o->r->of->reads) return;
    (void)!read_of(o, second ? name : o->model->weights[1].name, 0, &said[NAMES]);
    (void)!read_of(o, second ? name : "nope", 0, &said[NOWHERE]);
    (void)!read_of(o, name, second, &said[RANGES]);
    if (second)
        (void)!read_of(o, name, 0, &said[CALLS]);
    else
        (void)!step(o, 1e-2, &said[CALLS]);
    const sifr_batch batch = {.tokens = o->tokens, .labels = o->labels};
    if (second)
        (void)!sifr_engine_evaluate(o->engine, &batch, &sum, &labelled, &said[EVALUATION]);
    else
        (void)!step(o, 1e-2, &said[EVALUATION]);
}

static sifr_status steps(run_of *o) {
    one_rank *r = o->r;
    int32_t own = r->of->stages > 1 ? 0 : r->rank; /* of a pipeline all ranks have the batch */
    for (int i = 0; i < LENGTH; i++) o->tokens[i] = 3 * i + own, o->labels[i] = 3 * i + 3;
    BASE_TRY(sifr_engine_initialise(o->engine, 5, &r->error));
    if (r->differs) differ_in_weights(o);
    for (int i = 0; i < 3; i++) {
        BASE_TRY(step(o, 1e-2, &r->error));
        if (r->differs && i < 2) differ(o);
    }
    assert_int_equal(sifr_engine_steps(o->engine), 3);
    return sifr_engine_read_piece(o->engine, weight_of(o, 0)->name, 0, r->weights, WEIGHTS,
                                  &r->error);
}

static void *run_rank(void *argument) {
    one_rank *r = argument;
    sifr_settings settings = sifr_settings_defaults();
    model_config config = model_case_llama();
    sifr_model *model = NULL;
    sifr_engine *engine = NULL;
    comm_group *group = comm_threads_group(r->world, r->rank);
    settings.threads = 1, settings.seq_length = LENGTH;
    settings.zero.stage = r->of->zero;
    settings.pipeline.stages = r->of->stages, settings.pipeline.schedule = SIFR_SCHEDULE_1F1B;
    sifr_status status = model_from_config(&config, &model, &r->error);
    if (status == SIFR_OK) status = engine_create(model, &settings, group, &engine, &r->error);
    if (status == SIFR_OK) status = steps(&(run_of){.r = r, .engine = engine, .model = model});
    if (status == SIFR_OK) r->error.message[0] = '\0';
    sifr_engine_free(engine);
    comm_close(group);
    sifr_model_free(model);
    return NULL;
}

static void run(const kind *of, bool differs, one_rank runs[RANKS]) {
    pthread_t threads[RANKS];
    comm_threads *world = comm_threads_create(RANKS);
    alarm(STUCK_S); /* the test ends if ranks wait for each other */
    for (int32_t i = 0; i < RANKS; i++) {
        runs[i] = (one_rank){.world = world, .of = of, .rank = i, .differs = differs};
        assert_int_equal(pthread_create(&threads[i], NULL, run_rank, &runs[i]), 0);
    }
    for (int32_t i = 0; i < RANKS; i++) pthread_join(threads[i], NULL);
    alarm(0);
    comm_threads_free(world);
    for (int32_t i = 0; i < RANKS; i++) assert_string_equal(runs[i].error.message, "");
}

static void expect(const one_rank *r, turn at, const char *begins) {
    const char *said = r->said[at].message;
    if (strncmp(said, begins, strlen(begins)) != 0) fail_msg("turn %d: %s", (int)at, said);
    assert_int_equal(r->said[at].status, SIFR_USAGE);
}

static void expect_told(const kind *of) {
    static one_rank want[RANKS], have[RANKS];
    run(of, false, want);
    run(of, true, have);
    for (int32_t i = 0; i < RANKS; i++) {
        const one_rank *r = &have[i];
        expect(r, RATE,
               "learning_rate: differs on rank 1 from the other ranks (of 2); give all ranks the "
               "same");
        expect(r, BETAS, "betas: differs on rank 1");
        expect(r, WRITTEN,
               "weight model.embed_tokens.weight, as it was written or initialised: differs");
        expect(r, PIECE,
               "weight model.embed_tokens.weight, as it was written or initialised: differs");
        expect(r, SEED,
               "weight model.embed_tokens.weight, as it was written or initialised: differs");
        if (of->reads) {
            expect(r, NAMES, "the name of the weight that is read: differs on rank 1");
            expect(r, NOWHERE, "weight nope: the model has no weight of that name");
            expect(r, RANGES, "the first element that is read: differs on rank 1");
            expect(r, CALLS,
                   i ? "the engine's call, here the reading of a weight: differs on rank 1"
                     : "the engine's call, here a step: differs on rank 1");
            expect(r, EVALUATION,
                   i ? "the engine's call, here an evaluation: differs on rank 1"
                     : "the engine's call, here a step: differs on rank 1");
        }
        assert_true(r->loss == want[i].loss);
        assert_memory_equal(r->weights, want[i].weights, sizeof r->weights);
    }
}

static void plain(void **state) {
    (void)state;
    expect_told(&(kind){.stages = 1});
}

static void divided(void **state) {
    (void)state;
    expect_told(&(kind){.zero = 3, .stages = 1, .reads = true});
}

static void staged(void **state) {
    (void)state;
    expect_told(&(kind){.stages = 2, .reads = true});
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(plain), cmocka_unit_test(divided),
                                       cmocka_unit_test(staged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

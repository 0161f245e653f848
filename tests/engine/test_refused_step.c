/* A batch that one rank cannot take, or has not got, ends a step or an evaluation on all ranks,
 * with its reason, at stages 0 and 3, on pipeline stages and with an update a step late: none waits
 * for the others, and what follows has the bits of a run in which nothing was refused. timeout: 120
 */
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

enum { LENGTH = 16, RANKS = 2, STUCK_S = 60, TURNS = 3, WEIGHTS = 512 };

typedef struct kind {
    int32_t zero, stages;
    bool late;
    bool together; /* an evaluation, too, is of all ranks */
} kind;

typedef struct one_rank {
    comm_threads *world;
    const kind *of;
    int32_t rank;
    bool refuses;
    sifr_error error, step[TURNS], failed, evaluation;
    float weights[WEIGHTS];
    double loss;
} one_rank;

static sifr_batch batch_of(const one_rank *r, int32_t *tokens, int32_t *labels) {
    int32_t own = r->of->stages > 1 ? 0 : r->rank; /* of a pipeline all ranks have the batch */
    for (int i = 0; i < LENGTH; i++) tokens[i] = 3 * i + own, labels[i] = 3 * i + 3;
    return (sifr_batch){.tokens = tokens, .labels = labels};
}

/* Between two steps, which leave an update to the next one where it is late. */
static void refuse(one_rank *r, sifr_engine *engine) {
    int32_t tokens[LENGTH], labels[LENGTH];
    double sum;
    int64_t labelled;
    sifr_step_result result;
    sifr_batch batch = batch_of(r, tokens, labels);
    if (r->rank == 1) tokens[5] = 9999;
    (void)!sifr_engine_step(engine, &batch, 1e-2, &result, &r->step[0]);
    if (r->rank == 1) batch_of(r, tokens, labels), batch.labels = NULL;
    (void)!sifr_engine_step(engine, &batch, 1e-2, &result, &r->step[1]);
    batch = batch_of(r, tokens, labels);
    if (r->rank == 0) tokens[5] = -3;
    (void)!sifr_engine_step(engine, &batch, 1e-2, &result, &r->step[2]);
    batch = batch_of(r, tokens, labels);
    if (r->rank == 1)
        (void)!sifr_engine_fail(engine, SIFR_CALL_STEP, "no rows", &r->failed);
    else
        (void)!sifr_engine_step(engine, &batch, 1e-2, &result, &r->failed);
    if (r->rank == 1)
        (void)!sifr_engine_fail(engine, SIFR_CALL_EVALUATE, "no rows", &r->evaluation);
    else
        (void)!sifr_engine_evaluate(engine, &batch, &sum, &labelled, &r->evaluation);
}

static sifr_status steps(one_rank *r, sifr_engine *engine, const sifr_model *model) {
    int32_t tokens[LENGTH], labels[LENGTH];
    sifr_step_result result = {0};
    const sifr_batch batch = batch_of(r, tokens, labels);
    const model_weight *w = &model->weights[0];
    assert_true(w->rows * w->columns >= WEIGHTS);
    BASE_TRY(sifr_engine_initialise(engine, 5, &r->error));
    for (int i = 0; i < 3; i++) {
        BASE_TRY(sifr_engine_step(engine, &batch, 1e-2, &result, &r->error));
        assert_true(result.updated);
        if (r->refuses && i < 2) refuse(r, engine);
    }
    r->loss = result.loss;
    assert_int_equal(sifr_engine_steps(engine), 3);
    return sifr_engine_read_piece(engine, w->name, 0, r->weights, WEIGHTS, &r->error);
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
    if (r->of->late)
        settings.offload.optimizer.device = SIFR_TIER_NVME, settings.offload.nvme_path = "/tmp";
    sifr_status status = model_from_config(&config, &model, &r->error);
    if (status == SIFR_OK) status = engine_create(model, &settings, group, &engine, &r->error);
    if (status == SIFR_OK) status = steps(r, engine, model);
    if (status == SIFR_OK) r->error.message[0] = '\0';
    sifr_engine_free(engine);
    comm_close(group);
    sifr_model_free(model);
    return NULL;
}

static void run(const kind *of, bool refuses, one_rank runs[RANKS]) {
    pthread_t threads[RANKS];
    comm_threads *world = comm_threads_create(RANKS);
    alarm(STUCK_S); /* the test ends if ranks wait for each other */
    for (int32_t i = 0; i < RANKS; i++) {
        runs[i] = (one_rank){.world = world, .of = of, .rank = i, .refuses = refuses};
        assert_int_equal(pthread_create(&threads[i], NULL, run_rank, &runs[i]), 0);
    }
    for (int32_t i = 0; i < RANKS; i++) pthread_join(threads[i], NULL);
    alarm(0);
    comm_threads_free(world);
    for (int32_t i = 0; i < RANKS; i++) assert_string_equal(runs[i].error.message, "");
}

static void expect_refused(const kind *of) {
    static const char outside[] =
        "data: token %d at position 5 is outside of the model's vocabulary";
    static one_rank want[RANKS], have[RANKS];
    char first[128], second[128];
    snprintf(first, sizeof first, outside, -3);
    snprintf(second, sizeof second, outside, 9999);
    run(of, false, want);
    run(of, true, have);
    for (int32_t i = 0; i < RANKS; i++) {
        const one_rank *r = &have[i];
        assert_memory_equal(r->step[0].message, "rank 1: ", 8);
        assert_memory_equal(r->step[0].message + 8, second, strlen(second));
        assert_int_equal(r->step[0].status, SIFR_FAILED);
        assert_non_null(strstr(r->step[1].message, "rank 1: batch: labels are missing"));
        assert_int_equal(r->step[1].status, SIFR_USAGE);
        assert_memory_equal(r->step[2].message, first, strlen(first)); /* of rank 0 */
        assert_string_equal(r->failed.message, "rank 1: no rows");
        const char *said = of->together ? "rank 1: no rows" : i ? "no rows" : "";
        assert_string_equal(r->evaluation.message, said);
        assert_true(r->loss == want[i].loss);
        assert_memory_equal(r->weights, want[i].weights, sizeof r->weights);
    }
}

static void plain(void **state) {
    (void)state;
    expect_refused(&(kind){.stages = 1});
}

static void divided(void **state) {
    (void)state;
    expect_refused(&(kind){.zero = 3, .stages = 1, .together = true});
}

static void staged(void **state) {
    (void)state;
    expect_refused(&(kind){.stages = 2, .together = true});
}

static void late(void **state) {
    (void)state;
    expect_refused(&(kind){.zero = 2, .stages = 1, .late = true});
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(plain), cmocka_unit_test(divided),
                                       cmocka_unit_test(staged), cmocka_unit_test(late)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

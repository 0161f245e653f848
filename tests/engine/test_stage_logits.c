/* An evaluation with logits through two stages whose devices hide their memory: that of the last
 * stage needs more memory than training leaves idle, that of the first one does not, and both open
 * what their neighbours read together. in test_tsan */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/engine_private.h"
#include "support/comm_threads.h"
#include "support/model_case.h"
#include "support/on_queues.h"

enum { WORDS = 5000, SEQUENCES = 8, LENGTH = 16, TOKENS = SEQUENCES * LENGTH, STUCK_S = 60 };

typedef struct stage_run {
    comm_threads *world;
    int32_t rank, stages;
    bool takes_memory; /* its evaluation does not fit in what is idle */
    double loss, micro_losses[2];
    int32_t micro_batches; /* whose losses a step gives */
    float *logits;
    sifr_error error;
} stage_run;

static sifr_status evaluate(stage_run *r, sifr_engine *engine, sifr_error *error) {
    int32_t tokens[2 * TOKENS], labels[2 * TOKENS];
    sifr_step_result result;
    int64_t labelled;
    for (int i = 0; i < 2 * TOKENS; i++) tokens[i] = i * 7 % WORDS, labels[i] = i * 11 % WORDS;
    sifr_batch batch = {.tokens = tokens, .labels = labels};
    BASE_TRY(sifr_engine_initialise(engine, 5, error));
    BASE_TRY(sifr_engine_step(engine, &batch, 1e-2, &result, error));
    BASE_TRY(engine_evaluate_logits(engine, &batch, &r->loss, &labelled, r->logits, error));
    r->takes_memory = engine_taken_bytes(engine->logits_evaluator.executor) > 0;
    BASE_TRY(sifr_engine_step(engine, &batch, 1e-2, &result, error));
    r->micro_batches = result.micro_batches;
    for (int j = 0; j < result.micro_batches; j++) r->micro_losses[j] = result.micro_losses[j];
    return SIFR_OK;
}

static void *run_rank(void *argument) {
    stage_run *r = argument;
    sifr_settings settings = sifr_settings_defaults();
    model_config config = model_case_llama();
    sifr_model *model = NULL;
    sifr_engine *engine = NULL;
    device *dev = NULL;
    comm_group *group = comm_threads_group(r->world, r->rank);
    config.vocab_size = WORDS;
    settings.threads = 1;
    settings.micro_batch_size = SEQUENCES, settings.seq_length = LENGTH;
    settings.gradient_accumulation_steps = 2;
    settings.pipeline.stages = r->stages, settings.pipeline.schedule = SIFR_SCHEDULE_1F1B;
    sifr_status status = model_from_config(&config, &model, &r->error);
    if (status == SIFR_OK) status = on_queues_open(&dev, &r->error);
    if (status == SIFR_OK)
        status = engine_create_on(dev, model, &settings, group, &engine, &r->error);
    if (status == SIFR_OK) status = evaluate(r, engine, &r->error);
    if (status == SIFR_OK) r->error.message[0] = '\0';
    sifr_engine_free(engine);
    comm_close(group);
    sifr_model_free(model);
    return NULL;
}

static void run(stage_run runs[2], int32_t stages) {
    pthread_t threads[2];
    comm_threads *world = comm_threads_create(stages);
    comm_threads_share(world);
    for (int32_t i = 0; i < stages; i++) {
        runs[i] = (stage_run){.world = world, .rank = i, .stages = stages};
        runs[i].logits = calloc((size_t)TOKENS * WORDS, sizeof(float));
        assert_non_null(runs[i].logits);
        assert_int_equal(pthread_create(&threads[i], NULL, run_rank, &runs[i]), 0);
    }
    for (int32_t i = 0; i < stages; i++) pthread_join(threads[i], NULL);
    for (int32_t i = 0; i < stages; i++) assert_string_equal(runs[i].error.message, "");
    comm_threads_free(world);
}

static void logits(void **state) {
    (void)state;
    stage_run one[2], two[2];
    run(one, 1);
    alarm(STUCK_S); /* the test ends if the stages stand still */
    run(two, 2);
    alarm(0);
    for (int i = 0; i < 2; i++) {
        assert_true(two[i].takes_memory);
        assert_true(two[i].loss == one[0].loss);
        assert_true(one[0].loss > 0);
        assert_memory_equal(two[i].logits, one[0].logits, (size_t)TOKENS * WORDS * sizeof(float));
        free(two[i].logits);
    }
    /* The last stage has the losses by micro batch. */
    assert_int_equal(one[0].micro_batches, 2);
    assert_int_equal(two[0].micro_batches, 0);
    assert_int_equal(two[1].micro_batches, 2);
    assert_memory_equal(two[1].micro_losses, one[0].micro_losses, sizeof one[0].micro_losses);
    free(one[0].logits);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(logits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "support/sharded_run.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/random.h"
#include "checkpoint/checkpoint.h"
#include "engine/engine_private.h"
#include "plan/queries.h"
#include "support/comm_threads.h"
#include "support/model_case.h"
#include "support/on_queues.h"

enum { LENGTH = 16, GLOBAL = 8, WORDS = 97 };

typedef struct rank_run {
    const sharded_task *task;
    comm_threads *world;
    int32_t rank;
    sifr_status after; /* of going on */
    sharded_outcome out;
} rank_run;

static void keep_line(void *user, sifr_log_level level, const char *line) {
    rank_run *run = user;
    if (level == SIFR_LOG_DEBUG) return;
    strncat(run->out.said, line, sizeof run->out.said - strlen(run->out.said) - 1);
}

/* Three blocks of uneven sizes, of columns or of rows, in the other order. */
static void turn(model_weight *w, bool rows) {
    int64_t length = rows ? w->rows : w->columns, ends[] = {length, length / 2, length / 5, 0};
    for (int b = 0; b < 3 && length >= 5; b++) {
        model_block block = model_whole(w);
        int64_t *cut = rows ? block.rows : block.columns;
        cut[0] = ends[b + 1], cut[1] = ends[b];
        w->cut.blocks[b] = block;
    }
    w->cut.count = length >= 5 ? 3 : 0;
}

static void cut_weights(sifr_model *model, sharded_cut how) {
    for (size_t i = 0; i < model->weight_count && how; i++) {
        model_weight *w = &model->weights[i];
        model_cut cut = {.rows = w->rows, .columns = w->columns, .count = 2};
        cut.blocks[0] = cut.blocks[1] = model_whole(w);
        cut.blocks[0].columns[1] = cut.blocks[1].columns[0] = w->columns / 2;
        w->cut = cut;
        if (how == SHARDED_HALVES) continue;
        w->cut.count = 0;
        turn(w, how == SHARDED_ROTATED);
    }
}

static sifr_status make_engine(const rank_run *run, sifr_model **model, sifr_engine **engine,
                               sifr_error *error) {
    model_config config = model_case_llama();
    config.tie_word_embeddings = true;
    sifr_settings options = sifr_settings_defaults();
    options.precision = run->task->shape.precision;
    options.threads = 1;
    options.seq_length = LENGTH;
    options.pipeline.stages = run->task->stages ? run->task->stages : 1;
    options.gradient_accumulation_steps = GLOBAL * options.pipeline.stages / run->task->shape.ranks;
    options.zero.stage = run->task->shape.stage;
    if (run->task->optimizer) options.optimizer = *run->task->optimizer;
    options.mesh.shard_size = run->task->shape.shard_size;
    options.optimizer.weight_decay = 0.01;
    options.fp16.initial_scale_power = 26; /* the first steps overflow and lower it */
    BASE_TRY(model_from_config(&config, model, error));
    if (run->task->freeze) BASE_TRY(sifr_model_freeze(*model, run->task->freeze, error));
    for (size_t w = 0; run->task->based && w < (*model)->weight_count; w++)
        (*model)->weights[w].based = (*model)->weights[w].frozen;
    BASE_TRY(sifr_model_group(*model, &options.optimizer, error));
    cut_weights(*model, run->task->cut);
    comm_group *group = comm_threads_group(run->world, run->rank);
    device *dev;
    if (on_queues()) {
        BASE_TRY(on_queues_open(&dev, error));
        BASE_TRY(engine_create_on(dev, *model, &options, group, engine, error));
    } else {
        BASE_TRY(engine_create(*model, &options, group, engine, error));
    }
    return sifr_engine_initialise(*engine, 5, error);
}

static sifr_status train(sifr_engine *engine, sifr_error *error) {
    int32_t tokens[GLOBAL * LENGTH], labels[GLOBAL * LENGTH];
    const plan_settings *s = &engine->training->settings;
    sifr_step_result result;
    for (int32_t j = 0; j < s->step.gradient_accumulation_steps; j++) {
        int32_t g = plan_global_micro_batch(s, plan_mesh_place(&s->mesh, PLAN_DATA), j);
        for (int i = 0; i < LENGTH; i++) {
            base_random4 draw = base_philox(9, (uint64_t)(g * LENGTH + i), (uint64_t)engine->steps);
            tokens[j * LENGTH + i] = (int32_t)(draw.v[0] % WORDS);
            labels[j * LENGTH + i] = (int32_t)(draw.v[2] % WORDS);
        }
    }
    return sifr_engine_step(engine, &(sifr_batch){.tokens = tokens, .labels = labels}, 1e-2,
                            &result, error);
}

/* Of every element of every part: the same for the same state, whoever holds it. */
static sifr_status hash_state(const sifr_engine *engine, uint64_t *hash, sifr_error *error) {
    const engine_loss_scaler *s = &engine->scaler;
    const int64_t counts[] = {engine->updates, (int64_t)s->scale, s->iteration, s->last_overflow,
                              s->hysteresis};
    float values[WORDS * 40];
    *hash = base_hash(counts, sizeof counts);
    for (size_t w = 0; w < engine->model->weight_count; w++) {
        for (int p = 0; p < engine_weight_parts(engine, w); p++) {
            if (engine_part_each(engine, w, (engine_part)p) > 1) continue; /* steps show them */
            int64_t count = engine_part_elements(engine, w, (engine_part)p);
            BASE_TRY(engine_collect(engine, w, (engine_part)p, 0, count, values, error));
            *hash = base_hash_seeded(values, (size_t)count * sizeof *values, *hash);
        }
    }
    return SIFR_OK;
}

static const checkpoint_settings pieces = {.file_bytes = 20000, .keep = 2};
static const checkpoint_settings whole = {.keep = 2};

/* Only rank 0 has something to keep. */
static sifr_status save(rank_run *run, const sifr_engine *engine, const char *output,
                        sifr_error *error) {
    sifr_log log = {keep_line, run};
    const checkpoint_settings *settings = run->task->whole ? &whole : &pieces;
    if (run->rank != 0) return checkpoint_save(engine, output, NULL, settings, NULL, error);
    json_t *must_match = json_pack("{s:i}", "seed", 1), *state = json_pack("{s:i}", "samples", 40);
    checkpoint_record record = {
        .must_match = must_match, .may_differ = must_match, .state = state, .trainer = state};
    sifr_status status = checkpoint_save(engine, output, &record, settings, &log, error);
    json_decref(must_match);
    json_decref(state);
    return status;
}

static sifr_status load(rank_run *run, sifr_engine *engine, const char *output, sifr_error *error) {
    sifr_log log = {keep_line, run};
    json_t *must_match = json_pack("{s:i}", "seed", 1), *state = NULL;
    checkpoint_record record = {.must_match = must_match, .may_differ = must_match};
    sifr_status status = checkpoint_load(engine, output, run->rank ? NULL : &record, &state,
                                         run->rank ? NULL : &log, error);
    bool there = json_integer_value(json_object_get(state, "samples")) == 40;
    if (status == SIFR_OK && !there)
        status = base_fail(error, SIFR_FAILED, "the state that was kept did not come back");
    json_decref(must_match);
    json_decref(state);
    return status;
}

static void tell(const rank_run *run) {
    if (run->task->ready && run->rank == 0 && write(run->task->ready, "", 1) != 1) abort();
}

static sifr_status work(rank_run *run, sifr_engine *engine, sifr_error *error) {
    const sharded_task *t = run->task;
    bool last = run->rank == t->shape.ranks - 1;
    const char *from = t->elsewhere && last ? t->elsewhere : t->from;
    const char *to = t->elsewhere && last ? t->elsewhere : t->to;
    if (t->from) BASE_TRY(load(run, engine, from, error));
    tell(run);
    for (int64_t i = 0; i < t->steps; i++) {
        BASE_TRY(train(engine, error));
        if (t->save_each) BASE_TRY(save(run, engine, to, error));
        tell(run);
        if (engine->steps < SHARDED_MOST_STEPS)
            BASE_TRY(hash_state(engine, &run->out.steps[engine->steps], error));
    }
    return t->to && !t->save_each ? save(run, engine, to, error) : SIFR_OK;
}

static void *run_rank(void *argument) {
    rank_run *run = argument;
    sifr_model *model = NULL;
    sifr_engine *engine = NULL;
    run->out.status = make_engine(run, &model, &engine, &run->out.error);
    if (run->out.status == SIFR_OK) run->out.status = work(run, engine, &run->out.error);
    if (engine) {
        run->out.step = engine->steps;
        run->after = hash_state(engine, &run->out.hash, NULL);
        for (int i = 0; i < run->task->go_on && run->after == SIFR_OK; i++)
            run->after = train(engine, NULL);
    }
    sifr_engine_free(engine);
    sifr_model_free(model);
    return NULL;
}

static rank_run runs[SHARDED_MOST_RANKS];

sifr_status sharded_run(sharded_task t) {
    pthread_t threads[SHARDED_MOST_RANKS];
    comm_threads *world = comm_threads_create(t.shape.ranks);
    if (on_queues()) comm_threads_share(world);
    memset(runs, 0, sizeof runs);
    for (int32_t r = 0; r < t.shape.ranks; r++) {
        runs[r].task = &t, runs[r].world = world, runs[r].rank = r;
        assert_int_equal(pthread_create(&threads[r], NULL, run_rank, &runs[r]), 0);
    }
    for (int32_t r = 0; r < t.shape.ranks; r++) pthread_join(threads[r], NULL);
    comm_threads_free(world);
    for (int32_t r = 0; r < t.shape.ranks; r++) {
        assert_int_equal(runs[r].after, SIFR_OK);
        assert_int_equal(runs[r].out.status, runs[0].out.status);
        assert_string_equal(runs[r].out.error.message, runs[0].out.error.message);
        assert_int_equal(runs[r].out.step, runs[0].out.step);
        assert_int_equal(runs[r].out.hash, runs[0].out.hash);
    }
    return runs[0].out.status;
}

const sharded_outcome *sharded_last(void) {
    return &runs[0].out;
}

void sharded_succeeds(sharded_task t) {
    if (sharded_run(t) != SIFR_OK)
        fail_msg("stage %d, %d ranks: %s", t.shape.stage, t.shape.ranks, runs[0].out.error.message);
}

void sharded_reference(sifr_precision precision, int64_t steps, uint64_t out[SHARDED_MOST_STEPS]) {
    sharded_succeeds((sharded_task){.shape = {1, 0, precision, 0}, .steps = steps});
    memcpy(out, runs[0].out.steps, sizeof runs[0].out.steps);
}

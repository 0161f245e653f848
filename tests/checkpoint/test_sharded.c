/* label: full; timeout: 300
 * Checkpoints of several ranks (threads of this process): what any stage and rank count saved, any
 * other goes on from to the same bits; damage and trouble end alike on all ranks; kills lose
 * nothing. */
#include "support/scratch.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/random.h"
#include "checkpoint/checkpoint.h"
#include "comm/worker.h"
#include "engine/engine_private.h"
#include "plan/queries.h"
#include "support/comm_threads.h"
#include "support/model_case.h"

enum { LENGTH = 16, GLOBAL = 8, WORDS = 97, MOST_RANKS = 8, MOST_STEPS = 64 };

typedef struct shape {
    int32_t ranks;
    int stage;
    sifr_precision precision;
    int32_t shard_size; /* 0: one copy */
} shape;

/* What all ranks do: load, train, save. */
typedef struct task {
    shape shape;
    const sifr_optimizer *optimizer; /* NULL: AdamW */
    const char *from, *to;           /* output folders; NULL: nothing is loaded, saved */
    const char *elsewhere;           /* the last rank's folders, in place of both */
    int64_t steps, save_each;        /* save_each: after every step, the newest two are kept */
    int go_on;          /* steps after whatever happened, to show that ranks are in step */
    bool whole;         /* a file a rank */
    int ready;          /* a descriptor that hears of the beginning and of saves; 0: none */
    const char *freeze; /* a pattern; NULL: none */
    bool based;         /* what is frozen is in no checkpoint */
} task;

typedef struct rank_run {
    const task *task;
    comm_threads *world;
    int32_t rank;
    sifr_status status;
    sifr_error error;
    sifr_status after; /* of going on */
    int64_t step;
    uint64_t hash;              /* of all state of all ranks */
    uint64_t steps[MOST_STEPS]; /* the same after each step */
    char said[4096];
} rank_run;

static void keep_line(void *user, sifr_log_level level, const char *line) {
    rank_run *run = user;
    if (level == SIFR_LOG_DEBUG) return;
    strncat(run->said, line, sizeof run->said - strlen(run->said) - 1);
}

static sifr_status make_engine(const rank_run *run, sifr_model **model, sifr_engine **engine,
                               sifr_error *error) {
    model_config config = model_case_llama();
    config.tie_word_embeddings = true;
    sifr_settings options = sifr_settings_defaults();
    options.precision = run->task->shape.precision;
    options.threads = 1;
    options.seq_length = LENGTH;
    options.gradient_accumulation_steps = GLOBAL / run->task->shape.ranks;
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
    BASE_TRY(
        engine_create(*model, &options, comm_threads_group(run->world, run->rank), engine, error));
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
        int64_t count = engine->model->weights[w].rows * engine->model->weights[w].columns;
        for (int p = 0; p < engine_weight_parts(engine, w); p++) {
            if (engine_part_each(engine, w, (engine_part)p) > 1) continue; /* steps show them */
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
    json_t *agree = json_pack("{s:i}", "seed", 1), *state = json_pack("{s:i}", "samples", 40);
    checkpoint_record record = {agree, agree, state, state, NULL, NULL};
    sifr_status status = checkpoint_save(engine, output, &record, settings, &log, error);
    json_decref(agree);
    json_decref(state);
    return status;
}

static sifr_status load(rank_run *run, sifr_engine *engine, const char *output, sifr_error *error) {
    sifr_log log = {keep_line, run};
    json_t *agree = json_pack("{s:i}", "seed", 1), *state = NULL;
    checkpoint_record record = {.agree = agree, .notes = agree};
    sifr_status status = checkpoint_load(engine, output, run->rank ? NULL : &record, &state,
                                         run->rank ? NULL : &log, error);
    bool there = json_integer_value(json_object_get(state, "samples")) == 40;
    if (status == SIFR_OK && !there)
        status = base_fail(error, SIFR_FAILED, "the state that was kept did not come back");
    json_decref(agree);
    json_decref(state);
    return status;
}

static void tell(const rank_run *run) {
    if (run->task->ready && run->rank == 0 && write(run->task->ready, "", 1) != 1) abort();
}

static sifr_status work(rank_run *run, sifr_engine *engine, sifr_error *error) {
    const task *t = run->task;
    bool last = run->rank == t->shape.ranks - 1;
    const char *from = t->elsewhere && last ? t->elsewhere : t->from;
    const char *to = t->elsewhere && last ? t->elsewhere : t->to;
    if (t->from) BASE_TRY(load(run, engine, from, error));
    tell(run);
    for (int64_t i = 0; i < t->steps; i++) {
        BASE_TRY(train(engine, error));
        if (t->save_each) BASE_TRY(save(run, engine, to, error));
        tell(run);
        if (engine->steps < MOST_STEPS)
            BASE_TRY(hash_state(engine, &run->steps[engine->steps], error));
    }
    return t->to && !t->save_each ? save(run, engine, to, error) : SIFR_OK;
}

static void *run_rank(void *argument) {
    rank_run *run = argument;
    sifr_model *model = NULL;
    sifr_engine *engine = NULL;
    run->status = make_engine(run, &model, &engine, &run->error);
    if (run->status == SIFR_OK) run->status = work(run, engine, &run->error);
    if (engine) {
        run->step = engine->steps;
        run->after = hash_state(engine, &run->hash, NULL);
        for (int i = 0; i < run->task->go_on && run->after == SIFR_OK; i++)
            run->after = train(engine, NULL);
    }
    sifr_engine_free(engine);
    sifr_model_free(model);
    return NULL;
}

static rank_run runs[MOST_RANKS];

/* The outcome is in `runs`: of the same status, message and state on all ranks. */
static sifr_status run_task(task t) {
    pthread_t threads[MOST_RANKS];
    comm_threads *world = comm_threads_create(t.shape.ranks);
    memset(runs, 0, sizeof runs);
    for (int32_t r = 0; r < t.shape.ranks; r++) {
        runs[r].task = &t, runs[r].world = world, runs[r].rank = r;
        assert_int_equal(pthread_create(&threads[r], NULL, run_rank, &runs[r]), 0);
    }
    for (int32_t r = 0; r < t.shape.ranks; r++) pthread_join(threads[r], NULL);
    comm_threads_free(world);
    for (int32_t r = 0; r < t.shape.ranks; r++) {
        assert_int_equal(runs[r].after, SIFR_OK);
        assert_int_equal(runs[r].status, runs[0].status);
        assert_string_equal(runs[r].error.message, runs[0].error.message);
        assert_int_equal(runs[r].step, runs[0].step);
        assert_int_equal(runs[r].hash, runs[0].hash);
    }
    return runs[0].status;
}

static void succeeds(task t) {
    if (run_task(t) != SIFR_OK)
        fail_msg("stage %d, %d ranks: %s", t.shape.stage, t.shape.ranks, runs[0].error.message);
}

static const char *fresh(const char *name) {
    const char *path = scratch_path(name);
    assert_int_equal(base_remove_tree(path, NULL), SIFR_OK);
    return path;
}

/* Hashes of an uninterrupted run of one rank. */
static void reference(sifr_precision precision, int64_t steps, uint64_t out[MOST_STEPS]) {
    succeeds((task){.shape = {1, 0, precision, 0}, .steps = steps});
    memcpy(out, runs[0].steps, sizeof runs[0].steps);
}

static const sifr_precision precisions[] = {SIFR_FP32, SIFR_BF16, SIFR_FP16};

/* 1, 2, 4 and 8 ranks at each stage, then copies of the state: 2 x 2, 4 x 2 and 2 x 4. */
static shape shape_of(int number, sifr_precision precision) {
    static const int32_t meshes[][2] = {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {4, 2}, {8, 2}, {8, 4}};
    const int32_t *mesh = meshes[number / 4];
    return (shape){mesh[0], number % 4, precision, mesh[1]};
}

/* Each of 28 shapes saves, and others, together all, go on from there. */
static void any_shape_to_any(void **state) {
    (void)state;
    enum { SHAPES = 28 };
    for (int p = 0; p < 3; p++) {
        sifr_precision precision = precisions[p];
        int partners = precision == SIFR_BF16 ? 3 : 1;
        uint64_t wanted[MOST_STEPS];
        reference(precision, 4, wanted);
        for (int i = 0; i < SHAPES; i++) {
            const char *output = fresh("any");
            succeeds((task){.shape = shape_of(i, precision), .to = output, .steps = 2});
            assert_int_equal(runs[0].hash, wanted[2]);
            for (int k = 0; k < partners; k++) {
                int other = (i * 3 + k * 5 + p) % SHAPES;
                succeeds((task){.shape = shape_of(other, precision), .from = output, .steps = 2});
                assert_int_equal(runs[0].step, 4);
                if (runs[0].hash != wanted[4])
                    fail_msg("saved by shape %d, other bits at shape %d", i, other);
            }
        }
    }
}

/* Frozen weights, of units frozen in part and as a whole: a checkpoint holds them in the training
 * type, or not at all where they are in the folder that they came from. */
static void frozen_weights(void **state) {
    (void)state;
    static const char *const patterns[] = {"*proj*", "*layers.0.*"};
    for (int n = 0; n < 12; n++) {
        sifr_precision precision = precisions[n % 3];
        int first = (n * 5 + 3) % 16, second = (n * 7 + 2) % 16;
        task t = {.shape = {1, 0, precision, 0},
                  .steps = 4,
                  .freeze = patterns[n / 3 % 2],
                  .based = n / 6};
        succeeds(t);
        uint64_t middle = runs[0].steps[2], end = runs[0].steps[4];
        t.steps = 2;
        t.shape = shape_of(first, precision);
        t.to = fresh("frozen");
        succeeds(t);
        assert_int_equal(runs[0].hash, middle);
        t.from = t.to, t.to = NULL;
        t.shape = shape_of(second, precision);
        succeeds(t);
        assert_int_equal(runs[0].step, 4);
        if (runs[0].hash != end)
            fail_msg("%s: saved by shape %d, other bits at shape %d", t.freeze, first, second);
    }
}

/* 3 and 5 ranks train to other bits, so they only hand on: 4 ranks save, they load and save again,
 * and one rank goes on. */
static void odd_counts_hand_on(void **state) {
    (void)state;
    static const int32_t counts[] = {3, 5, 7};
    for (int p = 0; p < 3; p++) {
        sifr_precision precision = precisions[p];
        uint64_t wanted[MOST_STEPS];
        reference(precision, 4, wanted);
        const char *first = fresh("first");
        succeeds((task){.shape = {4, 3, precision, 0}, .to = first, .steps = 2});
        for (int c = 0; c < 3; c++) {
            for (int stage = 0; stage < 4; stage++) {
                const char *second = fresh("second");
                succeeds(
                    (task){.shape = {counts[c], stage, precision, 0}, .from = first, .to = second});
                assert_int_equal(runs[0].hash, wanted[2]);
                succeeds((task){.shape = {1, 0, precision, 0}, .from = second, .steps = 2});
                assert_int_equal(runs[0].hash, wanted[4]);
            }
        }
    }
}

/* With other states than AdamW's, and with what an optimizer remembers beside them. */
static void optimizers_go_on(void **state) {
    static const sifr_optimizer optimizers[] = {
        {.type = SIFR_SGD},
        {.type = SIFR_SGD, .momentum = 0.9, .dampening = 0.5},
        {.type = SIFR_ADAGRAD, .eps = 1e-10, .lr_decay = 0.5},
        {.type = SIFR_ADAMW, .beta1 = 0.9, .beta2 = 0.5, .eps = 1e-8, .amsgrad = true},
        {.type = SIFR_LION, .beta1 = 0.9, .beta2 = 0.99},
        {.type = SIFR_SCHEDULE_FREE_ADAMW,
         .beta1 = 0.9,
         .beta2 = 0.99,
         .eps = 1e-8,
         .warmup_steps = 3,
         .r = 1,
         .weight_lr_power = 2},
        {.type = SIFR_ADAMW_8BIT, .beta1 = 0.9, .beta2 = 0.9, .eps = 1e-8, .min_8bit_size = 1000}};
    enum { COUNT = sizeof optimizers / sizeof *optimizers };
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        const sifr_optimizer *o = &optimizers[i];
        uint64_t wanted[MOST_STEPS];
        sifr_precision precision = i % 2 ? SIFR_BF16 : SIFR_FP32;
        const char *output = fresh("optimizer");
        succeeds((task){.shape = {1, 0, precision, 0}, .optimizer = o, .steps = 4});
        memcpy(wanted, runs[0].steps, sizeof wanted);
        succeeds((task){.shape = {4, 3, precision, 0}, .optimizer = o, .to = output, .steps = 2});
        assert_int_equal(runs[0].hash, wanted[2]);
        for (int32_t ranks = 1; ranks <= 2; ranks++) {
            succeeds((task){
                .shape = {ranks, ranks, precision, 0}, .optimizer = o, .from = output, .steps = 2});
            if (runs[0].hash != wanted[4])
                fail_msg("optimizer %d at %d ranks goes on to other bits", i, ranks);
        }
        task other = {.shape = {2, 2, precision, 0},
                      .optimizer = &optimizers[(i + 1) % COUNT],
                      .from = output};
        assert_int_equal(run_task(other), SIFR_USAGE);
        assert_message(&runs[0].error, "has the state of another optimizer (");
        other.optimizer = NULL;
        assert_int_equal(run_task(other), SIFR_USAGE);
        assert_message(&runs[0].error, ") than AdamW, which this run has; set optimizer as it was");
    }
}

/* --- who writes what --- */

static uint64_t file_size(const char *path) {
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return (uint64_t)info.st_size;
}

/* Files of state of a checkpoint, their count, and the sum, least and most of their sizes. */
typedef struct state_files {
    size_t count;
    uint64_t sum, least, most;
} state_files;

static state_files list_state(const char *directory) {
    state_files found = {.least = UINT64_MAX};
    char **names;
    size_t count;
    assert_int_equal(base_list_directory(directory, &names, &count, NULL), SIFR_OK);
    for (size_t i = 0; i < count; i++) {
        char path[1024];
        if (strncmp(names[i], "state-", 6) != 0) continue;
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        uint64_t size = file_size(path);
        found.count++;
        found.sum += size;
        if (size < found.least) found.least = size;
        if (size > found.most) found.most = size;
    }
    base_free_names(names, count);
    return found;
}

/* Nothing is written twice, at any stage: the files of 4 ranks hold as much as those of one. */
static void each_byte_once(void **state) {
    (void)state;
    const char *output = fresh("once");
    succeeds((task){.shape = {1, 0, SIFR_FP32, 0}, .to = output});
    uint64_t one = list_state(scratch_path("once/checkpoint-0")).sum;
    for (int stage = 0; stage < 4; stage++) {
        output = fresh("once");
        succeeds((task){.shape = {4, stage, SIFR_FP32, 0}, .to = output});
        state_files four = list_state(scratch_path("once/checkpoint-0"));
        assert_in_range(four.sum, one, one + 200 * 100); /* headers */
        assert_in_range(four.count, 4, 40);
    }
}

/* --- damage --- */

typedef enum damage { FLIPPED, CUT, GONE, DAMAGES } damage;

static void do_damage(const char *path, damage how) {
    uint64_t size = file_size(path);
    int file = open(path, O_RDWR);
    char byte;
    assert_true(file >= 0);
    if (how == FLIPPED) {
        off_t at = (off_t)(size / 2);
        assert_int_equal(pread(file, &byte, 1, at), 1);
        byte ^= 4;
        assert_int_equal(pwrite(file, &byte, 1, at), 1);
    } else if (how == CUT) {
        assert_int_equal(ftruncate(file, (off_t)size - 2), 0);
    } else {
        assert_int_equal(unlink(path), 0);
    }
    close(file);
}

/* Any file, damaged in any way, and it is another rank that verifies it: alone it is refused on all
 * ranks alike; with an older checkpoint beside it, that one is taken on all. */
static void damage_is_refused_alike(void **state) {
    (void)state;
    char **names;
    size_t count;
    const char *saved = fresh("saved"), *output = scratch_path("damaged");
    uint64_t wanted[MOST_STEPS];
    reference(SIFR_BF16, 2, wanted);
    succeeds((task){.shape = {4, 3, SIFR_BF16, 0}, .to = saved, .steps = 2, .save_each = 1});
    const char *newest = scratch_path("saved/checkpoint-2");
    assert_int_equal(base_list_directory(newest, &names, &count, NULL), SIFR_OK);
    assert_true(count > 6);
    for (size_t i = 0; i < count; i++) {
        for (damage how = 0; how < DAMAGES; how++) {
            char path[1024], aside[1024], command[4096];
            snprintf(path, sizeof path, "%s/checkpoint-2/%s", output, names[i]);
            snprintf(aside, sizeof aside, "%s/checkpoint-1", output);
            snprintf(command, sizeof command, "rm -rf %s && cp -r %s %s", output, saved, output);
            assert_int_equal(system(command), 0);
            do_damage(path, how);
            task load = {.shape = {3, 3, SIFR_BF16, 0}, .from = output, .go_on = 1};
            succeeds(load);
            bool told =
                strstr(runs[0].said, "checkpoint-2 is damaged") && strstr(runs[0].said, names[i]);
            if (!told || runs[0].step != 1)
                fail_msg("%s, damage %d: step %d, %s", names[i], (int)how, (int)runs[0].step,
                         runs[0].said);
            assert_int_equal(runs[0].hash, wanted[1]);
            assert_int_equal(base_remove_tree(aside, NULL), SIFR_OK);
            assert_int_equal(run_task(load), SIFR_FAILED);
            assert_message(&runs[0].error, "none of its 1 checkpoints is intact");
            assert_message(&runs[0].error, names[i]);
            assert_int_equal(runs[0].step, 0);
        }
    }
    base_free_names(names, count);
}

/* One rank's folder is another one, as where hosts share nothing. */
static void folders_not_shared(void **state) {
    (void)state;
    const char *output = fresh("shared"), *elsewhere = fresh("elsewhere");
    task t = {.shape = {3, 3, SIFR_FP32, 0}, .to = output, .elsewhere = elsewhere, .go_on = 1};
    assert_int_equal(run_task(t), SIFR_FAILED);
    assert_message(&runs[0].error, "rank 2: ");
    assert_message(&runs[0].error, "a file system that all hosts share");
    state_files left = {0};
    char **names;
    assert_int_equal(base_list_directory(output, &names, &left.count, NULL), SIFR_OK);
    assert_int_equal(left.count, 0);
    base_free_names(names, left.count);
    t.elsewhere = NULL;
    succeeds(t);
    t = (task){.shape = {3, 3, SIFR_FP32, 0}, .from = output, .elsewhere = elsewhere, .go_on = 1};
    assert_int_equal(run_task(t), SIFR_FAILED);
    assert_message(&runs[0].error, "rank 2: the output must be on a file system that all hosts");
    succeeds(
        (task){.shape = {3, 3, SIFR_FP32, 0}, .to = elsewhere, .steps = 1}); /* another run's */
    succeeds((task){.shape = {3, 3, SIFR_FP32, 0}, .to = output, .steps = 0});
    assert_int_equal(
        rename(scratch_path("elsewhere/checkpoint-1"), scratch_path("elsewhere/checkpoint-0")), 0);
    assert_int_equal(run_task(t), SIFR_FAILED);
    assert_message(&runs[0].error, "not the same file that rank 0 reads under this name");
}

/* --- trouble while saving --- */

/* A limit on the size of files stands for a full disk, and only some ranks meet it: all say the
 * same, no half of a checkpoint stays, and the run goes on to one that is whole. */
static void fill_disk(const char *output, uint64_t size) {
    struct rlimit limit;
    sifr_error error;
    task t = {.shape = {8, 3, SIFR_BF16, 0}, .to = output, .steps = 2, .whole = true, .go_on = 1};
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = size;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
    sifr_status status = run_task(t);
    error = runs[0].error;
    limit.rlim_cur = before;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(3);
    if (status != SIFR_FAILED || !strstr(error.message, "cannot write")) _exit(4);
    if (base_is_directory(scratch_path("full/checkpoint-2"))) _exit(5);
    t.steps = 3;
    _exit(run_task(t) == SIFR_OK ? 0 : 6);
}

static void full_disk(void **state) {
    (void)state;
    const char *output = fresh("full");
    char **names;
    size_t count;
    int result;
    succeeds((task){.shape = {8, 3, SIFR_BF16, 0}, .to = output, .steps = 1, .whole = true});
    state_files sizes = list_state(scratch_path("full/checkpoint-1"));
    assert_true(sizes.count > 1);
    assert_true(sizes.least < sizes.most); /* some ranks have nothing */
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) fill_disk(output, (sizes.least + sizes.most) / 2);
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    assert_int_equal(base_list_directory(output, &names, &count, NULL), SIFR_OK);
    assert_int_equal(count, 3); /* checkpoint-1, checkpoint-3, latest */
    base_free_names(names, count);
}

/* Ranks that save after every step, in a process of their own; they have begun. */
static pid_t start_saving(const char *output, shape ranks, int64_t steps, int *hears) {
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit((int)run_task((task){.shape = ranks,
                                   .from = output,
                                   .to = output,
                                   .steps = steps,
                                   .save_each = 1,
                                   .ready = ends[1]}));
    close(ends[1]);
    *hears = ends[0];
    assert_int_equal(read(*hears, &byte, 1), 1);
    return child;
}

static void kill_them(pid_t child, int hears) {
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(hears);
}

/* Ranks save after every step and are killed at some instant of the first two saves, others go on
 * from there, and so on: what is there is always whole, and the state of its step. */
static void killed_while_saving(void **state) {
    (void)state;
    enum { KILLS = 24, LOOKS = 4 };
    static const shape shapes[] = {
        {4, 3, SIFR_BF16, 0}, {2, 1, SIFR_BF16, 0}, {8, 2, SIFR_BF16, 4}};
    const char *output = fresh("killed");
    uint64_t wanted[MOST_STEPS];
    int moved = 0, hears;
    char byte;
    reference(SIFR_BF16, MOST_STEPS - 1, wanted);
    succeeds((task){.shape = {2, 2, SIFR_BF16, 0}, .to = output, .steps = 1});
    double begun = base_seconds(), span = 1e9;
    pid_t child = start_saving(output, shapes[0], LOOKS, &hears);
    for (int i = 0; i < LOOKS; i++) { /* a busy machine makes one last longer, hardly each */
        assert_int_equal(read(hears, &byte, 1), 1);
        double ended = base_seconds();
        if (2 * (ended - begun) < span) span = 2 * (ended - begun);
        begun = ended;
    }
    kill_them(child, hears);
    int64_t before = 1 + LOOKS;
    for (int i = 0; i < KILLS; i++) {
        child = start_saving(output, shapes[i % 3], MOST_STEPS - 1 - before, &hears);
        usleep((useconds_t)(1e6 * span * (i * 7 % KILLS) / KILLS));
        kill_them(child, hears);
        assert_int_equal(checkpoint_clean(output, NULL), SIFR_OK);
        succeeds((task){.shape = {3, 3, SIFR_BF16, 0}, .from = output});
        assert_string_equal(runs[0].said, "");
        assert_true(runs[0].step >= before);
        assert_int_equal(runs[0].hash, wanted[runs[0].step]);
        moved += runs[0].step > before;
        before = runs[0].step;
    }
    print_message("killed %d times, %d times behind a new checkpoint, step %d\n", KILLS, moved,
                  (int)before);
    assert_true(moved > 0);
    assert_true(moved < KILLS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_shape_to_any),   cmocka_unit_test(frozen_weights),
        cmocka_unit_test(odd_counts_hand_on), cmocka_unit_test(optimizers_go_on),
        cmocka_unit_test(each_byte_once),     cmocka_unit_test(damage_is_refused_alike),
        cmocka_unit_test(folders_not_shared), cmocka_unit_test(full_disk),
        cmocka_unit_test(killed_while_saving)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}

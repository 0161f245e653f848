#include "train/loop.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "formats/tokenizer.h"
#include "train/breakdown.h"
#include "train/data.h"
#include "train/identity.h"
#include "train/monitor.h"
#include "train/output.h"
#include "train/settings.h"

/* Steps in a row that change nothing: the run has diverged. */
enum { SKIP_LIMIT = 100 };

/* What the executor and the threads' start add to a kernel. */
#define INSTRUCTION_SECONDS 5e-6

typedef struct train_state {
    train_config *config;
    const train_host *host;
    engine_folder folder;
    sifr_engine *engine;
    train_data *data, *held_out;
    train_output output;
    train_monitor monitor;
    train_breakdown breakdown;
    json_t *agree, *notes, *position; /* position: of the checkpoint that was loaded, or NULL */
    int32_t *tokens, *labels;
    int64_t length, total_steps;
    int64_t saved_step; /* of the newest checkpoint; -1: none */
    int skipped_in_row;
    double step_seconds;  /* of steps alone: no saving, no evaluation */
    bool begun;           /* the output is in use */
    plan_machine machine; /* measured: what its limits are */
    uint64_t baseline;    /* memory of the program before anything was loaded */
} train_state;

static sifr_status require_paths(const train_config *config, sifr_error *error) {
    if (!config->model)
        return base_fail(error, SIFR_USAGE, "--model DIR is needed: the folder to train from");
    if (!config->data_count)
        return base_fail(error, SIFR_USAGE, "--data PATH is needed: text or a token store");
    if (!config->output)
        return base_fail(error, SIFR_USAGE, "--output DIR is needed: where the model goes");
    return SIFR_OK;
}

/* "auto" takes the order of batches, and that of units where only that fits. */
static sifr_status create_engine(train_state *t, sifr_error *error) {
    sifr_engine_options options = train_engine_options(t->config, t->length);
    sifr_error second = {0};
    sifr_status status = sifr_engine_create(t->folder.model, &options, &t->engine, error);
    if (status != SIFR_NO_MEMORY || t->config->step_order != TRAIN_STEP_AUTO ||
        options.micro_batches == 1)
        return status;
    options.unit_order = true;
    if (sifr_engine_create(t->folder.model, &options, &t->engine, &second) != SIFR_OK)
        return status;
    base_log(t->host->log, SIFR_LOG_INFO, "step_order unit: only that fits in memory");
    return SIFR_OK;
}

static sifr_status save_config(const train_state *t, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    BASE_TRY(base_path_join(path, t->config->output, TRAIN_OUTPUT_MARK, error));
    json_t *effective = train_config_effective(t->config);
    if (!effective) return base_fail_alloc(error, 4096);
    sifr_status status = base_json_save(effective, path, error);
    json_decref(effective);
    return status;
}

/* The folder becomes a run's before the first byte of data goes into it: a run that is killed while
 * it reads text leaves a folder that the next run knows. */
static sifr_status claim_output(train_state *t, sifr_error *error) {
    if (t->output.marked) return SIFR_OK;
    BASE_TRY(base_make_directories(t->config->output, error));
    BASE_TRY(train_output_lock(&t->output, error));
    return save_config(t, error);
}

static void tell_tokenising(void *user, uint64_t bytes, uint64_t total, double seconds) {
    const train_host *host = user;
    char done[32], all[32], text[128];
    snprintf(text, sizeof text, "tokenising: %s of %s, %.1f MB/s", base_format_bytes(bytes, done),
             base_format_bytes(total, all), seconds > 0 ? (double)bytes / seconds / 1e6 : 0);
    host->live(host->user, text);
}

static sifr_status open_data(train_state *t, sifr_error *error) {
    char cache[BASE_PATH_LENGTH];
    int64_t separator;
    train_progress progress = {tell_tokenising, (void *)(uintptr_t)t->host};
    BASE_TRY(base_path_join(cache, t->config->output, TRAIN_OUTPUT_DATA, error));
    BASE_TRY(train_separator(t->config->model, &t->folder.config, t->host->log, &separator, error));
    train_data_options options = {.paths = t->config->data,
                                  .count = t->config->data_count,
                                  .tokenizer = t->config->model,
                                  .cache = cache,
                                  .vocab_size = t->folder.config.vocab_size,
                                  .separator = separator,
                                  .threads = (int)t->config->threads,
                                  .progress = t->host->live ? &progress : NULL,
                                  .log = t->host->log};
    BASE_TRY(checkpoint_clean(cache, error));
    BASE_TRY(train_data_open(&options, &t->data, error));
    if (t->config->eval_data) {
        options.paths = &t->config->eval_data;
        options.count = 1;
        BASE_TRY(train_data_open(&options, &t->held_out, error));
        if (train_data_windows(t->held_out, t->length) == 0)
            return base_fail(error, SIFR_FAILED,
                             "%s: %lld tokens make no window of %lld; give more held-out text",
                             t->config->eval_data, (long long)train_data_tokens(t->held_out),
                             (long long)t->length);
    }
    return SIFR_OK;
}

/* Steps of the run, from max_steps or from epochs; what does not fill a global batch is dropped. */
static sifr_status count_steps(train_state *t, sifr_error *error) {
    const train_config *c = t->config;
    int64_t windows = train_data_windows(t->data, t->length), batch = c->train_batch_size;
    char tokens[32], number[32];
    if (windows == 0)
        return base_fail(error, SIFR_FAILED,
                         "data: %lld tokens make no window of %lld and the token behind it; give "
                         "more text or a shorter seq-length",
                         (long long)train_data_tokens(t->data), (long long)t->length);
    int64_t documents = train_data_documents(t->data);
    train_say(t->host, "data: %s tokens in %lld document%s, %s windows of %lld",
              base_format_count(train_data_tokens(t->data), tokens), (long long)documents,
              documents == 1 ? "" : "s", base_format_count(windows, number), (long long)t->length);
    if (c->max_steps > 0) {
        t->total_steps = c->max_steps;
        return train_config_set_total_steps(t->config, t->total_steps, error);
    }
    double samples = floor(c->num_train_epochs * (double)windows);
    if (samples > 1e15)
        return base_fail(error, SIFR_USAGE, "num_train_epochs %g: too many", c->num_train_epochs);
    t->total_steps = (int64_t)samples / batch;
    int64_t dropped = (int64_t)samples % batch;
    if (t->total_steps == 0)
        return base_fail(error, SIFR_FAILED,
                         "data: %g epochs of %lld windows do not fill one global batch of %lld; "
                         "give more text, a smaller batch or --max-steps",
                         c->num_train_epochs, (long long)windows, (long long)batch);
    if (dropped)
        train_say(t->host,
                  "data: the last %lld windows do not fill a global batch of %lld: dropped",
                  (long long)dropped, (long long)batch);
    return train_config_set_total_steps(t->config, t->total_steps, error);
}

/* --- weights, from a checkpoint or from the model folder --- */

static sifr_status load(train_state *t, sifr_error *error) {
    t->agree = train_identity_agree(t->config, t->folder.model, t->data, t->length);
    t->notes = train_identity_notes(t->config, t->engine);
    if (!t->agree || !t->notes) return base_fail_alloc(error, 4096);
    checkpoint_record record = {.agree = t->agree, .notes = t->notes};
    t->saved_step = -1;
    if (t->config->resume) {
        BASE_TRY(checkpoint_load(t->engine, t->config->output, &record, &t->position, t->host->log,
                                 error));
        if (t->position) {
            t->saved_step = t->engine->steps;
            train_say(t->host, "resumed from checkpoint-%lld", (long long)t->engine->steps);
            return SIFR_OK;
        }
        base_log(t->host->log, SIFR_LOG_INFO, "%s: no checkpoint yet, the run starts anew",
                 t->config->output);
    }
    return engine_load_folder(t->engine, t->folder.architecture, t->folder.weights, error);
}

/* What the model folder may hold of an earlier run of sifr, and would lie about this one. */
static sifr_status remove_stale(const char *output, sifr_error *error) {
    static const char *const names[] = {"latest", "metrics.jsonl", "metrics.csv",
                                        "trainer_state.json"};
    char path[BASE_PATH_LENGTH];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        BASE_TRY(base_path_join(path, output, names[i], error));
        BASE_TRY(base_remove_tree(path, error));
    }
    return SIFR_OK;
}

/* From here on the output is the run's. The model folder's other files go first, so that nothing
 * of this run is overwritten by them; a run that goes on has them already. */
static sifr_status begin_output(train_state *t, sifr_error *error) {
    t->begun = true;
    BASE_TRY(save_config(t, error));
    BASE_TRY(checkpoint_clean(t->config->output, error));
    if (t->position) return SIFR_OK;
    BASE_TRY(formats_folder_carry(t->config->model, t->config->output, NULL, t->host->log, error));
    BASE_TRY(remove_stale(t->config->output, error));
    return save_config(t, error);
}

/* What the plan is priced on, and shares are shares of. */
static sifr_status measure_machine(train_state *t, sifr_error *error) {
    enum { LEAST = 12 << 20 }; /* not to be more than the plan where that is small */
    device_limits limits;
    int64_t bytes;
    void *memory = engine_idle_memory(t->engine->trainer, &bytes);
    if (bytes < LEAST) memory = NULL, bytes = LEAST;
    BASE_TRY(device_measure(t->engine->dev, memory, bytes, &limits, error));
    t->machine = (plan_machine){.fp32_operations = limits.fp32_operations,
                                .bf16_operations = limits.bf16_operations,
                                .memory_bytes = limits.bytes,
                                .instruction_seconds = INSTRUCTION_SECONDS};
    return SIFR_OK;
}

static sifr_status open_monitor(train_state *t, sifr_error *error) {
    const train_config *c = t->config;
    bool bf16 = c->bf16 && t->machine.bf16_operations > 0;
    train_monitor_settings settings = {
        .host = t->host,
        .output = c->output,
        .first_step = t->engine->steps,
        .total_steps = t->total_steps,
        .tokens_per_step = c->train_batch_size * t->length,
        .epochs_per_step =
            (double)c->train_batch_size / (double)train_data_windows(t->data, t->length),
        .log_every = c->logging_steps > 0 ? c->logging_steps : 1,
        .print_every = c->steps_per_print,
        .flops_per_token = model_training_flops(t->folder.model, t->length),
        .limit = bf16 ? t->machine.bf16_operations : t->machine.fp32_operations};
    return train_monitor_open(&t->monitor, &settings, json_object_get(t->position, "monitor"),
                              error);
}

static sifr_status prepare(train_state *t, sifr_error *error) {
    t->baseline = train_monitor_memory();
    BASE_TRY(train_config_resolve(t->config, 1, error));
    BASE_TRY(require_paths(t->config, error));
    BASE_TRY(train_output_check(t->config->output, t->config->model, t->config->resume, &t->output,
                                error));
    BASE_TRY(train_output_lock(&t->output, error));
    BASE_TRY(engine_folder_open(t->config->model, &t->folder, error));
    BASE_TRY(train_sequence_length(t->config, &t->folder.config, t->host->log, &t->length, error));
    BASE_TRY(create_engine(t, error));
    BASE_TRY(claim_output(t, error));
    BASE_TRY(open_data(t, error));
    BASE_TRY(count_steps(t, error));
    BASE_TRY(load(t, error));
    size_t count = (size_t)(t->config->train_batch_size * t->length);
    BASE_TRY(base_alloc(count, sizeof *t->tokens, &t->tokens, error));
    BASE_TRY(base_alloc(count, sizeof *t->labels, &t->labels, error));
    BASE_TRY(measure_machine(t, error));
    BASE_TRY(begin_output(t, error));
    return open_monitor(t, error);
}

/* --- steps --- */

static sifr_status save(train_state *t, sifr_error *error) {
    double start = train_monitor_clock();
    json_t *state = json_pack("{s:I, s:I, s:I, s:o}", "samples",
                              (json_int_t)(t->engine->steps * t->config->train_batch_size),
                              "total_steps", (json_int_t)t->total_steps, "last_batch_iteration",
                              (json_int_t)(t->engine->updates - 1), "monitor",
                              train_monitor_state(&t->monitor));
    json_t *trainer = train_monitor_trainer_state(&t->monitor, t->engine->steps);
    sifr_status status;
    if (!state || !trainer) {
        status = base_fail_alloc(error, 4096);
    } else {
        checkpoint_record record = {t->agree, t->notes, state, trainer};
        checkpoint_settings settings = {.keep = t->config->save_total_limit};
        status =
            checkpoint_save(t->engine, t->config->output, &record, &settings, t->host->log, error);
    }
    if (status == SIFR_OK) t->saved_step = t->engine->steps;
    train_monitor_pause(&t->monitor, train_monitor_clock() - start);
    json_decref(state);
    json_decref(trainer);
    return status;
}

static sifr_status note_skipped(train_state *t, const sifr_step_result *result, sifr_error *error) {
    if (result->updated) {
        t->skipped_in_row = 0;
        return SIFR_OK;
    }
    const char *reason = result->labelled == 0     ? "no token has a label"
                         : !isfinite(result->loss) ? "the loss is not finite"
                                                   : "a gradient is not finite";
    base_log(t->host->log, SIFR_LOG_WARNING, "step %lld skipped: %s; the weights stay as they were",
             (long long)t->engine->steps, reason);
    if (++t->skipped_in_row < SKIP_LIMIT) return SIFR_OK;
    return base_fail(
        error, SIFR_FAILED,
        "%d steps in a row were skipped (%s): the run has diverged; lower the learning "
        "rate, or go back to an older checkpoint",
        SKIP_LIMIT, reason);
}

static sifr_status step(train_state *t, sifr_error *error) {
    const train_config *c = t->config;
    sifr_step_result result;
    double start = train_monitor_clock();
    int64_t first = t->engine->steps * c->train_batch_size;
    for (int64_t i = 0; i < c->train_batch_size; i++)
        train_data_sample(t->data, t->length, c->seed, first + i, t->tokens + i * t->length,
                          t->labels + i * t->length);
    double rate = train_lr_at(&c->schedule, t->engine->updates - 1);
    BASE_TRY(sifr_engine_step(t->engine, t->tokens, t->labels, rate, &result, error));
    double seconds = train_monitor_clock() - start;
    t->step_seconds += seconds;
    if (c->wall_clock_breakdown)
        train_breakdown_add(&t->breakdown, t->engine->training, engine_seconds(t->engine->trainer),
                            seconds, &t->machine);
    BASE_TRY(train_monitor_step(&t->monitor, t->engine->steps, &result, rate, seconds, error));
    BASE_TRY(note_skipped(t, &result, error));
    if (c->save_steps > 0 && t->engine->steps % c->save_steps == 0) return save(t, error);
    return SIFR_OK;
}

static bool wants_to_stop(void *user) {
    return train_stopped(user) != 0;
}

/* Where one is due at this step and not there yet: it may be missing from a run that was stopped
 * between its checkpoint and its evaluation. */
static sifr_status evaluate_if_due(train_state *t, sifr_error *error) {
    int64_t every = t->config->eval_steps, now = t->engine->steps;
    bool due = now == t->total_steps || (every > 0 && now > 0 && now % every == 0);
    if (!t->held_out || !due || train_stopped(t->host)) return SIFR_OK;
    if (train_monitor_evaluated(&t->monitor, now)) return SIFR_OK;
    train_evaluation evaluation;
    BASE_TRY(train_evaluate(t->engine, t->held_out, t->config->micro_batch_size, t->length,
                            t->config->max_eval_windows, wants_to_stop, (void *)(uintptr_t)t->host,
                            &evaluation, error));
    if (train_stopped(t->host)) return SIFR_OK;
    return train_monitor_evaluation(&t->monitor, now, &evaluation, error);
}

static sifr_status run_steps(train_state *t, train_outcome *outcome, sifr_error *error) {
    for (;;) {
        BASE_TRY(evaluate_if_due(t, error));
        outcome->signal = train_stopped(t->host);
        if (outcome->signal || t->engine->steps >= t->total_steps) break;
        BASE_TRY(step(t, error));
    }
    return t->saved_step == t->engine->steps ? SIFR_OK : save(t, error);
}

static sifr_status save_model(train_state *t, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    BASE_TRY(engine_save_folder(t->engine, t->folder.architecture, t->folder.weights, FORMATS_F32,
                                t->config->output, error));
    BASE_TRY(base_path_join(path, t->config->output, "trainer_state.json", error));
    json_t *trainer = train_monitor_trainer_state(&t->monitor, t->engine->steps);
    if (!trainer) return base_fail_alloc(error, 4096);
    sifr_status status = base_json_save(trainer, path, error);
    json_decref(trainer);
    return status;
}

static void announce(const train_state *t) {
    char parameters[32], bytes[32];
    const train_config *c = t->config;
    train_say(t->host, "model: %s, %s parameters, %s; %d threads, %s", t->folder.config.model_type,
              base_format_count(sifr_model_parameters(t->folder.model), parameters),
              c->bf16 ? "bf16" : "fp32", device_threads(t->engine->dev),
              device_isa(t->engine->dev));
    train_say(
        t->host,
        "step: %lld sequences of %lld tokens (%lld x %lld accumulated), %lld steps, memory %s",
        (long long)c->train_batch_size, (long long)t->length, (long long)c->micro_batch_size,
        (long long)c->gradient_accumulation_steps, (long long)t->total_steps,
        base_format_bytes((uint64_t)sifr_engine_planned_bytes(t->engine), bytes));
}

static void close_state(train_state *t) {
    train_monitor_close(&t->monitor);
    train_output_close(&t->output);
    json_decref(t->agree);
    json_decref(t->notes);
    json_decref(t->position);
    free(t->tokens);
    free(t->labels);
    train_data_close(t->held_out);
    train_data_close(t->data);
    sifr_engine_free(t->engine);
    engine_folder_close(&t->folder);
}

sifr_status train_run(train_config *config, const train_host *host, train_outcome *outcome,
                      sifr_error *error) {
    train_state *t;
    sifr_status status;
    *outcome = (train_outcome){.loss = NAN, .eval_loss = NAN};
    BASE_TRY(base_alloc(1, sizeof *t, &t, error));
    t->config = config;
    t->host = host;
    BASE_TRY_GOTO(status, prepare(t, error), done);
    announce(t);
    if (t->engine->steps >= t->total_steps)
        train_say(host, "nothing left to train: step %lld of %lld is done",
                  (long long)t->engine->steps, (long long)t->total_steps);
    outcome->first_step = t->engine->steps;
    if (host->begin) host->begin(host->user);
    double start = train_monitor_clock();
    BASE_TRY_GOTO(status, run_steps(t, outcome, error), done);
    if (!outcome->signal && t->engine->steps > 0 && t->engine->updates == 0) {
        status = base_fail(error, SIFR_FAILED,
                           "all %lld steps were skipped: nothing was learned, and no model is "
                           "written; is %s sound?",
                           (long long)t->engine->steps, config->model);
        goto done;
    }
    if (!outcome->signal) BASE_TRY_GOTO(status, save_model(t, error), done);
    outcome->seconds = train_monitor_clock() - start;
    outcome->steps = t->engine->steps;
    outcome->total_steps = t->total_steps;
    outcome->tokens = (outcome->steps - outcome->first_step) * config->train_batch_size * t->length;
    outcome->step_seconds = t->step_seconds;
    outcome->skipped = t->monitor.skipped;
    outcome->loss = t->monitor.last_loss;
    outcome->eval_loss = t->monitor.last_eval_loss;
    outcome->planned_bytes = sifr_engine_planned_bytes(t->engine);
    outcome->baseline_bytes = (int64_t)t->baseline;
    outcome->measured_bytes = (int64_t)(t->monitor.largest_memory - t->baseline);
    if (t->monitor.largest_memory < t->baseline) outcome->measured_bytes = 0;
    if (config->wall_clock_breakdown) train_breakdown_say(&t->breakdown, host);
done:
    if (status != SIFR_OK && !t->begun) train_output_undo(&t->output);
    close_state(t);
    free(t);
    return status;
}

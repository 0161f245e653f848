/* Prepares a run up to its first step: input, engine, data, weights, output. */
#include <math.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/json.h"
#include "base/process.h"
#include "base/text.h"
#include "checkpoint/adapter_base.h"
#include "text/chat_template.h"
#include "train/prepare/advice.h"
#include "train/prepare/agreement.h"
#include "train/prepare/fingerprint.h"
#include "train/prepare/other_model.h"
#include "train/prepare/output_space.h"
#include "train/prepare/run_data.h"
#include "train/prepare/run_settings.h"
#include "train/prepare/run_task.h"
#include "train/prepare/side_files.h"
#include "train/prepare/step_choice.h"
#include "train/report/announce.h"
#include "train/run.h"

/* A failure that is the same on all ranks needs no further agreement. */
static sifr_status same(train_state *t, sifr_status status) {
    t->agreed = status == SIFR_USAGE;
    return status;
}

static sifr_status require_paths(const sifr_config *config, sifr_error *error) {
    if (!config->model)
        return base_fail(error, SIFR_USAGE, "--model DIR is needed: the model folder to train");
    if (!config->data_count)
        return base_fail(
            error, SIFR_USAGE,
            "--data PATH is needed: text, a token store or rows (.jsonl, .json, .csv)");
    if (!config->output)
        return base_fail(error, SIFR_USAGE,
                         "--output DIR is needed: the folder for the trained model");
    return SIFR_OK;
}

static sifr_status check_space(const train_state *t, sifr_error *error) {
    const plan_schedule *s = engine_schedule(t->engine);
    train_disk disk;
    BASE_TRY(train_disk_find(t->config, s->model, &disk, error));
    int64_t nvme = t->total_steps
                       ? 0
                       : s->nvme_bytes; /* at that time the swap files have reserved their space */
    if (t->total_steps) disk.total_steps = t->total_steps;
    plan_output output = train_output_space(t->config, &disk, comm_local_size(t->group));
    return train_disk_check(&disk, &output, s->model, &s->settings, nvme, error);
}

/* Checks the space for checkpoints and the model, on the first rank: before any memory is taken,
 * and again after tokenising, when the number of steps is known. Unfinished checkpoints of killed
 * runs are removed first. */
static sifr_status check_output(const train_state *t, sifr_error *error) {
    if (!t->first) return SIFR_OK;
    if (t->output.marked && check_space(t, NULL) != SIFR_OK)
        BASE_TRY(checkpoint_clean(t->config->output, error));
    return check_space(t, error);
}

/* What the program takes by then is its own, as `sifr plan` counts it. */
static sifr_status plan(train_state *t, const sifr_settings *options, sifr_error *error) {
    sifr_status status = engine_plan(t->folder.model, options, t->group, &t->engine, error);
    BASE_TRY(train_agree(t, status, error));
    BASE_TRY(train_agree(t, check_output(t, error), error));
    base_process_trim();
    t->baseline = base_process_memory();
    return SIFR_OK;
}

/* If memory is lacking, says what would fit. */
static sifr_status or_advise(train_state *t, sifr_status agreed, sifr_error *error) {
    if (agreed == SIFR_OK) return SIFR_OK;
    sifr_engine_free(t->engine);
    t->engine = NULL;
    if (agreed != SIFR_NO_MEMORY) return agreed;
    sifr_status told =
        train_advise(t->group, t->folder.model, t->config, &t->device, t->length, error);
    t->agreed = told == SIFR_NO_MEMORY;
    return told;
}

/* Takes no memory or disk space: first everything is known to fit. */
static sifr_status plan_engine(train_state *t, sifr_error *error) {
    sifr_settings options = train_step_settings(t->config, t->length);
    BASE_TRY(train_choose_device(t, &options, error));
    BASE_TRY(train_choose_step(t, &options, error));
    return or_advise(t, plan(t, &options, error), error);
}

/* After tokenising, whose memory is then given back: both at a time are more than the plan. */
static sifr_status take_engine(train_state *t, sifr_error *error) {
    base_process_trim();
    return or_advise(t, train_agree(t, engine_take(t->engine, error), error), error);
}

static sifr_status save_config(const train_state *t, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    BASE_TRY(base_path_join(path, t->config->output, CHECKPOINT_OUTPUT_MARK, error));
    json_t *effective = config_effective(t->config);
    if (!effective) return base_fail_alloc(error, 4096);
    sifr_status status = base_json_save(effective, path, error);
    json_decref(effective);
    return status;
}

/* The other ranks wait meanwhile and must not report this rank as hanging. */
static double patience(const train_state *t) {
    double limit = (double)t->config->collective_timeout;
    return limit > 0 ? fmin(CHECKPOINT_OUTPUT_PATIENCE, limit / 2) : CHECKPOINT_OUTPUT_PATIENCE;
}

/* The output folder is marked as sifr's before any data is written into it, so that the next run
 * recognises the folder of a run that was killed while it tokenised. */
static sifr_status claim_output(train_state *t, sifr_error *error) {
    if (t->output.marked) return SIFR_OK;
    BASE_TRY(checkpoint_output_claim(&t->output, patience(t), t->host->log, error));
    return save_config(t, error);
}

static void tell_tokenising(void *user, uint64_t bytes, uint64_t total, double seconds) {
    const train_host *host = user;
    char done[32], all[32], text[128];
    snprintf(text, sizeof text, "tokenising: %s of %s, %.1f MB/s", base_format_bytes(bytes, done),
             base_format_bytes(total, all), seconds > 0 ? (double)bytes / seconds / 1e6 : 0);
    host->live(host->user, text);
}

static sifr_status open_stores(train_state *t, sifr_error *error) {
    char cache[BASE_PATH_LENGTH];
    const base_progress progress = {tell_tokenising, (void *)(uintptr_t)t->host};
    BASE_TRY(base_path_join(cache, t->config->output, CHECKPOINT_OUTPUT_DATA, error));
    return train_open_stores(t, cache, t->host->live ? &progress : NULL, error);
}

/* The first rank makes the token stores; the other ranks then find them. */
static sifr_status open_data(train_state *t, sifr_error *error) {
    sifr_status status = t->first ? claim_output(t, error) : SIFR_OK;
    if (status == SIFR_OK && t->first) status = open_stores(t, error);
    BASE_TRY(train_agree(t, status, error));
    if (!t->first) status = open_stores(t, error);
    BASE_TRY(train_agree(t, status, error));
    BASE_TRY(train_choose_batches(t, error));
    BASE_TRY(train_agree(t, train_count_steps(t, error), error));
    return train_agree(t, check_output(t, error), error);
}

/* --- weights, from a checkpoint or from the model folder --- */

static sifr_status find_tensors(train_state *t, sifr_error *error) {
    engine_stored stored;
    BASE_TRY(engine_stored_make(t->folder.model, t->folder.architecture, t->folder.weights,
                                BASE_FP32, &stored, error));
    t->tensors = checkpoint_tensors(t->folder.model, &stored);
    engine_stored_free(&stored);
    return t->tensors ? SIFR_OK : base_fail_alloc(error, 4096);
}

static sifr_status load(train_state *t, sifr_error *error) {
    t->must_match = train_fingerprint_must_match(t->config, &t->folder, t->data, t->length);
    t->may_differ = train_fingerprint_may_differ(t->config, t->engine);
    t->defaults = t->may_differ
                      ? train_fingerprint_defaults(t->may_differ, &t->config->step.optimizer)
                      : NULL;
    bool whole = t->must_match && t->may_differ && t->defaults &&
                 train_fingerprint_labels(t->must_match, &t->folder) &&
                 train_fingerprint_batches(t->must_match, &t->epochs) &&
                 train_fingerprint_lora(t->must_match, &t->lora);
    sifr_status made = whole ? SIFR_OK : base_fail_alloc(error, 4096);
    if (made == SIFR_OK) made = find_tensors(t, error);
    BASE_TRY(train_agree(t, made, error));
    BASE_TRY(checkpoint_base_make(t->config->model, &t->folder, t->group, &t->base, error));
    checkpoint_record record = {.must_match = t->must_match,
                                .may_differ = t->may_differ,
                                .base = &t->base,
                                .defaults = t->defaults,
                                .words = train_fingerprint_words};
    t->saved_step = -1;
    if (t->config->resume) {
        BASE_TRY(checkpoint_load(t->engine, t->config->output, &record, &t->position, t->host->log,
                                 error));
        if (t->position) {
            if (t->first) train_warn_other_model(t->config->output, t->config->model, t->host->log);
            t->saved_step = sifr_engine_steps(t->engine);
            train_say(t->host, "resumed from checkpoint-%lld",
                      (long long)sifr_engine_steps(t->engine));
            return engine_load_frozen(t->engine, &t->folder, error);
        }
        base_log(t->host->log, SIFR_LOG_INFO,
                 "%s: no checkpoint yet; the run starts from the beginning", t->config->output);
    }
    return engine_load_opened(t->engine, &t->folder, error);
}

/* Files of an earlier run that the model folder may hold, which would be wrong for this run. */
static sifr_status remove_stale(const char *output, sifr_error *error) {
    static const char *const names[] = {"latest",      "metrics.jsonl",   "metrics.csv",
                                        "spool.jsonl", "spool.sent.json", "trainer_state.json"};
    char path[BASE_PATH_LENGTH];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        BASE_TRY(base_path_join(path, output, names[i], error));
        BASE_TRY(base_remove_tree(path, error));
    }
    return SIFR_OK;
}

/* What tells PEFT, and readers of the run's checkpoints, of the adapters. */
static sifr_status put_adapter_config(const train_state *t, const char *folder, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    if (!t->lora.json) return SIFR_OK;
    BASE_TRY(base_path_join(path, folder, "adapter_config.json", error));
    json_t *json = model_lora_describe(&t->lora, t->folder.model, &t->folder.config, t->base.path);
    if (!json) return base_fail_alloc(error, 4096);
    sifr_status status = base_json_save(json, path, error);
    json_decref(json);
    return status;
}

/* What is in a model folder beside the weights. */
sifr_status train_put_folder(train_state *t, const char *path, sifr_error *error) {
    char template[BASE_PATH_LENGTH];
    BASE_TRY(formats_folder_carry(t->config->model, path, NULL, t->host->log, error));
    BASE_TRY(engine_folder_put_config(&t->folder, t->config->model, path, error));
    BASE_TRY(text_chat_template_put(train_chat_template(t->config, template), t->config->model,
                                    path, error));
    return put_adapter_config(t, path, error);
}

/* From here on this run owns the output. The model folder's other files are copied first, so that
 * they overwrite nothing of this run; a resumed run has them already. */
static sifr_status begin_output(train_state *t, sifr_error *error) {
    t->begun = true;
    BASE_TRY(save_config(t, error));
    BASE_TRY(checkpoint_clean(t->config->output, error));
    if (t->position) return SIFR_OK;
    BASE_TRY(train_put_folder(t, t->config->output, error));
    BASE_TRY(remove_stale(t->config->output, error));
    return save_config(t, error);
}

static train_report_settings report_settings(const train_state *t) {
    const sifr_config *c = t->config;
    bool bf16 = c->step.precision == SIFR_BF16 && t->machine.bf16_operations > 0;
    return (train_report_settings){
        .host = t->host,
        .output = c->output,
        .first_step = sifr_engine_steps(t->engine),
        .total_steps = base_max_i64(t->total_steps, sifr_engine_steps(t->engine)),
        .length = t->length,
        .epochs = t->epochs,
        .log_every = c->logging_steps > 0 ? c->logging_steps : 1,
        .print_every = c->steps_per_print,
        .flops_per_token = model_training_flops(t->folder.model, t->length),
        .scaled = c->step.precision == SIFR_FP16,
        .objective = t->objective,
        .config = c,
        .limit =
            (bf16 ? t->machine.bf16_operations : t->machine.fp32_operations) * comm_size(t->group)};
}

/* A sink that cannot be opened is refused before the output is touched. */
static sifr_status open_output(train_state *t, sifr_error *error) {
    train_report_settings settings = report_settings(t);
    if (!t->first) {
        train_monitor_open_silent(&t->monitor, &settings);
        return SIFR_OK;
    }
    BASE_TRY(train_queue_open(&settings, &t->queue, error));
    BASE_TRY(begin_output(t, error));
    settings.queue = t->queue;
    return train_monitor_open(&t->monitor, &settings, json_object_get(t->position, "monitor"),
                              error);
}

static sifr_status settle_config(train_state *t, sifr_error *error) {
    BASE_TRY(config_resolve(t->config, comm_size(t->group), error));
    BASE_TRY(train_take_base(t->config, comm_size(t->group), error));
    comm_set_timeout(t->group, (double)t->config->collective_timeout);
    if (t->config->step.threads == 0) t->config->step.threads = t->host->threads;
    return SIFR_OK;
}

static sifr_status open_folder(train_state *t, sifr_error *error) {
    BASE_TRY(train_read_lora(t->config, &t->lora, error));
    if (t->config->adapter)
        checkpoint_warn_adapter_base(&t->lora, t->config->adapter, t->config->model, false,
                                     t->host->log);
    BASE_TRY(train_open_folder(t->config, &t->lora, &t->folder, error));
    BASE_TRY(train_check_packing(t->config, &t->folder.config, error));
    t->objective = train_objective_of(t->config, t->folder.config.task);
    if (t->objective->check) BASE_TRY(t->objective->check(t->config, error));
    if (t->objective->evaluated && t->config->step.mesh.context_size > 1)
        return base_fail(error, SIFR_USAGE,
                         "context_parallel: %s, of which predictions are measured, is not "
                         "supported with context ranks yet; leave them out",
                         t->objective->key ? t->objective->key : "a classifier");
    engine_folder_warn(&t->folder, t->host->log);
    train_say_input(t);
    BASE_TRY(train_freeze(t->config, t->folder.model, t->host->log, error));
    train_say_adapters(t);
    for (size_t i = 0; t->folder.made && i < t->folder.model->weight_count; i++)
        t->folder.model->weights[i].based &= !t->folder.made[i];
    return train_sequence_length(t->config, &t->folder.config, t->host->log, &t->length, error);
}

/* Checks that each rank makes by itself: of the config, the output and the model folder. */
static sifr_status open_input(train_state *t, sifr_error *error) {
    BASE_TRY(settle_config(t, error));
    BASE_TRY(require_paths(t->config, error));
    if (t->first) {
        BASE_TRY(checkpoint_output_open(t->config->output, t->config->model, t->config->resume,
                                        patience(t), t->host->log, &t->output, error));
        BASE_TRY(train_check_side_files(t->config, error));
    }
    return open_folder(t, error);
}

/* Of a loop that is the caller's, which has neither data nor an output of its own. */
static sifr_status open_model(train_state *t, sifr_error *error) {
    BASE_TRY(settle_config(t, error));
    if (!t->config->model)
        return base_fail(error, SIFR_USAGE, "--model DIR is needed: the model folder to train");
    t->config->resume = false;
    return open_folder(t, error);
}

static sifr_status make_batch(train_state *t, sifr_error *error) {
    const sifr_config *c = t->config;
    int32_t ranks = plan_mesh_ranks(&engine_schedule(t->engine)->settings.mesh, PLAN_DATA);
    return data_set_rows(t->data, c->train_batch_size / ranks, t->length, &t->rows, error);
}

static sifr_status begin(train_state *t, sifr_error *error) {
    int64_t idle;
    void *memory = engine_idle_memory(engine_trainer(t->engine), &idle);
    if (idle < TRAIN_MEASURE_BYTES) memory = NULL, idle = TRAIN_MEASURE_BYTES;
    BASE_TRY(make_batch(t, error));
    BASE_TRY(train_measure_machine(t, engine_device(t->engine), memory, idle, error));
    train_say_activations(t);
    BASE_TRY(train_profile_open(&t->profile, t->config, t->host, t->engine, &t->machine,
                                t->baseline, t->total_steps, error));
    return open_output(t, error);
}

sifr_status train_prepare(train_state *t, sifr_error *error) {
    BASE_TRY(train_agree(t, open_input(t, error), error));
    BASE_TRY(same(t, train_agree_input(t->group, t->config, &t->folder, error)));
    BASE_TRY(plan_engine(t, error));
    BASE_TRY(same(t, train_agree_machine(t->group, engine_device(t->engine), error)));
    BASE_TRY(open_data(t, error));
    BASE_TRY(same(t, train_agree_data(t->group, t->data, t->held_out, error)));
    BASE_TRY(take_engine(t, error));
    BASE_TRY(train_say_memory(t, error));
    BASE_TRY(train_agree(t, load(t, error), error));
    if (t->objective->open) BASE_TRY(t->objective->open(t, error));
    BASE_TRY(train_agree(t, begin(t, error), error));
    base_process_trim();
    return SIFR_OK;
}

sifr_status train_prepare_engine(train_state *t, sifr_error *error) {
    BASE_TRY(train_agree(t, open_model(t, error), error));
    BASE_TRY(same(t, train_agree_input(t->group, t->config, &t->folder, error)));
    BASE_TRY(plan_engine(t, error));
    BASE_TRY(same(t, train_agree_machine(t->group, engine_device(t->engine), error)));
    BASE_TRY(take_engine(t, error));
    BASE_TRY(train_say_memory(t, error));
    BASE_TRY(checkpoint_base_make(t->config->model, &t->folder, t->group, &t->base, error));
    BASE_TRY(train_agree(t, find_tensors(t, error), error));
    BASE_TRY(train_agree(t, engine_load_opened(t->engine, &t->folder, error), error));
    base_process_trim();
    return SIFR_OK;
}

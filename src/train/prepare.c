/* Prepares a run up to its first step: checks input, makes the engine, tokenises text, loads
 * weights.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/file.h"
#include "base/heap.h"
#include "base/json.h"
#include "base/process.h"
#include "base/text.h"
#include "formats/tokenizer/tokenizer.h"
#include "plan/kept.h"
#include "train/advice.h"
#include "train/agreement.h"
#include "train/fingerprint.h"
#include "train/output_room.h"
#include "train/reference.h"
#include "train/run.h"
#include "train/run_settings.h"
#include "train/run_task.h"
#include "train/step_choice.h"

sifr_status train_agree(train_state *t, sifr_status status, sifr_error *error) {
    sifr_status agreed = comm_agree_status(t->group, status, error);
    t->agreed = agreed != SIFR_OK && agreed != SIFR_LOST_RANK;
    return agreed;
}

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

static sifr_status check_room(const train_state *t, sifr_error *error) {
    const plan_schedule *s = engine_schedule(t->engine);
    train_disk disk;
    BASE_TRY(train_disk_find(t->config, s->model, &disk, error));
    int64_t nvme = t->total_steps
                       ? 0
                       : s->nvme_bytes; /* at that time the swap files have reserved their space */
    if (t->total_steps) disk.total_steps = t->total_steps;
    plan_output room = train_output_room(t->config, &disk, comm_local_size(t->group));
    return train_disk_check(&disk, &room, s->model, &s->settings, nvme, error);
}

/* Checks the space for checkpoints and the model, on the first rank: before any memory is taken,
 * and again after tokenising, when the number of steps is known. Unfinished checkpoints of killed
 * runs are removed first. */
static sifr_status check_output(const train_state *t, sifr_error *error) {
    if (!t->first) return SIFR_OK;
    if (t->output.marked && check_room(t, NULL) != SIFR_OK)
        BASE_TRY(checkpoint_clean(t->config->output, error));
    return check_room(t, error);
}

/* Takes no memory or disk space before everything is known to fit. What the program takes by then
 * is its own, as `sifr plan` counts it. */
static sifr_status take_engine(train_state *t, const sifr_settings *options, sifr_error *error) {
    sifr_status status = engine_plan(t->folder.model, options, t->group, &t->engine, error);
    BASE_TRY(train_agree(t, status, error));
    BASE_TRY(train_agree(t, check_output(t, error), error));
    base_process_trim();
    t->baseline = base_process_memory();
    return train_agree(t, engine_take(t->engine, error), error);
}

static sifr_status create_engine(train_state *t, sifr_error *error) {
    sifr_settings options = train_step_settings(t->config, t->length);
    BASE_TRY(train_choose_device(t, &options, error));
    BASE_TRY(train_choose_step(t, &options, error));
    sifr_status agreed = take_engine(t, &options, error);
    if (agreed == SIFR_OK) return SIFR_OK;
    sifr_engine_free(t->engine);
    t->engine = NULL;
    if (agreed != SIFR_NO_MEMORY) return agreed;
    sifr_status told =
        train_advise(t->group, t->folder.model, t->config, &t->device, t->length, error);
    t->agreed = told == SIFR_NO_MEMORY;
    return told;
}

/* "optimizer state, parameters, gradients and activations"; returns out. */
static const char *name_offloaded(const sifr_config *c, char *out, size_t size) {
    static const char *const states[] = {[SIFR_STATE_ALL] = "optimizer state",
                                         [SIFR_STATE_MASTER_WEIGHTS] = "master weights",
                                         [SIFR_STATE_MOMENTS] = "moments"};
    const char *names[4];
    size_t count = 0, used = 0;
    if (c->step.offload.optimizer.device == SIFR_TIER_NVME)
        names[count++] = states[c->step.offload.optimizer.state];
    if (c->step.offload.param.device == SIFR_TIER_NVME) names[count++] = "parameters";
    if (c->step.offload.gradients == SIFR_TIER_NVME) names[count++] = "gradients";
    if (c->step.offload.activations == SIFR_TIER_NVME) names[count++] = "activations";
    out[0] = '\0';
    for (size_t i = 0; i < count && used < size; i++) {
        const char *between = i == 0 ? "" : i + 1 == count ? " and " : ", ";
        used += (size_t)snprintf(out + used, size - used, "%s%s", between, names[i]);
    }
    return out;
}

/* Reports how much memory is not pinned over all ranks, with the first rank's reason that has one.
 */
static sifr_status say_unpinned(train_state *t, sifr_error *error) {
    const engine_pinned *p = engine_pinned_memory(t->engine);
    static const char what[] = "of memory could not be pinned for disk transfers";
    char bytes[32], most[32];
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    int64_t missing = p->asked - p->bytes;
    int64_t sums[] = {missing, missing && p->number == ENOMEM, missing && !p->number};
    BASE_TRY(comm_sum(t->group, sums, 3, error));
    if (!sums[0]) return SIFR_OK;
    base_format_bytes((uint64_t)sums[0], bytes);
    (void)getrlimit(RLIMIT_MEMLOCK, &limit);
    if (sums[1] && limit.rlim_cur != RLIM_INFINITY)
        base_log(t->host->log, SIFR_LOG_INFO,
                 "%s %s: ulimit -l is %s, for all aio threads of a user's ranks. Each request pins "
                 "its own",
                 bytes, what, base_format_bytes((uint64_t)limit.rlim_cur, most));
    else if (sums[2])
        base_log(t->host->log, SIFR_LOG_INFO, "%s %s: that takes io_uring", bytes, what);
    else
        base_log(t->host->log, SIFR_LOG_INFO, "%s %s: %s. Each request pins its own", bytes, what,
                 p->number ? strerror(p->number) : "refused by the kernel");
    return SIFR_OK;
}

/* Reports how much memory for copies to GPUs is not pinned, over all ranks. */
static sifr_status say_staged(train_state *t, sifr_error *error) {
    int64_t bytes = device_count(engine_device(t->engine)).unpinned_bytes;
    char text[32];
    BASE_TRY(comm_sum(t->group, &bytes, 1, error));
    if (bytes)
        base_log(t->host->log, SIFR_LOG_WARNING,
                 "the system refused to pin %s of host memory: copies between it and the GPU take "
                 "about twice as long, and the step waits for them; raise the limit of locked "
                 "memory (ulimit -l), or free some memory",
                 base_format_bytes((uint64_t)bytes, text));
    return SIFR_OK;
}

/* Where this rank's state is, and how it is moved there. */
static void say_file(train_state *t) {
    char text[BASE_PATH_LENGTH + 128], names[64], bytes[32];
    const sifr_engine *engine = t->engine;
    bool pinned = engine_pinned_memory(engine)->bytes > 0;
    base_format_bytes((uint64_t)engine_pinned_memory(engine)->bytes, bytes);
    train_say(t->host, "%s: %s%s%s%s%s", name_offloaded(t->config, names, sizeof names),
              engine_swap_describe(engine_state_file(engine), text, sizeof text),
              comm_size(t->group) > 1 ? " a rank" : "", pinned ? ", with " : "",
              pinned ? bytes : "", pinned ? " of memory pinned" : "");
}

/* Reports where state is, and leftovers of killed runs that were removed. Of the ranks of a
 * pipeline some may have a file and others none: the last stage keeps its activations. */
static sifr_status say_offload(train_state *t, sifr_error *error) {
    bool own = engine_state_file(t->engine) != NULL;
    int64_t sums[] = {own, engine_cleaned(t->engine)}, cleaned;
    BASE_TRY(comm_sum(t->group, sums, 2, error));
    if (!sums[0]) return SIFR_OK;
    cleaned = sums[1];
    if (own) say_file(t);
    BASE_TRY(say_unpinned(t, error));
    if (cleaned)
        train_say(t->host, "removed %lld swap director%s left by killed runs", (long long)cleaned,
                  cleaned == 1 ? "y" : "ies");
    return SIFR_OK;
}

/* Reports what some of DeepSpeed's keys mean here, and the choices of "auto". The machine must be
 * measured. */
static void say_activations(const train_state *t) {
    const sifr_config *c = t->config;
    char line[512];
    if (c->activations.partition_activations)
        train_say(t->host, "partition_activations has no effect: no two ranks hold the same "
                           "activations, since there is no tensor parallelism");
    if (c->step.recompute == SIFR_RECOMPUTE_AUTO &&
        plan_kept_describe(engine_schedule(t->engine), &t->machine, line, sizeof line))
        train_say(t->host, "recompute auto: %s", line);
}

static sifr_status save_config(const train_state *t, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    BASE_TRY(base_path_join(path, t->config->output, TRAIN_OUTPUT_MARK, error));
    json_t *effective = config_effective(t->config);
    if (!effective) return base_fail_alloc(error, 4096);
    sifr_status status = base_json_save(effective, path, error);
    json_decref(effective);
    return status;
}

/* The other ranks wait meanwhile and must not report this rank as hanging. */
static double patience(const train_state *t) {
    double limit = (double)t->config->collective_timeout;
    return limit > 0 ? fmin(TRAIN_OUTPUT_PATIENCE, limit / 2) : TRAIN_OUTPUT_PATIENCE;
}

/* The output folder is marked as sifr's before any data is written into it, so that the next run
 * recognises the folder of a run that was killed while it tokenised. */
static sifr_status claim_output(train_state *t, sifr_error *error) {
    if (t->output.marked) return SIFR_OK;
    BASE_TRY(base_make_directories(t->config->output, error));
    BASE_TRY(train_output_lock(&t->output, patience(t), t->host->log, NULL, error));
    return save_config(t, error);
}

static void tell_tokenising(void *user, uint64_t bytes, uint64_t total, double seconds) {
    const train_host *host = user;
    char done[32], all[32], text[128];
    snprintf(text, sizeof text, "tokenising: %s of %s, %.1f MB/s", base_format_bytes(bytes, done),
             base_format_bytes(total, all), seconds > 0 ? (double)bytes / seconds / 1e6 : 0);
    host->live(host->user, text);
}

/* Data of any kind. */
static sifr_status open_one(const train_state *t, train_data_options *options, train_data **out,
                            sifr_error *error) {
    train_chat_form form;
    sifr_status status =
        train_chat_form_make(&t->folder, t->length, t->config, options, &form, error);
    if (status == SIFR_OK) status = train_data_open(options, out, error);
    train_chat_form_free(&form);
    return status;
}

/* What the run is evaluated on, if anything, by options that opened the data. */
static sifr_status open_held_out(train_state *t, train_data_options *options, sifr_error *error) {
    const sifr_config *c = t->config;
    if (!c->eval_data && c->validation_split > 0)
        return train_data_split(t->data, c->validation_split, (uint64_t)c->step.seed, &t->held_out,
                                error);
    if (!c->eval_data) return SIFR_OK;
    options->paths = &c->eval_data;
    options->count = 1;
    BASE_TRY(open_one(t, options, &t->held_out, error));
    if (train_data_windows(t->held_out, t->length) > 0) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s: %lld tokens are too few for a window of %lld; give more held-out text",
                     c->eval_data, (long long)train_data_tokens(t->held_out), (long long)t->length);
}

/* "1,000 rows in 120 sequences of 1024 tokens, 97.3 % filled" */
static void say_packs(const train_state *t, const char *name, const train_chat *chat) {
    const train_chat_counts *c = train_chat_count(chat);
    int64_t sequences = train_chat_sequences(chat);
    char rows[32], number[32];
    train_say(t->host, "%s: packed %s row%s into %s sequence%s of %lld tokens, %.1f %% filled",
              name, base_format_count(c->rows, rows), c->rows == 1 ? "" : "s",
              base_format_count(sequences, number), sequences == 1 ? "" : "s", (long long)t->length,
              100 * (double)c->tokens / ((double)sequences * (double)t->length));
}

/* Held-out text has full windows already. */
static sifr_status pack_data(const train_state *t, sifr_error *error) {
    if (t->config->group_by_length)
        return train_data_group(t->data, t->config->train_batch_size, error);
    if (!t->config->packing) return SIFR_OK;
    BASE_TRY(train_data_pack(t->data, error));
    say_packs(t, "data", train_data_chat(t->data));
    if (!t->held_out || !train_data_chat(t->held_out)) return SIFR_OK;
    BASE_TRY(train_data_pack(t->held_out, error));
    say_packs(t, "eval_data", train_data_chat(t->held_out));
    return SIFR_OK;
}

/* Preferences need a loss of theirs, and that needs preferences. */
static sifr_status check_pairs(const train_state *t, const train_data *data, sifr_error *error) {
    const train_chat *chat = train_data_chat(data);
    bool pairs = chat && train_chat_is_paired(chat);
    bool wanted = t->config->preference.loss != CONFIG_PREFERENCE_NONE;
    if (pairs == wanted) return SIFR_OK;
    if (pairs)
        return base_fail(error, SIFR_USAGE,
                         "data: rows with a chosen and a rejected answer are preferences: give "
                         "--preference sigmoid (DPO), hinge, ipo or orpo; to learn the chosen "
                         "answers alone, write them as messages");
    return base_fail(error, SIFR_USAGE,
                     "preference: the data must be rows with a chosen and a rejected answer; leave "
                     "it out, or give such rows");
}

static sifr_status open_stores(train_state *t, sifr_error *error) {
    const sifr_config *c = t->config;
    char cache[BASE_PATH_LENGTH];
    int64_t separator = -1;
    train_progress progress = {tell_tokenising, (void *)(uintptr_t)t->host};
    BASE_TRY(base_path_join(cache, c->output, TRAIN_OUTPUT_DATA, error));
    train_labelled labelled;
    train_label_columns columns = train_config_columns(t->config);
    bool next = t->folder.config.task == MODEL_NEXT_TOKEN;
    if (next)
        BASE_TRY(train_separator(c->model, &t->folder.config, t->host->log, &separator, error));
    train_data_options options = {.paths = c->data,
                                  .count = c->data_count,
                                  .tokenizer = c->model,
                                  .cache = cache,
                                  .vocab_size = t->folder.config.vocab_size,
                                  .separator = separator,
                                  .special = !c->no_special_tokens,
                                  .threads = (int)c->step.threads,
                                  .progress = t->host->live ? &progress : NULL,
                                  .log = t->host->log};
    train_data_form(&t->folder, t->length, &columns, c->mlm_probability, &labelled, &options);
    if (t->first) BASE_TRY(checkpoint_clean(cache, error));
    BASE_TRY(open_one(t, &options, &t->data, error));
    BASE_TRY(open_held_out(t, &options, error));
    BASE_TRY(check_pairs(t, t->data, error));
    if (t->held_out) BASE_TRY(check_pairs(t, t->held_out, error));
    return pack_data(t, error);
}

/* The number of steps, from max_steps or epochs. Windows that do not fill a global batch are
 * dropped. */
static sifr_status count_steps(train_state *t, sifr_error *error) {
    const sifr_config *c = t->config;
    int64_t windows = train_data_windows(t->data, t->length), batch = c->train_batch_size;
    char tokens[32], counted[80], number[80];
    if (windows == 0)
        return base_fail(error, SIFR_FAILED,
                         "data: %lld tokens are too few for a window of %lld and the token after "
                         "it; give more text or a shorter seq-length",
                         (long long)train_data_tokens(t->data), (long long)t->length);
    int64_t documents = train_data_documents(t->data);
    bool rows = train_data_chat(t->data) != NULL;
    bool packed = rows && train_chat_is_packed(train_data_chat(t->data));
    const char *what = packed                         ? "sequences"
                       : t->config->preference.loss   ? "answers"
                       : rows                         ? "rows"
                       : train_data_labelled(t->data) ? "examples"
                                                      : "windows";
    int64_t per = c->preference.loss ? 2 : 1;
    if (rows && t->held_out && !c->eval_data)
        train_say(t->host, "data: %s to learn, %lld held out",
                  base_format_counted(documents / per, per > 1 ? "pair" : "row", counted),
                  (long long)(train_data_documents(t->held_out) / per));
    if (!rows && !train_data_labelled(t->data))
        train_say(t->host, "data: %s tokens in %s, %s of %lld",
                  base_format_count(train_data_tokens(t->data), tokens),
                  base_format_counted(documents, "document", counted),
                  base_format_counted(windows, "window", number), (long long)t->length);
    if (c->max_steps > 0) {
        t->total_steps = c->max_steps;
        return config_set_total_steps(t->config, t->total_steps, error);
    }
    double samples = floor(c->num_train_epochs * (double)windows);
    if (samples > 1e15)
        return base_fail(error, SIFR_USAGE,
                         "num_train_epochs %g: the number of steps is too large; give fewer epochs",
                         c->num_train_epochs);
    t->total_steps = (int64_t)samples / batch;
    int64_t dropped = (int64_t)samples % batch;
    if (t->total_steps == 0)
        return base_fail(error, SIFR_FAILED,
                         "data: %g epochs of %lld %s do not fill one global batch of %lld; "
                         "give more data, a smaller batch or --max-steps",
                         c->num_train_epochs, (long long)windows, what, (long long)batch);
    if (dropped)
        train_say(t->host,
                  "data: dropped the last %lld %s, which do not fill a global batch of %lld",
                  (long long)dropped, what, (long long)batch);
    return config_set_total_steps(t->config, t->total_steps, error);
}

/* The first rank makes the token stores; the other ranks then find them. */
static sifr_status open_data(train_state *t, sifr_error *error) {
    sifr_status status = t->first ? claim_output(t, error) : SIFR_OK;
    if (status == SIFR_OK && t->first) status = open_stores(t, error);
    BASE_TRY(train_agree(t, status, error));
    if (!t->first) status = open_stores(t, error);
    if (status == SIFR_OK) status = count_steps(t, error);
    BASE_TRY(train_agree(t, status, error));
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
    t->agree = train_fingerprint_agree(t->config, t->folder.model, t->data, t->length);
    t->notes = train_fingerprint_notes(t->config, t->engine);
    t->usual = train_fingerprint_usual();
    bool whole = t->agree && t->notes && t->usual &&
                 train_fingerprint_labels(t->agree, &t->folder) &&
                 train_fingerprint_lora(t->agree, &t->lora);
    sifr_status made = whole ? SIFR_OK : base_fail_alloc(error, 4096);
    if (made == SIFR_OK) made = find_tensors(t, error);
    BASE_TRY(train_agree(t, made, error));
    BASE_TRY(checkpoint_base_make(t->config->model, &t->folder, t->group, &t->base, error));
    checkpoint_record record = {
        .agree = t->agree, .notes = t->notes, .base = &t->base, .usual = t->usual};
    t->saved_step = -1;
    if (t->config->resume) {
        BASE_TRY(checkpoint_load(t->engine, t->config->output, &record, &t->position, t->host->log,
                                 error));
        if (t->position) {
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
    static const char *const names[] = {"latest", "metrics.jsonl", "metrics.csv",
                                        "trainer_state.json"};
    char path[BASE_PATH_LENGTH];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        BASE_TRY(base_path_join(path, output, names[i], error));
        BASE_TRY(base_remove_tree(path, error));
    }
    return SIFR_OK;
}

/* What tells PEFT, and readers of the run's checkpoints, of the adapters. */
static sifr_status put_adapter_config(const train_state *t, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    if (!t->lora.json) return SIFR_OK;
    BASE_TRY(base_path_join(path, t->config->output, "adapter_config.json", error));
    json_t *json = model_lora_describe(&t->lora, t->folder.model, &t->folder.config, t->base.path);
    if (!json) return base_fail_alloc(error, 4096);
    sifr_status status = base_json_save(json, path, error);
    json_decref(json);
    return status;
}

/* From here on this run owns the output. The model folder's other files are copied first, so that
 * they overwrite nothing of this run; a resumed run has them already. */
static sifr_status begin_output(train_state *t, sifr_error *error) {
    t->begun = true;
    BASE_TRY(save_config(t, error));
    BASE_TRY(checkpoint_clean(t->config->output, error));
    if (t->position) return SIFR_OK;
    BASE_TRY(formats_folder_carry(t->config->model, t->config->output, NULL, t->host->log, error));
    BASE_TRY(engine_folder_put_config(&t->folder, t->config->model, t->config->output, error));
    BASE_TRY(put_adapter_config(t, error));
    BASE_TRY(remove_stale(t->config->output, error));
    return save_config(t, error);
}

static sifr_status open_monitor(train_state *t, sifr_error *error) {
    const sifr_config *c = t->config;
    bool bf16 = c->step.precision == SIFR_BF16 && t->machine.bf16_operations > 0;
    train_monitor_settings settings = {
        .host = t->host,
        .output = c->output,
        .first_step = sifr_engine_steps(t->engine),
        .total_steps = t->total_steps,
        .tokens_per_step = c->train_batch_size * t->length,
        .epochs_per_step =
            (double)c->train_batch_size / (double)train_data_windows(t->data, t->length),
        .log_every = c->logging_steps > 0 ? c->logging_steps : 1,
        .print_every = c->steps_per_print,
        .flops_per_token = model_training_flops(t->folder.model, t->length),
        .scaled = c->step.precision == SIFR_FP16,
        .rewarded = c->preference.loss != CONFIG_PREFERENCE_NONE,
        .limit =
            (bf16 ? t->machine.bf16_operations : t->machine.fp32_operations) * comm_size(t->group)};
    if (!t->first) {
        train_monitor_open_silent(&t->monitor, &settings);
        return SIFR_OK;
    }
    return train_monitor_open(&t->monitor, &settings, json_object_get(t->position, "monitor"),
                              error);
}

/* Config keys that have no effect with one rank. */
static void say_cuts(const train_state *t) {
    const sifr_config *c = t->config;
    if (c->step.zero.stage > 0 && comm_size(t->group) == 1)
        base_log(t->host->log, SIFR_LOG_INFO, "ZeRO stage %lld has no effect with one rank",
                 (long long)c->step.zero.stage);
}

/* The embedding row that gets no gradient from its use as input; -1: none. */
static int64_t padding_of(const sifr_model *model) {
    for (size_t i = 0; i < model->weight_count; i++)
        if (model->weights[i].has_zero_row) return model->weights[i].zero_row;
    return -1;
}

/* Users often set the end-of-text token as padding and do not expect this effect. */
static void say_padding(const train_state *t) {
    const model_config *c = &t->folder.config;
    int64_t padding = padding_of(t->folder.model);
    bool ends = false;
    for (int i = 0; i < c->eos_count; i++) ends |= c->eos_token_ids[i] == padding;
    if (padding < 0 || !ends) return;
    base_log(t->host->log, SIFR_LOG_INFO,
             "pad_token_id %lld is also an eos_token_id: as in transformers, the embedding of that "
             "token gets no gradient from its use as input%s",
             (long long)padding, c->tie_word_embeddings ? ", only from the tied head" : "");
}

static void say_adapters(const train_state *t) {
    const sifr_model *model = t->folder.model;
    char trained[32], all[32];
    size_t modules = 0, coded = 0;
    if (!t->lora.json) return;
    for (size_t i = 0; i < model->weight_count; i++) {
        modules += model->weights[i].adapter > 0;
        coded += model->weights[i].coding != MODEL_UNCODED;
    }
    train_say(t->host,
              "LoRA: adapters of %zu module%s; trains %s of %s parameters, the others are frozen",
              modules, modules == 1 ? "" : "s",
              base_format_count(sifr_model_trained(model), trained),
              base_format_count(sifr_model_parameters(model), all));
    if (coded) train_say(t->host, "QLoRA: %zu frozen matrices are held in 4 bits (NF4)", coded);
}

/* Checks that each rank makes by itself: of the config, the output and the model folder. */
static sifr_status open_input(train_state *t, sifr_error *error) {
    BASE_TRY(config_resolve(t->config, comm_size(t->group), error));
    comm_set_timeout(t->group, (double)t->config->collective_timeout);
    if (t->config->step.threads == 0) t->config->step.threads = t->host->threads;
    BASE_TRY(require_paths(t->config, error));
    if (t->first) {
        BASE_TRY(train_output_open(t->config->output, t->config->model, t->config->resume,
                                   patience(t), t->host->log, &t->output, error));
    }
    BASE_TRY(train_read_lora(t->config, &t->lora, error));
    BASE_TRY(train_open_folder(t->config, &t->lora, &t->folder, error));
    BASE_TRY(train_check_packing(t->config, &t->folder.config, error));
    BASE_TRY(train_check_preference(t->config, error));
    engine_folder_warn(&t->folder, t->host->log);
    say_padding(t);
    say_cuts(t);
    BASE_TRY(train_freeze(t->config, t->folder.model, t->host->log, error));
    say_adapters(t);
    for (size_t i = 0; t->folder.made && i < t->folder.model->weight_count; i++)
        t->folder.model->weights[i].based &= !t->folder.made[i];
    return train_sequence_length(t->config, &t->folder.config, t->host->log, &t->length, error);
}

static sifr_status make_batch(train_state *t, sifr_error *error) {
    const sifr_config *c = t->config;
    int32_t ranks = plan_mesh_ranks(&engine_schedule(t->engine)->settings.mesh, PLAN_DATA);
    return train_data_rows(t->data, c->train_batch_size / ranks, t->length, &t->rows, error);
}

static sifr_status begin(train_state *t, sifr_error *error) {
    int64_t idle;
    void *memory = engine_idle_memory(engine_trainer(t->engine), &idle);
    if (idle < TRAIN_MEASURE_BYTES) memory = NULL, idle = TRAIN_MEASURE_BYTES;
    BASE_TRY(make_batch(t, error));
    BASE_TRY(train_measure_machine(t, engine_device(t->engine), memory, idle, error));
    say_activations(t);
    BASE_TRY(train_profile_open(&t->profile, t->config, t->host, t->engine, &t->machine,
                                t->baseline, t->total_steps, error));
    if (t->first) BASE_TRY(begin_output(t, error));
    return open_monitor(t, error);
}

sifr_status train_prepare(train_state *t, sifr_error *error) {
    BASE_TRY(train_agree(t, open_input(t, error), error));
    BASE_TRY(same(t, train_agree_input(t->group, t->config, &t->folder, error)));
    BASE_TRY(create_engine(t, error));
    BASE_TRY(say_staged(t, error));
    BASE_TRY(say_offload(t, error));
    BASE_TRY(same(t, train_agree_machine(t->group, engine_device(t->engine), error)));
    BASE_TRY(open_data(t, error));
    BASE_TRY(same(t, train_agree_data(t->group, t->data, t->held_out, error)));
    BASE_TRY(train_agree(t, load(t, error), error));
    BASE_TRY(train_use_scores(t, error));
    BASE_TRY(train_agree(t, begin(t, error), error));
    base_process_trim();
    return SIFR_OK;
}

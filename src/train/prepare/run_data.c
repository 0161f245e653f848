#include "train/prepare/run_data.h"

#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "base/text.h"
#include "plan/queries.h"
#include "train/prepare/fingerprint.h"
#include "train/prepare/run_settings.h"
#include "train/prepare/run_task.h"

/* Data of any kind. */
static sifr_status open_one(const train_state *t, data_set_options *options, data_set **out,
                            sifr_error *error) {
    train_chat_form form;
    sifr_status status =
        train_chat_form_make(&t->folder, t->length, t->config, options, &form, error);
    if (status == SIFR_OK) status = data_set_open(options, out, error);
    train_chat_form_free(&form);
    return status;
}

/* What the run is evaluated on, if anything, by options that opened the data. */
static sifr_status open_held_out(train_state *t, data_set_options *options, sifr_error *error) {
    const sifr_config *c = t->config;
    if (!c->eval_data && c->validation_split > 0)
        return data_set_split(t->data, c->validation_split, (uint64_t)c->step.seed, &t->held_out,
                              error);
    if (!c->eval_data) return SIFR_OK;
    options->paths = &c->eval_data;
    options->count = 1;
    BASE_TRY(open_one(t, options, &t->held_out, error));
    if (data_set_windows(t->held_out, t->length) > 0) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s: %lld tokens are too few for a window of %lld; give more held-out text",
                     c->eval_data, (long long)data_set_tokens(t->held_out), (long long)t->length);
}

/* "1,000 rows in 120 sequences of 1024 tokens, 97.3 % filled" */
static void say_packs(const train_state *t, const char *name, const data_chat *chat) {
    const data_chat_counts *c = data_chat_count(chat);
    int64_t sequences = data_chat_sequences(chat);
    char rows[32], number[32];
    train_say(t->host, "%s: packed %s row%s into %s sequence%s of %lld tokens, %.1f %% filled",
              name, base_format_count(c->rows, rows), c->rows == 1 ? "" : "s",
              base_format_count(sequences, number), sequences == 1 ? "" : "s", (long long)t->length,
              100 * (double)c->tokens / ((double)sequences * (double)t->length));
}

/* "joined 20 texts into 4 sequences of 64 tokens; 12 tokens that fill none are left out" */
static sifr_status join_texts(const train_state *t, const char *name, data_set *data,
                              sifr_error *error) {
    char rows[80], sequences[80], left[80];
    int64_t texts = data_set_documents(data);
    BASE_TRY(data_set_join(data, error));
    const data_chat_counts *c = data_chat_count(data_set_chat(data));
    train_say(t->host, "%s: joined %s into %s of %lld tokens; %s that fill%s none %s left out",
              name, base_format_counted(texts, "text", rows),
              base_format_counted(c->rows, "sequence", sequences), (long long)t->length,
              base_format_counted(c->unfilled, "token", left), c->unfilled == 1 ? "s" : "",
              c->unfilled == 1 ? "is" : "are");
    return SIFR_OK;
}

/* A share of few texts may fill no sequence; the run goes on without. */
static sifr_status join_held_out(train_state *t, sifr_error *error) {
    char texts[80];
    const data_chat_counts *c = data_chat_count(data_set_chat(t->held_out));
    if (t->config->eval_data || c->tokens >= t->length)
        return join_texts(t, "eval_data", t->held_out, error);
    base_log(t->host->log, SIFR_LOG_WARNING,
             "eval_data: %s held out, which cannot fill a sequence of %lld: there are no "
             "evaluations; raise validation_split",
             base_format_counted(c->rows, "text", texts), (long long)t->length);
    data_set_close(t->held_out);
    t->held_out = NULL;
    return SIFR_OK;
}

/* Held-out text has full windows already. */
static sifr_status pack_data(train_state *t, sifr_error *error) {
    bool held = t->held_out && data_set_chat(t->held_out);
    if (t->config->joint) {
        BASE_TRY(join_texts(t, "data", t->data, error));
        return held ? join_held_out(t, error) : SIFR_OK;
    }
    if (t->config->group_by_length)
        return data_set_group(t->data, t->config->train_batch_size, error);
    if (!t->config->packing) return SIFR_OK;
    BASE_TRY(data_set_pack(t->data, error));
    say_packs(t, "data", data_set_chat(t->data));
    if (!held) return SIFR_OK;
    BASE_TRY(data_set_pack(t->held_out, error));
    say_packs(t, "eval_data", data_set_chat(t->held_out));
    return SIFR_OK;
}

sifr_status train_open_stores(train_state *t, const char *cache, const base_progress *progress,
                              sifr_error *error) {
    const sifr_config *c = t->config;
    int64_t separator = -1;
    data_labelled labelled;
    data_label_columns columns = train_config_columns(t->config);
    if (t->objective->chats)
        BASE_TRY(train_separator(c->model, &t->folder.config, t->host->log, &separator, error));
    data_set_options options = {.paths = c->data,
                                .count = c->data_count,
                                .tokenizer = c->model,
                                .cache = cache,
                                .vocab_size = t->folder.config.vocab_size,
                                .separator = separator,
                                .special = !c->no_special_tokens,
                                .threads = (int)c->step.threads,
                                .progress = progress,
                                .log = t->host->log};
    train_data_form(&t->folder, t->length, &columns, c->mlm_probability, &labelled, &options);
    if (t->first) BASE_TRY(checkpoint_clean(cache, error));
    BASE_TRY(open_one(t, &options, &t->data, error));
    BASE_TRY(open_held_out(t, &options, error));
    BASE_TRY(train_objective_check_data(t->objective, t->data, error));
    if (t->held_out) BASE_TRY(train_objective_check_data(t->objective, t->held_out, error));
    return pack_data(t, error);
}

/* So many of the data's windows, by what those are called. */
static const char *count_windows(const train_state *t, int64_t count, char out[80]) {
    const data_chat *chat = data_set_chat(t->data);
    bool full = chat && (data_chat_is_packed(chat) || data_chat_is_joined(chat));
    const char *word = full                   ? "sequence"
                       : t->objective->sample ? t->objective->sample
                       : chat                 ? "row"
                                              : "window";
    return base_format_counted(count, word, out);
}

static void say_size(const train_state *t, int64_t windows) {
    const sifr_config *c = t->config;
    char tokens[32], counted[80], number[80];
    int64_t documents = data_set_documents(t->data), per = t->objective->pairs ? 2 : 1;
    const data_chat *chat = data_set_chat(t->data);
    bool rows = chat != NULL;
    const char *word = per > 1 ? "pair" : rows && data_chat_is_joined(chat) ? "sequence" : "row";
    if (rows && t->held_out && !c->eval_data)
        train_say(t->host, "data: %s to learn, %lld held out",
                  base_format_counted(documents / per, word, counted),
                  (long long)(data_set_documents(t->held_out) / per));
    if (!rows && !data_set_labelled(t->data))
        train_say(t->host, "data: %s tokens in %s, %s of %lld",
                  base_format_count(data_set_tokens(t->data), tokens),
                  base_format_counted(documents, "document", counted),
                  base_format_counted(windows, "window", number), (long long)t->length);
}

/* Whether the run goes on from a checkpoint that was made before epochs had a last batch of their
 * own. A checkpoint of text lacks that field too, but is of other data: its resume is refused. */
static sifr_status find_joined(const train_state *t, bool *out, sifr_error *error) {
    json_t *manifest;
    *out = false;
    BASE_TRY(checkpoint_peek(t->config->output, &manifest, error));
    if (manifest)
        *out = !json_object_get(json_object_get(manifest, "agree"), TRAIN_FINGERPRINT_LAST) &&
               train_fingerprint_same_data(json_object_get(manifest, "agree"), t->data);
    json_decref(manifest);
    return SIFR_OK;
}

sifr_status train_choose_batches(train_state *t, sifr_error *error) {
    const sifr_config *c = t->config;
    bool rows = data_set_chat(t->data) || data_set_labelled(t->data), joined = false;
    if (c->resume) {
        sifr_status status = t->first ? find_joined(t, &joined, error) : SIFR_OK;
        BASE_TRY(train_agree(t, status, error));
        BASE_TRY(comm_broadcast(t->group, 0, &joined, sizeof joined, error));
    }
    if (rows && joined)
        base_log(t->host->log, SIFR_LOG_INFO,
                 "%s: its checkpoints are of a version whose batches of rows ran on into the next "
                 "epoch; so do this run's, whatever dataloader_drop_last says",
                 c->output);
    data_last_batch last = !rows || joined ? DATA_LAST_JOINED
                           : c->drop_last  ? DATA_LAST_DROPPED
                                           : DATA_LAST_SHORT;
    t->epochs = data_epochs_make(last, data_set_windows(t->data, t->length), c->train_batch_size,
                                 c->step.micro_batch_size);
    return SIFR_OK;
}

static sifr_status check_windows(const train_state *t, sifr_error *error) {
    char windows[80];
    if (t->epochs.windows == 0)
        return base_fail(error, SIFR_FAILED,
                         "data: %lld tokens are too few for a window of %lld and the token after "
                         "it; give more text or a shorter seq-length",
                         (long long)data_set_tokens(t->data), (long long)t->length);
    if (t->epochs.used > 0) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "data: %s cannot fill a micro batch of %lld, and dataloader_drop_last leaves "
                     "out what does not; leave it out, or give more data or a smaller micro batch",
                     count_windows(t, t->epochs.windows, windows), (long long)t->epochs.micro);
}

/* What an epoch's last batch has, or lacks. */
static void say_last_batch(const train_state *t) {
    const data_epochs *e = &t->epochs;
    int64_t first, left = e->windows - e->used;
    char steps[80], windows[80];
    if (left)
        train_say(t->host,
                  "data: %s of each epoch %s left out, which cannot fill a micro batch of %lld "
                  "(dataloader_drop_last)",
                  count_windows(t, left, windows), left == 1 ? "is" : "are", (long long)e->micro);
    int64_t last = e->steps ? data_epochs_samples(e, e->steps - 1, &first) : e->batch;
    if (last < e->batch)
        train_say(t->host, "data: an epoch of %s is %s, %s with %lld of %lld",
                  count_windows(t, e->used, windows), base_format_counted(e->steps, "step", steps),
                  e->steps > 1 ? "the last one" : "a batch", (long long)last, (long long)e->batch);
}

/* Of batches that are joined. */
static sifr_status check_last_batch(const train_state *t, sifr_error *error) {
    const sifr_config *c = t->config;
    int64_t samples = (int64_t)floor(c->num_train_epochs * (double)t->epochs.windows);
    int64_t batch = c->train_batch_size;
    char windows[80];
    if (t->total_steps == 0)
        return base_fail(error, SIFR_FAILED,
                         "data: %g epoch%s of %s cannot fill one global batch of %lld; give more "
                         "data, a smaller batch or --max-steps",
                         c->num_train_epochs, c->num_train_epochs == 1 ? "" : "s",
                         count_windows(t, t->epochs.windows, windows), (long long)batch);
    if (samples % batch)
        train_say(t->host, "data: dropped the last %s, which cannot fill a global batch of %lld",
                  count_windows(t, samples % batch, windows), (long long)batch);
    return SIFR_OK;
}

sifr_status train_count_steps(train_state *t, sifr_error *error) {
    const sifr_config *c = t->config;
    BASE_TRY(check_windows(t, error));
    say_size(t, t->epochs.windows);
    say_last_batch(t);
    if (c->max_steps > 0) {
        t->total_steps = c->max_steps;
        return config_set_total_steps(t->config, t->total_steps, error);
    }
    double steps = data_epochs_steps(&t->epochs, c->num_train_epochs);
    if (!(steps * (double)c->train_batch_size <= 1e15))
        return base_fail(error, SIFR_USAGE,
                         "num_train_epochs %g: the number of steps is too large; give fewer epochs",
                         c->num_train_epochs);
    t->total_steps = (int64_t)steps;
    if (t->epochs.last == DATA_LAST_JOINED) BASE_TRY(check_last_batch(t, error));
    return config_set_total_steps(t->config, t->total_steps, error);
}

/* Sequence i of the global batch's micro batch g is sample g * micro_batch_size + i of the step.
 * What a short step lacks are rows without labels, so that all steps have one plan and one order of
 * sums. */
void train_fetch(const train_state *t, const plan_settings *settings, int64_t step,
                 const data_rows *rows) {
    const sifr_config *c = t->config;
    int64_t first, per = c->step.micro_batch_size, at = 0;
    int64_t samples = data_epochs_samples(&t->epochs, step, &first);
    if (samples < c->train_batch_size) data_rows_clear(rows, 0);
    for (int32_t j = 0; j < settings->step.gradient_accumulation_steps; j++) {
        int64_t g =
            plan_global_micro_batch(settings, plan_mesh_place(&settings->mesh, PLAN_DATA), j);
        for (int64_t i = g * per; i < (g + 1) * per; i++, at++)
            if (i < samples) data_set_sample(t->data, c->step.seed, first + i, rows, at);
    }
}

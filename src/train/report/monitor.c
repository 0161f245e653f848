#include "train/report/monitor.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/process.h"
#include "train/report/queue.h"

/* In the order in which they get a record. */
static const train_sink *const sinks[TRAIN_SINKS] = {&train_jsonl, &train_csv, &train_line};

static sifr_status note_earlier(void *user, const json_t *record, sifr_error *error) {
    train_monitor *monitor = user;
    return train_history_add(&monitor->history, record, error);
}

static sifr_status open_sinks(train_monitor *monitor, sifr_error *error) {
    monitor->settings.earlier = note_earlier;
    monitor->settings.user = monitor;
    for (int i = 0; i < TRAIN_SINKS; i++)
        BASE_TRY(sinks[i]->open(&monitor->settings, &monitor->sink[i], error));
    return SIFR_OK;
}

sifr_status train_monitor_open(train_monitor *monitor, const train_report_settings *settings,
                               const json_t *state, sifr_error *error) {
    *monitor =
        (train_monitor){.settings = *settings, .last_loss = NAN, .memory = base_process_memory()};
    train_history_begin(&monitor->history);
    BASE_TRY(open_sinks(monitor, error));
    monitor->began = monitor->last_record = monitor->last_step = base_seconds();
    monitor->last_record_step = settings->first_step;
    monitor->last_eval_loss = monitor->history.last_loss;
    if (state) {
        monitor->loss_sum = json_number_value(json_object_get(state, "loss_sum"));
        monitor->loss_count = json_integer_value(json_object_get(state, "loss_count"));
        monitor->skipped = json_integer_value(json_object_get(state, "skipped"));
        const json_t *last = json_object_get(state, "last_loss");
        if (json_is_number(last)) monitor->last_loss = json_number_value(last);
    }
    return SIFR_OK;
}

void train_monitor_open_silent(train_monitor *monitor, const train_report_settings *settings) {
    *monitor = (train_monitor){.settings = *settings, .last_eval_loss = NAN, .last_loss = NAN};
}

/* metrics.csv may need metrics.jsonl, which is first. */
bool train_monitor_finish(train_monitor *monitor) {
    char line[SIFR_ERROR_LENGTH];
    bool whole = true;
    for (int i = 0; i < TRAIN_SINKS; i++) {
        if (!monitor->sink[i] || !sinks[i]->lacks || !sinks[i]->lacks(monitor->sink[i], line))
            continue;
        base_log(monitor->settings.host->log, SIFR_LOG_WARNING, "%s", line);
        whole &= sinks[i] != &train_jsonl;
    }
    return whole;
}

void train_monitor_close(train_monitor *monitor) {
    for (int i = TRAIN_SINKS - 1; i >= 0; i--) sinks[i]->close(monitor->sink[i]);
    memset(monitor->sink, 0, sizeof monitor->sink);
    train_history_free(&monitor->history);
}

/* Of the first `steps` steps; what fills up a short one does not count. */
static int64_t tokens_of(const train_report_settings *s, int64_t steps) {
    return data_epochs_trained(&s->epochs, steps) * s->length;
}

static train_record begin_record(const train_monitor *monitor, train_when when, int64_t step) {
    const sifr_config *config = monitor->settings.config;
    return (train_record){.when = when,
                          .step = step,
                          .now = base_seconds(),
                          .time = base_seconds_since_1970(),
                          .samples = config ? step * config->train_batch_size : 0};
}

/* What a step and a record have in common; of a record, loss and rate are means. */
static void put_common(const train_monitor *monitor, const sifr_step_result *result, double loss,
                       double learning_rate, double rate, train_record *out) {
    const train_report_settings *s = &monitor->settings;
    int measures = monitor->measured ? train_objective_measures(s->objective) : 0;
    out->left = train_view_pace_seconds(&monitor->pace) * (double)(s->total_steps - out->step);
    train_record_put(out, TRAIN_LOSS, loss);
    train_record_put(out, TRAIN_GRAD_NORM, result->gradient_norm);
    train_record_put(out, TRAIN_LEARNING_RATE, learning_rate);
    train_record_put(out, TRAIN_TOKENS_PER_SECOND, rate);
    train_record_put(out, TRAIN_MEMORY_BYTES, (double)monitor->memory);
    if (s->limit > 0)
        train_record_put(out, TRAIN_LIMIT_SHARE, rate * s->flops_per_token / s->limit);
    if (s->scaled) train_record_put(out, TRAIN_LOSS_SCALE, result->loss_scale);
    for (int i = 0; i < measures; i++)
        train_record_put_more(out, s->objective->measures[i],
                              monitor->measures[i] / (double)monitor->measured);
}

static bool is_recorded(const train_monitor *monitor, int64_t step) {
    const train_report_settings *s = &monitor->settings;
    return step % s->log_every == 0 || step == s->total_steps;
}

void train_monitor_watch(train_monitor *monitor, int64_t step) {
    if (!is_recorded(monitor, step)) return;
    base_process process;
    if (!base_process_read(&process)) return;
    monitor->shared = process.shared;
    monitor->memory = process.own + process.shared;
    if (process.own > monitor->largest_own) monitor->largest_own = process.own;
}

/* If records cannot be written (say, on a full disk), the run goes on and writes them later. */
static sifr_status tell_sinks(train_monitor *monitor, const train_record *record,
                              sifr_error *error) {
    sifr_error reason = {0};
    bool behind = false;
    for (int i = 0; i < TRAIN_SINKS; i++) {
        sifr_status status = sinks[i]->record(monitor->sink[i], record, behind ? NULL : &reason);
        if (status != SIFR_OK && status != SIFR_FAILED)
            return base_fail(error, status, "%s", reason.message);
        behind |= status == SIFR_FAILED;
    }
    if (monitor->settings.queue) train_queue_put(monitor->settings.queue, record);
    if (!record->json) return SIFR_OK;
    if (behind && !monitor->behind)
        base_log(monitor->settings.host->log, SIFR_LOG_WARNING,
                 "%s; the run goes on, and its records are written when they can be",
                 reason.message);
    monitor->behind = behind;
    return SIFR_OK;
}

/* A record that files keep. */
static sifr_status keep(train_monitor *monitor, train_record *record, sifr_error *error) {
    json_t *json = train_record_json(record);
    record->json = json;
    sifr_status status =
        json ? train_history_add(&monitor->history, json, error) : base_fail_alloc(error, 256);
    if (status == SIFR_OK) status = tell_sinks(monitor, record, error);
    json_decref(json);
    return status;
}

static sifr_status record_step(train_monitor *monitor, const train_step_event *event, double now,
                               sifr_error *error) {
    const train_report_settings *s = &monitor->settings;
    int64_t step = event->step;
    train_record record = begin_record(monitor, TRAIN_EACH_RECORD, step);
    record.now = now;
    int64_t tokens = tokens_of(s, step) - tokens_of(s, monitor->last_record_step);
    double rate = (double)tokens / (now - monitor->last_record);
    double loss = monitor->loss_count ? monitor->loss_sum / (double)monitor->loss_count : NAN;
    train_monitor_watch(monitor, step);
    monitor->last_loss = loss;
    put_common(monitor, event->result, loss, event->rate, rate, &record);
    train_record_put(&record, TRAIN_EPOCH, data_epochs_passed(&s->epochs, step));
    train_record_put(&record, TRAIN_TOKENS, (double)tokens_of(s, step));
    train_record_put(&record, TRAIN_SKIPPED, (double)monitor->skipped);
    train_record_put(&record, TRAIN_SECONDS, base_seconds() - monitor->began);
    BASE_TRY(keep(monitor, &record, error));
    monitor->loss_sum = 0;
    monitor->loss_count = 0;
    memset(monitor->measures, 0, sizeof monitor->measures);
    monitor->measured = 0;
    monitor->last_record = now;
    monitor->last_record_step = step;
    return SIFR_OK;
}

void train_monitor_measured(train_monitor *monitor, const double measures[TRAIN_MEASURES]) {
    for (int i = 0; i < TRAIN_MEASURES; i++) monitor->measures[i] += measures[i];
    monitor->measured++;
}

sifr_status train_monitor_step(train_monitor *monitor, const train_step_event *event,
                               sifr_error *error) {
    const train_report_settings *s = &monitor->settings;
    const sifr_step_result *result = event->result;
    train_record record = begin_record(monitor, TRAIN_EACH_STEP, event->step);
    record.next_rate = event->next_rate;
    record.next_scale = event->next_scale;
    if (result->updated) {
        monitor->loss_sum += result->loss;
        monitor->loss_count++;
    } else {
        monitor->skipped++;
    }
    train_view_pace_add(&monitor->pace, record.now - monitor->last_step);
    monitor->last_step = record.now;
    put_common(monitor, result, result->loss, event->rate,
               (double)(s->epochs.batch * s->length) / train_view_pace_seconds(&monitor->pace),
               &record);
    BASE_TRY(tell_sinks(monitor, &record, error));
    if (!is_recorded(monitor, event->step)) return SIFR_OK;
    return record_step(monitor, event, record.now, error);
}

sifr_status train_monitor_evaluation(train_monitor *monitor, int64_t step,
                                     const train_evaluation *evaluation, sifr_error *error) {
    train_record record = begin_record(monitor, TRAIN_EACH_EVALUATION, step);
    monitor->last_eval_loss = evaluation->loss;
    train_record_put(&record, TRAIN_EPOCH, data_epochs_passed(&monitor->settings.epochs, step));
    train_record_put(&record, TRAIN_EVAL_LOSS, evaluation->loss);
    train_record_put(&record, TRAIN_EVAL_WINDOWS, (double)evaluation->windows);
    train_record_put(&record, TRAIN_EVAL_SECONDS, evaluation->seconds);
    if (!evaluation->labelled)
        train_record_put(&record, TRAIN_EVAL_PERPLEXITY, evaluation->perplexity);
    for (int i = 0; i < evaluation->scores.count; i++)
        train_record_put_more(&record, evaluation->scores.items[i].name,
                              evaluation->scores.items[i].value);
    BASE_TRY(keep(monitor, &record, error));
    train_monitor_pause(monitor, evaluation->seconds);
    return SIFR_OK;
}

void train_monitor_pause(train_monitor *monitor, double seconds) {
    double now = base_seconds();
    monitor->last_record = fmin(now, monitor->last_record + seconds);
    monitor->last_step = fmin(now, monitor->last_step + seconds);
}

bool train_monitor_evaluated(const train_monitor *monitor, int64_t step) {
    return monitor->history.last_step == step;
}

json_t *train_monitor_state(const train_monitor *monitor) {
    return json_pack("{s:o, s:I, s:I, s:o}", "loss_sum", base_json_finite(monitor->loss_sum),
                     "loss_count", (json_int_t)monitor->loss_count, "skipped",
                     (json_int_t)monitor->skipped, "last_loss",
                     base_json_finite(monitor->last_loss));
}

json_t *train_monitor_trainer_state(const train_monitor *monitor, int64_t step) {
    const train_report_settings *s = &monitor->settings;
    return json_pack("{s:n, s:n, s:o, s:I, s:I, s:I, s:I, s:o, s:b, s:b}", "best_metric",
                     "best_model_checkpoint", "epoch",
                     base_json_finite(data_epochs_passed(&s->epochs, step)), "global_step",
                     (json_int_t)step, "max_steps", (json_int_t)s->total_steps, "num_train_epochs",
                     (json_int_t)ceil(data_epochs_passed(&s->epochs, s->total_steps)),
                     "logging_steps", (json_int_t)s->log_every, "total_flos",
                     base_json_finite((double)tokens_of(s, step) * s->flops_per_token),
                     "is_local_process_zero", 1, "is_world_process_zero", 1);
}

base_json_list train_monitor_history(train_monitor *monitor) {
    train_history *history = &monitor->history;
    return (base_json_list){"log_history", history->count, train_history_entry, history};
}

#include "train/report/monitor.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/process.h"
#include "base/text.h"
#include "train/report/progress_line.h"

sifr_status train_monitor_open(train_monitor *monitor, const train_monitor_settings *settings,
                               const json_t *state, sifr_error *error) {
    *monitor = (train_monitor){.settings = *settings,
                               .last_eval_loss = NAN,
                               .last_loss = NAN,
                               .memory = base_process_memory()};
    BASE_TRY(train_metrics_open(&monitor->metrics, settings->output, settings->first_step,
                                settings->objective, error));
    monitor->began = monitor->last_record = base_seconds();
    monitor->last_record_step = settings->first_step;
    monitor->last_eval_loss = monitor->metrics.history.last_loss;
    if (state) {
        monitor->loss_sum = json_number_value(json_object_get(state, "loss_sum"));
        monitor->loss_count = json_integer_value(json_object_get(state, "loss_count"));
        monitor->skipped = json_integer_value(json_object_get(state, "skipped"));
        const json_t *last = json_object_get(state, "last_loss");
        if (json_is_number(last)) monitor->last_loss = json_number_value(last);
    }
    return SIFR_OK;
}

void train_monitor_open_silent(train_monitor *monitor, const train_monitor_settings *settings) {
    *monitor = (train_monitor){.settings = *settings, .last_eval_loss = NAN, .last_loss = NAN};
}

void train_monitor_close(train_monitor *monitor) {
    if (monitor->metrics.pending && monitor->settings.host->live)
        monitor->settings.host->live(monitor->settings.host->user, "");
    train_metrics_close(&monitor->metrics);
}

/* "2:31", "1:02:31" */
static void format_time(double seconds, char out[32]) {
    long long s = seconds < 0 || seconds > 1e10 ? 0 : (long long)(seconds + 0.5);
    if (s >= 3600)
        snprintf(out, 32, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, 32, "%lld:%02lld", s / 60, s % 60);
}

static void format_rate(double rate, char out[32]) {
    if (rate >= 1e6)
        snprintf(out, 32, "%.2fM", rate / 1e6);
    else if (rate >= 1e4)
        snprintf(out, 32, "%.1fk", rate / 1e3);
    else
        snprintf(out, 32, "%.0f", rate);
}

SIFR_PRINTF(2, 3)
static void put(train_line_part *part, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(part->text, sizeof part->text, format, arguments);
    va_end(arguments);
}

/* After step and loss, the remaining time matters most to users; the share of the machine's limit
 * and the loss scale matter least. columns 0: no limit. */
static void format_line(const train_monitor *monitor, int64_t step, double loss, double rate,
                        const sifr_step_result *result, double learning_rate, int columns,
                        char *out, size_t size) {
    const train_monitor_settings *s = &monitor->settings;
    enum { STEP, LOSS, MEASURE, RATE, NORM, SCALE, TOKENS, MEMORY, LEFT, PARTS };
    train_line_part parts[PARTS] = {[STEP].weight = 9, [LOSS].weight = 8,   [MEASURE].weight = 8,
                                    [LEFT].weight = 7, [TOKENS].weight = 6, [RATE].weight = 5,
                                    [NORM].weight = 4, [MEMORY].weight = 3, [SCALE].weight = 2};
    char tokens[32], left[32], memory[32];
    format_rate(rate, tokens);
    format_time(monitor->step_seconds * (double)(s->total_steps - step), left);
    put(&parts[STEP], "step %lld/%lld", (long long)step, (long long)s->total_steps);
    put(&parts[LOSS], "loss %.4f", loss);
    put(&parts[RATE], "lr %.3g", learning_rate);
    put(&parts[NORM], "norm %.3g", result->gradient_norm);
    if (s->scaled) put(&parts[SCALE], "scale %.6g", result->loss_scale);
    if (monitor->measured && s->objective->shown)
        put(&parts[MEASURE], "%s %.3g", s->objective->shown,
            monitor->measures[s->objective->shows] / (double)monitor->measured);
    put(&parts[TOKENS], "%s tok/s", tokens);
    put(&parts[MEMORY], "%s", base_format_bytes(monitor->memory, memory));
    put(&parts[LEFT], "%s left", left);
    if (s->limit > 0) {
        train_line_part bare = parts[TOKENS];
        double share = rate * s->flops_per_token / s->limit; /* which was measured at the start */
        if (share > 1)
            put(&parts[TOKENS], "%s tok/s (over the measured limit)", tokens);
        else
            put(&parts[TOKENS], "%s tok/s (%.0f%% of limit)", tokens, 100 * share);
        train_progress_line(parts, PARTS, 0, out, size);
        if (columns <= 0 || strlen(out) < (size_t)columns) return;
        parts[TOKENS] = bare;
    }
    train_progress_line(parts, PARTS, columns, out, size);
}

static bool add_number(json_t *record, const char *key, double value) {
    return json_object_set_new(record, key, base_json_finite(value)) == 0;
}

/* Of the first `steps` steps; what fills up a short one does not count. */
static int64_t tokens_of(const train_monitor_settings *s, int64_t steps) {
    return data_epochs_trained(&s->epochs, steps) * s->length;
}

static json_t *make_record(const train_monitor *monitor, int64_t step, double loss,
                           const sifr_step_result *result, double learning_rate, double rate) {
    const train_monitor_settings *s = &monitor->settings;
    json_t *record = json_pack(
        "{s:I, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:o}", "step", (json_int_t)step, "epoch",
        base_json_finite(data_epochs_passed(&s->epochs, step)), "loss", base_json_finite(loss),
        "grad_norm", base_json_finite(result->gradient_norm), "learning_rate",
        base_json_finite(learning_rate), "tokens_per_second", base_json_finite(rate), "tokens",
        (json_int_t)tokens_of(s, step), "memory_bytes", (json_int_t)monitor->memory, "skipped",
        (json_int_t)monitor->skipped, "seconds", base_json_finite(base_seconds() - monitor->began));
    bool whole = record && (s->limit <= 0 || add_number(record, "limit_share",
                                                        rate * s->flops_per_token / s->limit));
    whole = whole && (!s->scaled || add_number(record, "loss_scale", result->loss_scale));
    int measures = monitor->measured ? train_objective_measures(s->objective) : 0;
    for (int i = 0; whole && i < measures; i++)
        whole = add_number(record, s->objective->measures[i],
                           monitor->measures[i] / (double)monitor->measured);
    if (whole) return record;
    json_decref(record);
    return NULL;
}

static bool is_recorded(const train_monitor *monitor, int64_t step) {
    const train_monitor_settings *s = &monitor->settings;
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
static sifr_status add_record(train_monitor *monitor, json_t *record, sifr_error *error) {
    sifr_error reason = {0};
    bool behind = monitor->metrics.behind;
    sifr_status status = train_metrics_add(&monitor->metrics, record, &reason);
    if (status == SIFR_FAILED) {
        if (!behind)
            base_log(monitor->settings.host->log, SIFR_LOG_WARNING,
                     "%s; the run goes on, and its records are written when there is space",
                     reason.message);
        return SIFR_OK;
    }
    return status == SIFR_OK ? SIFR_OK : base_fail(error, status, "%s", reason.message);
}

static sifr_status record_step(train_monitor *monitor, int64_t step, const sifr_step_result *result,
                               double learning_rate, double now, sifr_error *error) {
    const train_monitor_settings *s = &monitor->settings;
    int64_t tokens = tokens_of(s, step) - tokens_of(s, monitor->last_record_step);
    double rate = (double)tokens / (now - monitor->last_record);
    double loss = monitor->loss_count ? monitor->loss_sum / (double)monitor->loss_count : NAN;
    train_monitor_watch(monitor, step);
    monitor->last_loss = loss;
    BASE_TRY(
        add_record(monitor, make_record(monitor, step, loss, result, learning_rate, rate), error));
    bool due = s->print_every ? step % s->print_every == 0
                              : now - monitor->last_print >= 1 || step == s->total_steps;
    if (due && (!s->host->live || s->print_every)) {
        char text[256];
        format_line(monitor, step, loss, rate, result, learning_rate, 0, text, sizeof text);
        train_say(s->host, "%s", text);
        monitor->last_print = now;
    }
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

sifr_status train_monitor_step(train_monitor *monitor, int64_t step, const sifr_step_result *result,
                               double learning_rate, double seconds, sifr_error *error) {
    const train_monitor_settings *s = &monitor->settings;
    double now = base_seconds();
    if (result->updated) {
        monitor->loss_sum += result->loss;
        monitor->loss_count++;
    } else {
        monitor->skipped++;
    }
    monitor->step_seconds =
        monitor->step_seconds > 0 ? 0.9 * monitor->step_seconds + 0.1 * seconds : seconds;
    if (s->host->live && (now - monitor->last_live > 0.1 || step == s->total_steps)) {
        char text[256];
        format_line(monitor, step, result->loss,
                    (double)(s->epochs.batch * s->length) / monitor->step_seconds, result,
                    learning_rate, train_columns(s->host), text, sizeof text);
        s->host->live(s->host->user, text);
        monitor->last_live = now;
    }
    if (!is_recorded(monitor, step)) return SIFR_OK;
    return record_step(monitor, step, result, learning_rate, now, error);
}

/* "perplexity 1.04" or "accuracy 0.9000  f1 0.8889"; returns out. */
static const char *describe_scores(const train_evaluation *evaluation, char *out, size_t size) {
    size_t used = 0;
    if (!evaluation->labelled) snprintf(out, size, "  perplexity %.2f", evaluation->perplexity);
    if (evaluation->labelled) out[0] = '\0';
    for (int i = 0; i < evaluation->scores.count && used < size; i++)
        used +=
            (size_t)snprintf(out + used, size - used, "  %s %.4f", evaluation->scores.items[i].name,
                             evaluation->scores.items[i].value);
    return out;
}

static json_t *evaluation_record(const train_monitor *monitor, int64_t step,
                                 const train_evaluation *evaluation) {
    char key[64];
    json_t *record = json_pack(
        "{s:I, s:o, s:o, s:I, s:o}", "step", (json_int_t)step, "epoch",
        base_json_finite(data_epochs_passed(&monitor->settings.epochs, step)), "eval_loss",
        base_json_finite(evaluation->loss), "eval_windows", (json_int_t)evaluation->windows,
        "eval_seconds", base_json_finite(evaluation->seconds));
    bool whole = record && (evaluation->labelled ||
                            add_number(record, "eval_perplexity", evaluation->perplexity));
    for (int i = 0; whole && i < evaluation->scores.count; i++) {
        snprintf(key, sizeof key, "eval_%s", evaluation->scores.items[i].name);
        whole = add_number(record, key, evaluation->scores.items[i].value);
    }
    if (whole) return record;
    json_decref(record);
    return NULL;
}

sifr_status train_monitor_evaluation(train_monitor *monitor, int64_t step,
                                     const train_evaluation *evaluation, sifr_error *error) {
    const train_monitor_settings *s = &monitor->settings;
    monitor->last_eval_loss = evaluation->loss;
    char scores[512], windows[80];
    train_say(s->host, "step %lld/%lld  eval loss %.4f%s  (%s, %.1f s)", (long long)step,
              (long long)s->total_steps, evaluation->loss,
              describe_scores(evaluation, scores, sizeof scores),
              base_format_counted(evaluation->windows,
                                  evaluation->paired     ? "answer"
                                  : evaluation->labelled ? "example"
                                                         : "window",
                                  windows),
              evaluation->seconds);
    BASE_TRY(add_record(monitor, evaluation_record(monitor, step, evaluation), error));
    train_monitor_pause(monitor, evaluation->seconds);
    return SIFR_OK;
}

void train_monitor_pause(train_monitor *monitor, double seconds) {
    monitor->last_record = fmin(base_seconds(), monitor->last_record + seconds);
}

bool train_monitor_evaluated(const train_monitor *monitor, int64_t step) {
    return monitor->metrics.history.last_step == step;
}

json_t *train_monitor_state(const train_monitor *monitor) {
    return json_pack("{s:o, s:I, s:I, s:o}", "loss_sum", base_json_finite(monitor->loss_sum),
                     "loss_count", (json_int_t)monitor->loss_count, "skipped",
                     (json_int_t)monitor->skipped, "last_loss",
                     base_json_finite(monitor->last_loss));
}

json_t *train_monitor_trainer_state(const train_monitor *monitor, int64_t step) {
    const train_monitor_settings *s = &monitor->settings;
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
    train_history *history = &monitor->metrics.history;
    return (base_json_list){"log_history", history->count, train_history_entry, history};
}

/* The live line of a terminal, and the progress lines that stay. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/columns.h"
#include "base/heap.h"
#include "base/text.h"
#include "train/report/sink.h"
#include "train/view/plot.h"
#include "train/view/progress_line.h"
#include "train/view/screen_text.h"

typedef struct line {
    const train_report_settings *settings;
    double last_live, last_print; /* train_record.now */
    train_view_series losses;     /* for the chart; without bins: it is not shown */
    double smooth;                /* the last of them */
    train_plot plot;
} line;

/* Of the loss: characters, and values, two for each of their columns of dots and more. */
enum { CHART_COLUMNS = 12, CHART_BINS = 96 };

SIFR_PRINTF(2, 3)
static void put(train_line_part *part, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(part->text, sizeof part->text, format, arguments);
    va_end(arguments);
}

/* Smoothed: four rows of dots show a trend, and no noise. */
static void add_loss(line *l, int64_t step, double loss) {
    if (!isfinite(loss)) return;
    l->smooth = l->losses.count ? 0.9 * l->smooth + 0.1 * loss : loss;
    train_view_series_add(&l->losses, step, l->smooth);
}

/* Since the process began, all of it; "" without values. */
static void draw_chart(line *l, train_line_part *chart) {
    const train_view_series *s = &l->losses;
    const train_plot_range range = {s->first_step, s->last_step, s->low, s->high};
    if (s->used < 2) return;
    train_plot_begin(&l->plot, CHART_COLUMNS, 1);
    train_plot_series(&l->plot, s, &range);
    train_plot_row(&l->plot, 0, true, chart->text);
}

/* After step and loss, the remaining time matters most to users; the share of the machine's limit
 * and the loss scale matter least. columns 0: no limit. chart: NULL for none. */
static void format_line(const train_report_settings *s, const train_record *r, int columns,
                        const train_line_part *chart, char *out, size_t size) {
    enum { STEP, LOSS, CHART, MEASURE, RATE, NORM, SCALE, TOKENS, MEMORY, LEFT, PARTS };
    train_line_part parts[PARTS] = {
        [STEP].weight = 10,  [LOSS].weight = 9,  [MEASURE].weight = 9, [LEFT].weight = 8,
        [TOKENS].weight = 7, [CHART].weight = 6, [RATE].weight = 5,    [NORM].weight = 4,
        [MEMORY].weight = 3, [SCALE].weight = 2};
    char tokens[32], left[32], memory[32], loss[32];
    train_screen_rate(r->value[TRAIN_TOKENS_PER_SECOND], tokens);
    train_screen_time(r->left, left);
    if (chart) strcpy(parts[CHART].text, chart->text);
    put(&parts[STEP], "step %lld/%lld", (long long)r->step, (long long)s->total_steps);
    if (columns > 0 && base_columns(parts[STEP].text) >= (size_t)columns)
        put(&parts[STEP], "step %lld", (long long)r->step);
    put(&parts[LOSS], "loss %s", train_screen_loss(r->value[TRAIN_LOSS], loss));
    put(&parts[RATE], "lr %.3g", r->value[TRAIN_LEARNING_RATE]);
    put(&parts[NORM], "norm %.3g", r->value[TRAIN_GRAD_NORM]);
    if (r->has >> TRAIN_LOSS_SCALE & 1)
        put(&parts[SCALE], "scale %.6g", r->value[TRAIN_LOSS_SCALE]);
    if (r->more && s->objective->shown)
        put(&parts[MEASURE], "%s %.3g", s->objective->shown, r->of[s->objective->shows].value);
    put(&parts[TOKENS], "%s tok/s", tokens);
    put(&parts[MEMORY], "%s", base_format_bytes((uint64_t)r->value[TRAIN_MEMORY_BYTES], memory));
    put(&parts[LEFT], "%s left", left);
    if (r->has >> TRAIN_LIMIT_SHARE & 1) {
        train_line_part bare = parts[TOKENS];
        double share = r->value[TRAIN_LIMIT_SHARE]; /* of what was measured at the start */
        if (share > 1)
            put(&parts[TOKENS], "%s tok/s (over the measured limit)", tokens);
        else
            put(&parts[TOKENS], "%s tok/s (%.0f%% of limit)", tokens, 100 * share);
        train_progress_line(parts, PARTS, 0, out, size);
        if (columns <= 0 || base_columns(out) < (size_t)columns) return;
        parts[TOKENS] = bare;
    }
    train_progress_line(parts, PARTS, columns, out, size);
}

static void show(line *l, const train_record *r) {
    const train_report_settings *s = l->settings;
    train_line_part chart = {0};
    char text[512];
    if (l->losses.capacity) add_loss(l, r->step, r->value[TRAIN_LOSS]);
    if (!s->host->live || (r->now - l->last_live <= 0.1 && r->step != s->total_steps)) return;
    draw_chart(l, &chart);
    format_line(s, r, train_columns(s->host), &chart, text, sizeof text);
    s->host->live(s->host->user, text);
    l->last_live = r->now;
}

static void print(line *l, const train_record *r) {
    const train_report_settings *s = l->settings;
    char text[256];
    bool due = s->print_every ? r->step % s->print_every == 0
                              : r->now - l->last_print >= 1 || r->step == s->total_steps;
    if (!due || (s->host->live && !s->print_every)) return;
    format_line(s, r, 0, NULL, text, sizeof text);
    train_say(s->host, "%s", text);
    l->last_print = r->now;
}

/* "perplexity 1.04" or "accuracy 0.9000  f1 0.8889"; returns out. */
static const char *describe_scores(const train_record *r, char *out, size_t size) {
    size_t used = 0;
    out[0] = '\0';
    if (r->has >> TRAIN_EVAL_PERPLEXITY & 1)
        used = (size_t)snprintf(out, size, "  perplexity %.2f", r->value[TRAIN_EVAL_PERPLEXITY]);
    for (int i = 0; i < r->more && used < size; i++)
        used +=
            (size_t)snprintf(out + used, size - used, "  %s %.4f", r->of[i].name, r->of[i].value);
    return out;
}

static void print_evaluation(const line *l, const train_record *r) {
    const train_report_settings *s = l->settings;
    const char *sample = s->objective->sample ? s->objective->sample : "window";
    char scores[512], windows[80];
    train_say(s->host, "step %lld/%lld  eval loss %.4f%s  (%s, %.1f s)", (long long)r->step,
              (long long)s->total_steps, r->value[TRAIN_EVAL_LOSS],
              describe_scores(r, scores, sizeof scores),
              base_format_counted((int64_t)r->value[TRAIN_EVAL_WINDOWS], sample, windows),
              r->value[TRAIN_EVAL_SECONDS]);
}

static sifr_status open_line(const train_report_settings *settings, void **out, sifr_error *error) {
    line *l;
    bool chart = settings->host->live && settings->host->chart;
    BASE_TRY(base_alloc(1, sizeof *l, &l, error));
    l->settings = settings;
    sifr_status status =
        train_view_series_open(&l->losses, "loss", 4, chart ? CHART_BINS : 0, error);
    if (status == SIFR_OK)
        *out = l;
    else
        free(l);
    return status;
}

static sifr_status record_line(void *sink, const train_record *record, sifr_error *error) {
    (void)error;
    if (record->when == TRAIN_EACH_STEP)
        show(sink, record);
    else if (record->when == TRAIN_EACH_RECORD)
        print(sink, record);
    else
        print_evaluation(sink, record);
    return SIFR_OK;
}

static void close_line(void *sink) {
    line *l = sink;
    if (l && l->settings->host->live) l->settings->host->live(l->settings->host->user, "");
    if (l) train_view_series_close(&l->losses);
    free(l);
}

const train_sink train_line = {
    .name = "line", .open = open_line, .record = record_line, .close = close_line};

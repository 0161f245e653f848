#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/text.h"
#include "train/view/page_chart.h"
#include "train/view/page_parts.h"

/* A cell of the table: the value to sort by, and its text. */
static void put_cell(train_html *html, double value, const char *text) {
    if (isfinite(value))
        train_html_putf(html, "<td data-v=\"%.9g\">%s</td>", value, text);
    else
        train_html_put(html, "<td data-v=\"\">–</td>");
}

typedef enum run_figure { LAST, LOWEST, HIGHEST } run_figure;

static double figure_of(const train_view_run *run, const char *key, run_figure which) {
    const train_view_series *s = train_view_run_find(run, key);
    if (!s || s->count == s->undefined) return NAN;
    if (which == LAST && s->ends_undefined) return NAN;
    return which == LAST ? s->last : which == LOWEST ? s->low : s->high;
}

static void put_figure(train_html *html, const train_view_run *run, const char *key,
                       run_figure which, train_unit unit) {
    char text[32];
    double value = figure_of(run, key, which);
    put_cell(html, value, train_chart_number(unit, value, text));
}

static void put_count(train_html *html, int64_t count) {
    char text[32];
    put_cell(html, (double)count, base_format_count(count, text));
}

static void put_time(train_html *html, double seconds) {
    char text[32];
    double s = seconds >= 0 && seconds < 1e10 ? seconds : 0;
    if (s < 60)
        snprintf(text, sizeof text, "%.1f s", s);
    else
        snprintf(text, sizeof text, "%d:%02d:%02d", (int)(s / 3600), (int)fmod(s / 60, 60),
                 (int)fmod(s, 60));
    put_cell(html, s, text);
}

static void put_run(train_html *html, const train_view_run *run) {
    train_html_put(html, "<tr><td><bdi>");
    train_html_name(html, run->path);
    train_html_put(html, "</bdi></td>");
    put_count(html, run->last_step < 0 ? 0 : run->last_step);
    put_count(html, run->records);
    put_figure(html, run, "loss", LAST, TRAIN_PLAIN);
    put_figure(html, run, "loss", LOWEST, TRAIN_PLAIN);
    put_figure(html, run, "eval_loss", LAST, TRAIN_PLAIN);
    put_figure(html, run, "eval_loss", LOWEST, TRAIN_PLAIN);
    put_figure(html, run, "tokens_per_second", LAST, TRAIN_PLAIN);
    put_figure(html, run, "limit_share", LAST, TRAIN_SHARE);
    put_figure(html, run, "memory_bytes", HIGHEST, TRAIN_BYTES);
    double tokens = figure_of(run, "tokens", HIGHEST);
    put_count(html, tokens >= 0 && tokens < 9e18 ? (int64_t)tokens : 0);
    put_time(html, run->seconds);
    put_count(html, (int64_t)fmin(run->skipped, 9e15));
    put_count(html, run->resumes);
    put_count(html, run->bad_lines + run->lines.passed + (run->lines.rest > 0));
    train_html_put(html, "</tr>\n");
}

static void put_head(train_html *html) {
    static const char *const names[] = {"run",
                                        "last step",
                                        "records",
                                        "loss",
                                        "lowest loss",
                                        "eval loss",
                                        "lowest eval loss",
                                        "tokens/s",
                                        "share of limit",
                                        "memory, most",
                                        "tokens",
                                        "time",
                                        "skipped steps",
                                        "resumed",
                                        "unread lines"};
    train_html_put(html, "<table class=\"sort\" id=\"runs\"><caption>Values of the last record, "
                         "where the head says no more; – where a run has none. tokens/s: without "
                         "evaluations and saves</caption><thead><tr>");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        train_html_putf(html, "<th scope=\"col\">%s</th>", names[i]);
    train_html_put(html, "</tr></thead><tbody>\n");
}

static void put_unread(train_html *html, const train_view_run *runs, size_t count) {
    enum { MOST = 100 };
    size_t said = 0, all = 0;
    for (size_t i = 0; i < count; i++) {
        if (runs[i].read || all++ >= MOST) continue;
        if (!said++) train_html_put(html, "<h3>Folders that could not be read</h3><ul>");
        train_html_put(html, "<li><bdi>");
        train_html_name(html, runs[i].why);
        train_html_put(html, "</bdi></li>\n");
    }
    if (said) train_html_put(html, "</ul>\n");
    if (all > said) train_html_putf(html, "<p>And %zu further ones.</p>\n", all - said);
}

void train_page_runs(train_html *html, const train_view_run *runs, size_t count) {
    size_t left = 0;
    train_html_put(html, "<section aria-labelledby=\"h-runs\"><h2 id=\"h-runs\">Runs</h2><div "
                         "class=\"scroll tall\" tabindex=\"0\" role=\"group\" "
                         "aria-label=\"Table of runs\">");
    put_head(html);
    for (size_t i = 0; i < count; i++) {
        if (!runs[i].read) continue;
        if (train_html_reached(html, TRAIN_PAGE_TABLE_BYTES))
            left++;
        else
            put_run(html, &runs[i]);
    }
    train_html_put(html, "</tbody></table></div>\n");
    if (left)
        train_html_putf(html,
                        "<p>%zu further runs are left out of the table, since a report has "
                        "at most 5 MiB.</p>\n",
                        left);
    put_unread(html, runs, count);
    train_html_put(html, "</section>\n");
}

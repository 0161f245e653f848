#include "train/view/screen.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/columns.h"
#include "base/heap.h"
#include "train/view/plot.h"
#include "train/view/screen_text.h"

/* Smaller windows get what fits into these, and larger ones no more. */
enum { LEAST_COLUMNS = 20, MOST_COLUMNS = 512, LEAST_ROWS = 4, MOST_ROWS = 200, CHARTS = 48 };

/* Of a character: itself; of a style: a sequence before and behind. */
enum { LINE_BYTES = 4 * MOST_COLUMNS + 256, GUTTER = 9 };

typedef enum screen_style { PLAIN, STRONG, FAINT, CURVE } screen_style;

typedef struct screen_state {
    const train_screen *screen;
    const train_view_follow *follow;
    int columns, rows;
    char *text;
    size_t used, size;
    const train_view_series *charts[CHARTS];
    int chart_count;
    train_plot plot;
} screen_state;

/* --- text --- */

static void put_bytes(screen_state *s, const char *text, size_t bytes) {
    if (s->used + bytes >= s->size) return;
    memcpy(s->text + s->used, text, bytes);
    s->used += bytes;
}

/* Text without controls, in exactly `columns` columns unless it is the last of its line. */
static void put(screen_state *s, screen_style style, const char *text, int columns, bool fill) {
    static const char *const begins[] = {"", "\x1b[1m", "\x1b[2m", "\x1b[36m"};
    static const char *const ends[] = {"", "\x1b[22m", "\x1b[22m", "\x1b[39m"};
    size_t bytes = base_fit_columns(text, (size_t)(columns > 0 ? columns : 0));
    bool styled = s->screen->styled && style != PLAIN && bytes;
    if (styled) put_bytes(s, begins[style], strlen(begins[style]));
    put_bytes(s, text, bytes);
    if (styled) put_bytes(s, ends[style], strlen(ends[style]));
    char last[LINE_BYTES];
    snprintf(last, sizeof last, "%.*s", (int)bytes, text);
    for (int c = (int)base_columns(last); fill && c < columns; c++) put_bytes(s, " ", 1);
}

static void end_line(screen_state *s) {
    put_bytes(s, "\n", 1);
}

/* --- charts --- */

/* Those that most want to see come first; then what else the log has, in its order. */
static const char *const known[][2] = {{"loss", "Loss"},
                                       {"eval_loss", "Loss of evaluations"},
                                       {"learning_rate", "Learning rate"},
                                       {"grad_norm", "Norm of the gradient"},
                                       {"tokens_per_second", "Tokens a second"}};
static const char *const counters[] = {"epoch",        "tokens",       "skipped",
                                       "seconds",      "eval_windows", "eval_seconds",
                                       "memory_bytes", "limit_share",  "eval_perplexity"};
enum { KNOWN = sizeof known / sizeof *known, COUNTERS = sizeof counters / sizeof *counters };

static bool is_listed(const char *key) {
    for (int i = 0; i < KNOWN; i++)
        if (!strcmp(known[i][0], key)) return true;
    for (int i = 0; i < COUNTERS; i++)
        if (!strcmp(counters[i], key)) return true;
    return false;
}

static void add_chart(screen_state *s, const train_view_series *series) {
    if (series && series->used && s->chart_count < CHARTS) s->charts[s->chart_count++] = series;
}

static void choose_charts(screen_state *s) {
    const train_view_run *run = &s->follow->run;
    for (int i = 0; i < KNOWN; i++) add_chart(s, train_view_run_find(run, known[i][0]));
    for (size_t i = 0; i < run->series_count; i++)
        if (!is_listed(run->series[i].key)) add_chart(s, &run->series[i]);
}

static const char *title_of(const train_view_series *series) {
    for (int i = 0; i < KNOWN; i++)
        if (!strcmp(known[i][0], series->key)) return known[i][1];
    return series->key;
}

static void put_title(screen_state *s, const train_view_series *series, int width, bool fill) {
    char text[512], name[300], value[32];
    int digits = snprintf(value, sizeof value, " %.6g", series->last);
    base_show_text(title_of(series), s->screen->utf8, name, sizeof name);
    size_t shown =
        base_fit_columns(name, (size_t)(width - 1 - digits)); /* the number stays whole */
    snprintf(text, sizeof text, "%.*s%s", (int)shown, name, value);
    put(s, STRONG, text, width - 1, true);
    if (fill) put(s, PLAIN, "", 1, true);
}

/* In eight columns and a space, with as many digits as go into them. */
static void put_mark(double value, char text[LINE_BYTES]) {
    for (int digits = 4; digits > 0; digits--)
        if (snprintf(text, LINE_BYTES, "%8.*g ", digits, value) <= GUTTER) return;
}

/* A row of the chart, with the highest value beside the first and the lowest beside the last. */
static void put_curve(screen_state *s, const train_view_series *series, int row, int rows,
                      int width, bool fill) {
    char text[LINE_BYTES];
    bool marked = width >= 3 * GUTTER;
    const train_plot_range range = {series->first_step, s->follow->run.last_step, series->low,
                                    series->high};
    train_plot_begin(&s->plot, width - 1 - (marked ? GUTTER : 0), rows);
    train_plot_series(&s->plot, series, &range);
    text[0] = '\0';
    if (row == 0 || row == rows - 1) put_mark(row == 0 ? series->high : series->low, text);
    if (marked) put(s, FAINT, text, GUTTER, true);
    train_plot_row(&s->plot, row, s->screen->utf8, text);
    put(s, CURVE, text, s->plot.columns, true);
    if (fill) put(s, PLAIN, "", 1, true);
}

/* How many charts beside each other and below, and the rows of each with its title. */
typedef struct screen_grid {
    int across, down, rows;
} screen_grid;

static screen_grid lay_out(const screen_state *s, int rows) {
    enum { LEAST = 4 };
    int across = s->columns >= 150 ? 3 : s->columns >= 72 ? 2 : 1;
    if (across > s->chart_count) across = s->chart_count;
    if (!across || rows < 2) return (screen_grid){0, 0, 0};
    int down = (s->chart_count + across - 1) / across;
    if (down > rows / LEAST) down = rows / LEAST > 0 ? rows / LEAST : 1;
    return (screen_grid){across, down, rows / down};
}

static void put_charts(screen_state *s, int rows) {
    screen_grid grid = lay_out(s, rows);
    for (int line = 0; line < rows; line++) {
        int band = grid.rows ? line / grid.rows : 0, row = grid.rows ? line % grid.rows : 0;
        for (int c = 0; band < grid.down && c < grid.across; c++) {
            int index = band * grid.across + c, width = s->columns / grid.across;
            bool fill = c + 1 < grid.across;
            if (index >= s->chart_count) break;
            if (row == 0)
                put_title(s, s->charts[index], width, fill);
            else
                put_curve(s, s->charts[index], row - 1, grid.rows - 1, width, fill);
        }
        end_line(s);
    }
}

/* --- the rest --- */

static void put_event(screen_state *s, const train_view_event *event) {
    char text[512], what[400];
    base_show_text(event->what, s->screen->utf8, what, sizeof what);
    snprintf(text, sizeof text, "step %lld: %s", (long long)event->step, what);
    put(s, PLAIN, text, s->columns - 1, false);
    end_line(s);
}

/* The newest `rows` ones, and lines that stay empty. */
static void put_events(screen_state *s, int rows) {
    const train_view_run *run = &s->follow->run;
    size_t count = run->event_count, shown = count < (size_t)rows ? count : (size_t)rows;
    for (size_t i = count - shown; i < count; i++) put_event(s, &run->events[i]);
    for (size_t i = shown; i < (size_t)rows; i++) end_line(s);
}

static void draw(screen_state *s) {
    char text[LINE_BYTES];
    bool foot = s->screen->foot && s->rows > LEAST_ROWS;
    int events = s->rows < 14 ? 0 : s->rows / 6 < 8 ? s->rows / 6 : 8;
    if ((size_t)events > s->follow->run.event_count) events = (int)s->follow->run.event_count;
    choose_charts(s);
    train_screen_head(s->follow, s->screen->utf8, s->columns - 1, text, sizeof text);
    put(s, STRONG, text, s->columns - 1, false);
    end_line(s);
    train_screen_figures(s->follow, s->columns - 1, text, sizeof text);
    put(s, PLAIN, text, s->columns - 1, false);
    end_line(s);
    put_charts(s, s->rows - 2 - events - foot);
    put_events(s, events);
    if (foot) put(s, FAINT, s->screen->foot, s->columns - 1, false);
    if (foot) end_line(s);
}

static int between(int value, int least, int most) {
    return value < least ? least : value > most ? most : value;
}

sifr_status train_screen_draw(const train_screen *screen, const train_view_follow *follow,
                              char **out, sifr_error *error) {
    screen_state *s;
    *out = NULL;
    BASE_TRY(base_alloc(1, sizeof *s, &s, error));
    s->screen = screen;
    s->follow = follow;
    s->columns = between(screen->columns, LEAST_COLUMNS, MOST_COLUMNS);
    s->rows = between(screen->rows, LEAST_ROWS, MOST_ROWS);
    s->size = (size_t)s->rows * LINE_BYTES + 1;
    sifr_status status = base_alloc(s->size, 1, &s->text, error);
    if (status == SIFR_OK) {
        draw(s);
        *out = s->text;
    }
    free(s);
    return status;
}

/* --- without charts --- */

static int64_t event_number(const train_view_run *run, size_t index) {
    return run->events_left_out + (int64_t)index;
}

sifr_status train_screen_news(const train_view_follow *f, bool utf8, int64_t *events,
                              int64_t *records, char **out, sifr_error *error) {
    enum { LINE = 1024 };
    const train_view_run *run = &f->run;
    char what[400], head[LINE], figures[LINE];
    size_t used = 0, size = (run->event_count + 3) * LINE; /* the last line has two texts */
    BASE_TRY(base_alloc(size, 1, out, error));
    if (*records > run->records) *events = *records = 0; /* the log is a new one */
    for (size_t i = 0; i < run->event_count; i++) {
        if (event_number(run, i) < *events) continue;
        base_show_text(run->events[i].what, utf8, what, sizeof what);
        used += (size_t)snprintf(*out + used, size - used, "step %lld: %s\n",
                                 (long long)run->events[i].step, what);
    }
    train_screen_head(f, utf8, 0, head, sizeof head);
    train_screen_figures(f, 0, figures, sizeof figures);
    snprintf(*out + used, size - used, "%s%s%s\n", head, figures[0] ? "  " : "", figures);
    *events = event_number(run, run->event_count);
    *records = run->records;
    return SIFR_OK;
}

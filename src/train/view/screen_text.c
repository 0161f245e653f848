#include "train/view/screen_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/columns.h"
#include "base/file.h"
#include "base/text.h"
#include "train/view/progress_line.h"

const char *train_screen_time(double seconds, char out[32]) {
    long long s = seconds < 0 || seconds > 1e10 ? 0 : (long long)(seconds + 0.5);
    if (s >= 3600)
        snprintf(out, 32, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, 32, "%lld:%02lld", s / 60, s % 60);
    return out;
}

const char *train_screen_loss(double loss, char out[32]) {
    snprintf(out, 32, fabs(loss) < 1e6 ? "%.4f" : "%.6g", loss);
    return out;
}

const char *train_screen_rate(double rate, char out[32]) {
    if (rate >= 1e6)
        snprintf(out, 32, "%.2fM", rate / 1e6);
    else if (rate >= 1e4)
        snprintf(out, 32, "%.1fk", rate / 1e3);
    else
        snprintf(out, 32, "%.0f", rate);
    return out;
}

/* Longer than any step that is not worth a word. */
enum { QUIET_SECONDS = 60 };

static bool is_quiet(const train_view_follow *f) {
    return f->run.records && base_seconds() - f->changed >= QUIET_SECONDS;
}

static const char *quiet(const train_view_follow *f, const char *state, char *out, size_t size) {
    char time[32];
    double seconds = base_seconds() - f->changed;
    if (!is_quiet(f)) return state;
    snprintf(out, size, "no new record for %s", train_screen_time(seconds, time));
    return out;
}

const char *train_screen_state(const train_view_follow *f, bool utf8, char *out, size_t size) {
    char why[512];
    if (f->behind) return "reading";
    if (f->state == TRAIN_VIEW_DONE) return "done";
    if (f->state == TRAIN_VIEW_STOPPED) return "stopped";
    if (f->state == TRAIN_VIEW_FAILED) {
        snprintf(out, size, "failed: %s", base_show_text(f->why, utf8, why, sizeof why));
        return out;
    }
    if (!base_is_directory(f->path)) return "no such folder yet";
    if (!f->run.records) return "no record yet";
    if (train_view_follow_over(f)) return "done";
    return quiet(f, f->state == TRAIN_VIEW_RUNNING ? "running" : "running, or killed", out, size);
}

SIFR_PRINTF(2, 3)
static void put(train_line_part *part, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(part->text, sizeof part->text, format, arguments);
    va_end(arguments);
}

/* The end of a path, which tells runs apart. */
static void put_name(train_line_part *part, const char *path, bool utf8) {
    enum { SHOWN = 40 };
    char shown[4 * BASE_PATH_LENGTH + 16];
    base_show_text(path, utf8, shown, sizeof shown);
    const char *at = shown;
    while (base_columns(at) > SHOWN) {
        size_t narrow = base_fit_columns(at, 1);
        at += narrow ? narrow : base_fit_columns(at, 2);
    }
    put(part, "%s%s", at == shown ? "" : "...", at);
}

static void put_steps(train_line_part *step, train_line_part *share, const train_view_follow *f,
                      int columns) {
    if (f->run.last_step < 0) return;
    put(step, "step %lld/%lld", (long long)f->run.last_step, (long long)f->total_steps);
    /* A log that is not this config's may have more. */
    bool beyond = f->run.last_step > f->total_steps;
    if (beyond || (columns > 0 && base_columns(step->text) >= (size_t)columns))
        put(step, "step %lld", (long long)f->run.last_step);
    if (beyond || !f->total_steps) return;
    put(share, "%.0f %%", 100 * (double)f->run.last_step / (double)f->total_steps);
}

void train_screen_head(const train_view_follow *f, bool utf8, int columns, char *out, size_t size) {
    enum { NAME, STEP, SHARE, LEFT, STATE, SAVED, PARTS };
    train_line_part parts[PARTS] = {[NAME].weight = 6, [STEP].weight = 9,  [SHARE].weight = 5,
                                    [LEFT].weight = 8, [STATE].weight = 7, [SAVED].weight = 4};
    char time[32], state[sizeof parts->text];
    double left = train_view_follow_left(f);
    put_name(&parts[NAME], f->path, utf8);
    put_steps(&parts[STEP], &parts[SHARE], f, columns);
    if (isfinite(left) && !is_quiet(f)) put(&parts[LEFT], "%s left", train_screen_time(left, time));
    const char *said = train_screen_state(f, utf8, state, sizeof state);
    int most = columns > 0 && columns / 2 < (int)sizeof state ? columns / 2 : (int)sizeof state - 1;
    size_t shown = base_fit_columns(said, most); /* a long reason leaves the step its place */
    put(&parts[STATE], "%.*s%s", (int)shown, said, said[shown] ? "..." : "");
    if (f->checkpoint >= 0) put(&parts[SAVED], "saved %lld", (long long)f->checkpoint);
    train_progress_line(parts, PARTS, columns, out, size);
}

/* NULL: the last record has no value that is a number. */
static const train_view_series *figure_of(const train_view_follow *f, const char *key) {
    const train_view_series *s = train_view_run_find(&f->run, key);
    return s && s->count > s->undefined && !s->ends_undefined ? s : NULL;
}

static void put_loss(train_line_part *loss, train_line_part *lowest, const train_view_follow *f) {
    const train_view_series *s = train_view_run_find(&f->run, "loss");
    char text[32];
    if (!s || !s->count) return;
    if (s->ends_undefined)
        put(loss, "loss nan");
    else
        put(loss, "loss %s", train_screen_loss(s->last, text));
    if (s->count == s->undefined) return;
    put(lowest, "lowest %s at %lld", train_screen_loss(s->low, text), (long long)s->low_step);
}

void train_screen_figures(const train_view_follow *f, int columns, char *out, size_t size) {
    enum { LOSS, EVAL, LOWEST, RATE, NORM, TOKENS, SHARE, MEMORY, SKIPPED, BAD, PARTS };
    train_line_part parts[PARTS] = {
        [LOSS].weight = 9,    [EVAL].weight = 8,   [LOWEST].weight = 2, [RATE].weight = 5,
        [NORM].weight = 4,    [TOKENS].weight = 6, [SHARE].weight = 1,  [MEMORY].weight = 3,
        [SKIPPED].weight = 7, [BAD].weight = 7};
    int64_t bad = f->run.bad_lines + f->run.lines.passed;
    const train_view_series *s;
    char text[32], counted[80];
    put_loss(&parts[LOSS], &parts[LOWEST], f);
    if ((s = figure_of(f, "eval_loss")))
        put(&parts[EVAL], "eval loss %s", train_screen_loss(s->last, text));
    if ((s = figure_of(f, "learning_rate"))) put(&parts[RATE], "lr %.3g", s->last);
    if ((s = figure_of(f, "grad_norm"))) put(&parts[NORM], "norm %.3g", s->last);
    if ((s = figure_of(f, "tokens_per_second")))
        put(&parts[TOKENS], "%s tok/s", train_screen_rate(s->last, text));
    if ((s = figure_of(f, "limit_share"))) put(&parts[SHARE], "%.0f %% of limit", 100 * s->last);
    if ((s = figure_of(f, "memory_bytes")) && s->last >= 0 && s->last < 1e18)
        put(&parts[MEMORY], "%s", base_format_bytes((uint64_t)s->last, text));
    if (f->run.skipped > 0) put(&parts[SKIPPED], "%.0f skipped", f->run.skipped);
    if (bad) put(&parts[BAD], "%s unreadable", base_format_counted(bad, "line", counted));
    train_progress_line(parts, PARTS, columns, out, size);
}

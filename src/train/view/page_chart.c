#include "train/view/page_chart.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/text.h"

enum { WIDTH = 1000, HEIGHT = 200, DOTS = 48, TABLE_ROWS = 200, COLOURS = 8 };

/* What of the data the picture shows. */
typedef struct chart_frame {
    int64_t first, last; /* steps */
    double low, high;    /* of the lowest and the highest line of the grid */
    int ticks;           /* spaces between lines */
    int64_t points, undefined, stride;
    size_t runs;
    const train_view_series *only; /* where there is one */
} chart_frame;

const char *train_chart_number(train_unit unit, double value, char out[32]) {
    if (!isfinite(value))
        snprintf(out, 32, "not known");
    else if (unit == TRAIN_SHARE)
        snprintf(out, 32, "%.3g %%", 100 * value);
    else if (unit == TRAIN_BYTES && value >= 0 && value < 1e18)
        base_format_bytes((uint64_t)value, out);
    else
        snprintf(out, 32, fabs(value) >= 1e4 && fabs(value) < 1e15 ? "%.0f" : "%.6g", value);
    return out;
}

/* Halves, so that the distance of the largest numbers is one. */
static double share_of(double value, double low, double high) {
    double range = high / 2 - low / 2;
    return range > 0 ? (value / 2 - low / 2) / range : 0.5;
}

/* 1, 2 or 5 times a power of ten of `unit`, so that labels are short. */
static double nice_distance(double range, double unit) {
    double rough = range / 5, scale = unit * pow(10, floor(log10(rough / unit)));
    if (rough <= scale) return scale;
    if (rough <= 2 * scale) return 2 * scale;
    return (rough <= 5 * scale ? 5 : 10) * scale;
}

static void round_frame(chart_frame *f, train_unit unit) {
    double range = f->high - f->low;
    f->ticks = 4;
    if (!(range > 0)) {
        double more = f->low != 0 ? fabs(f->low) / 2 : 1;
        f->low -= more;
        f->high += more;
        return;
    }
    if (range < 1e-300 || range > 1e300) return;
    double one = 1; /* byte, KiB and so on, as the labels have it */
    while (unit == TRAIN_BYTES && f->high / one >= 1024 && one < 1e18) one *= 1024;
    double step = nice_distance(range, one);
    double low = floor(f->low / step) * step, high = ceil(f->high / step) * step;
    double ticks = round((high - low) / step);
    if (!(ticks >= 1 && ticks <= 8) || !(low <= f->low) || !(high >= f->high)) return;
    f->low = low;
    f->high = high;
    f->ticks = (int)ticks;
}

static bool make_frame(chart_frame *f, const train_chart *chart, const train_view_run *runs,
                       size_t count) {
    *f = (chart_frame){.first = INT64_MAX, .stride = 1};
    for (size_t i = 0; i < count; i++) {
        const train_view_series *s = train_view_run_find(&runs[i], chart->key);
        if (!s) continue;
        f->runs++;
        f->only = s;
        f->points += s->count;
        f->undefined += s->undefined;
        if (s->stride > f->stride) f->stride = s->stride;
        if (s->count == s->undefined) continue;
        bool first = f->first == INT64_MAX;
        if (s->first_step < f->first) f->first = s->first_step;
        if (s->last_step > f->last) f->last = s->last_step;
        if (first || s->low < f->low) f->low = s->low;
        if (first || s->high > f->high) f->high = s->high;
    }
    if (!f->runs) return false;
    if (f->first == INT64_MAX) f->first = 0;
    if (f->points > f->undefined) round_frame(f, chart->unit);
    return true;
}

static double x_of(const chart_frame *f, int64_t step) {
    if (f->last <= f->first) return WIDTH / 2;
    return WIDTH * (double)(step - f->first) / (double)(f->last - f->first);
}

static double y_of(const chart_frame *f, double value) {
    return HEIGHT * (1 - share_of(value, f->low, f->high));
}

static void put_point(train_html *html, const chart_frame *f, int64_t step, double value,
                      bool begin) {
    train_html_putf(html, "%s%.5g %.5g", begin ? "M" : "L", x_of(f, step), y_of(f, value));
}

static void put_line(train_html *html, const chart_frame *f, const train_view_series *s,
                     size_t run) {
    train_html_putf(html, "<path class=\"l s%zu d%zu r%zu\" d=\"", run % COLOURS, run / COLOURS % 4,
                    run);
    for (size_t i = 0; i < s->used; i++) {
        const train_view_bin *b = &s->bins[i];
        bool low_first = b->low_step <= b->high_step;
        put_point(html, f, low_first ? b->low_step : b->high_step, low_first ? b->low : b->high,
                  i == 0);
        if (b->low_step != b->high_step)
            put_point(html, f, low_first ? b->high_step : b->low_step, low_first ? b->high : b->low,
                      false);
    }
    train_html_put(html, "\"/>");
    if (s->used > DOTS || s->stride > 1) return;
    train_html_putf(html, "<path class=\"l dot s%zu r%zu\" d=\"", run % COLOURS, run);
    for (size_t i = 0; i < s->used; i++) {
        put_point(html, f, s->bins[i].last_step, s->bins[i].last, true);
        train_html_put(html, "h0");
    }
    train_html_put(html, "\"/>");
}

static void put_picture(train_html *html, const chart_frame *f, const train_chart *chart,
                        const train_view_run *runs, size_t count) {
    char low[32], high[32];
    train_html_putf(html,
                    "<svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" role=\"img\" "
                    "aria-label=\"",
                    WIDTH, HEIGHT);
    train_html_text(html, chart->title);
    train_html_putf(html,
                    " by step, from step %" PRId64 " to %" PRId64 ", between %s and %s; the "
                    "table below has its numbers\">",
                    f->first, f->last, train_chart_number(chart->unit, f->low, low),
                    train_chart_number(chart->unit, f->high, high));
    for (int i = 0; i <= f->ticks; i++) {
        double y = HEIGHT * (double)i / f->ticks;
        train_html_putf(html, "<path class=\"grid\" d=\"M0 %.5gH%d\"/>", y, WIDTH);
    }
    for (size_t i = 0; i < count; i++) {
        const train_view_series *s = train_view_run_find(&runs[i], chart->key);
        if (s && s->used) put_line(html, f, s, i);
    }
    train_html_put(html, "</svg>");
}

/* Spaces between the labels of steps, which are whole numbers and as far apart as they say. */
static int step_ticks(int64_t range) {
    static const int counts[] = {4, 5, 3, 6, 2};
    if (range >= 1 && range <= 6) return (int)range;
    if (range >= 60) return 4; /* off by less than a step, which nobody sees */
    for (int i = 0; i < 5; i++)
        if (range % counts[i] == 0) return counts[i];
    return 1;
}

static void put_plot(train_html *html, const chart_frame *f, const train_chart *chart,
                     const train_view_run *runs, size_t count) {
    char text[32];
    train_html_put(html, "<div class=\"plot\"><div class=\"y\" aria-hidden=\"true\">");
    for (int i = 0; i <= f->ticks; i++) {
        double value = f->low + (f->high - f->low) * i / f->ticks;
        if (fabs(value) < (f->high - f->low) * 1e-9) value = 0;
        train_html_putf(html, "<span>%s</span>", train_chart_number(chart->unit, value, text));
    }
    train_html_put(html, "</div>");
    put_picture(html, f, chart, runs, count);
    train_html_put(html, "<div class=\"x\" aria-hidden=\"true\">");
    int ticks = step_ticks(f->last - f->first);
    for (int i = 0; i <= ticks; i++)
        train_html_putf(html, "<span>%" PRId64 "</span>",
                        f->first + (int64_t)((double)(f->last - f->first) * i / ticks));
    train_html_put(html, "</div></div>\n");
}

/* Where a thinned line has its ends, to the last digit. */
static void put_ends(train_html *html, const chart_frame *f) {
    if (f->runs != 1 || f->points == f->undefined) return;
    const train_view_series *s = f->only;
    train_html_putf(html,
                    " Lowest %.9g at step %" PRId64 ", highest %.9g at step %" PRId64
                    ", last %.9g at step %" PRId64 ".",
                    s->low, s->low_step, s->high, s->high_step, s->last, s->last_step);
}

/* What was thinned out is said. */
static void put_note(train_html *html, const chart_frame *f) {
    char points[32], stride[32];
    base_format_count(f->points, points);
    if (f->stride > 1)
        train_html_putf(html,
                        "<p>%s values by step, up to %s together: the line goes through the "
                        "lowest and the highest of them.",
                        points, base_format_count(f->stride, stride));
    else
        train_html_putf(html, "<p>%s value%s by step, each drawn.", points,
                        f->points == 1 ? "" : "s");
    put_ends(html, f);
    if (f->undefined)
        train_html_putf(html, " %s of them not finite, which the line passes over.",
                        base_format_count(f->undefined, stride));
    train_html_put(html, "</p>\n");
}

static void put_rows(train_html *html, const train_view_run *run, const train_view_series *s,
                     size_t rows, bool named) {
    size_t every = (s->used + rows - 1) / rows;
    for (size_t i = 0; i < s->used; i++) {
        const train_view_bin *b = &s->bins[i];
        if (i + 1 < s->used && i % every) continue;
        train_html_put(html, "<tr>");
        if (named) {
            train_html_put(html, "<td><bdi>");
            train_html_name(html, run->path);
            train_html_put(html, "</bdi></td>");
        }
        train_html_putf(html,
                        "<td data-v=\"%" PRId64 "\">%" PRId64 "</td><td data-v=\"%.9g\">%.9g"
                        "</td></tr>\n",
                        b->last_step, b->last_step, b->last, b->last);
    }
}

static void put_table(train_html *html, const chart_frame *f, const train_chart *chart,
                      const train_view_run *runs, size_t count) {
    size_t rows = TABLE_ROWS / f->runs > 4 ? TABLE_ROWS / f->runs : 4;
    bool named = count > 1;
    train_html_put(html, "<details><summary>");
    train_html_text(html, chart->title);
    train_html_put(html, " as a table</summary><div class=\"scroll tall\" tabindex=\"0\" "
                         "role=\"group\" aria-label=\"");
    train_html_text(html, chart->title);
    train_html_put(html, " as a table\"><table class=\"sort\" data-key=\"");
    train_html_text(html, chart->key);
    train_html_putf(html,
                    "\"><caption>At most %zu rows of a run, evenly taken, and its last"
                    "</caption><thead><tr>%s<th scope=\"col\">step</th><th scope=\"col\">",
                    rows, named ? "<th scope=\"col\">run</th>" : "");
    train_html_text(html, chart->key);
    train_html_put(html, "</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < count; i++) {
        const train_view_series *s = train_view_run_find(&runs[i], chart->key);
        if (s) put_rows(html, &runs[i], s, rows, named);
    }
    train_html_put(html, "</tbody></table></div></details></figure>\n");
}

bool train_page_chart(train_html *html, const train_chart *chart, const train_view_run *runs,
                      size_t count) {
    chart_frame f;
    if (!make_frame(&f, chart, runs, count)) return false;
    train_html_put(html, "<figure><figcaption>");
    train_html_text(html, chart->title);
    train_html_put(html, "</figcaption>");
    if (f.points > f.undefined) put_plot(html, &f, chart, runs, count);
    put_note(html, &f);
    put_table(html, &f, chart, runs, count);
    return true;
}

void train_page_key(train_html *html, const train_view_run *runs, size_t count) {
    train_html_put(html, "<ul class=\"key\" aria-label=\"Runs and their lines\">");
    for (size_t i = 0; i < count; i++) {
        train_html_putf(html,
                        "<li><label><input type=\"checkbox\" checked disabled value=\"%zu\">"
                        "<svg viewBox=\"0 0 32 12\" aria-hidden=\"true\"><path class=\"l s%zu d%zu"
                        "\" d=\"M2 6H30\"/></svg><bdi>",
                        i, i % COLOURS, i / COLOURS % 4);
        train_html_name(html, runs[i].path);
        train_html_put(html, "</bdi></label></li>");
    }
    train_html_put(html, "</ul>\n");
}

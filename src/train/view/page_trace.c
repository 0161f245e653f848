#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "train/view/page_parts.h"

enum { WIDTH = 10000, ROW = 24 };

static int by_time(const void *a, const void *b) {
    const train_view_sum *x = a, *y = b;
    return (x->time < y->time) - (x->time > y->time);
}

static void begin_table(train_html *html, const char *label, const char *caption,
                        const char *heads) {
    train_html_putf(html,
                    "<h4>%s</h4><div class=\"scroll tall\" tabindex=\"0\" role=\"group\" "
                    "aria-label=\"%s\"><table class=\"sort\"><caption>%s</caption><thead><tr>",
                    label, label, caption);
    train_html_put(html, heads);
    train_html_put(html, "</tr></thead><tbody>\n");
}

static void put_name(train_html *html, const char *name) {
    train_html_put(html, "<tr><td>");
    train_html_name(html, name);
    train_html_put(html, "</td>");
}

static void put_number(train_html *html, double value) {
    train_html_putf(html, "<td data-v=\"%.9g\">%.3f</td>", value, value);
}

/* Of a mean step of a rank. */
static double scale_of(const train_view_trace *t) {
    return t->steps_of_ranks > 0 ? 1 / (double)t->steps_of_ranks : 1;
}

static void put_classes(train_html *html, const train_view_trace *t) {
    const train_view_sum *sums = t->sums[TRAIN_VIEW_CLASS];
    double all = 0;
    for (size_t i = 0; i < t->sum_count[TRAIN_VIEW_CLASS]; i++) all += sums[i].time;
    begin_table(html, "Time by class of instruction",
                "Of the computing queue: means over the traced steps and ranks",
                "<th scope=\"col\">instruction</th><th scope=\"col\">calls a step</th>"
                "<th scope=\"col\">ms a step</th><th scope=\"col\">share, %</th>");
    for (size_t i = 0; i < t->sum_count[TRAIN_VIEW_CLASS]; i++) {
        put_name(html, sums[i].name);
        train_html_putf(html, "<td data-v=\"%.9g\">%.4g</td>", (double)sums[i].calls * scale_of(t),
                        (double)sums[i].calls * scale_of(t));
        put_number(html, sums[i].time * scale_of(t) / 1e3);
        put_number(html, all > 0 ? 100 * sums[i].time / all : 0);
        train_html_put(html, "</tr>\n");
    }
    train_html_put(html, "</tbody></table></div>\n");
}

static void put_units(train_html *html, const train_view_trace *t) {
    begin_table(html, "Time by unit of the model", "Milliseconds a step, likewise",
                "<th scope=\"col\">unit</th><th scope=\"col\">forward</th>"
                "<th scope=\"col\">recompute</th><th scope=\"col\">backward</th>");
    for (size_t i = 0; i < t->sum_count[TRAIN_VIEW_UNIT]; i++) {
        const train_view_sum *sum = &t->sums[TRAIN_VIEW_UNIT][i];
        put_name(html, sum->name);
        for (int p = 0; p < 3; p++) put_number(html, sum->parts[p] * scale_of(t) / 1e3);
        train_html_put(html, "</tr>\n");
    }
    train_html_put(html, "</tbody></table></div>\n");
}

static void put_wire(train_html *html, const train_view_trace *t) {
    char bytes[32];
    if (!t->sum_count[TRAIN_VIEW_WIRE]) {
        train_html_put(html, "<p>Wire: no transfer between ranks is in the trace.</p>\n");
        return;
    }
    begin_table(html, "Wire by operation", "A step of a rank, likewise",
                "<th scope=\"col\">operation</th><th scope=\"col\">calls</th>"
                "<th scope=\"col\">bytes delivered</th><th scope=\"col\">ms</th>");
    for (size_t i = 0; i < t->sum_count[TRAIN_VIEW_WIRE]; i++) {
        const train_view_sum *sum = &t->sums[TRAIN_VIEW_WIRE][i];
        double size = sum->bytes * scale_of(t);
        put_name(html, sum->name);
        train_html_putf(html, "<td data-v=\"%.9g\">%.4g</td>", (double)sum->calls * scale_of(t),
                        (double)sum->calls * scale_of(t));
        train_html_putf(html, "<td data-v=\"%.15g\">%s</td>", size,
                        base_format_bytes(size >= 0 && size < 1e18 ? (uint64_t)size : 0, bytes));
        put_number(html, sum->time * scale_of(t) / 1e3);
        train_html_put(html, "</tr>\n");
    }
    train_html_put(html, "</tbody></table></div>\n");
}

/* --- the timeline --- */

static double x_of(const train_view_trace *t, double time) {
    double share = (time - t->begin) / (t->end - t->begin);
    return WIDTH * (share < 0 ? 0 : share > 1 ? 1 : share);
}

static char colour_of(char kind) {
    return kind && strchr("fbuwgr", kind) ? kind : kind == 'c' || kind == 'n' ? 'c' : 'o';
}

static void put_span(train_html *html, const train_view_trace *t, const train_view_span *span) {
    double from = x_of(t, span->start), to = x_of(t, span->start + span->length);
    /* A short one has a rim of its colour, and so is seen at any zoom. */
    train_html_putf(html, "<rect class=\"k%c%s\" x=\"%.6g\" width=\"%.5g\" height=\"%d\"><title>",
                    colour_of(span->kind), to - from < 40 ? " n" : "", from,
                    to - from < 0.5 ? 0.5 : to - from, ROW);
    train_html_text(html, span->name);
    train_html_putf(html, ", %.3f ms at %.3f ms</title></rect>", span->length / 1e3,
                    (span->start - t->begin) / 1e3);
}

/* A track's label stands above it, so that it neither scrolls away nor shrinks. */
static void put_track(train_html *html, const train_view_trace *t, int32_t track) {
    const train_view_track *which = &t->tracks[track];
    size_t spans = 0;
    for (size_t i = 0; i < t->span_count; i++) spans += t->spans[i].track == track;
    if (!spans) return;
    train_html_putf(html, "<h4>rank %" PRId64 ", ", which->rank);
    train_html_text(html, which->name[0] ? which->name : "queue");
    train_html_putf(html,
                    "</h4><svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" "
                    "width=\"100%%\" height=\"%d\" role=\"img\" aria-label=\"Rank %" PRId64 ", "
                    "%zu spans; the tables above have their sums\">",
                    WIDTH, ROW, ROW, which->rank, spans);
    for (size_t i = 0; i < t->span_count; i++)
        if (t->spans[i].track == track) put_span(html, t, &t->spans[i]);
    train_html_put(html, "</svg>\n");
}

static void put_colours(train_html *html) {
    static const char *const kinds[][2] = {{"f", "forward"},
                                           {"b", "backward"},
                                           {"u", "update"},
                                           {"w", "wait"},
                                           {"g", "gather"},
                                           {"r", "reduce, recompute"},
                                           {"c", "count, norm, control"},
                                           {"o", "other"}};
    train_html_put(html, "<ul class=\"key\" aria-label=\"Colours of the timeline\">");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        train_html_putf(html,
                        "<li><svg viewBox=\"0 0 32 12\" aria-hidden=\"true\"><rect "
                        "class=\"k%s\" width=\"32\" height=\"12\"/></svg>%s</li>",
                        kinds[i][0], kinds[i][1]);
    train_html_put(html, "</ul>\n");
}

static void put_timeline(train_html *html, const train_view_trace *t, size_t number) {
    if (t->step < 0 || !(t->end > t->begin)) return;
    train_html_putf(html, "<div class=\"time\"><h4>Timeline of step %" PRId64 ", %.3f ms</h4>\n",
                    t->step, (t->end - t->begin) / 1e3);
    put_colours(html);
    train_html_put(html, "<div class=\"zoom\" hidden><button type=\"button\" aria-label=\"Zoom "
                         "in\">+</button><button type=\"button\" aria-label=\"Zoom out\">−</button>"
                         "<button type=\"button\">All</button></div>");
    train_html_putf(html,
                    "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\""
                    "Timeline of run %zu: + and - zoom, arrows move\">\n",
                    number + 1);
    for (size_t i = 0; i < t->track_count; i++) put_track(html, t, (int32_t)i);
    train_html_put(html, "</div><p class=\"read\" aria-live=\"polite\"></p></div>\n");
    if (t->spans_left_out)
        train_html_putf(html,
                        "<p>%" PRId64 " spans of this step are left out of the picture; the "
                        "tables have them.</p>\n",
                        t->spans_left_out);
}

void train_page_trace(train_html *html, const train_view_trace *t, size_t number) {
    if (!t->there || t->why[0]) return; /* page_files.c names it */
    train_html_put(html, "<h3>Time, wire and timeline of traced steps</h3>\n");
    if (t->bad_lines)
        train_html_putf(html,
                        "<p>%" PRId64 " lines of the trace are no events, and are passed "
                        "over.</p>\n",
                        t->bad_lines);
    for (int i = 0; i < TRAIN_VIEW_TABLES; i++)
        if (i != TRAIN_VIEW_UNIT) qsort(t->sums[i], t->sum_count[i], sizeof **t->sums, by_time);
    put_classes(html, t);
    put_units(html, t);
    put_wire(html, t);
    if (t->sums_left_out)
        train_html_putf(html,
                        "<p>%" PRId64 " events of further names are left out of the "
                        "tables.</p>\n",
                        t->sums_left_out);
    put_timeline(html, t, number);
}

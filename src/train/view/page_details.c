#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "train/view/page_parts.h"

enum { SHOWN_BYTES = 1 << 15 };

/* A row of two cells: a key of a file, and its value. */
static void put_row(train_html *html, const char *key, const json_t *value) {
    char *text = json_is_string(value) ? NULL : base_json_text(value);
    const char *shown = json_is_string(value) ? json_string_value(value) : text ? text : "";
    train_html_put(html, "<tr><th scope=\"row\">");
    train_html_name(html, key);
    train_html_put(html, "</th><td class=\"wide\">");
    size_t size = strlen(shown);
    train_html_textn(html, shown, size > 1000 ? 1000 : size);
    train_html_put(html, size > 1000 ? "…</td></tr>\n" : "</td></tr>\n");
    free(text);
}

static void put_member(train_html *html, const json_t *object, const char *key, const char *name) {
    const json_t *value = json_object_get(object, key);
    if (value) put_row(html, name, value);
}

static void put_rows(train_html *html, const json_t *object) {
    const char *key;
    json_t *value;
    int rows = 0;
    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        if (rows++ < 40) put_row(html, key, value);
    }
    if (rows > 40)
        train_html_putf(html, "<tr><th scope=\"row\">further keys</th><td>%d</td></tr>", rows - 40);
}

static void put_model(train_html *html, const train_view_run *run) {
    if (!run->model && !run->agree && !run->notes) {
        train_html_put(html, "<p>Model and machine: not known.</p>\n");
        return;
    }
    train_html_put(html, "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Model "
                         "and machine\"><table class=\"words\"><caption>From config.json and the "
                         "newest checkpoint</caption><tbody>\n");
    put_member(html, run->model, "model_type", "model type");
    put_member(html, run->model, "architectures", "architectures");
    put_rows(html, run->agree);
    put_rows(html, run->notes);
    train_html_put(html, "</tbody></table></div>\n");
    if (!run->notes) train_html_put(html, "<p>Machine: not known.</p>\n");
}

/* What a run writes as its steps begin, and again as it ends. */
static void put_summary(train_html *html, const train_view_run *run) {
    if (!run->summary) {
        train_html_put(html, "<p>What did the work: not known.</p>\n");
        return;
    }
    train_html_put(html, "<div class=\"scroll\" tabindex=\"0\" role=\"group\" "
                         "aria-label=\"Summary\"><table class=\"words\"><caption>From summary.json"
                         "</caption><tbody>\n");
    const json_t *ran = json_object_get(run->summary, "ran");
    put_member(html, run->summary, "state", "state");
    put_member(html, run->summary, "error", "why it failed");
    put_member(html, run->summary, "first_step", "first step");
    put_member(html, run->summary, "steps", "steps");
    put_member(html, run->summary, "total_steps", "steps in all");
    put_member(html, run->summary, "ranks", "ranks");
    if (json_integer_value(json_object_get(run->summary, "signal")))
        put_member(html, run->summary, "signal", "stopped by signal");
    if (json_is_object(ran)) put_rows(html, ran);
    train_html_put(html, "</tbody></table></div>\n");
}

static void put_events(train_html *html, const train_view_run *run) {
    if (!run->event_count) {
        train_html_put(html, "<p>None: no checkpoint is in the folder, and no record tells of a "
                             "skipped step or a resume.</p>\n");
        return;
    }
    train_html_put(html,
                   "<div class=\"scroll tall\" tabindex=\"0\" role=\"group\" "
                   "aria-label=\"Events\"><table class=\"sort words\"><caption>Checkpoints "
                   "that were removed since are not there</caption><thead><tr><th "
                   "scope=\"col\">step</th><th scope=\"col\">event</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < run->event_count; i++) {
        train_html_putf(html, "<tr><td data-v=\"%" PRId64 "\">%" PRId64 "</td><td>",
                        run->events[i].step, run->events[i].step);
        train_html_text(html, run->events[i].what);
        train_html_put(html, "</td></tr>\n");
    }
    train_html_put(html, "</tbody></table></div>\n");
    if (run->events_left_out)
        train_html_putf(html, "<p>%" PRId64 " further events are left out.</p>\n",
                        run->events_left_out);
}

static void put_file(train_html *html, const char *name, const json_t *value) {
    if (!value) return;
    char *text = json_dumps(value, JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    size_t size = text ? strlen(text) : 0;
    train_html_putf(html,
                    "<details><summary>%s</summary><pre tabindex=\"0\" role=\"group\" "
                    "aria-label=\"%s\">",
                    name, name);
    train_html_textn(html, text ? text : "", size > SHOWN_BYTES ? SHOWN_BYTES : size);
    train_html_put(html, "</pre></details>\n");
    if (size > SHOWN_BYTES)
        train_html_putf(html, "<p>Of %s the first 32 KiB are shown.</p>\n", name);
    free(text);
}

void train_page_details(train_html *html, const train_view_run *run) {
    train_html_put(html, "<h3>Model and machine</h3>\n");
    put_model(html, run);
    put_summary(html, run);
    train_html_put(html, "<h3>Saves, skips, resumes</h3>\n");
    put_events(html, run);
    train_html_put(html, "<h3>Config</h3>\n");
    put_file(html, "sifr_config.json", run->config);
    put_file(html, "config.json", run->model);
}

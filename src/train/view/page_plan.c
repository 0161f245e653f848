/* Of summary.json, which a run writes, and of plan.json (`sifr plan --json`), where somebody put
 * it: memory and wire, planned and measured. What is not there is named in page_files.c. */
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "train/view/page_parts.h"

enum { MOST = 64 };

#define OPERATION_HEADS                                                                            \
    "<th scope=\"col\">calls</th><th scope=\"col\">bytes</th><th scope=\"col\">planned</th>"       \
    "<th scope=\"col\">between hosts</th><th scope=\"col\">seconds</th>"

static void put_bytes(train_html *html, double bytes) {
    char text[32];
    if (!(bytes >= 0 && bytes < 1e18)) {
        train_html_put(html, "<td data-v=\"\">–</td>");
        return;
    }
    train_html_putf(html, "<td data-v=\"%.15g\">%s</td>", bytes,
                    base_format_bytes((uint64_t)bytes, text));
}

static void put_number(train_html *html, double number, int digits) {
    if (isfinite(number))
        train_html_putf(html, "<td data-v=\"%.15g\">%.*g</td>", number, digits, number);
    else
        train_html_put(html, "<td data-v=\"\">–</td>");
}

static void put_named(train_html *html, const char *name, double bytes) {
    train_html_put(html, "<tr><td>");
    train_html_name(html, name);
    train_html_put(html, "</td>");
    put_bytes(html, bytes);
    train_html_put(html, "</tr>\n");
}

/* NaN: there is none. */
static double number_in(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void begin(train_html *html, const char *label, const char *caption, const char *heads) {
    train_html_putf(html,
                    "<div class=\"scroll tall\" tabindex=\"0\" role=\"group\" aria-label=\"%s\">"
                    "<table class=\"sort\"><caption>%s</caption><thead><tr>",
                    label, caption);
    train_html_put(html, heads);
    train_html_put(html, "</tr></thead><tbody>\n");
}

static void end(train_html *html) {
    train_html_put(html, "</tbody></table></div>\n");
}

/* A row of planned and measured bytes; NaN: not known. */
static void put_pair(train_html *html, const char *name, double planned, double measured) {
    train_html_put(html, "<tr><td>");
    train_html_name(html, name);
    train_html_put(html, "</td>");
    put_bytes(html, planned);
    put_bytes(html, measured);
    train_html_put(html, "</tr>\n");
}

static double sum_of(const json_t *numbers) {
    const char *key;
    json_t *value;
    double sum = 0;
    json_object_foreach((json_t *)(uintptr_t)numbers, key, value) sum += json_number_value(value);
    return sum;
}

/* Planned and measured, of a run that has come to its end. What is measured adds up to `process`.
 */
static void put_both(train_html *html, const train_view_run *run, const json_t *planned,
                     const json_t *measured) {
    const char *key;
    json_t *value;
    double all = number_in(run->summary, "planned_bytes"), rest = number_in(measured, "rest");
    int rows = 0;
    begin(
        html, "Memory by class",
        "Of the first rank: planned at the peak of a step, and what of those places was in memory "
        "when the run had ended (summary.json)",
        "<th scope=\"col\">class</th><th scope=\"col\">planned</th>"
        "<th scope=\"col\">measured</th>");
    json_object_foreach((json_t *)(uintptr_t)planned, key, value) {
        double of = json_number_value(value), is = number_in(measured, key);
        if ((of > 0 || is > 0) && rows++ < MOST) put_pair(html, key, of, is);
    }
    put_pair(html, "gaps between them", all - sum_of(planned), number_in(measured, "gaps"));
    put_pair(html, "the block that holds them", all, sum_of(measured) - rest);
    put_pair(html, "the rest: program, libraries, MPI", NAN, rest);
    put_pair(html, "the process, at its most", NAN, number_in(run->summary, "process_bytes"));
    end(html);
}

/* The file that has them, "of". */
static void put_planned(train_html *html, const json_t *classes, double all, const char *of) {
    const char *key;
    json_t *value;
    int rows = 0;
    begin(html, "Memory by class", of,
          "<th scope=\"col\">class</th><th scope=\"col\">planned</th>");
    json_object_foreach((json_t *)(uintptr_t)classes, key, value) {
        if (json_number_value(value) > 0 && rows++ < MOST)
            put_named(html, key, json_number_value(value));
    }
    put_named(html, "all, with gaps", all);
    end(html);
}

static void put_classes(train_html *html, const train_view_run *run) {
    const json_t *planned = json_object_get(run->summary, "planned_classes");
    const json_t *measured = json_object_get(run->summary, "measured_classes");
    const char *why = json_string_value(json_object_get(run->summary, "measured_classes_why"));
    if (json_object_size(planned) && json_object_size(measured)) {
        put_both(html, run, planned, measured);
        return;
    }
    if (json_object_size(planned))
        put_planned(html, planned, number_in(run->summary, "planned_bytes"),
                    "Planned, of the first rank at the peak of a step (summary.json)");
    else if (run->plan)
        put_planned(html, json_object_get(run->plan, "classes"), number_in(run->plan, "peak_bytes"),
                    "Planned, of a rank at the peak of a step (plan.json)");
    else
        train_html_put(html, "<p>By class: not known.</p>\n");
    train_html_put(html, "<p>Measured by class: not known");
    if (why) train_html_put(html, ": ");
    if (why) train_html_textn(html, why, strlen(why) > 500 ? 500 : strlen(why));
    train_html_put(html, ".</p>\n");
}

static void put_memory(train_html *html, const train_view_run *run) {
    const train_view_series *memory = train_view_run_find(run, "memory_bytes");
    put_classes(html, run);
    begin(html, "Memory in all", "Of a rank",
          "<th scope=\"col\">memory</th><th scope=\"col\">bytes"
          "</th>");
    put_named(html, "planned (summary.json)", number_in(run->summary, "planned_bytes"));
    put_named(html, "measured beyond the program's own (summary.json)",
              number_in(run->summary, "measured_bytes"));
    put_named(html, "the program's own (summary.json)", number_in(run->summary, "baseline_bytes"));
    put_named(html, "most of the process (metrics.jsonl)",
              memory && memory->count > memory->undefined ? memory->high : NAN);
    end(html);
}

/* What one operation moved; `axis`: NULL, or of which groups. */
static void put_operation(train_html *html, const char *axis, const char *name,
                          const json_t *value) {
    train_html_put(html, "<tr><td>");
    if (axis) {
        train_html_name(html, axis);
        train_html_put(html, "</td><td>");
    }
    train_html_name(html, name);
    train_html_put(html, "</td>");
    put_number(html, number_in(value, "calls"), 15);
    put_bytes(html, number_in(value, "bytes"));
    put_bytes(html, number_in(value, "planned"));
    put_bytes(html, number_in(value, "crossed"));
    put_number(html, number_in(value, "seconds"), 4);
    train_html_put(html, "</tr>\n");
}

static void put_operations(train_html *html, const json_t *wire) {
    const char *key;
    json_t *value;
    int rows = 0;
    begin(html, "Wire of the run",
          "By operation, since the run began or was resumed (summary.json)",
          "<th scope=\"col\">operation</th>" OPERATION_HEADS);
    json_object_foreach((json_t *)(uintptr_t)wire, key, value) {
        if (!json_is_object(value) || !strcmp(key, "groups") || rows++ >= MOST) continue;
        put_operation(html, NULL, key, value);
    }
    end(html);
}

/* Neither planned nor done. */
static bool is_idle(const json_t *value) {
    return !(number_in(value, "calls") > 0) && !(number_in(value, "planned") > 0);
}

/* Of a run on a mesh with several axes: what was planned stands beside what was measured. */
static void put_groups(train_html *html, const json_t *groups) {
    const char *axis, *name;
    json_t *of, *value;
    int rows = 0;
    if (!json_object_size(groups)) return;
    begin(html, "Wire of the run by axis",
          "By axis of the mesh and operation, since the run began or was resumed "
          "(summary.json)",
          "<th scope=\"col\">axis</th><th scope=\"col\">operation</th>" OPERATION_HEADS);
    json_object_foreach((json_t *)(uintptr_t)groups, axis, of) {
        json_object_foreach(of, name, value) {
            if (!json_is_object(value) || is_idle(value) || rows++ >= MOST) continue;
            put_operation(html, axis, name, value);
        }
    }
    end(html);
}

static void put_axes(train_html *html, const json_t *mesh) {
    const char *key;
    json_t *value;
    int rows = 0;
    begin(html, "Wire of a step by axis",
          "By axis of the mesh, planned of a rank and step (plan.json)",
          "<th scope=\"col\">axis</th><th scope=\"col\">ranks</th><th scope=\"col\">gathered</th>"
          "<th scope=\"col\">reduced</th><th scope=\"col\">between hosts</th>");
    json_object_foreach((json_t *)(uintptr_t)mesh, key, value) {
        if (!json_is_object(value) || rows++ >= MOST) continue;
        train_html_put(html, "<tr><td>");
        train_html_name(html, key);
        train_html_put(html, "</td>");
        put_number(html, number_in(value, "ranks"), 15);
        put_bytes(html, number_in(value, "gathered_bytes"));
        put_bytes(html, number_in(value, "reduced_bytes"));
        put_bytes(html, number_in(value, "crossing_bytes"));
        train_html_put(html, "</tr>\n");
    }
    end(html);
}

void train_page_plan(train_html *html, const train_view_run *run) {
    const json_t *wire = json_object_get(run->summary, "wire");
    const json_t *mesh = json_object_get(run->plan, "mesh");
    train_html_put(html, "<h3>Memory, planned and measured</h3>\n");
    put_memory(html, run);
    train_html_put(html, "<h3>Wire</h3>\n");
    if (json_object_size(wire))
        put_operations(html, wire);
    else
        train_html_put(html, "<p>Of the run: not known.</p>\n");
    put_groups(html, json_object_get(wire, "groups"));
    if (json_object_size(mesh)) put_axes(html, mesh);
}

#include <stdio.h>
#include <string.h>

#include "train/view/page_parts.h"

/* In the order of train_view_file. */
static const struct {
    const char *name, *from;
} files[TRAIN_VIEW_FILES] = {
    {"summary.json", "a run writes it as its steps begin, and when it is over"},
    {"sifr_config.json", "a run writes it as it begins"},
    {"config.json", "a run writes it with the trained model, at its end"},
    {"a checkpoint", "sifr.save_steps; the newest one names the machine"},
    {"plan.json", "<code>sifr plan --config RUN/sifr_config.json --json</code>, with "
                  "<code>--world-size</code>: the wire of a step by axis of the mesh"},
};
static const char trace_from[] =
    "give the run <code>--trace RUN/trace.json</code>, and the report has time by class and unit, "
    "wire by operation, and the timeline of a step";

/* A list of them, of the page. */
typedef struct file_list {
    train_html *html;
    char names[TRAIN_PAGE_TOLD]; /* of those that are not there */
    bool begun;
} file_list;

static void begin_row(file_list *list) {
    if (!list->begun)
        train_html_put(list->html,
                       "<details open><summary>Files that this section lacks</summary><ul>\n");
    list->begun = true;
    train_html_put(list->html, "<li>");
}

static void put_absent(file_list *list, const char *name, const char *from) {
    size_t used = strlen(list->names);
    begin_row(list);
    train_html_putf(list->html, "%s: not there; ", name);
    train_html_put(list->html, from);
    train_html_put(list->html, "</li>\n");
    snprintf(list->names + used, sizeof list->names - used, "%s%s", used ? ", " : "", name);
}

static void put_broken(file_list *list, const char *why, const sifr_log *log) {
    begin_row(list);
    train_html_put(list->html, "cannot be used: <bdi>");
    train_html_text(list->html, why);
    train_html_put(list->html, "</bdi></li>\n");
    base_log(log, SIFR_LOG_WARNING, "a file of a run cannot be used: %s", why);
}

void train_page_files(train_html *html, const train_view_run *run, const train_view_trace *trace,
                      const sifr_log *log, char told[TRAIN_PAGE_TOLD]) {
    file_list list = {.html = html};
    for (int i = 0; i < TRAIN_VIEW_FILES; i++) {
        if (run->parts[i].why[0])
            put_broken(&list, run->parts[i].why, log);
        else if (!run->parts[i].there)
            put_absent(&list, files[i].name, files[i].from);
    }
    if (trace->why[0])
        put_broken(&list, trace->why, log);
    else if (!trace->there)
        put_absent(&list, "trace.json", trace_from);
    if (list.begun) train_html_put(html, "</ul></details>\n");
    if (list.names[0] && strcmp(list.names, told) != 0)
        base_log(log, SIFR_LOG_INFO, "%.800s: not there: %s; the page says what each is for",
                 run->path, list.names);
    if (list.names[0]) memcpy(told, list.names, TRAIN_PAGE_TOLD);
}

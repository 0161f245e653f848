#include "train/view/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/sha256.h"
#include "base/text.h"
#include "sifr/version.h"
#include "train/view/page_chart.h"
#include "train/view/page_parts.h"
#include "train/view/page_style.h"

/* Runs with lines in the charts, and with a section of their own. */
enum { DRAWN = 32, DETAILED = 8, SPANS = 4000, CHARTS = 24 };

typedef struct page_state {
    const train_page_request *request;
    train_view_run *runs;
    size_t drawn, detailed;
    char told[TRAIN_PAGE_TOLD]; /* see train_page_files */
    train_html html;
} page_state;

/* Those that sifr records; what else a log has follows under its own name. */
static const train_chart charts[] = {
    {"loss", "Loss", TRAIN_PLAIN},
    {"eval_loss", "Loss of evaluations", TRAIN_PLAIN},
    {"learning_rate", "Learning rate", TRAIN_PLAIN},
    {"grad_norm", "Norm of the gradient", TRAIN_PLAIN},
    {"tokens_per_second", "Tokens a second, without evaluations and saves", TRAIN_PLAIN},
    {"limit_share", "Share of the machine's limit", TRAIN_SHARE},
    {"memory_bytes", "Memory, measured", TRAIN_BYTES},
    {"loss_scale", "Loss scale", TRAIN_PLAIN},
    {"eval_perplexity", "Perplexity of evaluations", TRAIN_PLAIN}};
enum { KNOWN = sizeof charts / sizeof *charts };

/* Counters that the table of runs has. */
static const char *const counters[] = {"epoch",   "tokens",       "skipped",
                                       "seconds", "eval_windows", "eval_seconds"};

static size_t bins_of(size_t runs) {
    return runs == 1 ? 512 : runs <= 4 ? 256 : runs <= 8 ? 128 : 64;
}

/* --- reading --- */

static void say_no_record(const train_view_run *run, const sifr_log *log) {
    char counted[80];
    int64_t bad = run->bad_lines + run->lines.passed;
    if (run->read && !run->records && bad)
        base_log(log, SIFR_LOG_WARNING, "%.800s/metrics.jsonl: %s, and none is a record", run->path,
                 base_format_counted(bad, "line", counted));
}

/* Readable runs come first, in the order given, so that charts and table go by the same index. */
static sifr_status read_runs(page_state *page, train_page_result *out, sifr_error *error) {
    const train_page_request *r = page->request;
    size_t first = 0, last = r->count;
    for (size_t i = 0; i < r->count; i++) {
        train_view_run run;
        size_t bins = first < DRAWN ? bins_of(r->count) : 0;
        BASE_TRY(train_view_run_open(&run, r->runs[i], bins, first < DETAILED, error));
        if (!run.read && r->count > 1) base_log(r->log, SIFR_LOG_WARNING, "%s", run.why);
        say_no_record(&run, r->log);
        page->runs[run.read ? first++ : --last] = run;
        out->records += run.records;
    }
    out->runs = (int64_t)first;
    out->unread = (int64_t)(r->count - first);
    page->drawn = first < DRAWN ? first : DRAWN;
    page->detailed = first < DETAILED ? first : DETAILED;
    if (first) return SIFR_OK;
    if (r->count == 1) return base_fail(error, SIFR_FAILED, "%s", page->runs[0].why);
    return base_fail(error, SIFR_FAILED, "none of the %zu folders is a run that can be read",
                     r->count);
}

/* --- the page --- */

/* "sha256-..." of an inline text, for the policy. */
static void put_hash(train_html *html, const char *text) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t hash[33] = {0};
    char out[45];
    base_sha256(text, strlen(text), hash);
    for (int i = 0; i < 11; i++) {
        uint32_t three =
            (uint32_t)hash[3 * i] << 16 | (uint32_t)hash[3 * i + 1] << 8 | hash[3 * i + 2];
        for (int c = 0; c < 4; c++) out[4 * i + c] = digits[three >> (18 - 6 * c) & 63];
    }
    out[43] = '='; /* 32 bytes are ten triples and two bytes */
    out[44] = '\0';
    train_html_putf(html, "'sha256-%s'", out);
}

static void put_head(page_state *page) {
    train_html *html = &page->html;
    train_html_put(html, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
                         "'none'; base-uri 'none'; form-action 'none'; script-src ");
    put_hash(html, train_page_script);
    train_html_put(html, "; style-src ");
    put_hash(html, train_page_style);
    train_html_put(html, "\">\n<meta name=\"viewport\" content=\"width=device-width, "
                         "initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n"
                         "<title>sifr report: ");
    train_html_name(html, page->runs[0].path);
    if (page->request->count > 1) train_html_putf(html, " and %zu more", page->request->count - 1);
    train_html_put(html, "</title>\n<style>");
    train_html_put(html, train_page_style);
    train_html_put(html, "</style>\n</head>\n<body>\n");
}

static void put_title(page_state *page, const train_page_result *out) {
    train_html *html = &page->html;
    char runs[80], records[80];
    train_html_put(html, "<header><h1>sifr report: <bdi>");
    train_html_name(html, page->runs[0].path);
    train_html_put(html, "</bdi>");
    if (page->request->count > 1) train_html_putf(html, " and %zu more", page->request->count - 1);
    train_html_putf(html,
                    "</h1><p class=\"soft\">%s, %s, read by sifr %s. This page loads nothing "
                    "else.</p></header>\n<main>\n",
                    base_format_counted(out->runs, "run", runs),
                    base_format_counted(out->records, "record", records), sifr_version());
}

static bool is_listed(const char *key) {
    for (int i = 0; i < KNOWN; i++)
        if (!strcmp(charts[i].key, key)) return true;
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        if (!strcmp(counters[i], key)) return true;
    return false;
}

static bool is_earlier(const page_state *page, size_t run, const char *key) {
    for (size_t i = 0; i < run; i++)
        if (train_view_run_find(&page->runs[i], key)) return true;
    return false;
}

/* Returns the number of keys that are left out. */
static size_t put_other_charts(page_state *page, size_t put) {
    size_t left = 0;
    for (size_t r = 0; r < page->drawn; r++) {
        for (size_t i = 0; i < page->runs[r].series_count; i++) {
            const char *key = page->runs[r].series[i].key;
            if (is_listed(key) || is_earlier(page, r, key)) continue;
            train_chart chart = {key, key, TRAIN_PLAIN};
            if (put++ >= CHARTS)
                left++;
            else
                train_page_chart(&page->html, &chart, page->runs, page->drawn);
        }
    }
    return left;
}

static void put_absent(page_state *page) {
    bool any = false;
    for (int i = 0; i < KNOWN; i++) {
        if (is_earlier(page, page->drawn, charts[i].key)) continue;
        train_html_put(&page->html, any ? ", " : "<p>In no record, and so without a chart: ");
        train_html_put(&page->html, charts[i].key);
        any = true;
    }
    if (any) train_html_put(&page->html, ".</p>\n");
}

static void put_charts(page_state *page, const train_page_result *out) {
    train_html *html = &page->html;
    size_t put = 0;
    train_html_put(html, "<section aria-labelledby=\"h-charts\"><h2 id=\"h-charts\">Charts</h2>\n");
    if (out->runs > DRAWN)
        train_html_putf(html, "<p>The first %d runs are drawn; the table has the others.</p>\n",
                        (int)DRAWN);
    if (page->drawn > 1) train_page_key(html, page->runs, page->drawn);
    train_html_put(html, "<div class=\"charts\">\n");
    for (int i = 0; i < KNOWN; i++)
        put += train_page_chart(html, &charts[i], page->runs, page->drawn);
    size_t left = put_other_charts(page, put);
    train_html_put(html, "</div>\n");
    if (left)
        train_html_putf(html, "<p>%zu further keys of the records are not drawn.</p>\n", left);
    put_absent(page);
    train_html_put(html, "</section>\n");
}

static sifr_status open_trace(const page_state *page, size_t number, train_view_trace *trace,
                              sifr_error *error) {
    const char *given = page->request->trace;
    char path[BASE_PATH_LENGTH];
    if (given)
        snprintf(path, sizeof path, "%s", given);
    else
        BASE_TRY(base_path_join(path, page->runs[number].path, "trace.json", error));
    return train_view_trace_open(trace, path, SPANS / page->detailed, error);
}

static sifr_status put_run(page_state *page, size_t number, sifr_error *error) {
    const train_view_run *run = &page->runs[number];
    train_html *html = &page->html;
    train_view_trace trace = {0};
    sifr_status status = open_trace(page, number, &trace, error);
    if (status == SIFR_OK) {
        train_page_files(html, run, &trace, page->request->log, page->told);
        train_page_trace(html, &trace, number);
        train_page_plan(html, run);
        train_page_details(html, run);
    }
    train_view_trace_close(&trace);
    return status;
}

static void put_left_out(page_state *page, const train_view_run *run) {
    if (run->keys_left_out)
        train_html_putf(&page->html, "<p>%lld values of further keys are left out.</p>\n",
                        (long long)run->keys_left_out);
    if (run->bad_lines || run->lines.passed)
        train_html_putf(&page->html,
                        "<p>%lld lines of metrics.jsonl are no records, and are passed "
                        "over.</p>\n",
                        (long long)(run->bad_lines + run->lines.passed));
    if (run->lines.rest)
        train_html_put(&page->html,
                       "<p>The last line of metrics.jsonl is half-written, and is left "
                       "out: the run is going on, or was killed.</p>\n");
    if (!run->records) train_html_put(&page->html, "<p>metrics.jsonl has no record yet.</p>\n");
}

static sifr_status put_details(page_state *page, sifr_error *error) {
    train_html *html = &page->html;
    for (size_t i = 0; i < page->detailed; i++) {
        train_html_putf(
            html, "<section aria-labelledby=\"h-run%zu\"><h2 id=\"h-run%zu\">Run: <bdi>", i, i);
        train_html_name(html, page->runs[i].path);
        train_html_put(html, "</bdi></h2>\n");
        put_left_out(page, &page->runs[i]);
        if (train_html_reached(html, TRAIN_PAGE_BYTES)) {
            train_html_put(html, "<p>The rest is left out: a report has at most 5 MiB.</p>\n");
        } else {
            BASE_TRY(put_run(page, i, error));
        }
        train_html_put(html, "</section>\n");
    }
    return SIFR_OK;
}

static sifr_status put_page(page_state *page, const train_page_result *out, sifr_error *error) {
    train_html *html = &page->html;
    put_head(page);
    put_title(page, out);
    train_page_runs(html, page->runs, page->request->count);
    put_charts(page, out);
    BASE_TRY(put_details(page, error));
    if (out->runs > DETAILED)
        train_html_putf(html,
                        "<p>The first %d runs have a section of their own; make a report of "
                        "fewer for the others.</p>\n",
                        (int)DETAILED);
    train_html_put(html, "</main>\n<footer><p class=\"soft\">Made by <code>sifr report</code>."
                         "</p></footer>\n<script>");
    train_html_put(html, train_page_script);
    train_html_put(html, "</script>\n</body>\n</html>\n");
    return SIFR_OK;
}

static sifr_status write_page(page_state *page, train_page_result *out, sifr_error *error) {
    BASE_TRY(train_html_open(&page->html, page->request->path, error));
    sifr_status status = put_page(page, out, error);
    out->bytes = page->html.writer.written;
    if (status == SIFR_OK) status = train_html_commit(&page->html, error);
    train_html_close(&page->html);
    return status;
}

sifr_status train_page_write(const train_page_request *request, train_page_result *out,
                             sifr_error *error) {
    page_state *page;
    *out = (train_page_result){0};
    BASE_TRY(base_alloc(1, sizeof *page, &page, error));
    page->request = request;
    sifr_status status = base_alloc(request->count, sizeof *page->runs, &page->runs, error);
    if (status == SIFR_OK) status = read_runs(page, out, error);
    if (status == SIFR_OK) status = write_page(page, out, error);
    for (size_t i = 0; page->runs && i < request->count; i++) train_view_run_close(&page->runs[i]);
    free(page->runs);
    free(page);
    return status;
}

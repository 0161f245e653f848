/* OUTPUT/metrics.csv: the metrics that have a column, a line a record. */
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/heap.h"
#include "train/report/kept_lines.h"
#include "train/report/sink.h"

enum { LINE = 4096 };

/* A sink's handle. Tests know that it begins with its lines. */
typedef struct csv {
    train_lines lines;
    const train_report_settings *settings;
    bool lost; /* deleted by somebody */
} csv;

static size_t put_value(char *out, size_t size, const json_t *value) {
    int used = 0;
    if (json_is_integer(value))
        used = snprintf(out, size, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        used = snprintf(out, size, "%.9g", json_real_value(value));
    return (size_t)used;
}

/* The columns' names, or with a record its values. */
static sifr_status add(csv *c, const json_t *record, sifr_error *error) {
    char line[LINE], out[64];
    const char *name;
    size_t used = 0;
    for (int i = 0; (name = train_metric_column(c->settings->objective, i, out)); i++) {
        if (used + sizeof out + 2 > sizeof line) break;
        if (i) line[used++] = ',';
        if (record)
            used += put_value(line + used, sizeof line - used, json_object_get(record, name));
        else
            used += (size_t)snprintf(line + used, sizeof line - used, "%s", name);
    }
    line[used++] = '\n';
    return train_lines_add(&c->lines, line, used, error);
}

static sifr_status keep(void *user, const json_t *record, sifr_error *error) {
    return add(user, record, error);
}

static void close_csv(void *sink) {
    csv *c = sink;
    if (c) train_lines_close(&c->lines);
    free(c);
}

/* metrics.jsonl has been cut to what the run goes on from. */
static sifr_status open_lines(csv *c, sifr_error *error) {
    char jsonl[BASE_PATH_LENGTH];
    BASE_TRY(train_lines_open(&c->lines, c->settings->output, "metrics.csv", error));
    BASE_TRY(base_path_join(jsonl, c->settings->output, "metrics.jsonl", error));
    BASE_TRY(add(c, NULL, error));
    BASE_TRY(train_lines_read(jsonl, keep, c, error));
    return train_lines_place(&c->lines, error);
}

static sifr_status open_csv(const train_report_settings *settings, void **out, sifr_error *error) {
    csv *c;
    BASE_TRY(base_alloc(1, sizeof *c, &c, error));
    c->settings = settings;
    sifr_status status = open_lines(c, error);
    if (status == SIFR_OK)
        *out = c;
    else
        close_csv(c);
    return status;
}

/* Of metrics.jsonl, which has the newest record by now. */
static sifr_status make_again(csv *c, sifr_error *error) {
    train_lines_close(&c->lines);
    return open_lines(c, error);
}

static sifr_status record_csv(void *sink, const train_record *record, sifr_error *error) {
    csv *c = sink;
    if (!record->json) return SIFR_OK;
    sifr_status status = c->lost ? make_again(c, error) : add(c, record->json, error);
    c->lost = c->lost ? status != SIFR_OK : c->lines.gone;
    return status;
}

static bool lacks_csv(void *sink, char line[SIFR_ERROR_LENGTH]) {
    csv *c = sink;
    sifr_error error = {0};
    if (!c->lost) return train_lines_lack(&c->lines, line);
    if (make_again(c, &error) == SIFR_OK) return false;
    snprintf(line, SIFR_ERROR_LENGTH, "%s", error.message);
    return true;
}

const train_sink train_csv = {.name = "metrics.csv",
                              .open = open_csv,
                              .record = record_csv,
                              .close = close_csv,
                              .lacks = lacks_csv};

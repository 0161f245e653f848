/* OUTPUT/metrics.jsonl: all records, a JSON object a line. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/heap.h"
#include "train/report/kept_lines.h"
#include "train/report/sink.h"

/* A sink's handle. Tests know that it begins with its lines. */
typedef struct jsonl {
    train_lines lines;
    const train_report_settings *settings;
} jsonl;

static sifr_status add(jsonl *j, const json_t *record, sifr_error *error) {
    char *text = json_dumps(record, JSON_COMPACT | JSON_REAL_PRECISION(9));
    if (!text) return base_fail_alloc(error, 256);
    size_t size = strlen(text);
    text[size] = '\n'; /* in the place of the NUL */
    sifr_status status = train_lines_add(&j->lines, text, size + 1, error);
    free(text);
    return status;
}

/* Of an earlier run of the same output. Records of steps behind the one that the run resumes from
 * were written after its last checkpoint, and go. */
static sifr_status keep(void *user, const json_t *record, sifr_error *error) {
    jsonl *j = user;
    const train_report_settings *s = j->settings;
    const json_t *at = json_object_get(record, "step");
    if (!json_is_integer(at) || json_integer_value(at) > s->first_step) return SIFR_OK;
    if (s->earlier) BASE_TRY(s->earlier(s->user, record, error));
    return add(j, record, error);
}

static void close_jsonl(void *sink) {
    jsonl *j = sink;
    if (j) train_lines_close(&j->lines);
    free(j);
}

static sifr_status open_lines(jsonl *j, sifr_error *error) {
    BASE_TRY(train_lines_open(&j->lines, j->settings->output, "metrics.jsonl", error));
    if (j->settings->first_step > 0) BASE_TRY(train_lines_read(j->lines.path, keep, j, error));
    return train_lines_place(&j->lines, error);
}

static sifr_status open_jsonl(const train_report_settings *settings, void **out,
                              sifr_error *error) {
    jsonl *j;
    BASE_TRY(base_alloc(1, sizeof *j, &j, error));
    j->settings = settings;
    sifr_status status = open_lines(j, error);
    if (status == SIFR_OK)
        *out = j;
    else
        close_jsonl(j);
    return status;
}

static sifr_status record_jsonl(void *sink, const train_record *record, sifr_error *error) {
    return record->json ? add(sink, record->json, error) : SIFR_OK;
}

static bool lacks_jsonl(void *sink, char line[SIFR_ERROR_LENGTH]) {
    jsonl *j = sink;
    return train_lines_lack(&j->lines, line);
}

const train_sink train_jsonl = {.name = "metrics.jsonl",
                                .open = open_jsonl,
                                .record = record_jsonl,
                                .close = close_jsonl,
                                .lacks = lacks_jsonl};

/* DeepSpeed's csv_monitor: a CSV a tag, "/" as "_", with the lines that Python's csv writes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/file.h"
#include "base/heap.h"
#include "train/report/events.h"
#include "train/report/kept_lines.h"
#include "train/report/python_number.h"
#include "train/report/sink.h"

enum { SERIES = TRAIN_EVENTS + TRAIN_METRICS };

typedef struct series {
    char tag[96]; /* "": there is none */
    train_lines lines;
} series;

typedef struct csv_monitor {
    char folder[BASE_PATH_LENGTH];
    bool resumes;
    int64_t samples; /* that the run goes on from */
    series series[SERIES];
} csv_monitor;

static bool is_asked(const sifr_config *config) {
    return config->csv_monitor.enabled;
}

/* The samples of a row; -1: it has none. strtoll would look for a number behind a blank line, and
 * so behind the end of the file. */
static int64_t samples_of(const char *line) {
    return *line >= '0' && *line <= '9' ? strtoll(line, NULL, 10) : -1;
}

/* Of a file that a resumed run goes on with: the bytes before the first row of its last part (a
 * header begins one) that is behind `samples`; *headed: that part has a header. */
static int64_t find_end(const base_map *map, int64_t samples, bool *headed) {
    const char *text = (const char *)map->data, *end = text + map->size, *stop, *cut = NULL;
    const char *whole = text;
    *headed = false;
    for (const char *line = text; line < end && (stop = memchr(line, '\n', (size_t)(end - line)));
         line = stop + 1) {
        if (stop - line > 5 && memcmp(line, "step,", 5) == 0) {
            *headed = true;
            cut = NULL;
        } else if (!cut && samples_of(line) > samples) {
            cut = line;
        }
        whole = stop + 1;
    }
    return (cut ? cut : whole) - text;
}

static sifr_status check_begin(const base_map *map, const char *path, sifr_error *error) {
    if (map->size == 0 || (map->size > 5 && memcmp(map->data, "step,", 5) == 0)) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s: the file does not begin with \"step,\", as a series does", path);
}

/* A new run adds a part of its own, as there; one that resumes goes on with the last part. */
static sifr_status open_at(const csv_monitor *c, const char *path, int64_t *bytes, bool *headed,
                           sifr_error *error) {
    base_map map;
    *bytes = 0;
    *headed = false;
    if (!base_is_file(path)) return SIFR_OK;
    BASE_TRY(base_map_file(path, &map, error));
    sifr_status status = check_begin(&map, path, error);
    int64_t kept = map.size ? find_end(&map, c->samples, headed) : 0;
    *bytes = c->resumes ? kept : (int64_t)map.size;
    *headed &= c->resumes;
    base_unmap(&map);
    return status;
}

static sifr_status open_series(const csv_monitor *c, const char *tag, series *s,
                               sifr_error *error) {
    char path[BASE_PATH_LENGTH], name[112], header[112];
    int64_t bytes;
    bool headed;
    snprintf(name, sizeof name, "%s.csv", tag);
    for (char *at = name; *at; at++)
        if (*at == '/' || *at == ' ') *at = '_';
    BASE_TRY(base_path_join(path, *c->folder ? c->folder : ".", name, error));
    BASE_TRY(open_at(c, path, &bytes, &headed, error));
    BASE_TRY(train_lines_go_on(&s->lines, path, bytes, error));
    if (headed) return SIFR_OK;
    const char *last = strrchr(tag, '/');
    int used = snprintf(header, sizeof header, "step,%s\r\n", last ? last + 1 : tag);
    sifr_status status = train_lines_add(&s->lines, header, (size_t)used, error);
    if (status != SIFR_OK) train_lines_close(&s->lines); /* no row comes before it */
    return status;
}

static sifr_status find_series(csv_monitor *c, const char *tag, series **out, sifr_error *error) {
    series *s = c->series;
    while (s < c->series + SERIES && s->tag[0] && strcmp(s->tag, tag) != 0) s++;
    base_assert(s < c->series + SERIES);
    *out = s;
    snprintf(s->tag, sizeof s->tag, "%.95s", tag);
    if (s->lines.gone) train_lines_close(&s->lines); /* a new one has a header, too */
    return s->lines.path ? SIFR_OK : open_series(c, tag, s, error);
}

static sifr_status add(csv_monitor *c, int64_t samples, const train_event *event,
                       sifr_error *error) {
    char text[96], number[32];
    series *s;
    BASE_TRY(find_series(c, event->tag, &s, error));
    if (event->whole)
        snprintf(number, sizeof number, "%.0f", event->value);
    else
        train_python_number(event->value, number);
    int used = snprintf(text, sizeof text, "%lld,%s\r\n", (long long)samples, number);
    return train_lines_add(&s->lines, text, (size_t)used, error);
}

static sifr_status record_events(void *sink, const train_record *record, sifr_error *error) {
    train_event events[TRAIN_EVENTS];
    int count = train_events_of(record, events);
    sifr_status status = SIFR_OK;
    for (int i = 0; i < count; i++) { /* where one cannot be written, others may */
        sifr_status of = add(sink, record->samples, &events[i], status == SIFR_OK ? error : NULL);
        if (status == SIFR_OK) status = of;
    }
    return status;
}

static void close_all(void *sink) {
    csv_monitor *c = sink;
    for (int i = 0; c && i < SERIES; i++) train_lines_close(&c->series[i].lines);
    free(c);
}

static bool is_series(const char *name) {
    static const char begin[] = "Train_Samples_", end[] = ".csv";
    size_t length = strlen(name);
    return strncmp(name, begin, strlen(begin)) == 0 && length > strlen(end) &&
           strcmp(name + length - strlen(end), end) == 0;
}

static sifr_status check_file(const char *folder, const char *name, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    base_map map;
    if (!is_series(name) || !base_has_file(folder, name)) return SIFR_OK;
    BASE_TRY(base_path_join(path, folder, name, error));
    BASE_TRY(base_map_file(path, &map, error));
    sifr_status status = check_begin(&map, path, error);
    base_unmap(&map);
    return status;
}

/* Also those that the first steps do not write: a file of another kind is not appended to. */
static sifr_status check_files(const char *folder, sifr_error *error) {
    char **names;
    size_t count;
    BASE_TRY(base_list_directory(folder, &names, &count, error));
    sifr_status status = SIFR_OK;
    for (size_t i = 0; i < count && status == SIFR_OK; i++)
        status = check_file(folder, names[i], error);
    base_free_names(names, count);
    return status;
}

/* The first file now: a folder that cannot be written is refused before the first step. */
static sifr_status open_folder(csv_monitor *c, const sifr_config *config, sifr_error *error) {
    series *first;
    sifr_error reason = {0};
    BASE_TRY(train_events_folder("csv_monitor", config->csv_monitor.output_path,
                                 config->csv_monitor.job_name, c->folder, error));
    if (check_files(*c->folder ? c->folder : ".", &reason) != SIFR_OK)
        return base_fail(error, SIFR_USAGE, "csv_monitor.output_path: %s; give another folder",
                         reason.message);
    if (find_series(c, "Train/Samples/train_loss", &first, &reason) == SIFR_OK) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "csv_monitor.output_path: %s; give a folder that can be written",
                     reason.message);
}

static sifr_status open_monitor(const train_report_settings *settings, void **out,
                                sifr_error *error) {
    csv_monitor *c;
    BASE_TRY(base_alloc(1, sizeof *c, &c, error));
    c->resumes = settings->first_step > 0;
    c->samples = settings->first_step * settings->config->train_batch_size;
    sifr_status status = open_folder(c, settings->config, error);
    if (status == SIFR_OK)
        *out = c;
    else
        close_all(c);
    return status;
}

const train_sink train_csv_monitor = {.name = "csv_monitor",
                                      .asked = is_asked,
                                      .open = open_monitor,
                                      .record = record_events,
                                      .close = close_all};

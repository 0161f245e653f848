#include "train/view/view_run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/folder_file.h"
#include "base/heap.h"
#include "base/json.h"

enum { CONFIG_BYTES = 1 << 18, MANIFEST_BYTES = 1 << 22 };

static train_view_series *find(const train_view_run *run, const char *key, size_t length) {
    for (size_t i = 0; i < run->series_count; i++) {
        const char *name = run->series[i].key;
        if (memcmp(name, key, length) == 0 && !name[length]) return &run->series[i];
    }
    return NULL;
}

const train_view_series *train_view_run_find(const train_view_run *run, const char *key) {
    return find(run, key, strlen(key));
}

/* The older half makes room, so that a log in which each record is an event is read no slower. */
static void drop_events(train_view_run *run) {
    enum { HALF = TRAIN_VIEW_EVENTS / 2 };
    memmove(run->events, run->events + HALF, HALF * sizeof *run->events);
    run->event_count = HALF;
    run->events_left_out += HALF;
}

static void add_event(train_view_run *run, int64_t step, const char *what) {
    if (run->events && run->newest && run->event_count == TRAIN_VIEW_EVENTS) drop_events(run);
    if (!run->events || run->event_count == TRAIN_VIEW_EVENTS) {
        run->events_left_out++;
        return;
    }
    train_view_event *event = &run->events[run->event_count++];
    event->step = step;
    snprintf(event->what, sizeof event->what, "%s", what);
}

static sifr_status add_value(train_view_run *run, int64_t step, const train_view_field *field,
                             sifr_error *error) {
    if (field->length >= sizeof run->series->key) {
        run->keys_left_out++;
        return SIFR_OK;
    }
    train_view_series *series = find(run, field->key, field->length);
    if (!series && run->series_count == TRAIN_VIEW_KEYS) {
        run->keys_left_out++;
        return SIFR_OK;
    }
    if (!series) {
        series = &run->series[run->series_count];
        BASE_TRY(train_view_series_open(series, field->key, field->length, run->capacity, error));
        run->series_count++;
    }
    train_view_series_add(series, step, field->value);
    return SIFR_OK;
}

static const train_view_field *field_of(const train_view_record *record, const char *key) {
    size_t length = strlen(key);
    for (size_t i = 0; i < record->count; i++) {
        const train_view_field *f = &record->fields[i];
        if (f->length == length && memcmp(f->key, key, length) == 0) return f;
    }
    return NULL;
}

/* The clock of a record begins with its process, and so goes back where a run was resumed. */
static void note_time(train_view_run *run, const train_view_record *record) {
    const train_view_field *seconds = field_of(record, "seconds");
    if (!seconds || !isfinite(seconds->value)) return;
    if (seconds->value < run->since) {
        run->resumes++;
        run->seconds += run->since;
        add_event(run, record->step, "resumed before this record");
    }
    run->since = seconds->value;
}

static void note_skips(train_view_run *run, const train_view_record *record) {
    const train_view_field *skipped = field_of(record, "skipped");
    char what[96];
    if (!skipped || !(skipped->value > run->skipped)) return;
    snprintf(what, sizeof what, "%.15g of the steps up to this record skipped",
             skipped->value - run->skipped);
    run->skipped = skipped->value;
    add_event(run, record->step, what);
}

static void note_undefined(train_view_run *run, const train_view_record *record) {
    for (size_t i = 0; i < record->count; i++) {
        const train_view_field *f = &record->fields[i];
        char what[96];
        if (isfinite(f->value)) continue;
        snprintf(what, sizeof what, "%.*s is not a finite number", (int)f->length, f->key);
        if (f->length < 64) add_event(run, record->step, what);
    }
}

static void note_evaluation(train_view_run *run, const train_view_record *record) {
    const train_view_field *loss = field_of(record, "eval_loss");
    char what[96];
    if (!run->newest || !loss || !isfinite(loss->value)) return;
    snprintf(what, sizeof what, "evaluation: loss %.4f", loss->value);
    add_event(run, record->step, what);
}

sifr_status train_view_run_take(void *user, const char *line, size_t size, sifr_error *error) {
    train_view_run *run = user;
    train_view_record record;
    if (!train_view_record_read(line, size, &record)) {
        run->bad_lines++;
        return SIFR_OK;
    }
    run->records++;
    run->keys_left_out += (int64_t)record.left_out;
    if (record.step > run->last_step) run->last_step = record.step;
    for (size_t i = 0; i < record.count; i++)
        BASE_TRY(add_value(run, record.step, &record.fields[i], error));
    note_time(run, &record);
    note_skips(run, &record);
    note_undefined(run, &record);
    note_evaluation(run, &record);
    return SIFR_OK;
}

/* --- beside the records --- */

/* A file of a folder that others may have written. */
static json_t *load(const char *folder, const char *name, size_t limit, train_view_part *part) {
    char path[BASE_PATH_LENGTH];
    struct stat about;
    json_t *out = NULL;
    sifr_error reason = {0};
    *part = (train_view_part){0};
    if (base_path_join(path, folder, name, &reason) == SIFR_OK && lstat(path, &about) != 0 &&
        errno == ENOENT)
        return NULL;
    sifr_status status = base_folder_file(folder, name, path, &reason);
    if (status == SIFR_OK) status = base_json_load(path, limit, &out, &reason);
    if (status == SIFR_OK && !json_is_object(out)) {
        status = base_fail(&reason, SIFR_FAILED, "%s: no JSON object", path);
        json_decref(out);
    }
    part->there = status == SIFR_OK;
    snprintf(part->why, sizeof part->why, "%.255s", reason.message);
    return part->there ? out : NULL;
}

json_t *train_view_run_file(const char *path, const char *name, train_view_part *part) {
    train_view_part unused;
    return load(path, name, CONFIG_BYTES, part ? part : &unused);
}

/* The N of "checkpoint-N"; -1: another name. */
static int64_t checkpoint_step(const char *name) {
    static const char word[] = "checkpoint-";
    char *end;
    if (strncmp(name, word, sizeof word - 1) != 0) return -1;
    const char *digits = name + sizeof word - 1;
    if (*digits < '0' || *digits > '9' || strlen(digits) > 15) return -1;
    long long step = strtoll(digits, &end, 10);
    return *end ? -1 : (int64_t)step;
}

/* Of the manifest, whose list of files and ranges may be long, what is shown. */
static void read_manifest(train_view_run *run, const char *folder) {
    train_view_part *part = &run->parts[TRAIN_VIEW_MANIFEST];
    json_t *manifest = load(folder, "manifest.json", MANIFEST_BYTES, part);
    if (!part->there && !part->why[0])
        snprintf(part->why, sizeof part->why, "%.200s/manifest.json: is not there", folder);
    run->agree = json_incref(json_object_get(manifest, "agree"));
    run->notes = json_incref(json_object_get(manifest, "notes"));
    json_decref(manifest);
}

int64_t train_view_newest_checkpoint(const char *path) {
    char **names;
    size_t count;
    int64_t last = -1;
    if (base_list_directory(path, &names, &count, NULL) != SIFR_OK) return -1;
    for (size_t i = 0; i < count; i++) {
        int64_t step = checkpoint_step(names[i]);
        if (step > last) last = step;
    }
    base_free_names(names, count);
    return last;
}

/* Their steps are events; the newest one's manifest has the machine. */
static void find_checkpoints(train_view_run *run) {
    char **names, newest[BASE_PATH_LENGTH] = "";
    size_t count;
    int64_t last = -1;
    if (base_list_directory(run->path, &names, &count, NULL) != SIFR_OK) return;
    for (size_t i = 0; i < count; i++) {
        int64_t step = checkpoint_step(names[i]);
        if (step < 0) continue;
        add_event(run, step, "a checkpoint, which is there");
        if (step > last) snprintf(newest, sizeof newest, "%s/%s", run->path, names[i]);
        if (step > last) last = step;
    }
    base_free_names(names, count);
    if (last >= 0) read_manifest(run, newest);
}

static int by_step(const void *a, const void *b) {
    const train_view_event *x = a, *y = b;
    return (x->step > y->step) - (x->step < y->step);
}

static sifr_status read_records(train_view_run *run, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    if (!base_is_directory(run->path))
        return base_fail(error, SIFR_USAGE, "%s: no folder; name the output folder of a run",
                         run->path);
    BASE_TRY(base_path_join(path, run->path, "metrics.jsonl", error));
    BASE_TRY(train_view_each_line(path, run, train_view_run_take, &run->lines, error));
    run->seconds += run->since;
    return SIFR_OK;
}

/* What may be missing has to be an object where it is there. */
static bool may_be_object(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return !value || json_is_object(value);
}

static bool is_summary(const json_t *object) {
    return json_is_string(json_object_get(object, "state")) && may_be_object(object, "wire") &&
           may_be_object(object, "ran") && may_be_object(object, "planned_classes") &&
           may_be_object(object, "measured_classes");
}

static bool is_plan(const json_t *object) {
    bool any = json_is_number(json_object_get(object, "peak_bytes")) ||
               json_is_object(json_object_get(object, "mesh"));
    return any && may_be_object(object, "mesh") && may_be_object(object, "classes");
}

/* JSON of another kind, as a file that was put there by mistake. */
static void check_kind(train_view_run *run, json_t **object, train_view_file file, bool is_kind,
                       const char *kind) {
    train_view_part *part = &run->parts[file];
    if (!part->there || is_kind) return;
    json_decref(*object);
    *object = NULL;
    part->there = false;
    snprintf(part->why, sizeof part->why, "%.180s/%s", run->path, kind);
}

static void read_details(train_view_run *run) {
    find_checkpoints(run);
    qsort(run->events, run->event_count, sizeof *run->events, by_step);
    run->summary = train_view_run_file(run->path, "summary.json", &run->parts[TRAIN_VIEW_SUMMARY]);
    run->config =
        train_view_run_file(run->path, "sifr_config.json", &run->parts[TRAIN_VIEW_CONFIG]);
    run->model = train_view_run_file(run->path, "config.json", &run->parts[TRAIN_VIEW_MODEL]);
    run->plan = train_view_run_file(run->path, "plan.json", &run->parts[TRAIN_VIEW_PLAN]);
    check_kind(run, &run->summary, TRAIN_VIEW_SUMMARY, is_summary(run->summary),
               "summary.json: JSON, but not what a run writes there");
    check_kind(run, &run->plan, TRAIN_VIEW_PLAN, is_plan(run->plan),
               "plan.json: JSON, but not what `sifr plan --json` prints");
}

sifr_status train_view_run_begin(train_view_run *run, const char *path, size_t capacity,
                                 bool details, sifr_error *error) {
    *run = (train_view_run){.path = path, .capacity = capacity, .last_step = -1};
    BASE_TRY(base_alloc(TRAIN_VIEW_KEYS, sizeof *run->series, &run->series, error));
    if (!details) return SIFR_OK;
    return base_alloc(TRAIN_VIEW_EVENTS, sizeof *run->events, &run->events, error);
}

sifr_status train_view_run_open(train_view_run *run, const char *path, size_t capacity,
                                bool details, sifr_error *error) {
    sifr_error reason = {0};
    BASE_TRY(train_view_run_begin(run, path, capacity, details, error));
    sifr_status status = read_records(run, &reason);
    if (status == SIFR_NO_MEMORY) return base_fail(error, status, "%s", reason.message);
    run->read = status == SIFR_OK;
    snprintf(run->why, sizeof run->why, "%s", reason.message);
    if (run->read && details) read_details(run);
    return SIFR_OK;
}

void train_view_run_close(train_view_run *run) {
    for (size_t i = 0; i < run->series_count; i++) train_view_series_close(&run->series[i]);
    free(run->series);
    free(run->events);
    json_decref(run->config);
    json_decref(run->model);
    json_decref(run->agree);
    json_decref(run->notes);
    json_decref(run->plan);
    json_decref(run->summary);
    *run = (train_view_run){0};
}

#include "train/report/events.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"

static double value_of(const train_record *record, train_metric_id id) {
    bool each = record->when == TRAIN_EACH_STEP;
    if (each && id == TRAIN_LEARNING_RATE) return record->next_rate;
    if (each && id == TRAIN_LOSS_SCALE) return record->next_scale;
    return record->value[id];
}

static void put(train_event *event, const char *name, double value, bool whole) {
    snprintf(event->tag, sizeof event->tag, "Train/Samples/%s", name);
    event->value = value;
    event->whole = whole;
}

int train_events_of(const train_record *record, train_event out[TRAIN_EVENTS]) {
    char key[64];
    int count = 0;
    for (int id = 0; id < TRAIN_METRICS; id++) {
        const train_metric *m = train_metric_at((train_metric_id)id);
        if (!(record->has >> id & 1) || m->when != record->when) continue;
        put(&out[count++], m->deepspeed ? m->deepspeed : m->key,
            value_of(record, (train_metric_id)id), m->whole);
    }
    for (int i = 0; i < record->more && record->when != TRAIN_EACH_STEP; i++)
        put(&out[count++], train_record_key(record, i, key), record->of[i].value, false);
    return count;
}

/* As Python's os.path.join. */
sifr_status train_events_path(const char *path, const char *name, char *out, sifr_error *error) {
    if (!path) path = "";
    bool alone = !*path || *name == '/';
    const char *between = alone || path[strlen(path) - 1] == '/' ? "" : "/";
    int used = snprintf(out, BASE_PATH_LENGTH, "%s%s%s", alone ? "" : path, between, name);
    return used < BASE_PATH_LENGTH ? SIFR_OK
                                   : base_fail(error, SIFR_USAGE, "%.200s…: path too long", path);
}

sifr_status train_events_folder(const char *section, const char *output_path, const char *job_name,
                                char *out, sifr_error *error) {
    sifr_error reason = {0};
    sifr_status status = train_events_path(output_path, job_name, out, &reason);
    if (status == SIFR_OK) status = base_make_directories(*out ? out : ".", &reason);
    if (status == SIFR_OK) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s.output_path: %s; give a folder that can be written",
                     section, reason.message);
}

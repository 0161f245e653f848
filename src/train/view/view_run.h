/* What the output folder of a run says: its records, its configs, its checkpoints. */
#ifndef TRAIN_VIEW_RUN_H
#define TRAIN_VIEW_RUN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/errors.h"
#include "train/view/view_lines.h"
#include "train/view/view_record.h"
#include "train/view/view_series.h"

enum {
    TRAIN_VIEW_KEYS = 48,   /* of a run; further ones are counted */
    TRAIN_VIEW_EVENTS = 200 /* likewise */
};

/* What a folder has beside its records. */
typedef enum train_view_file {
    TRAIN_VIEW_SUMMARY,  /* summary.json: what a run writes as it begins and ends */
    TRAIN_VIEW_CONFIG,   /* sifr_config.json */
    TRAIN_VIEW_MODEL,    /* config.json */
    TRAIN_VIEW_MANIFEST, /* of the newest checkpoint */
    TRAIN_VIEW_PLAN,     /* plan.json: what `sifr plan --json` prints */
    TRAIN_VIEW_FILES
} train_view_file;

/* Neither there nor broken: it is not in the folder. */
typedef struct train_view_part {
    bool there;    /* and read */
    char why[256]; /* it is there, and of no use */
} train_view_part;

typedef struct train_view_event {
    int64_t step;
    char what[96];
} train_view_event;

typedef struct train_view_run {
    const char *path; /* borrowed */
    bool read;        /* else `why` says what is wrong */
    char why[SIFR_ERROR_LENGTH];
    train_view_lines lines;
    int64_t records, bad_lines; /* lines that are records; that are not, though whole */
    int64_t last_step;
    size_t capacity; /* bins of a series */
    train_view_series *series;
    size_t series_count;
    int64_t keys_left_out;
    train_view_event *events; /* NULL: no details */
    size_t event_count;
    bool newest; /* later events replace the first ones, and evaluations are events too */
    int64_t events_left_out, resumes;
    double seconds, since; /* of the whole run; of the process that is read now */
    double skipped;
    train_view_part parts[TRAIN_VIEW_FILES];
    json_t *config, *model; /* objects; NULL: not there, as the next ones */
    json_t *agree, *notes;  /* of the newest checkpoint's manifest */
    json_t *plan, *summary;
} train_view_run;

/* A folder that cannot be read is no error: run->why has it. `details`: also what is beside the
 * records. SIFR_NO_MEMORY. */
sifr_status train_view_run_open(train_view_run *run, const char *path, size_t capacity,
                                bool details, sifr_error *error) SIFR_MUST_CHECK;
void train_view_run_close(train_view_run *run);

/* In two parts, for a log that is followed: an empty run, with room for events, and a whole line of
 * its log. `run`: the train_view_run. */
sifr_status train_view_run_begin(train_view_run *run, const char *path, size_t capacity,
                                 bool details, sifr_error *error) SIFR_MUST_CHECK;
sifr_status train_view_run_take(void *run, const char *line, size_t size,
                                sifr_error *error) SIFR_MUST_CHECK;

/* The step of the folder's newest checkpoint; -1: it has none. */
int64_t train_view_newest_checkpoint(const char *path);

/* An object of JSON in a file that the folder has itself, of at most 256 KiB; NULL: none that can
 * be read, and *part (may be NULL) says why. */
json_t *train_view_run_file(const char *path, const char *name, train_view_part *part);

/* NULL: the run has no such key. */
const train_view_series *train_view_run_find(const train_view_run *run, const char *key);

#endif

#include "train/view/view_follow.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/heap.h"

/* Bins: two for each column of a wide terminal. Bytes that a look reads: a part of a second's work,
 * so that keys and a new size are heard. */
enum { BINS = 1024, LOOK_BYTES = 16 << 20 };

/* Seconds since the file was written to; 0 where its clock is ahead of this one. */
static double age_of(const struct stat *file) {
    double written = (double)file->st_mtim.tv_sec + 1e-9 * (double)file->st_mtim.tv_nsec;
    return fmax(0, base_seconds_since_1970() - written);
}

static sifr_status begin(train_view_follow *f, sifr_error *error) {
    train_view_run_close(&f->run);
    train_view_reader_close(&f->reader);
    f->open = false;
    f->head_bytes = 0;
    f->pace = (train_view_pace){0};
    f->paced = f->paced_resumes = 0;
    BASE_TRY(train_view_run_begin(&f->run, f->path, BINS, true, error));
    f->run.newest = true;
    return SIFR_OK;
}

sifr_status train_view_follow_open(train_view_follow *f, const char *path, sifr_error *error) {
    char log[BASE_PATH_LENGTH];
    struct stat about;
    *f = (train_view_follow){.changed = base_seconds(), .checkpoint = -1};
    if (!path[0]) return base_fail(error, SIFR_USAGE, "%s: name the output folder of a run", path);
    bool there = stat(path, &about) == 0;
    if (!there && errno != ENOENT)
        return base_fail_errno(error, errno, "%s: cannot look into the output folder", path);
    if (there && !S_ISDIR(about.st_mode))
        return base_fail(error, SIFR_USAGE, "%s: no folder; name the output folder of a run", path);
    BASE_TRY(base_path_join(log, path, "metrics.jsonl", error));
    sifr_status status = base_copy_text(path, strlen(path), &f->path, error);
    if (status == SIFR_OK) status = base_copy_text(log, strlen(log), &f->log, error);
    if (status == SIFR_OK) status = begin(f, error);
    if (status != SIFR_OK) train_view_follow_close(f);
    return status;
}

void train_view_follow_close(train_view_follow *f) {
    train_view_run_close(&f->run);
    train_view_reader_close(&f->reader);
    free(f->path);
    free(f->log);
    *f = (train_view_follow){0};
}

/* --- the log --- */

static size_t read_head(int descriptor, char head[TRAIN_VIEW_HEAD]) {
    ssize_t got = pread(descriptor, head, TRAIN_VIEW_HEAD, 0);
    return got > 0 ? (size_t)got : 0;
}

/* Whether the log that is open is still the one of that name, with more behind it at most. */
static bool is_same(train_view_follow *f, const struct stat *now) {
    char head[TRAIN_VIEW_HEAD];
    bool same = now->st_ino == f->about.st_ino && now->st_dev == f->about.st_dev &&
                now->st_size >= f->about.st_size;
    return same && read_head(f->reader.descriptor, head) >= f->head_bytes &&
           memcmp(head, f->head, f->head_bytes) == 0;
}

/* A log that is not there is none yet, or is being replaced. */
static sifr_status open_log(train_view_follow *f, const struct stat *now, sifr_error *error) {
    BASE_TRY(begin(f, error));
    BASE_TRY(train_view_reader_open(&f->reader, f->log, error));
    f->open = true;
    f->about = *now;
    return SIFR_OK;
}

/* A record's rate leaves out evaluations and saves. A resumed run may have another machine. */
static void note_pace(train_view_follow *f) {
    const train_view_run *run = &f->run;
    const train_view_series *rate = train_view_run_find(run, "tokens_per_second");
    const train_view_series *tokens = train_view_run_find(run, "tokens");
    if (run->resumes != f->paced_resumes) f->pace = (train_view_pace){0};
    f->paced_resumes = run->resumes;
    if (!rate || rate->count == f->paced) return;
    f->paced = rate->count;
    if (rate->ends_undefined || !tokens || tokens->last_step != rate->last_step) return;
    train_view_pace_add(&f->pace, tokens->last / (double)tokens->last_step / rate->last);
}

static sifr_status take_pace(void *user, const char *line, size_t size, sifr_error *error) {
    train_view_follow *f = user;
    BASE_TRY(train_view_run_take(&f->run, line, size, error));
    note_pace(f);
    return SIFR_OK;
}

static sifr_status read_log(train_view_follow *f, sifr_error *error) {
    struct stat now;
    int64_t before = f->run.lines.lines;
    bool end;
    f->behind = false;
    if (stat(f->log, &now) != 0) {
        if (errno != ENOENT) return base_fail_errno(error, errno, "%s: cannot open", f->log);
        return f->open ? begin(f, error) : SIFR_OK;
    }
    if (!f->open || !is_same(f, &now)) BASE_TRY(open_log(f, &now, error));
    f->about = now;
    BASE_TRY(
        train_view_reader_take(&f->reader, LOOK_BYTES, f, take_pace, &f->run.lines, &end, error));
    if (f->head_bytes < TRAIN_VIEW_HEAD) f->head_bytes = read_head(f->reader.descriptor, f->head);
    f->behind = !end;
    if (f->run.lines.lines != before) f->changed = base_seconds() - age_of(&now);
    return SIFR_OK;
}

/* --- beside the log --- */

static train_view_state state_in(const json_t *summary) {
    static const char *const names[] = {NULL, "running", "done", "stopped", "failed"};
    const char *state = json_string_value(json_object_get(summary, "state"));
    for (int i = TRAIN_VIEW_RUNNING; state && i <= TRAIN_VIEW_FAILED; i++)
        if (!strcmp(names[i], state)) return (train_view_state)i;
    return TRAIN_VIEW_UNKNOWN;
}

/* A whole number from 1 on; 0: none. */
static int64_t count_in(const json_t *object, const char *key) {
    json_int_t count = json_integer_value(json_object_get(object, key));
    return count > 0 && count < (json_int_t)9e15 ? (int64_t)count : 0;
}

static void take_summary(train_view_follow *f) {
    json_t *summary = train_view_run_file(f->path, "summary.json", NULL), *config = NULL;
    const char *why = json_string_value(json_object_get(summary, "error"));
    f->state = state_in(summary);
    f->total_steps = count_in(summary, "total_steps");
    snprintf(f->why, sizeof f->why, "%s", why && f->state == TRAIN_VIEW_FAILED ? why : "");
    if (!summary) config = train_view_run_file(f->path, "sifr_config.json", NULL);
    if (config) f->total_steps = count_in(json_object_get(config, "sifr"), "max_steps");
    json_decref(summary);
    json_decref(config);
}

/* It is replaced by a rename, and so has another number each time. */
static void read_summary(train_view_follow *f) {
    char path[BASE_PATH_LENGTH];
    struct stat now = {0};
    if (base_path_join(path, f->path, "summary.json", NULL) != SIFR_OK) return;
    if (stat(path, &now) != 0) now = (struct stat){0};
    bool same = now.st_ino == f->summary.st_ino && now.st_size == f->summary.st_size &&
                now.st_mtim.tv_sec == f->summary.st_mtim.tv_sec &&
                now.st_mtim.tv_nsec == f->summary.st_mtim.tv_nsec;
    if (same && (now.st_ino || f->total_steps)) return;
    f->summary = now;
    take_summary(f);
}

sifr_status train_view_follow_look(train_view_follow *f, sifr_error *error) {
    BASE_TRY(read_log(f, error));
    read_summary(f);
    f->checkpoint = train_view_newest_checkpoint(f->path);
    return SIFR_OK;
}

bool train_view_follow_over(const train_view_follow *f) {
    if (f->behind) return false;
    if (f->state == TRAIN_VIEW_UNKNOWN)
        return f->total_steps > 0 && f->run.last_step >= f->total_steps;
    return f->state != TRAIN_VIEW_RUNNING;
}

double train_view_follow_left(const train_view_follow *f) {
    int64_t left = f->total_steps - f->run.last_step;
    double each = train_view_pace_seconds(&f->pace);
    if (train_view_follow_over(f) || !f->total_steps || each <= 0 || left < 0) return NAN;
    return each * (double)left;
}

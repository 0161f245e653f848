#include "train/report/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/heap.h"
#include "base/json.h"

static const char *const columns[] = {"step",
                                      "epoch",
                                      "loss",
                                      "grad_norm",
                                      "learning_rate",
                                      "tokens_per_second",
                                      "tokens",
                                      "limit_share",
                                      "memory_bytes",
                                      "skipped",
                                      "seconds",
                                      "eval_loss",
                                      "eval_perplexity",
                                      "loss_scale"};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* Those of objectives come last; NULL: there is no more. */
static const char *column_name(const train_metrics *metrics, int column, char out[64]) {
    if (column < COLUMNS) return columns[column];
    return train_objective_column(metrics->objective, (size_t)(column - COLUMNS), out);
}

static sifr_status wrong_write(const char *path, sifr_error *error) {
    return base_fail_errno(error, errno ? errno : EIO, "%s: cannot write", path);
}

static sifr_status write_json(train_metrics *metrics, const json_t *record, sifr_error *error) {
    errno = 0;
    if (json_dumpf(record, metrics->jsonl, JSON_COMPACT | JSON_REAL_PRECISION(9)) != 0 ||
        fputc('\n', metrics->jsonl) == EOF || fflush(metrics->jsonl) != 0)
        return wrong_write(metrics->jsonl_path, error);
    return SIFR_OK;
}

static sifr_status write_csv(train_metrics *metrics, const json_t *record, sifr_error *error) {
    errno = 0;
    char out[64];
    const char *name;
    for (int c = 0; (name = column_name(metrics, c, out)); c++) {
        const json_t *value = json_object_get(record, name);
        if (c) fputc(',', metrics->csv);
        if (json_is_integer(value))
            fprintf(metrics->csv, "%lld", (long long)json_integer_value(value));
        else if (json_is_real(value))
            fprintf(metrics->csv, "%.9g", json_real_value(value));
    }
    if (fputc('\n', metrics->csv) == EOF || fflush(metrics->csv) != 0)
        return wrong_write(metrics->csv_path, error);
    return SIFR_OK;
}

/* Writes the history to temporary files that replace the old ones when complete, so a kill at any
 * time leaves either the old or the new files. */
static sifr_status open_beside(const char *path, char temporary[BASE_PATH_LENGTH], FILE **out,
                               sifr_error *error) {
    int used = snprintf(temporary, BASE_PATH_LENGTH, "%s.tmp-%ld", path, (long)getpid());
    if (used < 0 || used >= BASE_PATH_LENGTH)
        return base_fail(error, SIFR_USAGE, "%.200s…: path too long", path);
    *out = fopen(temporary, "we");
    return *out ? SIFR_OK : wrong_write(path, error);
}

/* One record of both files. They have it from now on, or neither has. */
static sifr_status write_record(train_metrics *metrics, const json_t *record, sifr_error *error) {
    BASE_TRY(write_json(metrics, record, error));
    BASE_TRY(write_csv(metrics, record, error));
    metrics->jsonl_bytes = ftell(metrics->jsonl);
    metrics->csv_bytes = ftell(metrics->csv);
    return SIFR_OK;
}

/* A line of an earlier run's records; those that are torn, or of steps after `step`, are left out.
 */
static sifr_status copy_line(train_metrics *metrics, const char *line, size_t size, int64_t step,
                             sifr_error *error) {
    json_t *record = json_loadb(line, size, JSON_REJECT_DUPLICATES, NULL);
    const json_t *at = json_object_get(record, "step");
    sifr_status status = SIFR_OK;
    if (json_is_integer(at) && json_integer_value(at) <= step) {
        status = train_history_add(&metrics->history, record, error);
        if (status == SIFR_OK) status = write_record(metrics, record, error);
    }
    json_decref(record);
    return status;
}

static sifr_status copy_records(train_metrics *metrics, int64_t step, sifr_error *error) {
    base_map map;
    if (step == 0 || !base_is_file(metrics->jsonl_path)) return SIFR_OK;
    BASE_TRY(base_map_file(metrics->jsonl_path, &map, error));
    const char *line = (const char *)map.data, *end = line + map.size, *stop;
    sifr_status status = SIFR_OK;
    while (status == SIFR_OK && line < end && (stop = memchr(line, '\n', (size_t)(end - line)))) {
        status = copy_line(metrics, line, (size_t)(stop - line), step, error);
        line = stop + 1;
    }
    base_unmap(&map);
    return status;
}

static sifr_status open_anew(train_metrics *metrics, int64_t step, sifr_error *error) {
    char jsonl[BASE_PATH_LENGTH], csv[BASE_PATH_LENGTH];
    char out[64];
    const char *name;
    errno = 0;
    BASE_TRY(open_beside(metrics->jsonl_path, jsonl, &metrics->jsonl, error));
    BASE_TRY(open_beside(metrics->csv_path, csv, &metrics->csv, error));
    for (int c = 0; (name = column_name(metrics, c, out)); c++)
        fprintf(metrics->csv, "%s%s", c ? "," : "", name);
    if (fputc('\n', metrics->csv) == EOF || fflush(metrics->csv) != 0)
        return wrong_write(metrics->csv_path, error);
    metrics->csv_bytes = ftell(metrics->csv);
    BASE_TRY(copy_records(metrics, step, error));
    if (rename(jsonl, metrics->jsonl_path) != 0) return wrong_write(metrics->jsonl_path, error);
    if (rename(csv, metrics->csv_path) != 0) return wrong_write(metrics->csv_path, error);
    return SIFR_OK;
}

static void close_files(train_metrics *metrics) {
    if (metrics->jsonl) fclose(metrics->jsonl);
    if (metrics->csv) fclose(metrics->csv);
    metrics->jsonl = metrics->csv = NULL;
}

static void remove_beside(const char *path) {
    char temporary[BASE_PATH_LENGTH];
    int used = snprintf(temporary, sizeof temporary, "%s.tmp-%ld", path, (long)getpid());
    if (used > 0 && used < (int)sizeof temporary) unlink(temporary);
}

/* Opens a file behind its last whole record. */
static sifr_status open_behind(const char *path, int64_t bytes, FILE **out, sifr_error *error) {
    struct stat about;
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    bool there = file >= 0 && fstat(file, &about) == 0 &&
                 (about.st_size <= bytes || ftruncate(file, bytes) == 0);
    *out = there ? fdopen(file, "w") : NULL;
    if (*out && fseek(*out, 0, SEEK_END) == 0) return SIFR_OK;
    sifr_status status = wrong_write(path, error);
    if (!*out && file >= 0) close(file);
    return status;
}

/* After a failed write: writes what is missing. What closing the files has still written of it goes
 * first. */
static sifr_status catch_up(train_metrics *metrics, sifr_error *error) {
    close_files(metrics);
    errno = 0;
    BASE_TRY(open_behind(metrics->jsonl_path, metrics->jsonl_bytes, &metrics->jsonl, error));
    BASE_TRY(open_behind(metrics->csv_path, metrics->csv_bytes, &metrics->csv, error));
    while (json_array_size(metrics->pending)) {
        BASE_TRY(write_record(metrics, json_array_get(metrics->pending, 0), error));
        json_array_remove(metrics->pending, 0);
    }
    return SIFR_OK;
}

static sifr_status make_path(const char *output, const char *name, char **out, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    BASE_TRY(base_path_join(path, output, name, error));
    return base_copy_text(path, strlen(path), out, error);
}

sifr_status train_metrics_open(train_metrics *metrics, const char *output, int64_t step,
                               const train_objective *objective, sifr_error *error) {
    sifr_status status;
    *metrics = (train_metrics){.pending = json_array(), .objective = objective};
    train_history_begin(&metrics->history);
    if (!metrics->pending) return base_fail_alloc(error, 64);
    BASE_TRY_GOTO(status, make_path(output, "metrics.jsonl", &metrics->jsonl_path, error), fail);
    BASE_TRY_GOTO(status, make_path(output, "metrics.csv", &metrics->csv_path, error), fail);
    BASE_TRY_GOTO(status, open_anew(metrics, step, error), fail);
    return SIFR_OK;
fail:
    if (metrics->jsonl_path) remove_beside(metrics->jsonl_path);
    if (metrics->csv_path) remove_beside(metrics->csv_path);
    train_metrics_close(metrics);
    return status;
}

void train_metrics_close(train_metrics *metrics) {
    close_files(metrics);
    json_decref(metrics->pending);
    train_history_free(&metrics->history);
    free(metrics->jsonl_path);
    free(metrics->csv_path);
    *metrics = (train_metrics){0};
}

sifr_status train_metrics_add(train_metrics *metrics, json_t *record, sifr_error *error) {
    sifr_status status =
        record ? train_history_add(&metrics->history, record, error) : base_fail_alloc(error, 256);
    if (status != SIFR_OK) {
        json_decref(record);
        return status;
    }
    if (!metrics->behind && (status = write_record(metrics, record, error)) == SIFR_OK) {
        json_decref(record);
        return SIFR_OK;
    }
    if (json_array_append_new(metrics->pending, record) != 0) return base_fail_alloc(error, 256);
    if (metrics->behind) status = catch_up(metrics, error);
    metrics->behind = status != SIFR_OK;
    return status;
}

#include "train/report/spool_lines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "sifr/version.h"
#include "train/send/mlflow_text.h"
#include "train/send/spool.h"

/* --- parameters --- */

enum { PATH = 256, DEPTH = 16 };

/* Members of objects by their paths, "optimizer.params.lr"; lists as JSON. */
static bool flatten(const json_t *value, char path[PATH], size_t used, int depth, json_t *out) {
    const char *key;
    json_t *member;
    if (json_is_object(value) && depth < DEPTH) {
        bool whole = true;
        json_object_foreach((json_t *)(uintptr_t)value, key, member) {
            int more = snprintf(path + used, PATH - used, "%s%s", used ? "." : "", key);
            if (more < 0 || used + (size_t)more >= PATH) continue; /* no key of sifr's */
            whole = whole && flatten(member, path, used + (size_t)more, depth + 1, out);
        }
        return whole;
    }
    path[used] = '\0';
    char cut[TRAIN_MLFLOW_VALUE + 1];
    char *text = json_is_string(value) ? NULL : base_json_text(value);
    const char *whole = json_is_string(value) ? json_string_value(value) : text;
    if (whole) train_mlflow_cut(whole, TRAIN_MLFLOW_VALUE, cut);
    free(text);
    return whole && json_object_set_new(out, path, json_string(cut)) == 0;
}

static const char *from_environment(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

sifr_status train_spool_prepare(train_spool_lines *spool, const train_report_settings *settings,
                                sifr_error *error) {
    char path[PATH] = "";
    json_t *effective = config_effective(settings->config), *out = json_object();
    bool whole = effective && out && flatten(effective, path, 0, 0, out);
    json_decref(effective);
    *spool = (train_spool_lines){.began = base_seconds_since_1970(),
                                 .experiment = from_environment("MLFLOW_EXPERIMENT_NAME"),
                                 .experiment_id = from_environment("MLFLOW_EXPERIMENT_ID")};
    if (whole) {
        spool->parameters = out;
        return SIFR_OK;
    }
    json_decref(out);
    return base_fail_alloc(error, 4096);
}

void train_spool_lines_close(train_spool_lines *spool) {
    train_lines_close(&spool->file);
    json_decref(spool->parameters);
    *spool = (train_spool_lines){0};
}

/* --- lines --- */

static json_int_t milliseconds(double seconds) {
    return (json_int_t)(1e3 * seconds);
}

/* Takes the line. */
static sifr_status add(train_spool_lines *spool, json_t *line, sifr_error *error) {
    char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
    json_decref(line);
    if (spool->file.gone) { /* without its head a new one would be no run's */
        free(text);
        return base_fail(error, SIFR_FAILED, "%s: deleted while the run writes it",
                         spool->file.path);
    }
    size_t size = text ? strlen(text) : 0;
    sifr_status status = text && size < TRAIN_SPOOL_LINE ? SIFR_OK : base_fail_alloc(error, size);
    if (status == SIFR_OK) {
        text[size] = '\n'; /* in place of the NUL */
        status = train_lines_add(&spool->file, text, size + 1, error);
    }
    free(text);
    return status;
}

static json_t *number(double value) {
    if (isfinite(value)) return json_real(value);
    return json_string(isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
}

/* As the records of metrics.jsonl, but for numbers that JSON does not have; an evaluation has its
 * own alone. */
sifr_status train_spool_record(train_spool_lines *spool, const train_record *record,
                               sifr_error *error) {
    char key[64];
    json_t *metrics = json_object();
    bool whole = metrics;
    for (int id = 0; whole && id < TRAIN_METRICS; id++) {
        const train_metric *m = train_metric_at((train_metric_id)id);
        bool other = record->when == TRAIN_EACH_EVALUATION && m->when != record->when;
        if ((record->has >> id & 1) && !other)
            whole = json_object_set_new(metrics, m->key, number(record->value[id])) == 0;
    }
    for (int i = 0; whole && i < record->more; i++)
        whole = json_object_set_new(metrics, train_record_key(record, i, key),
                                    number(record->of[i].value)) == 0;
    if (!whole) {
        json_decref(metrics);
        return base_fail_alloc(error, 1024);
    }
    return add(spool,
               json_pack("{s:I, s:I, s:o}", "step", (json_int_t)record->step, "time",
                         milliseconds(record->time), "metrics", metrics),
               error);
}

sifr_status train_spool_artifact(train_spool_lines *spool, const char *name, sifr_error *error) {
    return add(spool, json_pack("{s:s}", "artifact", name), error);
}

sifr_status train_spool_end(train_spool_lines *spool, const char *state, sifr_error *error) {
    return add(
        spool,
        json_pack("{s:s, s:I}", "end", state, "time", milliseconds(base_seconds_since_1970())),
        error);
}

/* --- the beginning --- */

static sifr_status make_id(char out[TRAIN_SPOOL_ID], sifr_error *error) {
    uint8_t bytes[TRAIN_SPOOL_ID / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return base_fail(error, SIFR_FAILED, "the system has no random bytes");
    for (size_t i = 0; i < sizeof bytes; i++) snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return SIFR_OK;
}

/* The last part of the output's path, without "/" at its end. */
static json_t *name_of(const char *output) {
    size_t end = strlen(output), begin;
    while (end > 1 && output[end - 1] == '/') end--;
    for (begin = end; begin > 0 && output[begin - 1] != '/';) begin--;
    json_t *name = json_stringn(output + begin, end - begin);
    return name ? name : json_string("sifr"); /* no UTF-8 */
}

/* Null also where it is no UTF-8. */
static json_t *text_or_null(const char *text) {
    json_t *out = text ? json_string(text) : NULL;
    return out ? out : json_null();
}

static sifr_status add_head(train_spool_lines *spool, const char *output, sifr_error *error) {
    char id[TRAIN_SPOOL_ID];
    BASE_TRY(make_id(id, error));
    return add(spool,
               json_pack("{s:i, s:s, s:o, s:I, s:o, s:o}", "spool", TRAIN_SPOOL_VERSION, "run", id,
                         "name", name_of(output), "time", milliseconds(spool->began), "experiment",
                         text_or_null(spool->experiment), "experiment_id",
                         text_or_null(spool->experiment_id)),
               error);
}

/* What is behind a head that is none could never be sent. */
static sifr_status check_head(const char *text, size_t size, const char *output,
                              sifr_error *error) {
    const char *end = memchr(text, '\n', size);
    json_t *head = NULL;
    if (end && base_json_parse(text, (size_t)(end - text), TRAIN_SPOOL, &head, NULL) != SIFR_OK)
        head = NULL;
    sifr_status status = train_spool_check(head, output, error);
    json_decref(head);
    return status;
}

/* Behind its last whole line; a kill may have left a torn one. */
static sifr_status find_end(const char *path, const char *output, int64_t *bytes,
                            sifr_error *error) {
    base_map map;
    *bytes = 0;
    if (!base_is_file(path)) return SIFR_OK;
    BASE_TRY(base_map_file(path, &map, error));
    const char *end = map.size ? memrchr(map.data, '\n', map.size) : NULL;
    if (end) *bytes = end + 1 - (const char *)map.data;
    sifr_status status =
        end ? check_head((const char *)map.data, map.size, output, error) : SIFR_OK;
    base_unmap(&map);
    return status;
}

/* Several lines, since one has a limit. */
static sifr_status add_parameters(train_spool_lines *spool, sifr_error *error) {
    const char *key;
    json_t *value, *some = json_object();
    sifr_status status = some ? SIFR_OK : base_fail_alloc(error, 64);
    json_object_foreach(spool->parameters, key, value) {
        if (status == SIFR_OK && json_object_size(some) == TRAIN_MLFLOW_PARAMETERS) {
            status = add(spool, json_pack("{s:O}", "parameters", some), error);
            json_object_clear(some);
        }
        if (status == SIFR_OK && json_object_set(some, key, value) != 0)
            status = base_fail_alloc(error, 64);
    }
    if (status == SIFR_OK) status = add(spool, json_pack("{s:O}", "parameters", some), error);
    json_decref(some);
    return status;
}

static sifr_status add_settings(train_spool_lines *spool, sifr_error *error) {
    BASE_TRY(add_parameters(spool, error));
    return add(spool,
               json_pack("{s:{s:s, s:s, s:s}}", "tags", "sifr.version", sifr_version(),
                         "mlflow.source.name", "sifr train", "mlflow.source.type", "LOCAL"),
               error);
}

sifr_status train_spool_begin(train_spool_lines *spool, const train_report_settings *settings,
                              sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    int64_t bytes = 0;
    BASE_TRY(base_path_join(path, settings->output, TRAIN_SPOOL, error));
    if (settings->first_step > 0) BASE_TRY(find_end(path, settings->output, &bytes, error));
    train_lines_close(&spool->file);
    BASE_TRY(train_lines_go_on(&spool->file, path, bytes, error));
    if (bytes == 0)
        BASE_TRY(add_head(spool, settings->output, error));
    else
        BASE_TRY(add(spool,
                     json_pack("{s:I, s:I}", "resumed", (json_int_t)settings->first_step, "time",
                               milliseconds(spool->began)),
                     error));
    BASE_TRY(add_settings(spool, error));
    spool->begun = true;
    return SIFR_OK;
}

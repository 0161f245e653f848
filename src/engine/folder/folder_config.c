/* config.json of a folder whose task or labels a caller has changed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/heap.h"
#include "base/json.h"
#include "engine/handle.h"
#include "formats/config_edit.h"

enum { CONFIG_FILE_LIMIT = 16 << 20, CHANGES = 5 };

typedef struct config_changes {
    formats_config_change list[CHANGES];
    char *values[CHANGES];
    size_t count;
} config_changes;

/* JSON text as transformers lays it out: indented, and as a member of the outermost object. Takes
 * `value`, NULL where memory ran out. */
static sifr_status write_value(json_t *value, char **out, sifr_error *error) {
    char *text =
        value ? json_dumps(value, JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_ENCODE_ANY) : NULL;
    size_t lines = 0, used = 0;
    json_decref(value);
    if (!text) return base_fail_alloc(error, 4096);
    for (const char *at = text; *at; at++) lines += *at == '\n';
    sifr_status status = base_alloc(strlen(text) + 2 * lines + 1, 1, out, error);
    for (const char *at = text; status == SIFR_OK && *at; at++) {
        (*out)[used++] = *at;
        if (*at == '\n') (*out)[used++] = ' ', (*out)[used++] = ' ';
    }
    free(text);
    return status;
}

/* Changes a member unless it has this value; takes `value`. */
static sifr_status change(config_changes *c, const json_t *config, const char *key, json_t *value,
                          sifr_error *error) {
    if (value && json_equal(json_object_get(config, key), value))
        return json_decref(value), SIFR_OK;
    BASE_TRY(write_value(value, &c->values[c->count], error));
    c->list[c->count] = (formats_config_change){key, c->values[c->count]};
    c->count++;
    return SIFR_OK;
}

static json_t *names_of(const model_labels *labels) {
    json_t *map = json_object();
    char key[24];
    for (int64_t i = 0; map && i < labels->count; i++) {
        snprintf(key, sizeof key, "%lld", (long long)i);
        json_object_set_new(map, key, json_string(labels->names[i]));
    }
    return map;
}

static json_t *numbers_of(const model_labels *labels) {
    json_t *map = json_object();
    for (int64_t i = 0; map && i < labels->count; i++)
        json_object_set_new(map, labels->names[labels->sorted[i]], json_integer(labels->sorted[i]));
    return map;
}

/* What transformers makes of the absent or null keys of a file that it has read. */
static bool has_labels(const json_t *config, const model_labels *labels) {
    model_labels own = {0};
    bool same =
        model_labels_read(config, "", &own, NULL) == SIFR_OK && model_labels_equal(&own, labels);
    model_labels_free(&own);
    return same;
}

static sifr_status change_labels(config_changes *c, const engine_folder *folder,
                                 const json_t *config, sifr_error *error) {
    const json_t *problem = json_object_get(config, "problem_type");
    const char *name = model_problem_name(folder->config.problem);
    if (!has_labels(config, &folder->labels)) {
        BASE_TRY(change(c, config, "id2label", names_of(&folder->labels), error));
        BASE_TRY(change(c, config, "label2id", numbers_of(&folder->labels), error));
        if (json_object_get(config, "num_labels"))
            BASE_TRY(change(c, config, "num_labels", json_integer(folder->labels.count), error));
    }
    if (folder->config.task != MODEL_SEQUENCE_CLASSES) return SIFR_OK;
    model_problem usual = folder->labels.count == 1 ? MODEL_REGRESSION : MODEL_SINGLE_LABEL;
    bool silent = !problem || json_is_null(problem);
    if (silent && !folder->made_count && folder->config.problem == usual) return SIFR_OK;
    return change(c, config, "problem_type", json_string(name), error);
}

/* The class for the task, where the file names one for another task, or for the body alone. */
static sifr_status change_class(config_changes *c, const engine_folder *folder,
                                const json_t *config, sifr_error *error) {
    const char *name =
        json_string_value(json_array_get(json_object_get(config, "architectures"), 0));
    size_t length = name ? strlen(name) : 0;
    bool body = length < 5 || !strcmp(name + length - 5, "Model");
    bool other = folder->config.task != folder->config.own_task;
    if (!other && !(body && folder->made_count)) return SIFR_OK;
    const model_class *class_of = model_class_of(folder->architecture, folder->config.task);
    return change(c, config, "architectures", json_pack("[s]", class_of->name), error);
}

static sifr_status write_changed(const engine_folder *folder, const char *from, const char *to,
                                 const char *text, size_t size, sifr_error *error) {
    config_changes c = {0};
    json_t *config;
    char *edited = NULL;
    BASE_TRY(base_json_parse(text, size, from, &config, error));
    sifr_status status = change_class(&c, folder, config, error);
    if (status == SIFR_OK && model_task_labelled(folder->config.task))
        status = change_labels(&c, folder, config, error);
    if (status == SIFR_OK && c.count)
        status = formats_config_edit(text, size, from, c.list, c.count, &edited, &size, error);
    if (status == SIFR_OK && c.count) status = base_write_file(to, edited, size, error);
    for (size_t i = 0; i < CHANGES; i++) free(c.values[i]);
    free(edited);
    json_decref(config);
    return status;
}

sifr_status engine_folder_put_config(const engine_folder *folder, const char *from, const char *to,
                                     sifr_error *error) {
    char source[BASE_PATH_LENGTH], target[BASE_PATH_LENGTH], *text;
    size_t size;
    bool plain = !model_task_labelled(folder->config.task) && !folder->made_count;
    if (plain && folder->config.task == folder->config.own_task) return SIFR_OK;
    BASE_TRY(base_path_join(source, from, "config.json", error));
    BASE_TRY(base_path_join(target, to, "config.json", error));
    BASE_TRY(base_read_file(source, CONFIG_FILE_LIMIT, &text, &size, error));
    sifr_status status = write_changed(folder, source, target, text, size, error);
    free(text);
    return status;
}

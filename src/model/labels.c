#include "model/labels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/heap.h"
#include "base/json.h"
#include "model/model_reader.h"

enum { LABEL_FILE_LIMIT = 16 << 20 };

void model_labels_free(model_labels *labels) {
    for (int64_t i = 0; labels->names && i < labels->count; i++) free(labels->names[i]);
    free(labels->names);
    free(labels->sorted);
    *labels = (model_labels){0};
}

typedef struct label_entry {
    const char *name;
    int64_t id;
} label_entry;

static int compare_entries(const void *a, const void *b) {
    return strcmp(((const label_entry *)a)->name, ((const label_entry *)b)->name);
}

/* Sorts by name, and refuses a name that stands twice. */
static sifr_status sort(model_labels *labels, const char *where, sifr_error *error) {
    size_t count = (size_t)labels->count;
    label_entry *entries;
    BASE_TRY(base_alloc(count, sizeof *entries, &entries, error));
    for (size_t i = 0; i < count; i++) entries[i] = (label_entry){labels->names[i], (int64_t)i};
    if (count) qsort(entries, count, sizeof *entries, compare_entries);
    sifr_status status = SIFR_OK;
    for (size_t i = 0; i < count && status == SIFR_OK; i++) {
        labels->sorted[i] = entries[i].id;
        if (i > 0 && !strcmp(entries[i - 1].name, entries[i].name)) {
            status = base_fail(error, SIFR_USAGE, "%s: the label \"%.80s\" stands twice", where,
                               entries[i].name);
        }
    }
    free(entries);
    return status;
}

static sifr_status fill(const char *const *names, const char *where, model_labels *out,
                        sifr_error *error) {
    size_t count = (size_t)out->count;
    BASE_TRY(base_alloc(count, sizeof *out->names, &out->names, error));
    BASE_TRY(base_alloc(count, sizeof *out->sorted, &out->sorted, error));
    for (size_t i = 0; i < count; i++)
        BASE_TRY(base_copy_text(names[i], strlen(names[i]), &out->names[i], error));
    return sort(out, where, error);
}

static sifr_status refuse_count(int64_t count, const char *where, sifr_error *error) {
    return base_fail(error, SIFR_USAGE, "%s: %lld labels, there must be 1 … %lld", where,
                     (long long)count, (long long)MODEL_LIMIT_LABELS);
}

sifr_status model_labels_make(const char *const *names, int64_t count, const char *where,
                              model_labels *out, sifr_error *error) {
    model_labels_free(out);
    if (count < 1 || count > MODEL_LIMIT_LABELS) return refuse_count(count, where, error);
    out->count = count;
    sifr_status status = fill(names, where, out, error);
    if (status != SIFR_OK) model_labels_free(out);
    return status;
}

sifr_status model_labels_number(int64_t count, const char *where, model_labels *out,
                                sifr_error *error) {
    enum { NAME = 32 };
    char *text;
    if (count < 1 || count > MODEL_LIMIT_LABELS) return refuse_count(count, where, error);
    const char **names = NULL;
    BASE_TRY(base_alloc((size_t)count, NAME, &text, error));
    sifr_status status = base_alloc((size_t)count, sizeof *names, &names, error);
    for (int64_t i = 0; status == SIFR_OK && i < count; i++) {
        snprintf(text + i * NAME, NAME, "LABEL_%lld", (long long)i);
        names[i] = text + i * NAME;
    }
    if (status == SIFR_OK) status = model_labels_make(names, count, where, out, error);
    free(names);
    free(text);
    return status;
}

/* --- config.json --- */

/* A number of a label, in the only spelling it has; -1: it is none below `count`. */
static int64_t parse_id(const char *text, int64_t count) {
    char again[24];
    long long id = strtoll(text, NULL, 10);
    snprintf(again, sizeof again, "%lld", id);
    return id >= 0 && id < count && !strcmp(text, again) ? (int64_t)id : -1;
}

static sifr_status read_names(const json_t *map, const char *file, const char **names,
                              sifr_error *error) {
    int64_t count = (int64_t)json_object_size(map);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)map, key, value) {
        int64_t id = parse_id(key, count);
        if (id < 0) {
            return base_fail(error, SIFR_USAGE,
                             "%s: \"id2label\" has the key \"%.40s\", but its %lld keys must be "
                             "\"0\" … \"%lld\"",
                             file, key, (long long)count, (long long)count - 1);
        }
        names[id] = json_string_value(value);
        if (!names[id]) {
            return base_fail(error, SIFR_USAGE,
                             "%s: \"id2label\" must give names: that of %lld is "
                             "no string",
                             file, (long long)id);
        }
    }
    return SIFR_OK;
}

static sifr_status from_map(const json_t *map, const char *file, model_labels *out,
                            sifr_error *error) {
    const char **names;
    char where[BASE_PATH_LENGTH + 16];
    if (!json_is_object(map) || !json_object_size(map)) {
        return base_fail(error, SIFR_USAGE,
                         "%s: \"id2label\" must be an object with a name for each number", file);
    }
    BASE_TRY(base_alloc(json_object_size(map), sizeof *names, &names, error));
    snprintf(where, sizeof where, "%s: \"id2label\"", file);
    sifr_status status = read_names(map, file, names, error);
    if (status == SIFR_OK)
        status = model_labels_make(names, (int64_t)json_object_size(map), where, out, error);
    free(names);
    return status;
}

static sifr_status check_reverse(const json_t *map, const char *file, const model_labels *labels,
                                 sifr_error *error) {
    const char *name;
    json_t *value;
    if (!map) return SIFR_OK;
    if (!json_is_object(map)) {
        return base_fail(error, SIFR_USAGE,
                         "%s: \"label2id\" must be an object with a number for each name", file);
    }
    json_object_foreach((json_t *)map, name, value) {
        int64_t id = -1;
        if (json_is_integer(value)) id = (int64_t)json_integer_value(value);
        if (json_is_string(value)) id = parse_id(json_string_value(value), labels->count);
        if (id >= 0 && id < labels->count && !strcmp(labels->names[id], name)) continue;
        return base_fail(error, SIFR_USAGE,
                         "%s: \"label2id\" gives \"%.60s\" a number that has another name in "
                         "\"id2label\": correct or remove one of them",
                         file, name);
    }
    return SIFR_OK;
}

static sifr_status check_count(const json_t *config, const char *file, const model_labels *labels,
                               sifr_error *error) {
    int64_t count;
    BASE_TRY(base_json_int(config, "num_labels", labels->count, &count, file, error));
    if (count == labels->count) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: \"num_labels\" is %lld, but \"id2label\" has %lld names: remove one",
                     file, (long long)count, (long long)labels->count);
}

static sifr_status read_labels(const json_t *config, const char *file, model_labels *out,
                               sifr_error *error) {
    const json_t *map = model_member(config, "id2label");
    if (map) {
        BASE_TRY(from_map(map, file, out, error));
        BASE_TRY(check_count(config, file, out, error));
    } else {
        int64_t count;
        BASE_TRY(base_json_int(config, "num_labels", 2, &count, file, error));
        if (count < 1 || count > MODEL_LIMIT_LABELS) {
            return base_fail(error, SIFR_USAGE, "%s: \"num_labels\" is %lld, must be in 1 … %lld",
                             file, (long long)count, (long long)MODEL_LIMIT_LABELS);
        }
        BASE_TRY(model_labels_number(count, file, out, error));
    }
    return check_reverse(model_member(config, "label2id"), file, out, error);
}

sifr_status model_labels_read(const json_t *config, const char *name, model_labels *out,
                              sifr_error *error) {
    sifr_status status = read_labels(config, name, out, error);
    if (status != SIFR_OK) model_labels_free(out);
    return status;
}

sifr_status model_labels_load(const char *path, model_labels *out, sifr_error *error) {
    char file[BASE_PATH_LENGTH];
    json_t *config;
    if (base_is_directory(path)) {
        BASE_TRY(base_path_join(file, path, "config.json", error));
        path = file;
    }
    BASE_TRY(base_json_load(path, LABEL_FILE_LIMIT, &config, error));
    sifr_status status = model_labels_read(config, path, out, error);
    json_decref(config);
    return status;
}

/* --- search --- */

/* As strcmp has it, of `name` with `length` bytes. */
static int compare(const char *name, size_t length, const char *other) {
    size_t others = strlen(other);
    int order = memcmp(name, other, length < others ? length : others);
    if (order || length == others) return order;
    return length < others ? -1 : 1;
}

int64_t model_labels_find(const model_labels *labels, const char *name, size_t length) {
    int64_t low = 0, high = labels->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2, id = labels->sorted[middle];
        int order = compare(name, length, labels->names[id]);
        if (order == 0) return id;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

bool model_labels_equal(const model_labels *a, const model_labels *b) {
    bool equal = a->count == b->count;
    for (int64_t i = 0; equal && i < a->count; i++) equal = !strcmp(a->names[i], b->names[i]);
    return equal;
}

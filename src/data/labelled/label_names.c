#include "data/labelled/label_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "data/stream/text_source.h"

/* More than this are no classes, but numbers or texts of another column. */
enum { NAMES_AT_MOST = 10000 };

/* Names as the keys of an object, which keeps each once. */
static sifr_status add_name(json_t *names, const char *name, size_t size, const char *file,
                            sifr_error *error) {
    if (size == 0) return SIFR_OK; /* an error where the row is read, if it is one */
    if (json_object_setn_new(names, name, size, json_true()) != 0)
        return base_fail_alloc(error, size);
    if (json_object_size(names) <= NAMES_AT_MOST) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s: more than %d labels; is it a regression, or another column "
                     "(label_column)?",
                     file, NAMES_AT_MOST);
}

static sifr_status add_parts(json_t *names, const char *text, const char *file, sifr_error *error) {
    while (*text) {
        size_t part = strcspn(text, "|"), next = part + (text[part] == '|');
        const char *from = text;
        while (part && *from == ' ') from++, part--;
        while (part && from[part - 1] == ' ') part--;
        BASE_TRY(add_name(names, from, part, file, error));
        text += next;
    }
    return SIFR_OK;
}

static sifr_status add_value(json_t *names, const json_t *value, bool many, const char *file,
                             sifr_error *error) {
    char number[32];
    size_t i;
    const json_t *item;
    if (json_is_array(value)) {
        json_array_foreach((json_t *)value, i, item) {
            if (!json_is_array(item)) BASE_TRY(add_value(names, item, false, file, error));
        }
    } else if (json_is_integer(value)) {
        snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
        BASE_TRY(add_name(names, number, strlen(number), file, error));
    } else if (json_is_string(value) && many) {
        BASE_TRY(add_parts(names, json_string_value(value), file, error));
    } else if (json_is_string(value)) {
        BASE_TRY(add_name(names, json_string_value(value), json_string_length(value), file, error));
    }
    return SIFR_OK;
}

static sifr_status add_file(const char *path, model_task task, bool many,
                            const data_label_columns *asked, json_t *names, sifr_error *error) {
    data_records *records;
    data_label_columns columns;
    BASE_TRY(data_records_open(path, &records, error));
    sifr_status status = data_label_columns_find(records, task, true, asked, &columns, error);
    while (status == SIFR_OK) {
        json_t *row;
        status = data_records_next(records, &row, error);
        if (status != SIFR_OK || !row) break;
        status = add_value(names, json_object_get(row, columns.label), many, path, error);
        json_decref(row);
    }
    data_records_close(records);
    return status;
}

/* Whether a name is a number in its only spelling. */
static bool is_number(const char *name, long long *number) {
    char again[32];
    *number = strtoll(name, NULL, 10);
    snprintf(again, sizeof again, "%lld", *number);
    return strcmp(name, again) == 0;
}

static int compare(const void *a, const void *b) {
    const char *const *x = a, *const *y = b;
    long long left, right;
    bool numbers[2] = {is_number(*x, &left), is_number(*y, &right)};
    if (numbers[0] != numbers[1]) return numbers[0] ? -1 : 1;
    if (numbers[0]) return left < right ? -1 : left > right;
    return strcmp(*x, *y);
}

static sifr_status sort_names(const json_t *names, const char *where, model_labels *out,
                              sifr_error *error) {
    const char **list, *key;
    json_t *value;
    size_t count = 0;
    BASE_TRY(base_alloc(json_object_size(names) + 1, sizeof *list, &list, error));
    json_object_foreach((json_t *)names, key, value) list[count++] = key;
    if (count) qsort(list, count, sizeof *list, compare);
    sifr_status status = model_labels_make(list, (int64_t)count, where, out, error);
    free(list);
    return status;
}

sifr_status data_label_names(const char *const *paths, size_t count, model_task task, bool many,
                             const data_label_columns *asked, model_labels *out,
                             sifr_error *error) {
    json_t *names = json_object();
    data_text_source files = {0};
    sifr_status status = names ? SIFR_OK : base_fail_alloc(error, 64);
    if (status == SIFR_OK) status = data_text_source_open_rows(paths, count, &files, error);
    for (size_t i = 0; status == SIFR_OK && i < files.count; i++)
        status = add_file(files.documents[i].path, task, many, asked, names, error);
    data_text_source_close(&files);
    if (status == SIFR_OK && json_object_size(names) < 2)
        status = base_fail(error, SIFR_FAILED,
                           "%s: the label column has %s: give two labels or more, list the "
                           "model's with --labels, or say --problem-type regression",
                           paths[0], json_object_size(names) ? "one label" : "no label");
    if (status == SIFR_OK) status = sort_names(names, paths[0], out, error);
    json_decref(names);
    return status;
}

sifr_status data_label_names_listed(const char *const *names, size_t count, const char *key,
                                    model_labels *out, sifr_error *error) {
    if (count != 1 || !strchr(names[0], ','))
        return model_labels_make(names, (int64_t)count, key, out, error);
    char *copy, *rest, *part;
    const char **list = NULL;
    size_t parts = 0;
    BASE_TRY(base_copy_text(names[0], strlen(names[0]), &copy, error));
    sifr_status status = base_alloc(strlen(copy) + 1, sizeof *list, &list, error);
    for (rest = copy; status == SIFR_OK && (part = strsep(&rest, ","));) list[parts++] = part;
    if (status == SIFR_OK) status = model_labels_make(list, (int64_t)parts, key, out, error);
    free(list);
    free(copy);
    return status;
}

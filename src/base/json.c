#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/file.h"
#include "base/json_lenient.h"
#include "base/json_scan.h"

static json_t *base_json_parse_narrowed(const char *text, size_t size, json_error_t *where) {
    char *copy = malloc(size + 1);
    if (!copy) return NULL;
    memcpy(copy, text, size);
    copy[size] = 0;
    base_json_narrow_all(copy, size);
    json_t *value = json_loadb(copy, size, JSON_REJECT_DUPLICATES, where);
    free(copy);
    return value;
}

/* Whether jansson has refused a number of another size, or may have refused one of Python's words
 * in a file of its own. In a row of data they may be what a model would learn. */
static bool base_json_may_be_narrowed(const char *text, size_t size, int64_t first,
                                      const json_error_t *where) {
    if (json_error_code(where) == json_error_numeric_overflow) return true;
    if (first > 0 || json_error_code(where) != json_error_invalid_syntax) return false;
    return memmem(text, size, "Infinity", 8) || memmem(text, size, "NaN", 3);
}

static sifr_status base_json_read(const char *text, size_t size, const char *name, int64_t first,
                                  int64_t column, bool strict, json_t **out, sifr_error *error) {
    char place[32] = "";
    if (first > 0) snprintf(place, sizeof place, " line %lld:", (long long)first);
    /* jansson skips a NUL after a number; JSON has no NULs. */
    const char *nul = size ? memchr(text, 0, size) : NULL;
    if (nul) {
        return base_fail(error, SIFR_USAGE, "%s:%s not valid JSON: a NUL byte at %zu", name, place,
                         (size_t)(nul - text));
    }
    const char *excess = base_json_excess(text, size);
    if (excess)
        return base_fail(error, SIFR_USAGE, "%s:%s JSON %s is not supported", name, place, excess);
    json_error_t where;
    json_t *value = json_loadb(text, size, JSON_REJECT_DUPLICATES, &where);
    if (!value && first > 0) value = base_json_lenient(text, size);
    if (!value && !strict && base_json_may_be_narrowed(text, size, first, &where))
        value = base_json_parse_narrowed(text, size, &where);
    if (!value) {
        bool zero = json_error_code(&where) == json_error_null_character;
        return base_fail(error, SIFR_USAGE, "%s: not valid JSON at line %lld, column %lld: %s",
                         name, (first > 0 ? (long long)first - 1 : 0) + where.line,
                         where.column + (where.line == 1 ? (long long)column : 0),
                         zero ? "\\u0000 is not supported in a string" : where.text);
    }
    *out = value;
    return SIFR_OK;
}

sifr_status base_json_parse(const char *text, size_t size, const char *name, json_t **out,
                            sifr_error *error) {
    return base_json_read(text, size, name, 0, 0, false, out, error);
}

sifr_status base_json_parse_from(const char *text, size_t size, const char *name, int64_t first,
                                 int64_t column, json_t **out, sifr_error *error) {
    return base_json_read(text, size, name, first, column, false, out, error);
}

sifr_status base_json_parse_strict(const char *text, size_t size, const char *name, json_t **out,
                                   sifr_error *error) {
    return base_json_read(text, size, name, 0, 0, true, out, error);
}

sifr_status base_json_load(const char *path, size_t limit, json_t **out, sifr_error *error) {
    char *text;
    size_t size;
    BASE_TRY(base_read_file(path, limit, &text, &size, error));
    sifr_status status = base_json_parse(text, size, path, out, error);
    free(text);
    return status;
}

/* 15 digits are enough for what people write, and 17 for every double. */
char *base_json_text(const json_t *value) {
    for (size_t digits = 15;; digits++) {
        size_t flags = JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(digits);
        char *text = json_dumps(value, flags);
        if (!text || digits == 17) return text;
        json_t *again = json_loads(text, JSON_DECODE_ANY, NULL);
        bool same = again && json_equal(again, value);
        json_decref(again);
        if (same) return text;
        free(text);
    }
}

json_t *base_json_finite(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static sifr_status base_json_wrong(const char *where, const char *key, const char *wanted,
                                   const json_t *value, sifr_error *error) {
    char *text = base_json_text(value);
    sifr_status status = base_fail(error, SIFR_USAGE, "%s: \"%s\" must be %s, not %.80s", where,
                                   key, wanted, text ? text : "that");
    free(text);
    return status;
}

static const json_t *base_json_member(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

sifr_status base_json_int(const json_t *object, const char *key, int64_t fallback, int64_t *out,
                          const char *where, sifr_error *error) {
    const json_t *value = base_json_member(object, key);
    *out = fallback;
    if (!value) return SIFR_OK;
    if (json_is_integer(value)) {
        *out = (int64_t)json_integer_value(value);
        return SIFR_OK;
    }
    double number = json_is_real(value) ? json_real_value(value) : NAN;
    if (!(fabs(number) <= 0x1p53) || number != floor(number)) {
        bool whole = isfinite(number) && number == floor(number);
        return base_json_wrong(where, key, whole ? "a whole number of 64 bits" : "a whole number",
                               value, error);
    }
    *out = (int64_t)number;
    return SIFR_OK;
}

sifr_status base_json_double(const json_t *object, const char *key, double fallback, double *out,
                             const char *where, sifr_error *error) {
    const json_t *value = base_json_member(object, key);
    *out = fallback;
    if (!value) return SIFR_OK;
    if (!json_is_number(value)) return base_json_wrong(where, key, "a number", value, error);
    *out = json_number_value(value);
    if (fabs(*out) >= BASE_JSON_HUGE_VALUE)
        return base_json_wrong(where, key, "a number smaller than " BASE_JSON_HUGE, value, error);
    return SIFR_OK;
}

sifr_status base_json_bool(const json_t *object, const char *key, bool fallback, bool *out,
                           const char *where, sifr_error *error) {
    const json_t *value = base_json_member(object, key);
    *out = fallback;
    if (!value) return SIFR_OK;
    if (!json_is_boolean(value)) {
        return base_json_wrong(where, key, "true or false", value, error);
    }
    *out = json_is_true(value);
    return SIFR_OK;
}

sifr_status base_json_string(const json_t *object, const char *key, const char *fallback,
                             const char **out, const char *where, sifr_error *error) {
    const json_t *value = base_json_member(object, key);
    *out = fallback;
    if (!value) return SIFR_OK;
    if (!json_is_string(value)) return base_json_wrong(where, key, "a string", value, error);
    *out = json_string_value(value);
    return SIFR_OK;
}

static int base_json_put(const char *data, size_t size, void *writer) {
    return base_writer_write(writer, data, size, NULL) == SIFR_OK ? 0 : -1;
}

/* Writes `text` with every line but the first further in. */
static sifr_status put_indented(base_writer *writer, const char *text, sifr_error *error) {
    for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
        BASE_TRY(base_writer_write(writer, text, (size_t)(end - text), error));
        BASE_TRY(base_writer_write(writer, "\n    ", 5, error));
    }
    return base_writer_write(writer, text, strlen(text), error);
}

static sifr_status put_element(base_writer *writer, const base_json_list *list, size_t index,
                               sifr_error *error) {
    json_t *element = list->make(list->user, index);
    char *text = element ? json_dumps(element, JSON_INDENT(2) | JSON_ENCODE_ANY) : NULL;
    json_decref(element);
    if (!text) return base_fail_alloc(error, 256);
    const char *before = index ? ",\n    " : "\n    ";
    sifr_status status = base_writer_write(writer, before, strlen(before), error);
    if (status == SIFR_OK) status = put_indented(writer, text, error);
    free(text);
    return status;
}

/* In place of the object's end, "\n}". */
static sifr_status put_list(base_writer *writer, const base_json_list *list, sifr_error *error) {
    BASE_TRY(base_writer_write(writer, ",\n  \"", 5, error));
    BASE_TRY(base_writer_write(writer, list->key, strlen(list->key), error));
    BASE_TRY(base_writer_write(writer, "\": [", 4, error));
    for (size_t i = 0; i < list->count; i++) BASE_TRY(put_element(writer, list, i, error));
    const char *end = list->count ? "\n  ]\n}" : "]\n}";
    return base_writer_write(writer, end, strlen(end), error);
}

static sifr_status put_object(base_writer *writer, const json_t *value, const base_json_list *list,
                              sifr_error *error) {
    char *text = json_dumps(value, JSON_INDENT(2));
    if (!text) return base_fail_alloc(error, 1024);
    size_t size = strlen(text) - (list ? 2 : 0);
    sifr_status status = base_writer_write(writer, text, size, error);
    free(text);
    if (status == SIFR_OK && list) status = put_list(writer, list, error);
    return status == SIFR_OK ? base_writer_write(writer, "\n", 1, error) : status;
}

sifr_status base_json_save_with(const json_t *object, const base_json_list *list, const char *path,
                                sifr_error *error) {
    base_assert(!list || json_object_size(object) > 0);
    base_writer writer;
    BASE_TRY(base_writer_open(&writer, path, error));
    sifr_status status = put_object(&writer, object, list, error);
    if (status == SIFR_OK) return base_writer_commit(&writer, error);
    base_writer_abort(&writer);
    return status;
}

sifr_status base_json_save(const json_t *value, const char *path, sifr_error *error) {
    base_writer writer;
    BASE_TRY(base_writer_open(&writer, path, error));
    if (json_dump_callback(value, base_json_put, &writer, JSON_INDENT(2)) != 0) {
        base_writer_abort(&writer);
        return base_fail(error, SIFR_FAILED, "%s: cannot write", path);
    }
    sifr_status status = base_writer_write(&writer, "\n", 1, error);
    if (status != SIFR_OK) {
        base_writer_abort(&writer);
        return status;
    }
    return base_writer_commit(&writer, error);
}

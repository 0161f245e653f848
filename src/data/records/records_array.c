/* JSON: an array of objects, or objects one behind the other, read one at a time. */
#include <stdio.h>
#include <string.h>

#include "data/records/records_internal.h"

/* The next byte that is no blank, which stays; 0 at the end of the file. */
static sifr_status find_byte(data_records *r, char *out, sifr_error *error) {
    bool more = true;
    for (;; r->at++) {
        while (more && r->at == r->size) BASE_TRY(data_records_more(r, &more, error));
        *out = r->at < r->size ? r->text[r->at] : 0;
        if (r->at == r->size || !*out || !strchr(" \t\r\n", *out)) return SIFR_OK;
        r->line += *out == '\n';
    }
}

/* How far the object has been followed. */
typedef struct array_scan {
    int64_t depth;
    bool string, escaped;
} array_scan;

/* Whether the byte ends the object. */
static bool ends_object(array_scan *s, char c) {
    if (s->string) {
        s->string = s->escaped || c != '"';
        s->escaped = !s->escaped && c == '\\';
        return false;
    }
    s->string = c == '"';
    if (c == '{' || c == '[') s->depth++;
    if (c == '}' || c == ']') s->depth--;
    return s->depth == 0;
}

/* The bytes of the object at `at`, which are at hand after it. */
static sifr_status find_end(data_records *r, size_t *size, sifr_error *error) {
    array_scan scan = {0};
    bool more = true;
    for (*size = 0;; ++*size) {
        while (more && r->at + *size == r->size) BASE_TRY(data_records_more(r, &more, error));
        if (r->at + *size == r->size)
            return base_fail(error, SIFR_FAILED,
                             "%s: the file ends inside row %lld, which begins at line %lld",
                             r->name, (long long)r->row, (long long)r->row_line);
        char c = r->text[r->at + *size];
        r->line += c == '\n';
        if (ends_object(&scan, c)) {
            ++*size;
            return SIFR_OK;
        }
        if (*size > DATA_ROW_BYTES)
            return base_fail(error, SIFR_FAILED,
                             "%s: row %lld, at line %lld, has more than %d bytes", r->name,
                             (long long)r->row, (long long)r->row_line, DATA_ROW_BYTES);
    }
}

/* What stands where an object should. */
static sifr_status no_object(const data_records *r, char c, sifr_error *error) {
    if (!r->array)
        return base_fail(error, SIFR_FAILED, "%s: line %lld: no object begins there", r->name,
                         (long long)r->line);
    if (!c)
        return base_fail(error, SIFR_FAILED, "%s: the array is not closed: no ] at the end",
                         r->name);
    if (c == ']')
        return base_fail(error, SIFR_FAILED,
                         "%s: line %lld: a comma before the ] that ends the array", r->name,
                         (long long)r->line);
    return base_fail(error, SIFR_FAILED,
                     "%s: row %lld, at line %lld, is not an object; each element of the array must "
                     "be one",
                     r->name, (long long)r->row, (long long)r->row_line);
}

/* Passes over an element that is no object, to the comma or bracket behind it. */
static sifr_status pass_element(data_records *r, sifr_error *error) {
    array_scan scan = {0};
    bool more = true;
    for (;; r->at++) {
        while (more && r->at == r->size) BASE_TRY(data_records_more(r, &more, error));
        if (r->at == r->size) return no_object(r, 0, error);
        char c = r->text[r->at];
        if (!scan.string && scan.depth == 0 && (c == ',' || c == ']')) return SIFR_OK;
        r->line += c == '\n';
        (void)ends_object(&scan, c);
    }
}

/* The bracket or comma before an element; *ends behind the last one. */
static sifr_status take_mark(data_records *r, bool *ends, sifr_error *error) {
    char c;
    BASE_TRY(find_byte(r, &c, error));
    *ends = r->opened && c == ']';
    if (!*ends && c != (r->opened ? ',' : '[')) {
        if (!c) return no_object(r, c, error);
        return base_fail(error, SIFR_FAILED, "%s: line %lld: a comma must stand between rows",
                         r->name, (long long)r->line);
    }
    r->at++;
    if (!r->opened) {
        r->opened = true;
        BASE_TRY(find_byte(r, &c, error));
        *ends = c == ']';
        r->at += *ends;
    }
    if (!*ends) return SIFR_OK;
    r->closed = true;
    BASE_TRY(find_byte(r, &c, error));
    if (!c && r->at == r->size) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s: line %lld: text behind the array", r->name,
                     (long long)r->line);
}

/* To the next object. */
static sifr_status find_object(data_records *r, bool *ends, sifr_error *error) {
    char c;
    if (r->array) return take_mark(r, ends, error);
    BASE_TRY(find_byte(r, &c, error));
    *ends = r->at == r->size;
    return SIFR_OK;
}

sifr_status data_records_element(data_records *r, json_t **row, sifr_error *error) {
    bool ends = r->closed;
    size_t size;
    char c;
    *row = NULL;
    if (!ends) BASE_TRY(find_object(r, &ends, error));
    if (ends) return SIFR_OK;
    r->row++;
    BASE_TRY(find_byte(r, &c, error));
    r->row_line = r->line;
    if (r->array && c && !strchr("{,]", c)) {
        BASE_TRY(pass_element(r, error));
        r->skippable = true;
    }
    if (c != '{') return no_object(r, c, error);
    BASE_TRY(find_end(r, &size, error));
    const char *text = r->text + r->at;
    r->at += size;
    r->skippable = true;
    return data_records_object(r, text, size, row, error);
}

sifr_status data_records_look(data_records *r, sifr_error *error) {
    array_scan scan = {0};
    const char *line;
    size_t size;
    char c;
    bool there;
    BASE_TRY(find_byte(r, &c, error));
    r->array = c == '[';
    r->lines = c != '[' && c != '{';
    if (c != '{') return SIFR_OK;
    BASE_TRY(data_records_take_line(r, &line, &size, &there, error));
    for (size_t i = 0; i < size && !r->lines; i++) r->lines = ends_object(&scan, line[i]);
    r->at = (size_t)(line - r->text);
    r->line--;
    return SIFR_OK;
}

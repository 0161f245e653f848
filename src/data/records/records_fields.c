/* CSV and TSV: the fields of a row. */
#include <string.h>

#include "base/heap.h"
#include "data/records/records_internal.h"

enum { COLUMNS_AT_MOST = 4096, FIELD_BYTES = 1 << 26 };

/* Appends to the field. */
static sifr_status append(data_records *r, const char *text, size_t size, sifr_error *error) {
    if (size > FIELD_BYTES || r->field_size + size > FIELD_BYTES)
        return base_fail(error, SIFR_FAILED, "%s: line %lld has a field of more than %d bytes",
                         r->name, (long long)r->row_line, FIELD_BYTES);
    BASE_TRY(base_grow(&r->field, &r->field_capacity, r->field_size + size, 1, error));
    if (size) memcpy(r->field + r->field_size, text, size);
    r->field_size += size;
    return SIFR_OK;
}

/* From behind the opening quote to behind the closing one. */
static sifr_status read_quoted(data_records *r, sifr_error *error) {
    for (;;) {
        const char *from = r->text + r->at;
        const char *quote = r->at < r->size ? memchr(from, '"', r->size - r->at) : NULL;
        if (!quote)
            return base_fail(error, SIFR_FAILED,
                             "%s: line %lld begins a row with a quote that is never closed",
                             r->name, (long long)r->row_line);
        size_t size = (size_t)(quote - from);
        for (size_t i = 0; i < size; i++) r->line += from[i] == '\n';
        BASE_TRY(append(r, from, size, error));
        r->at += size + 1;
        if (r->at >= r->size || r->text[r->at] != '"') return SIFR_OK;
        BASE_TRY(append(r, "\"", 1, error));
        r->at++;
    }
}

static sifr_status read_plain(data_records *r, char separator, sifr_error *error) {
    size_t start = r->at, end;
    while (r->at < r->size && r->text[r->at] != separator && r->text[r->at] != '\n') r->at++;
    end = r->at;
    bool ends = r->at >= r->size || r->text[r->at] == '\n';
    if (ends && end > start && r->text[end - 1] == '\r') end--;
    return append(r, r->text + start, end - start, error);
}

/* A field, with what is behind it: *last where that ends the row. */
static sifr_status read_field(data_records *r, bool *last, sifr_error *error) {
    char separator = r->kind == DATA_RECORDS_CSV ? ',' : '\t';
    r->field_size = 0;
    *last = true;
    if (r->kind == DATA_RECORDS_CSV && r->at < r->size && r->text[r->at] == '"') {
        r->at++;
        BASE_TRY(read_quoted(r, error));
    } else {
        BASE_TRY(read_plain(r, separator, error));
    }
    if (r->at < r->size && r->text[r->at] == '\r') r->at++;
    if (r->at >= r->size) return SIFR_OK;
    char c = r->text[r->at++];
    *last = c == '\n';
    r->line += *last;
    if (*last || c == separator) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s: line %lld has text behind a closing quote; double the quotes inside a "
                     "quoted field",
                     r->name, (long long)r->row_line);
}

/* To the next line that is not empty; *there is false at the end. */
static sifr_status find_row(data_records *r, bool *there, sifr_error *error) {
    bool more = true;
    while (more) {
        for (; r->at < r->size; r->at++) {
            if (r->text[r->at] == '\n')
                r->line++;
            else if (r->text[r->at] != '\r')
                break;
        }
        r->row_line = r->line;
        if (r->at < r->size) break;
        BASE_TRY(data_records_more(r, &more, error));
    }
    *there = r->at < r->size;
    return SIFR_OK;
}

/* Where a byte of a row stands. */
typedef enum row_place {
    ROW_FIELD_BEGINS,
    ROW_IN_FIELD,
    ROW_IN_QUOTES,
    ROW_BEHIND_QUOTE
} row_place;

static row_place follow(row_place place, bool quotes, char separator, char c) {
    if (place == ROW_IN_QUOTES) return c == '"' ? ROW_BEHIND_QUOTE : ROW_IN_QUOTES;
    if (quotes && c == '"' && place != ROW_IN_FIELD) return ROW_IN_QUOTES;
    return c == separator ? ROW_FIELD_BEGINS : ROW_IN_FIELD;
}

/* Unpacks until the whole row is at hand. */
static sifr_status need_row(data_records *r, sifr_error *error) {
    bool quotes = r->kind == DATA_RECORDS_CSV, more = r->unpack != NULL;
    char separator = quotes ? ',' : '\t';
    row_place place = ROW_FIELD_BEGINS;
    for (size_t i = 0; more; i++) {
        while (more && r->at + i == r->size) BASE_TRY(data_records_more(r, &more, error));
        if (r->at + i == r->size) break;
        char c = r->text[r->at + i];
        if (c == '\n' && place != ROW_IN_QUOTES) break;
        place = follow(place, quotes, separator, c);
    }
    return SIFR_OK;
}

sifr_status data_records_header(data_records *r, sifr_error *error) {
    bool last = false, there;
    BASE_TRY(find_row(r, &there, error));
    if (!there)
        return base_fail(error, SIFR_FAILED,
                         "%s: empty; the first line must name the columns (text, label)", r->name);
    BASE_TRY(need_row(r, error));
    while (!last) {
        json_t *name, *other;
        size_t i;
        BASE_TRY(read_field(r, &last, error));
        BASE_TRY(data_records_text(r, r->field, r->field_size, &name, error));
        json_array_foreach(r->columns, i, other) {
            if (!json_equal(name, other)) continue;
            json_decref(name);
            return base_fail(error, SIFR_FAILED,
                             "%s: two columns are named '%.60s'; does the first line name the "
                             "columns?",
                             r->name, json_string_value(other));
        }
        if (json_array_append_new(r->columns, name) != 0) return base_fail_alloc(error, 64);
        if (json_array_size(r->columns) > COLUMNS_AT_MOST)
            return base_fail(error, SIFR_FAILED, "%s: more than %d columns", r->name,
                             COLUMNS_AT_MOST);
    }
    return SIFR_OK;
}

static sifr_status wrong_count(const data_records *r, const char *more, size_t count,
                               sifr_error *error) {
    return base_fail(error, SIFR_FAILED,
                     "%s: line %lld has %s%zu field%s, but the first line names %zu column%s; "
                     "%s",
                     r->name, (long long)r->row_line, more, count, count == 1 ? "" : "s",
                     json_array_size(r->columns), json_array_size(r->columns) == 1 ? "" : "s",
                     r->kind == DATA_RECORDS_CSV ? "quote fields that hold commas or newlines"
                                                 : "no field may hold a tab or a newline");
}

/* The fields of a row into an object, as far as the row goes or up to a fault. */
static sifr_status read_fields(data_records *r, json_t *row, bool *last, sifr_error *error) {
    size_t count = 0, columns = json_array_size(r->columns);
    json_t *value;
    for (; !*last; count++) {
        if (count == columns) return wrong_count(r, "more than ", count, error);
        sifr_status status = read_field(r, last, error);
        r->skippable = status == SIFR_OK;
        if (status == SIFR_OK)
            status = data_records_text(r, r->field, r->field_size, &value, error);
        BASE_TRY(status);
        const char *name = json_string_value(json_array_get(r->columns, count));
        if (json_object_set_new(row, name, value) != 0) return base_fail_alloc(error, 64);
    }
    return count < columns ? wrong_count(r, "", count, error) : SIFR_OK;
}

sifr_status data_records_fields(data_records *r, json_t **out, sifr_error *error) {
    bool last = false, there;
    *out = NULL;
    BASE_TRY(find_row(r, &there, error));
    if (!there) return SIFR_OK;
    r->row++;
    BASE_TRY(need_row(r, error));
    json_t *row = json_object();
    sifr_status status = row ? read_fields(r, row, &last, error) : base_fail_alloc(error, 64);
    if (status == SIFR_OK) {
        *out = row;
        return SIFR_OK;
    }
    json_decref(row);
    /* The next row begins behind this one, if that can be found. */
    while (r->skippable && !last) r->skippable = read_field(r, &last, NULL) == SIFR_OK;
    return status;
}

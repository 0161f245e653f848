/* What readers of all kinds take rows from: bytes that are unpacked as they are needed, lines,
 * texts and objects. */
#include <stdio.h>
#include <string.h>

#include "base/heap.h"
#include "base/json.h"
#include "data/records/records_internal.h"

enum { LEAST_PIECE = 1 << 18 };

static sifr_status too_long(const data_records *r, sifr_error *error) {
    return base_fail(error, SIFR_FAILED, "%s: the row at line %lld has more than %d bytes", r->name,
                     (long long)r->row_line, DATA_ROW_BYTES);
}

sifr_status data_records_more(data_records *r, bool *more, sifr_error *error) {
    size_t held = r->size - r->at, piece = held > LEAST_PIECE ? held : LEAST_PIECE, got;
    *more = false;
    if (!r->unpack) return SIFR_OK;
    if (held > DATA_ROW_BYTES) return too_long(r, error);
    if (held) memmove(r->window, r->text + r->at, held);
    r->at = 0, r->size = held;
    BASE_TRY(base_grow(&r->window, &r->window_capacity, held + piece, 1, error));
    r->text = r->window;
    BASE_TRY(data_unpack_read(r->unpack, r->window + held, piece, &got, error));
    r->size += got;
    *more = got > 0;
    return SIFR_OK;
}

/* A line of a packed file that is longer than a row may be is read on to its end and not kept, so
 * that the next row can be read. */
static sifr_status drop_line(data_records *r, sifr_error *error) {
    const char *end = NULL;
    bool more = true;
    while (!end && more) {
        size_t left = r->size - r->at;
        if (left) end = memchr(r->text + r->at, '\n', left);
        r->at = end ? (size_t)(end - r->text) + 1 : r->size;
        if (!end) BASE_TRY(data_records_more(r, &more, error));
    }
    r->line++;
    r->row++;
    r->skippable = true;
    return too_long(r, error);
}

sifr_status data_records_take_line(data_records *r, const char **line, size_t *size, bool *there,
                                   sifr_error *error) {
    const char *end = NULL;
    size_t seen = 0;
    bool more = true;
    *there = true;
    while (!end && more) {
        size_t left = r->size - r->at - seen;
        if (left) end = memchr(r->text + r->at + seen, '\n', left);
        seen += left;
        bool row = r->kind == DATA_RECORDS_JSONL || r->kind == DATA_RECORDS_JSON;
        if (!end && r->unpack && row && seen > DATA_ROW_BYTES) return drop_line(r, error);
        if (!end) BASE_TRY(data_records_more(r, &more, error));
    }
    *there = r->at < r->size;
    if (!*there) return SIFR_OK;
    *line = r->text + r->at;
    *size = end ? (size_t)(end - *line) : r->size - r->at;
    r->at += *size + (end != NULL);
    r->line++;
    if (*size && (*line)[*size - 1] == '\r') --*size;
    return SIFR_OK;
}

sifr_status data_records_text(const data_records *r, const char *text, size_t size, json_t **out,
                              sifr_error *error) {
    if (size && memchr(text, 0, size))
        return base_fail(error, SIFR_FAILED, "%s: line %lld has a NUL byte: not text", r->name,
                         (long long)r->row_line);
    *out = json_stringn(text, size);
    if (*out) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s: line %lld is not valid UTF-8; convert the file",
                     r->name, (long long)r->row_line);
}

/* Characters in front of `text` in its line, for a message; 0 where the line is long, or its begin
 * is no longer at hand. */
static int64_t column_of(const data_records *r, const char *text) {
    enum { MOST = 1 << 20 };
    int64_t column = 0;
    const char *at = text;
    for (; at > r->text && at[-1] != '\n' && text - at < MOST; at--)
        column += ((unsigned char)at[-1] & 0xc0) != 0x80;
    return (at == r->text && !r->unpack) || (at > r->text && at[-1] == '\n') ? column : 0;
}

sifr_status data_records_object(const data_records *r, const char *text, size_t size, json_t **row,
                                sifr_error *error) {
    if (size > DATA_ROW_BYTES)
        return base_fail(error, SIFR_FAILED, "%s: line %lld has %zu bytes, more than %d", r->name,
                         (long long)r->row_line, size, DATA_ROW_BYTES);
    sifr_status parsed = base_json_parse_from(text, size, r->name, r->row_line, 0, row, error);
    if (parsed != SIFR_USAGE) return parsed;
    int64_t column = column_of(r, text);
    if (column) /* again, for the message */
        parsed = base_json_parse_from(text, size, r->name, r->row_line, column, row, error);
    /* A mistake of the data, not of the user's command. */
    char said[SIFR_ERROR_LENGTH];
    json_t *whole = json_stringn(text, size);
    json_decref(whole);
    if (!whole)
        return base_fail(error, SIFR_FAILED, "%s: line %lld is not valid UTF-8; convert the file",
                         r->name, (long long)r->row_line);
    snprintf(said, sizeof said, "%s", error ? error->message : "");
    return base_fail(error, SIFR_FAILED, "%s", said);
}

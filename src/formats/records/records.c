#include "formats/records/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/heap.h"
#include "base/json.h"
#include "formats/records/records_internal.h"

/* A row takes some ten times its bytes as an object. */
enum { ROW_BYTES = 1 << 26 };

bool formats_records_kind_of(const char *path, formats_records_kind *kind) {
    static const struct {
        const char *end;
        formats_records_kind kind;
    } kinds[] = {{".csv", FORMATS_RECORDS_CSV},     {".tsv", FORMATS_RECORDS_TSV},
                 {".jsonl", FORMATS_RECORDS_JSONL}, {".ndjson", FORMATS_RECORDS_JSONL},
                 {".json", FORMATS_RECORDS_JSONL},  {".conll", FORMATS_RECORDS_CONLL},
                 {".bio", FORMATS_RECORDS_CONLL},   {".iob2", FORMATS_RECORDS_CONLL}};
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t end = strlen(kinds[i].end);
        if (length <= end || strcasecmp(path + length - end, kinds[i].end) != 0) continue;
        *kind = kinds[i].kind;
        return true;
    }
    return false;
}

bool formats_records_take_line(formats_records *r, const char **line, size_t *size) {
    if (r->at >= r->size) return false;
    *line = r->text + r->at;
    const char *end = memchr(*line, '\n', r->size - r->at);
    *size = end ? (size_t)(end - *line) : r->size - r->at;
    r->at += *size + (end != NULL);
    r->line++;
    if (*size && (*line)[*size - 1] == '\r') --*size;
    return true;
}

sifr_status formats_records_text(const formats_records *r, const char *text, size_t size,
                                 json_t **out, sifr_error *error) {
    if (size && memchr(text, 0, size))
        return base_fail(error, SIFR_FAILED, "%s: line %lld has a NUL byte: not text", r->name,
                         (long long)r->row_line);
    *out = json_stringn(text, size);
    if (*out) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s: line %lld is not valid UTF-8; convert the file",
                     r->name, (long long)r->row_line);
}

static bool is_blank(const char *line, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (line[i] != ' ' && line[i] != '\t') return false;
    return true;
}

/* --- JSONL --- */

static sifr_status read_object(formats_records *r, json_t **row, sifr_error *error) {
    const char *line;
    size_t size;
    char where[SIFR_ERROR_LENGTH / 2];
    *row = NULL;
    do {
        r->row_line = r->line;
        if (!formats_records_take_line(r, &line, &size)) return SIFR_OK;
    } while (is_blank(line, size));
    for (; size && (*line == ' ' || *line == '\t'); line++) size--;
    if (*line != '{')
        return base_fail(error, SIFR_FAILED,
                         "%s: line %lld is not a JSON object; write each row as an object on a "
                         "line of its own (JSON lines)",
                         r->name, (long long)r->row_line);
    if (size > ROW_BYTES)
        return base_fail(error, SIFR_FAILED, "%s: line %lld has %zu bytes, more than %d", r->name,
                         (long long)r->row_line, size, ROW_BYTES);
    snprintf(where, sizeof where, "%.400s: line %lld of the file", r->name, (long long)r->row_line);
    sifr_status parsed = base_json_parse(line, size, where, row, error);
    if (parsed == SIFR_USAGE) { /* a mistake of the data, not of the user's command */
        char said[SIFR_ERROR_LENGTH];
        snprintf(said, sizeof said, "%s", error ? error->message : "");
        return base_fail(error, SIFR_FAILED, "%s", said);
    }
    return parsed;
}

/* The columns of the first row. */
static sifr_status look_at_keys(formats_records *r, sifr_error *error) {
    size_t at = r->at;
    int64_t line = r->line;
    json_t *row;
    const char *key;
    json_t *value;
    BASE_TRY(read_object(r, &row, error));
    bool whole = true;
    json_object_foreach(row, key, value) {
        whole &= json_array_append_new(r->columns, json_string(key)) == 0;
    }
    json_decref(row);
    r->at = at;
    r->line = line;
    return whole ? SIFR_OK : base_fail_alloc(error, 4096);
}

/* --- CoNLL --- */

/* Appends a line's word and tag. */
static sifr_status add_word(formats_records *r, const char *line, size_t size, json_t *tokens,
                            json_t *tags, sifr_error *error) {
    size_t word = 0, tag;
    json_t *text;
    while (size && (line[size - 1] == ' ' || line[size - 1] == '\t')) size--;
    while (word < size && line[word] != ' ' && line[word] != '\t') word++;
    for (tag = size; tag > word && line[tag - 1] != ' ' && line[tag - 1] != '\t';) tag--;
    if (word == 0 || tag == word)
        return base_fail(error, SIFR_FAILED,
                         "%s: line %lld has no word and tag; write both, with a tab or blank "
                         "between them",
                         r->name, (long long)r->line - 1);
    BASE_TRY(formats_records_text(r, line, word, &text, error));
    if (json_array_append_new(tokens, text) != 0) return base_fail_alloc(error, size);
    BASE_TRY(formats_records_text(r, line + tag, size - tag, &text, error));
    return json_array_append_new(tags, text) ? base_fail_alloc(error, size) : SIFR_OK;
}

static bool is_document_mark(const char *line, size_t size) {
    static const char mark[] = "-DOCSTART-";
    return size >= sizeof mark - 1 && memcmp(line, mark, sizeof mark - 1) == 0;
}

static sifr_status read_sentence(formats_records *r, json_t **row, sifr_error *error) {
    const char *line;
    size_t size, start = r->at;
    json_t *tokens = json_array(), *tags = json_array();
    sifr_status status = tokens && tags ? SIFR_OK : base_fail_alloc(error, 64);
    *row = NULL;
    r->row_line = r->line;
    while (status == SIFR_OK && formats_records_take_line(r, &line, &size)) {
        if (is_blank(line, size) || is_document_mark(line, size)) {
            if (json_array_size(tokens)) break;
            start = r->at;
            r->row_line = r->line;
        } else if (r->at - start > ROW_BYTES) {
            status = base_fail(error, SIFR_FAILED,
                               "%s: the sentence at line %lld has more than %d bytes; put a blank "
                               "line between sentences",
                               r->name, (long long)r->row_line, ROW_BYTES);
        } else {
            status = add_word(r, line, size, tokens, tags, error);
        }
    }
    if (status == SIFR_OK && json_array_size(tokens)) {
        *row = json_pack("{s:O, s:O}", "tokens", tokens, "tags", tags);
        if (!*row) status = base_fail_alloc(error, 64);
    }
    json_decref(tokens);
    json_decref(tags);
    return status;
}

/* --- any kind --- */

static sifr_status begin(formats_records *r, sifr_error *error) {
    static const char mark[] = "\xEF\xBB\xBF";
    if (r->size >= 3 && memcmp(r->text, mark, 3) == 0) r->at = 3;
    r->line = 1;
    r->columns =
        r->kind == FORMATS_RECORDS_CONLL ? json_pack("[s, s]", "tokens", "tags") : json_array();
    if (!r->columns) return base_fail_alloc(error, 64);
    if (r->kind == FORMATS_RECORDS_JSONL) return look_at_keys(r, error);
    return r->kind == FORMATS_RECORDS_CONLL ? SIFR_OK : formats_records_header(r, error);
}

static sifr_status make(formats_records_kind kind, const char *name, formats_records **out,
                        sifr_error *error) {
    BASE_TRY(base_alloc(1, sizeof **out, out, error));
    (*out)->kind = kind;
    sifr_status status = base_copy_text(name, strlen(name), &(*out)->name, error);
    if (status == SIFR_OK) return SIFR_OK;
    free(*out);
    *out = NULL;
    return status;
}

sifr_status formats_records_parse(formats_records_kind kind, const char *text, size_t size,
                                  const char *name, formats_records **out, sifr_error *error) {
    BASE_TRY(make(kind, name, out, error));
    (*out)->text = text;
    (*out)->size = size;
    sifr_status status = begin(*out, error);
    if (status == SIFR_OK) return SIFR_OK;
    formats_records_close(*out);
    *out = NULL;
    return status;
}

sifr_status formats_records_open(const char *path, formats_records **out, sifr_error *error) {
    formats_records_kind kind;
    *out = NULL;
    if (!formats_records_kind_of(path, &kind))
        return base_fail(error, SIFR_USAGE,
                         "%s: rows are read from files named .csv, .tsv, .jsonl or .conll; rename "
                         "or convert it",
                         path);
    BASE_TRY(make(kind, path, out, error));
    formats_records *r = *out;
    sifr_status status = base_map_file(path, &r->map, error);
    r->text = (const char *)r->map.data;
    r->size = r->map.size;
    if (status == SIFR_OK) status = begin(r, error);
    if (status == SIFR_OK) return SIFR_OK;
    formats_records_close(r);
    *out = NULL;
    return status;
}

void formats_records_close(formats_records *r) {
    if (!r) return;
    base_unmap(&r->map);
    json_decref(r->columns);
    free(r->field);
    free(r->name);
    free(r);
}

const json_t *formats_records_columns(const formats_records *r) {
    return r->columns;
}

sifr_status formats_records_next(formats_records *r, json_t **row, sifr_error *error) {
    if (r->kind == FORMATS_RECORDS_JSONL) return read_object(r, row, error);
    if (r->kind == FORMATS_RECORDS_CONLL) return read_sentence(r, row, error);
    return formats_records_fields(r, row, error);
}

int64_t formats_records_line(const formats_records *r) {
    return r->row_line;
}

const char *formats_records_name(const formats_records *r) {
    return r->name;
}

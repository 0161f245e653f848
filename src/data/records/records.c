#include "data/records/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/heap.h"
#include "base/json.h"
#include "data/records/records_internal.h"

bool data_records_kind_of(const char *path, data_records_kind *kind) {
    static const struct {
        const char *end;
        data_records_kind kind;
    } kinds[] = {{".csv", DATA_RECORDS_CSV},        {".tsv", DATA_RECORDS_TSV},
                 {".jsonl", DATA_RECORDS_JSONL},    {".ndjson", DATA_RECORDS_JSONL},
                 {".json", DATA_RECORDS_JSON},      {".conll", DATA_RECORDS_CONLL},
                 {".bio", DATA_RECORDS_CONLL},      {".iob2", DATA_RECORDS_CONLL},
                 {".parquet", DATA_RECORDS_PARQUET}};
    size_t length;
    data_packing_of(path, &length);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t end = strlen(kinds[i].end);
        if (length <= end || strncasecmp(path + length - end, kinds[i].end, end) != 0) continue;
        *kind = kinds[i].kind;
        return true;
    }
    return false;
}

static bool is_blank(const char *line, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (line[i] != ' ' && line[i] != '\t') return false;
    return true;
}

/* --- JSONL --- */

static sifr_status read_object(data_records *r, json_t **row, sifr_error *error) {
    const char *line;
    size_t size;
    bool there;
    *row = NULL;
    do {
        r->row_line = r->line;
        BASE_TRY(data_records_take_line(r, &line, &size, &there, error));
        if (!there) return SIFR_OK;
    } while (is_blank(line, size));
    r->skippable = true;
    r->row++;
    for (; size && (*line == ' ' || *line == '\t'); line++) size--;
    if (*line != '{')
        return base_fail(error, SIFR_FAILED,
                         "%s: line %lld is not a JSON object; write each row as an object on a "
                         "line of its own (JSON lines)",
                         r->name, (long long)r->row_line);
    return data_records_object(r, line, size, row, error);
}

static sifr_status read_json(data_records *r, json_t **row, sifr_error *error) {
    return r->lines ? read_object(r, row, error) : data_records_element(r, row, error);
}

/* The columns of the first row, which is kept. */
static sifr_status look_at_keys(data_records *r, sifr_error *error) {
    const char *key;
    json_t *value;
    bool whole = true;
    BASE_TRY(read_json(r, &r->peeked, error));
    json_object_foreach(r->peeked, key, value) {
        whole &= json_array_append_new(r->columns, json_string(key)) == 0;
    }
    return whole ? SIFR_OK : base_fail_alloc(error, 4096);
}

/* --- CoNLL --- */

/* Appends a line's word and tag. */
static sifr_status add_word(data_records *r, const char *line, size_t size, json_t *tokens,
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
    BASE_TRY(data_records_text(r, line, word, &text, error));
    if (json_array_append_new(tokens, text) != 0) return base_fail_alloc(error, size);
    BASE_TRY(data_records_text(r, line + tag, size - tag, &text, error));
    return json_array_append_new(tags, text) ? base_fail_alloc(error, size) : SIFR_OK;
}

static bool is_document_mark(const char *line, size_t size) {
    static const char mark[] = "-DOCSTART-";
    return size >= sizeof mark - 1 && memcmp(line, mark, sizeof mark - 1) == 0;
}

static sifr_status read_sentence(data_records *r, json_t **row, sifr_error *error) {
    const char *line;
    size_t size, bytes = 0;
    bool there;
    json_t *tokens = json_array(), *tags = json_array();
    sifr_status status = tokens && tags ? SIFR_OK : base_fail_alloc(error, 64);
    *row = NULL;
    r->row_line = r->line;
    while (status == SIFR_OK) {
        status = data_records_take_line(r, &line, &size, &there, error);
        if (status != SIFR_OK || !there) break;
        bytes += size + 1;
        if (is_blank(line, size) || is_document_mark(line, size)) {
            if (json_array_size(tokens)) break;
            bytes = 0;
            r->row_line = r->line;
        } else if (bytes > DATA_ROW_BYTES) {
            status = base_fail(error, SIFR_FAILED,
                               "%s: the sentence at line %lld has more than %d bytes; put a blank "
                               "line between sentences",
                               r->name, (long long)r->row_line, DATA_ROW_BYTES);
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

/* --- Parquet --- */

static sifr_status open_parquet(data_records *r, const void *data, size_t size,
                                data_packing packing, sifr_error *error) {
    if (packing != DATA_PLAIN)
        return base_fail(error, SIFR_USAGE,
                         "%s: a packed Parquet file is not read; unpack it (its pages are packed "
                         "anyway)",
                         r->name);
    BASE_TRY(data_parquet_open(data, size, r->name, DATA_ROW_BYTES, &r->parquet, error));
    r->columns = json_deep_copy(data_parquet_columns(r->parquet));
    return r->columns ? SIFR_OK : base_fail_alloc(error, 4096);
}

static sifr_status read_parquet(data_records *r, json_t **row, sifr_error *error) {
    sifr_status status = data_parquet_next(r->parquet, row, &r->skippable, error);
    r->row = data_parquet_row(r->parquet);
    return status;
}

/* --- any kind --- */

static sifr_status begin(data_records *r, bool columns, sifr_error *error) {
    static const char mark[] = "\xEF\xBB\xBF";
    bool more = true;
    while (more && r->size < 3) BASE_TRY(data_records_more(r, &more, error));
    if (r->size >= 3 && memcmp(r->text, mark, 3) == 0) r->at = 3;
    r->line = 1;
    r->columns =
        r->kind == DATA_RECORDS_CONLL ? json_pack("[s, s]", "tokens", "tags") : json_array();
    if (!r->columns) return base_fail_alloc(error, 64);
    r->lines = true;
    if (r->kind == DATA_RECORDS_JSON) BASE_TRY(data_records_look(r, error));
    if (r->kind == DATA_RECORDS_JSONL || r->kind == DATA_RECORDS_JSON)
        return columns ? look_at_keys(r, error) : SIFR_OK;
    return r->kind == DATA_RECORDS_CONLL ? SIFR_OK : data_records_header(r, error);
}

static sifr_status make(data_records_kind kind, const char *name, data_records **out,
                        sifr_error *error) {
    BASE_TRY(base_alloc(1, sizeof **out, out, error));
    (*out)->kind = kind;
    sifr_status status = base_copy_text(name, strlen(name), &(*out)->name, error);
    if (status == SIFR_OK) return SIFR_OK;
    free(*out);
    *out = NULL;
    return status;
}

/* What a reader is made of: bytes that outlive it, or a map that it comes to own. */
typedef struct records_bytes {
    const void *data;
    size_t size;
    data_packing packing;
    base_map map;
    bool columns; /* of JSON, those of the first row are looked at */
} records_bytes;

static sifr_status make_reader(data_records_kind kind, const char *name, const records_bytes *bytes,
                               data_records **out, sifr_error *error) {
    BASE_TRY(make(kind, name, out, error));
    data_records *r = *out;
    sifr_status status = SIFR_OK;
    bool parquet = kind == DATA_RECORDS_PARQUET;
    if (parquet)
        status = open_parquet(r, bytes->data, bytes->size, bytes->packing, error);
    else if (bytes->packing == DATA_PLAIN)
        r->text = bytes->data, r->size = bytes->size;
    else
        status =
            data_unpack_open(bytes->packing, bytes->data, bytes->size, r->name, &r->unpack, error);
    if (status == SIFR_OK && !parquet) status = begin(r, bytes->columns, error);
    if (status == SIFR_OK) {
        r->map = bytes->map;
        return SIFR_OK;
    }
    data_records_close(r);
    *out = NULL;
    return status;
}

sifr_status data_records_parse_packed(data_records_kind kind, data_packing packing,
                                      const void *data, size_t size, const char *name,
                                      data_records **out, sifr_error *error) {
    records_bytes bytes = {data, size, packing, {0}, true};
    return make_reader(kind, name, &bytes, out, error);
}

sifr_status data_records_parse(data_records_kind kind, const char *text, size_t size,
                               const char *name, data_records **out, sifr_error *error) {
    return data_records_parse_packed(kind, DATA_PLAIN, text, size, name, out, error);
}

static sifr_status open_file(const char *path, bool columns, data_records **out,
                             sifr_error *error) {
    data_records_kind kind;
    records_bytes bytes = {.columns = columns};
    size_t length;
    *out = NULL;
    if (!data_records_kind_of(path, &kind))
        return base_fail(error, SIFR_USAGE,
                         "%s: rows are read from files named .csv, .tsv, .json, .jsonl or .conll, "
                         "each also .gz or .zst, and .parquet; rename or convert it",
                         path);
    BASE_TRY(base_map_file(path, &bytes.map, error));
    bytes.data = bytes.map.data, bytes.size = bytes.map.size;
    bytes.packing = data_packing_of(path, &length);
    sifr_status status = make_reader(kind, path, &bytes, out, error);
    if (status != SIFR_OK) base_unmap(&bytes.map);
    return status;
}

sifr_status data_records_open(const char *path, data_records **out, sifr_error *error) {
    return open_file(path, true, out, error);
}

sifr_status data_records_open_rows(const char *path, data_records **out, sifr_error *error) {
    return open_file(path, false, out, error);
}

void data_records_close(data_records *r) {
    if (!r) return;
    data_parquet_close(r->parquet);
    data_unpack_close(r->unpack);
    base_unmap(&r->map);
    json_decref(r->columns);
    json_decref(r->peeked);
    free(r->window);
    free(r->field);
    free(r->name);
    free(r);
}

const json_t *data_records_columns(const data_records *r) {
    return r->columns;
}

sifr_status data_records_next(data_records *r, json_t **row, sifr_error *error) {
    *row = r->peeked;
    r->peeked = NULL;
    if (*row) return SIFR_OK;
    r->skippable = false;
    if (r->parquet) return read_parquet(r, row, error);
    if (r->kind == DATA_RECORDS_CONLL) return read_sentence(r, row, error);
    if (r->kind == DATA_RECORDS_CSV || r->kind == DATA_RECORDS_TSV)
        return data_records_fields(r, row, error);
    return read_json(r, row, error);
}

bool data_records_skippable(const data_records *r) {
    return r->skippable;
}

int64_t data_records_row(const data_records *r) {
    return r->row;
}

int64_t data_records_line(const data_records *r) {
    return r->row_line;
}

const char *data_records_name(const data_records *r) {
    return r->name;
}

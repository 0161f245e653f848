/* Labelled data: a file of rows with named columns, read one at a time from front to back.
 *
 * .csv: RFC 4180; a quoted field may hold commas, doubled quotes and newlines. .tsv: fields between
 * tabs, with quotes as ordinary characters. Both have the names of the columns in the first line.
 * .jsonl: an object a line. .json: the same, an array of objects, or objects of several lines.
 * .conll: a word and its tag a line (first and last column), a blank line between sentences; a row
 * is a sentence with the columns "tokens" and "tags". All are UTF-8; a byte order mark and CRLF are
 * taken. Each may be packed (.gz, .zst) and is then unpacked while it is read.
 * .parquet: data/parquet/parquet.h, in builds that have it; never packed. */
#ifndef FORMATS_RECORDS_H
#define FORMATS_RECORDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "data/records/unpack.h"

typedef enum formats_records_kind {
    FORMATS_RECORDS_CSV,
    FORMATS_RECORDS_TSV,
    FORMATS_RECORDS_JSONL,
    FORMATS_RECORDS_CONLL,
    FORMATS_RECORDS_JSON,
    FORMATS_RECORDS_PARQUET
} formats_records_kind;

typedef struct formats_records formats_records;

/* By the end of the name, before .gz or .zst; false for other names. */
bool formats_records_kind_of(const char *path, formats_records_kind *kind);

/* Opens a file and reads the names of its columns. SIFR_USAGE for a name of another kind,
 * SIFR_FAILED for what cannot be read. */
sifr_status formats_records_open(const char *path, formats_records **out,
                                 sifr_error *error) SIFR_MUST_CHECK;
/* The same without looking at the columns of JSON, so that a first row that is not well formed is
 * none of its failures. */
sifr_status formats_records_open_rows(const char *path, formats_records **out,
                                      sifr_error *error) SIFR_MUST_CHECK;
/* As formats_records_open, from memory, which is borrowed; `name` begins the messages. */
sifr_status formats_records_parse(formats_records_kind kind, const char *text, size_t size,
                                  const char *name, formats_records **out,
                                  sifr_error *error) SIFR_MUST_CHECK;
/* The same of packed memory. */
sifr_status formats_records_parse_packed(formats_records_kind kind, formats_packing packing,
                                         const void *data, size_t size, const char *name,
                                         formats_records **out, sifr_error *error) SIFR_MUST_CHECK;
void formats_records_close(formats_records *records); /* NULL is harmless */

/* The names of the columns, a list that belongs to the reader: of JSON, those of the first row. */
const json_t *formats_records_columns(const formats_records *records);

/* The next row, a new object: of CSV and TSV its members are strings, one for each column. NULL
 * behind the last row. SIFR_FAILED, with file and line, for a row that is not well formed. */
sifr_status formats_records_next(formats_records *records, json_t **row,
                                 sifr_error *error) SIFR_MUST_CHECK;

/* Whether the last failure was that of one row alone: formats_records_next reads the next one. */
bool formats_records_skippable(const formats_records *records);

/* The number of the last row and the line where it begins, both from 1, and the file's name, for
 * messages. Parquet has no lines: 0. */
int64_t formats_records_row(const formats_records *records);
int64_t formats_records_line(const formats_records *records);
const char *formats_records_name(const formats_records *records);

#endif

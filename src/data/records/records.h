/* Labelled data: a file of rows with named columns, read one at a time from front to back.
 *
 * .csv: RFC 4180; a quoted field may hold commas, doubled quotes and newlines. .tsv: fields between
 * tabs, with quotes as ordinary characters. Both have the names of the columns in the first line.
 * .jsonl: an object a line. .json: the same, an array of objects, or objects of several lines.
 * .conll: a word and its tag a line (first and last column), a blank line between sentences; a row
 * is a sentence with the columns "tokens" and "tags". All are UTF-8; a byte order mark and CRLF are
 * taken. Each may be packed (.gz, .zst) and is then unpacked while it is read.
 * .parquet: data/parquet/parquet.h, in builds that have it; never packed. */
#ifndef DATA_RECORDS_H
#define DATA_RECORDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "data/records/unpack.h"

typedef enum data_records_kind {
    DATA_RECORDS_CSV,
    DATA_RECORDS_TSV,
    DATA_RECORDS_JSONL,
    DATA_RECORDS_CONLL,
    DATA_RECORDS_JSON,
    DATA_RECORDS_PARQUET
} data_records_kind;

typedef struct data_records data_records;

/* By the end of the name, before .gz or .zst; false for other names. */
bool data_records_kind_of(const char *path, data_records_kind *kind);

/* Opens a file and reads the names of its columns. SIFR_USAGE for a name of another kind,
 * SIFR_FAILED for what cannot be read. */
sifr_status data_records_open(const char *path, data_records **out,
                              sifr_error *error) SIFR_MUST_CHECK;
/* The same without looking at the columns of JSON, so that a first row that is not well formed is
 * none of its failures. */
sifr_status data_records_open_rows(const char *path, data_records **out,
                                   sifr_error *error) SIFR_MUST_CHECK;
/* As data_records_open, from memory, which is borrowed; `name` begins the messages. */
sifr_status data_records_parse(data_records_kind kind, const char *text, size_t size,
                               const char *name, data_records **out,
                               sifr_error *error) SIFR_MUST_CHECK;
/* The same of packed memory. */
sifr_status data_records_parse_packed(data_records_kind kind, data_packing packing,
                                      const void *data, size_t size, const char *name,
                                      data_records **out, sifr_error *error) SIFR_MUST_CHECK;
void data_records_close(data_records *records); /* NULL is harmless */

/* The names of the columns, a list that belongs to the reader: of JSON, those of the first row. */
const json_t *data_records_columns(const data_records *records);

/* The next row, a new object: of CSV and TSV its members are strings, one for each column. NULL
 * behind the last row. SIFR_FAILED, with file and line, for a row that is not well formed. */
sifr_status data_records_next(data_records *records, json_t **row,
                              sifr_error *error) SIFR_MUST_CHECK;

/* Whether the last failure was that of one row alone: data_records_next reads the next one. */
bool data_records_skippable(const data_records *records);

/* The number of the last row and the line where it begins, both from 1, and the file's name, for
 * messages. Parquet has no lines: 0. */
int64_t data_records_row(const data_records *records);
int64_t data_records_line(const data_records *records);
const char *data_records_name(const data_records *records);

#endif

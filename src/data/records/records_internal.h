/* Private to src/data/records/. */
#ifndef DATA_RECORDS_INTERNAL_H
#define DATA_RECORDS_INTERNAL_H

#include "base/file.h"
#include "data/parquet/parquet.h"
#include "data/records/records.h"
#include "data/records/unpack.h"

struct data_records {
    data_records_kind kind;
    char *name;
    base_map map;     /* of data_records_open */
    const char *text; /* the whole file or, where `unpack` is, what of it is at hand */
    size_t size, at;
    data_parquet *parquet; /* of that kind, in place of all below but the columns */
    data_unpack *unpack;   /* what comes behind `text`; NULL: nothing does */
    char *window;          /* `text`, where it is unpacked */
    size_t window_capacity;
    int64_t line;        /* of `at` */
    int64_t row_line;    /* of the last row */
    int64_t row;         /* its number, from 1 */
    bool array;          /* rows are the elements of a JSON array */
    bool lines;          /* or objects, one a line; else objects of any number of lines */
    bool opened, closed; /* the array's brackets were read */
    bool skippable;      /* of the last failure: the next row can be read */
    json_t *peeked;      /* the first row, read for its columns */
    json_t *columns;
    char *field; /* a quoted field without its quotes */
    size_t field_size, field_capacity;
};

/* A row takes some ten times its bytes as an object. */
enum { DATA_ROW_BYTES = 1 << 26 };

/* --- records_bytes.c --- */

/* Unpacks more behind what is at hand, which stays from `at` on and may move. SIFR_FAILED where
 * that is more than a row may have. *more is false at the end of the file. */
sifr_status data_records_more(data_records *records, bool *more, sifr_error *error) SIFR_MUST_CHECK;

/* The bytes up to the end of the line, without it, until more is unpacked; *there is false behind
 * the last line. */
sifr_status data_records_take_line(data_records *records, const char **line, size_t *size,
                                   bool *there, sifr_error *error) SIFR_MUST_CHECK;

/* An object of JSON that was cut out of the file, from line row_line on. */
sifr_status data_records_object(const data_records *records, const char *text, size_t size,
                                json_t **row, sifr_error *error) SIFR_MUST_CHECK;

/* A string of the file as JSON; SIFR_FAILED, with file and line, unless it is UTF-8 without NUL. */
sifr_status data_records_text(const data_records *records, const char *text, size_t size,
                              json_t **out, sifr_error *error) SIFR_MUST_CHECK;

/* --- the others --- */

/* records_array.c: how rows of JSON stand, by what begins the file. */
sifr_status data_records_look(data_records *records, sifr_error *error) SIFR_MUST_CHECK;
/* An element of the array, or an object that others follow. */
sifr_status data_records_element(data_records *records, json_t **row,
                                 sifr_error *error) SIFR_MUST_CHECK;

/* records_fields.c, CSV and TSV: the names of the columns; a row. */
sifr_status data_records_header(data_records *records, sifr_error *error) SIFR_MUST_CHECK;
sifr_status data_records_fields(data_records *records, json_t **row,
                                sifr_error *error) SIFR_MUST_CHECK;

#endif

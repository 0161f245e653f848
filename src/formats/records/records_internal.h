/* Private to src/formats/records/. */
#ifndef FORMATS_RECORDS_INTERNAL_H
#define FORMATS_RECORDS_INTERNAL_H

#include "base/file.h"
#include "formats/records/records.h"

struct formats_records {
    formats_records_kind kind;
    char *name;
    base_map map; /* of formats_records_open */
    const char *text;
    size_t size, at;
    int64_t line;     /* of `at` */
    int64_t row_line; /* of the last row */
    json_t *columns;
    char *field; /* a quoted field without its quotes */
    size_t field_size, field_room;
};

/* The bytes up to the end of the line, without it; false behind the last line. */
bool formats_records_take_line(formats_records *records, const char **line, size_t *size);

/* A string of the file as JSON; SIFR_FAILED, with file and line, unless it is UTF-8 without NUL. */
sifr_status formats_records_text(const formats_records *records, const char *text, size_t size,
                                 json_t **out, sifr_error *error) SIFR_MUST_CHECK;

/* CSV and TSV: the names of the columns; a row. */
sifr_status formats_records_header(formats_records *records, sifr_error *error) SIFR_MUST_CHECK;
sifr_status formats_records_fields(formats_records *records, json_t **row,
                                   sifr_error *error) SIFR_MUST_CHECK;

#endif

/* Private to src/data/parquet/, for builds with carquet. */
#ifndef DATA_PARQUET_INTERNAL_H
#define DATA_PARQUET_INTERNAL_H

#include "data/parquet/parquet.h"

/* carquet's own: the schema's tree and the pages of a column are not in its public interface. */
#include <reader/reader_internal.h>

/* What a leaf's values become. */
typedef enum parquet_form {
    PARQUET_LEFT_OUT,
    PARQUET_BOOLEAN,
    PARQUET_INTEGER,
    PARQUET_UNSIGNED,
    PARQUET_REAL,
    PARQUET_STRING,
    PARQUET_DATE, /* of INT32; these three become text */
    PARQUET_TIME,
    PARQUET_TIMESTAMP
} parquet_form;

typedef enum parquet_kind {
    PARQUET_LEAF,
    PARQUET_GROUP, /* an object */
    PARQUET_LIST,
    PARQUET_MAP /* a list of groups of key and value, both children of this node */
} parquet_kind;

enum { PARQUET_NONE = -1 };

/* A field. Its children are linked; those that are left out are not among them. */
typedef struct parquet_node {
    parquet_kind kind;
    const char *name;
    bool optional;
    int16_t there;   /* the definition level from which the field is not null */
    int16_t element; /* LIST, MAP: that of an element */
    int16_t repeats; /* LIST, MAP: the repetition level of a further element */
    int32_t child, next;
    int32_t first_leaf, leaf_end; /* cursors below it; a leaf's own is the first */
} parquet_node;

/* A leaf's column, from which a batch of values is at hand. */
typedef struct parquet_cursor {
    int32_t column;
    parquet_form form;
    carquet_physical_type_t type;
    carquet_time_unit_t unit; /* of times */
    bool zone;                /* timestamps are in UTC, not in a zone of nobody's */
    int16_t most;             /* the definition level of a value */
    bool repeated;
    carquet_column_reader_t *reader; /* of the row group */
    void *values;
    int16_t *definition, *repetition;
    int64_t count, at, value; /* levels; those taken; values taken */
    int64_t rows;             /* of the row group, begun so far */
} parquet_cursor;

struct data_parquet {
    char *name;
    size_t row_bytes;
    carquet_reader_t *reader;
    parquet_node *nodes;
    int32_t node_count, top; /* top: the first of the columns */
    parquet_cursor *cursors;
    int32_t cursor_count;
    json_t *columns;
    int32_t group;      /* the row group that is open, or the next */
    int64_t group_rows; /* that it has */
    int64_t group_row;  /* of those, the last one read */
    bool open;
    int64_t row;
    size_t bytes;   /* of the row so far */
    bool skippable; /* the failure is of this row alone */
};

/* SIFR_FAILED near the row that is read. */
SIFR_MUST_CHECK static inline sifr_status
data_parquet_damaged(const data_parquet *p, const char *what, sifr_error *error) {
    return base_fail(error, SIFR_FAILED, "%s: near row %lld the file is damaged: %s", p->name,
                     (long long)p->row, what);
}

/* parquet_schema.c: nodes and cursors from the schema. */
sifr_status data_parquet_schema(data_parquet *p, sifr_error *error) SIFR_MUST_CHECK;

/* parquet_column.c */
sifr_status data_parquet_open_column(data_parquet *p, parquet_cursor *cursor,
                                     sifr_error *error) SIFR_MUST_CHECK;
void data_parquet_close_column(parquet_cursor *cursor);
/* The levels of the next value; *there is false behind the last one. */
sifr_status data_parquet_peek(data_parquet *p, parquet_cursor *cursor, int16_t *definition,
                              int16_t *repetition, bool *there, sifr_error *error) SIFR_MUST_CHECK;
/* Passes over what was peeked; *out is its value, NULL unless the level is that of a value. Without
 * `out` no value is made. */
sifr_status data_parquet_take(data_parquet *p, parquet_cursor *cursor, json_t **out,
                              sifr_error *error) SIFR_MUST_CHECK;

/* parquet_time.c: a date or time as text; false outside of years 1 to 9999, or of a day. */
enum { PARQUET_TIME_SIZE = 64 };
bool data_parquet_time_text(const parquet_cursor *cursor, int64_t value,
                            char out[PARQUET_TIME_SIZE]);

/* parquet_row.c: the row that the cursors stand at. */
sifr_status data_parquet_assemble(data_parquet *p, json_t **row, sifr_error *error) SIFR_MUST_CHECK;
/* Passes over what is left of the row group's row of this number, from 1. */
sifr_status data_parquet_pass(data_parquet *p, int64_t row, sifr_error *error) SIFR_MUST_CHECK;

#endif

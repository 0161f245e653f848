/* Rows of a Parquet file, one at a time from front to back, through carquet (cmake/parquet.cmake),
 * which a build may leave out.
 *
 * A row is an object: strings, numbers, booleans, null, lists, objects. A map with strings as keys
 * is an object. Columns without such a form (bytes, dates, times, decimals) are left out. The
 * pages at hand are bounded, and so is a row. */
#ifndef DATA_PARQUET_H
#define DATA_PARQUET_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

typedef struct data_parquet data_parquet;

bool data_parquet_built(void);
const char *data_parquet_version(void); /* of carquet; NULL: not built */

/* SIFR_USAGE, with the command that converts the file, for a build without Parquet. */
sifr_status data_parquet_refuse(const char *path, sifr_error *error) SIFR_MUST_CHECK;

/* Of bytes that are borrowed; `name` begins the messages; a row has at most `row_bytes`, counted
 * as 16 a value and the bytes of strings. */
sifr_status data_parquet_open(const void *data, size_t size, const char *name, size_t row_bytes,
                              data_parquet **out, sifr_error *error) SIFR_MUST_CHECK;
void data_parquet_close(data_parquet *parquet); /* NULL is harmless */

/* The names of the columns that have a form, a list that belongs to the reader. */
const json_t *data_parquet_columns(const data_parquet *parquet);

/* The next row, a new object; NULL behind the last one. *skippable: what failed is this row alone,
 * and the next call reads the next one. */
sifr_status data_parquet_next(data_parquet *parquet, json_t **row, bool *skippable,
                              sifr_error *error) SIFR_MUST_CHECK;

/* The number of the last row, from 1. */
int64_t data_parquet_row(const data_parquet *parquet);

#endif

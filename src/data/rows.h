/* The numbers of a batch: `count` sequences of `length` tokens, one behind the other. */
#ifndef DATA_ROWS_H
#define DATA_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/errors.h"
#include "sifr/engine.h"

typedef struct data_rows {
    int64_t count, length;
    int32_t *tokens, *labels;
    int32_t *token_types, *segments; /* NULL: all 0 */
    int32_t *positions;              /* NULL: counted in each sequence */
    float *targets;                  /* `columns` numbers for each token; NULL: none */
    int64_t columns;
} data_rows;

/* What rows have beside tokens and labels. */
typedef enum data_rows_kind {
    DATA_ROWS_PLAIN,
    DATA_ROWS_PADDED, /* token types and segments */
    DATA_ROWS_PACKED  /* segments and positions */
} data_rows_kind;

/* Zeroed memory for `count` sequences of `length` tokens; free with data_rows_free. */
sifr_status data_rows_make(int64_t count, int64_t length, data_rows_kind kind, int64_t columns,
                           data_rows *out, sifr_error *error) SIFR_MUST_CHECK;
void data_rows_free(data_rows *rows); /* harmless on zeroed ones */

/* Leaves sequences first … count - 1 without tokens and labels. */
void data_rows_clear(const data_rows *rows, int64_t first);

/* As the engine reads them. */
sifr_batch data_rows_batch(const data_rows *rows);

#endif

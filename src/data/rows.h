/* The numbers of a batch: `count` sequences of `length` tokens, one behind the other. */
#ifndef TRAIN_ROWS_H
#define TRAIN_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/errors.h"
#include "sifr/engine.h"

typedef struct train_rows {
    int64_t count, length;
    int32_t *tokens, *labels;
    int32_t *token_types, *segments; /* NULL: all 0 */
    int32_t *positions;              /* NULL: counted in each sequence */
    float *targets;                  /* `columns` numbers for each token; NULL: none */
    int64_t columns;
} train_rows;

/* What rows have beside tokens and labels. */
typedef enum train_rows_kind {
    TRAIN_ROWS_PLAIN,
    TRAIN_ROWS_PADDED, /* token types and segments */
    TRAIN_ROWS_PACKED  /* segments and positions */
} train_rows_kind;

/* Zeroed memory for `count` sequences of `length` tokens; free with train_rows_free. */
sifr_status train_rows_make(int64_t count, int64_t length, train_rows_kind kind, int64_t columns,
                            train_rows *out, sifr_error *error) SIFR_MUST_CHECK;
void train_rows_free(train_rows *rows); /* harmless on zeroed ones */

/* Leaves sequences first … count - 1 without tokens and labels. */
void train_rows_clear(const train_rows *rows, int64_t first);

/* As the engine reads them. */
sifr_batch train_rows_batch(const train_rows *rows);

#endif

#include "data/rows.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"

static sifr_status take(data_rows *rows, size_t tokens, data_rows_kind kind, sifr_error *error) {
    int32_t **more = kind == DATA_ROWS_PADDED ? &rows->token_types : &rows->positions;
    BASE_TRY(base_alloc(tokens, sizeof *rows->tokens, &rows->tokens, error));
    BASE_TRY(base_alloc(tokens, sizeof *rows->labels, &rows->labels, error));
    if (kind == DATA_ROWS_PLAIN) return SIFR_OK;
    BASE_TRY(base_alloc(tokens, sizeof **more, more, error));
    return base_alloc(tokens, sizeof *rows->segments, &rows->segments, error);
}

sifr_status data_rows_make(int64_t count, int64_t length, data_rows_kind kind, int64_t columns,
                           data_rows *out, sifr_error *error) {
    base_assert(count >= 0 && length > 0 && columns >= 0);
    int64_t tokens, targets;
    *out = (data_rows){.count = count, .length = length, .columns = columns};
    if (!base_mul_i64(count, length, &tokens) || !base_mul_i64(tokens, columns, &targets))
        return base_fail_alloc(error, INT64_MAX);
    sifr_status status = take(out, (size_t)tokens, kind, error);
    if (status == SIFR_OK && columns)
        status = base_alloc((size_t)targets, sizeof *out->targets, &out->targets, error);
    if (status != SIFR_OK) data_rows_free(out);
    return status;
}

void data_rows_free(data_rows *rows) {
    free(rows->tokens);
    free(rows->labels);
    free(rows->token_types);
    free(rows->segments);
    free(rows->positions);
    free(rows->targets);
    *rows = (data_rows){0};
}

void data_rows_clear(const data_rows *rows, int64_t first) {
    base_assert(first >= 0 && first <= rows->count);
    for (int64_t i = first * rows->length; i < rows->count * rows->length; i++) {
        rows->tokens[i] = 0, rows->labels[i] = -100;
        if (rows->token_types) rows->token_types[i] = 0;
        if (rows->segments) rows->segments[i] = 0;
        if (rows->positions) rows->positions[i] = 0;
    }
}

sifr_batch data_rows_batch(const data_rows *rows) {
    return (sifr_batch){.tokens = rows->tokens,
                        .labels = rows->labels,
                        .token_types = rows->token_types,
                        .segments = rows->segments,
                        .positions = rows->positions,
                        .targets = rows->targets};
}

#include "train/data/rows.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/heap.h"

sifr_status train_rows_make(int64_t count, int64_t length, train_rows *out, sifr_error *error) {
    int64_t tokens;
    *out = (train_rows){.count = count, .length = length};
    if (!base_mul_i64(count, length, &tokens)) return base_fail_alloc(error, INT64_MAX);
    sifr_status status = base_alloc((size_t)tokens, sizeof *out->tokens, &out->tokens, error);
    if (status == SIFR_OK)
        status = base_alloc((size_t)tokens, sizeof *out->labels, &out->labels, error);
    if (status != SIFR_OK) train_rows_free(out);
    return status;
}

void train_rows_free(train_rows *rows) {
    free(rows->tokens);
    free(rows->labels);
    *rows = (train_rows){0};
}

void train_rows_clear(const train_rows *rows, int64_t first) {
    for (int64_t i = first * rows->length; i < rows->count * rows->length; i++)
        rows->tokens[i] = 0, rows->labels[i] = -100;
}

sifr_batch train_rows_batch(const train_rows *rows) {
    return (sifr_batch){.tokens = rows->tokens, .labels = rows->labels};
}

#include "train/profile/spread.h"

#include <stdlib.h>

#include "base/heap.h"

enum {
    PIECE = 64
}; /* values exchanged at a time, so that memory does not grow with their number */

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* `all` holds `part` values from each rank, rank after rank; `row` has room for one value from
 * each. */
static train_spread spread_of(const double *all, int32_t ranks, size_t part, size_t index,
                              double *row) {
    train_spread s = {0};
    for (int32_t r = 0; r < ranks; r++) {
        row[r] = all[(size_t)r * part + index];
        if (row[r] < row[s.least_rank]) s.least_rank = r;
        if (row[r] > row[s.most_rank]) s.most_rank = r;
    }
    s.least = row[s.least_rank];
    s.most = row[s.most_rank];
    qsort(row, (size_t)ranks, sizeof *row, compare);
    s.median = (row[(ranks - 1) / 2] + row[ranks / 2]) / 2;
    return s;
}

sifr_status train_spread_over(comm_group *group, const double *values, size_t count,
                              train_spread *out, sifr_error *error) {
    int32_t ranks = comm_size(group);
    double *all = NULL, *row;
    sifr_status status = base_alloc((size_t)ranks * (PIECE + 1), sizeof *all, &all, error);
    status = comm_agree_status(group, status, error);
    for (size_t at = 0; at < count && status == SIFR_OK; at += PIECE) {
        size_t part = count - at < PIECE ? count - at : PIECE;
        row = all + (size_t)ranks * PIECE;
        status = comm_all_gather_control(group, values + at, (int64_t)(part * sizeof *values), all,
                                         error);
        for (size_t i = 0; i < part && status == SIFR_OK; i++)
            out[at + i] = spread_of(all, ranks, part, i, row);
    }
    free(all);
    return status;
}

/* The values of one key of a run, thinned so that a run of any length takes the same memory. */
#ifndef TRAIN_VIEW_SERIES_H
#define TRAIN_VIEW_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/errors.h"

/* Consecutive values. Lowest and highest stay, so that no peak is lost. */
typedef struct train_view_bin {
    int64_t count;
    int64_t low_step, high_step, last_step;
    double low, high, last;
} train_view_bin;

typedef struct train_view_series {
    char key[64];
    int64_t count, undefined; /* values; of them those that are null */
    int64_t stride;           /* values in a bin, but for the last one */
    int64_t first_step, last_step, low_step, high_step;
    double low, high, last; /* of all that are defined */
    bool ends_undefined;    /* the newest value is null */
    train_view_bin *bins;
    size_t used, capacity; /* even */
} train_view_series;

/* `capacity`: bins; 0: totals alone. */
sifr_status train_view_series_open(train_view_series *series, const char *key, size_t length,
                                   size_t capacity, sifr_error *error) SIFR_MUST_CHECK;
void train_view_series_close(train_view_series *series);
void train_view_series_add(train_view_series *series, int64_t step, double value);

#endif

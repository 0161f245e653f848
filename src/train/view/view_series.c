#include "train/view/view_series.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/heap.h"

sifr_status train_view_series_open(train_view_series *series, const char *key, size_t length,
                                   size_t capacity, sifr_error *error) {
    *series = (train_view_series){.stride = 1, .capacity = capacity, .first_step = -1};
    base_assert(length < sizeof series->key && capacity % 2 == 0);
    memcpy(series->key, key, length);
    if (!capacity) return SIFR_OK;
    return base_alloc(capacity, sizeof *series->bins, &series->bins, error);
}

void train_view_series_close(train_view_series *series) {
    free(series->bins);
    *series = (train_view_series){0};
}

static void join(train_view_bin *to, const train_view_bin *from) {
    if (from->low < to->low) {
        to->low = from->low;
        to->low_step = from->low_step;
    }
    if (from->high > to->high) {
        to->high = from->high;
        to->high_step = from->high_step;
    }
    to->last = from->last;
    to->last_step = from->last_step;
    to->count += from->count;
}

static void halve(train_view_series *s) {
    for (size_t i = 0; i < s->capacity / 2; i++) {
        s->bins[i] = s->bins[2 * i];
        join(&s->bins[i], &s->bins[2 * i + 1]);
    }
    s->used = s->capacity / 2;
    s->stride *= 2;
}

static void note(train_view_series *s, int64_t step, double value) {
    bool first = s->count == s->undefined;
    if (first) s->first_step = step;
    if (first || value < s->low) {
        s->low = value;
        s->low_step = step;
    }
    if (first || value > s->high) {
        s->high = value;
        s->high_step = step;
    }
    s->last = value;
    s->last_step = step;
    s->count++;
}

void train_view_series_add(train_view_series *s, int64_t step, double value) {
    s->ends_undefined = !isfinite(value);
    if (s->ends_undefined) {
        s->count++;
        s->undefined++;
        return;
    }
    note(s, step, value);
    if (!s->capacity) return;
    train_view_bin bin = {1, step, step, step, value, value, value};
    if (s->used && s->bins[s->used - 1].count < s->stride) {
        join(&s->bins[s->used - 1], &bin);
        return;
    }
    if (s->used == s->capacity) {
        halve(s);
        if (s->bins[s->used - 1].count < s->stride) {
            join(&s->bins[s->used - 1], &bin);
            return;
        }
    }
    s->bins[s->used++] = bin;
}

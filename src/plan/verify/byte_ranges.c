#include "plan/verify/byte_ranges.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"

/* The first range that ends at or after `byte`. */
static size_t find(const plan_ranges *set, int64_t byte) {
    size_t low = 0, high = set->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (set->at[middle].to < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

sifr_status plan_ranges_add(plan_ranges *set, plan_range range, sifr_error *error) {
    size_t first = find(set, range.from), end = first;
    if (range.from >= range.to) return SIFR_OK;
    for (; end < set->count && set->at[end].from <= range.to; end++) {
        range.from = base_min_i64(range.from, set->at[end].from);
        range.to = base_max_i64(range.to, set->at[end].to);
    }
    if (end == first) {
        BASE_TRY(base_grow(&set->at, &set->capacity, set->count + 1, sizeof *set->at, error));
        memmove(set->at + first + 1, set->at + first, (set->count - first) * sizeof *set->at);
        set->count++;
    } else if (end - first > 1) {
        memmove(set->at + first + 1, set->at + end, (set->count - end) * sizeof *set->at);
        set->count -= end - first - 1;
    }
    set->at[first] = range;
    return SIFR_OK;
}

/* Appends a range that begins no earlier than the last one; *to has room. */
static void append(plan_ranges *to, plan_range range) {
    plan_range *last = to->count ? &to->at[to->count - 1] : NULL;
    base_assert(last ? range.from >= last->from : to->capacity > 0);
    if (last && range.from <= last->to)
        last->to = base_max_i64(last->to, range.to);
    else
        to->at[to->count++] = range;
}

sifr_status plan_ranges_add_rows(plan_ranges *set, plan_range first, int64_t rows, int64_t pitch,
                                 sifr_error *error) {
    plan_ranges merged = {.capacity = set->count + (size_t)rows};
    size_t old = 0;
    if (rows == 1) return plan_ranges_add(set, first, error);
    if (rows <= 0 || first.from >= first.to) return SIFR_OK;
    BASE_TRY(base_alloc(merged.capacity, sizeof *merged.at, &merged.at, error));
    for (int64_t r = 0; r < rows; r++) {
        plan_range row = {first.from + r * pitch, first.to + r * pitch};
        while (old < set->count && set->at[old].from <= row.from) append(&merged, set->at[old++]);
        append(&merged, row);
    }
    while (old < set->count) append(&merged, set->at[old++]);
    plan_ranges_free(set);
    *set = merged;
    return SIFR_OK;
}

bool plan_ranges_hold(const plan_ranges *set, plan_range range) {
    if (range.from >= range.to) return true;
    size_t i = find(set, range.from + 1);
    return i < set->count && set->at[i].from <= range.from && set->at[i].to >= range.to;
}

bool plan_ranges_meet(const plan_ranges *set, plan_range range) {
    if (range.from >= range.to) return false;
    size_t i = find(set, range.from + 1);
    return i < set->count && set->at[i].from < range.to;
}

void plan_ranges_empty(plan_ranges *set) {
    set->count = 0;
}

void plan_ranges_free(plan_ranges *set) {
    free(set->at);
    *set = (plan_ranges){0};
}

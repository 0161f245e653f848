/* A set of bytes, as ranges by rising address that do not touch each other. */
#ifndef PLAN_BYTE_RANGES_H
#define PLAN_BYTE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

typedef struct plan_range {
    int64_t from, to; /* to: behind the last byte */
} plan_range;

typedef struct plan_ranges { /* {0}: empty */
    plan_range *at;
    size_t count, room;
} plan_ranges;

sifr_status plan_ranges_add(plan_ranges *set, plan_range range, sifr_error *error) SIFR_MUST_CHECK;
/* `rows` ranges as long as `first`, whose starts are `pitch` bytes apart, at least its length.
 * Takes time for the ranges of the set and the rows, each once. */
sifr_status plan_ranges_add_rows(plan_ranges *set, plan_range first, int64_t rows, int64_t pitch,
                                 sifr_error *error) SIFR_MUST_CHECK;
bool plan_ranges_hold(const plan_ranges *set, plan_range range); /* all of it */
bool plan_ranges_meet(const plan_ranges *set, plan_range range); /* some of it */
void plan_ranges_empty(plan_ranges *set);                        /* keeps its room */
void plan_ranges_free(plan_ranges *set);

#endif

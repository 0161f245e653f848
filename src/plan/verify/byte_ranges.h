/* A set of bytes, as ascending ranges that do not touch each other. */
#ifndef PLAN_BYTE_RANGES_H
#define PLAN_BYTE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

typedef struct plan_range {
    int64_t from, to; /* to: after the last byte */
} plan_range;

typedef struct plan_ranges { /* {0}: empty */
    plan_range *at;
    size_t count, capacity;
} plan_ranges;

sifr_status plan_ranges_add(plan_ranges *set, plan_range range, sifr_error *error) SIFR_MUST_CHECK;
/* Adds `rows` ranges of the length of `first`, with starts `pitch` bytes apart (at least that
 * length). Time is linear in the ranges of the set and the rows. */
sifr_status plan_ranges_add_rows(plan_ranges *set, plan_range first, int64_t rows, int64_t pitch,
                                 sifr_error *error) SIFR_MUST_CHECK;
bool plan_ranges_hold(const plan_ranges *set, plan_range range); /* the whole range */
bool plan_ranges_meet(const plan_ranges *set, plan_range range); /* any byte of the range */
void plan_ranges_empty(plan_ranges *set);                        /* keeps its memory */
void plan_ranges_free(plan_ranges *set);

#endif

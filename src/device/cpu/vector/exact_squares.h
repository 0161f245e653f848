/* The exact sum of squares of a vector, by all threads (base/exact_sum.h). */
#ifndef CPU_EXACT_SQUARES_H
#define CPU_EXACT_SQUARES_H

#include "base/exact_sum.h"
#include "device/device.h"

/* Additions of integers have no order, so threads add as they come. */
static inline void exact_merge_parallel(base_exact_sum *sum, const base_exact_sum *own) {
    for (int d = 0; d < EXACT_DIGITS; d++)
        if (own->digits[d]) __atomic_fetch_add(&sum->digits[d], own->digits[d], __ATOMIC_RELAXED);
    if (own->infinite) __atomic_fetch_add(&sum->infinite, own->infinite, __ATOMIC_RELAXED);
    if (own->nan) __atomic_fetch_add(&sum->nan, own->nan, __ATOMIC_RELAXED);
}

/* The sum number `which` of a weight, 0 or 1. parts: INT64 n x 2 EXACT_WORDS, of its n parts. */
static inline double exact_total(const device_matrix *parts, int which) {
    base_exact_sum total = {0};
    for (int64_t r = 0; r < parts->rows; r++) {
        const base_exact_sum *part =
            (const void *)((const int64_t *)parts->data + r * parts->stride);
        base_exact_merge(&total, &part[which]);
    }
    return base_exact_round(&total);
}

/* Leaves a settled sum, whatever the number of threads. */
sifr_status cpu_run_exact_squares(device *dev, const device_call *call, sifr_error *error);

#endif

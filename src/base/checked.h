/* Checked arithmetic for every size that comes from a file, a flag or a config. */
#ifndef BASE_CHECKED_H
#define BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"

/* Each returns false, with *result undefined, if the true result does not fit. */
static inline bool base_add_size(size_t a, size_t b, size_t *result) {
    return !__builtin_add_overflow(a, b, result);
}

static inline bool base_mul_size(size_t a, size_t b, size_t *result) {
    return !__builtin_mul_overflow(a, b, result);
}

static inline bool base_add_i64(int64_t a, int64_t b, int64_t *result) {
    return !__builtin_add_overflow(a, b, result);
}

static inline bool base_mul_i64(int64_t a, int64_t b, int64_t *result) {
    return !__builtin_mul_overflow(a, b, result);
}

/* Rounds `value` >= 0 up to a multiple of `unit` > 0. */
static inline bool base_round_up_i64(int64_t value, int64_t unit, int64_t *result) {
    base_assert(value >= 0 && unit > 0);
    int64_t rest = value % unit;
    return rest == 0 ? (*result = value, true) : base_add_i64(value, unit - rest, result);
}

/* Rounds `value` up to a multiple of `unit`, unchecked: for sizes that are known to be small. */
static inline int64_t base_ceil_to(int64_t value, int64_t unit) {
    base_assert(value >= 0 && unit > 0);
    return (value + unit - 1) / unit * unit;
}

static inline int64_t base_min_i64(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t base_max_i64(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static inline bool base_is_power_of_two(int64_t n) {
    return n > 0 && (n & (n - 1)) == 0;
}

#endif

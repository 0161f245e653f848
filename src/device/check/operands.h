/* Checks of a call's operands, and places in its scratch, for the files that prepare calls. */
#ifndef DEVICE_OPERANDS_H
#define DEVICE_OPERANDS_H

#include "base/checked.h"
#include "base/errors.h"
#include "device/call.h"

/* SIFR_USAGE, which names kernel and operand, unless it has this shape and type. */
sifr_status device_check(const device_call *call, const device_matrix *m, const char *operand,
                         int64_t rows, int64_t columns, base_dtype dtype,
                         sifr_error *error) SIFR_MUST_CHECK;

/* SIFR_USAGE unless it is FP32, BF16 or FP16, and not empty. */
sifr_status device_check_activations(const device_call *call, const device_matrix *m,
                                     const char *operand, sifr_error *error) SIFR_MUST_CHECK;

/* SIFR_USAGE unless `rows` rows hold these words: whole blocks of the vocabulary, from the border
 * of one on, its last one with what it has. */
sifr_status device_check_split_words(const device_call *call, const device_words *words,
                                     int64_t rows, sifr_error *error) SIFR_MUST_CHECK;

/* Reserves the next `bytes` of scratch, in whole cache lines; returns their offset. */
static inline int64_t device_reserve(int64_t *total, int64_t bytes) {
    int64_t at = *total;
    *total += base_ceil_to(bytes, 64);
    return at;
}

#endif
